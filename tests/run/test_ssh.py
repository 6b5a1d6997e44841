"""Engine mpi over ssh, between machines that share nothing but a network: `mpirun --host`, as the page says."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import adom
from adom.data.node_shards import write_shard
from support.machines import machines, needs_machines
from support.ranks import ENVIRONMENT, mpirun, needs_mpi


@needs_mpi
@needs_machines
def test_two_machines_fit_a_model_to_their_own_tables(tmp_path):
    rng = np.random.default_rng(0)
    tables = []
    for number, rows in enumerate((40, 15)):
        table = pd.DataFrame(rng.standard_normal((rows, 2)), columns=["age", "dose"])
        table["ill"] = np.where(table["age"] + rng.standard_normal(rows) > 0, "yes", "no")
        home = tmp_path / f"machine{number}"
        home.mkdir()
        table.to_csv(home / "own.csv", index=False)
        write_shard(home / "own.csv", f"node{number}", home / "shards")
        tables.append(table)
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(Path(adom.__file__).parents[1])}
    passed_on = [word for name in (*ENVIRONMENT, "PYTHONPATH", "JAX_PLATFORMS") for word in ("-x", name)]
    home = tmp_path / "home"  # on every machine another folder
    words = ["solve", "--shards", home / "shards", "--nodes", 2, "--scale", "--C", 0.5, "--network", "path"]
    words += ["--method", "adom+", "--parameters", "unit", "--engine", "mpi", "--out", home / "out"]
    with machines(tmp_path, 2) as (addresses, agent):
        hosts = ",".join(f"{address}:1" for address in addresses)
        launch = [mpirun(), "--prtemca", "plm_ssh_agent", agent, "--host", hosts, "-n", 2, *passed_on]
        command = [str(word) for word in (*launch, sys.executable, "-m", "adom", *words)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert "converged" in done.stdout
    models = [adom.load_model(tmp_path / f"machine{number}" / "out" / "model.json") for number in range(2)]
    assert models[0].coefficients.tobytes() == models[1].coefficients.tobytes()
    every = pd.concat(tables)
    X = StandardScaler().fit_transform(every[["age", "dose"]])
    pooled = LogisticRegression(C=0.5, tol=1e-13, solver="newton-cholesky").fit(X, every["ill"])
    np.testing.assert_allclose(models[1].coefficients, pooled.coef_, atol=1e-6)
    np.testing.assert_allclose(models[1].intercept, pooled.intercept_, atol=1e-6)
    assert not list(home.iterdir())  # nothing was written outside of the machines
    assert (tmp_path / "machine0" / "out" / "result.npz").exists()
    assert not (tmp_path / "machine1" / "out" / "result.npz").exists()  # rank 0 alone has the table of the run
