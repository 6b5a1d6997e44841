"""The example of a benchopt benchmark whose solver calls adom."""

import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "benchopt"


def test_without_rounds_the_solver_is_at_its_start(monkeypatch):
    monkeypatch.setitem(sys.modules, "benchopt", SimpleNamespace(BaseSolver=object))
    solver = runpy.run_path(str(EXAMPLE / "solvers" / "adom.py"))["Solver"]()
    solver.method, solver.protocol, solver.radius = "diging", "auto", 0.7
    rng = np.random.default_rng(0)
    solver.set_objective(rng.standard_normal((30, 3)), rng.standard_normal(30), 0.1, 6)
    rows = []
    for rounds in (0, 1, 2):
        solver.run(rounds)
        rows.append(solver.get_result()["rows"])
    assert not rows[0].any()
    assert rows[0].shape == rows[1].shape == (6, 3)
    assert [rows[1].any(), np.array_equal(rows[1], rows[2])] == [True, False]


@pytest.mark.skipif(find_spec("benchopt") is None, reason="benchopt is not installed; pip install benchopt brings it")
def test_benchopt_runs_the_solver_and_its_objective_falls(tmp_path):
    import pandas as pd

    folder = shutil.copytree(EXAMPLE, tmp_path / "benchmark")
    options = ["--max-runs", "5", "--no-plot", "--n-repetitions", "1", "-s", "adom[method=[adom,diging]]"]
    call = [sys.executable, "-m", "benchopt", "run", str(folder), *options]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = (folder / "outputs").glob("*.parquet")
    runs = pd.read_parquet(file)
    for _, one in runs.groupby("solver_name"):
        values = one.sort_values("stop_val")["objective_value"].to_numpy()
        assert (values > -1e-12).all()
        assert values[-1] < 0.5 * values[0]
    assert runs["solver_name"].nunique() == 2
