"""The example of a benchopt benchmark whose solver calls adom."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("benchopt")
EXAMPLE = Path(__file__).parents[2] / "examples" / "benchopt"


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
