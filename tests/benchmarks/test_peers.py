"""The scripts that `make bench-peers` compares do the same job, and its options are checked."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import adom

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NODES, SAMPLES, DIM, ROUNDS, GRAPHS = 30, 8, 5, 60, 25
SIZES = ["--nodes", NODES, "--samples", SAMPLES, "--dim", DIM, "--rounds", ROUNDS, "--graphs", GRAPHS]


def run(*words):
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=False)


def printed(script, *words):
    done = run(BENCHMARKS / "peers" / script, *SIZES, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def names_of(file):
    """Run a file under another name than a program's; return what it defines."""
    sys.path.insert(0, str(file.parent))
    try:
        return runpy.run_path(str(file))
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def numpy_script():
    return names_of(BENCHMARKS / "peers" / "numpy_script.py")


@pytest.fixture(scope="module")
def made(numpy_script):
    """Samples, graphs and the error after every round of the NumPy script."""
    features, labels = numpy_script["draw_samples"](NODES, SAMPLES, DIM)
    signed = features * labels[:, :, None]
    graphs = numpy_script["draw_graphs"](NODES, GRAPHS)
    L, mu = numpy_script["constants"](signed)
    solution = numpy_script["minimiser"](signed, mu)
    return features, labels, graphs, numpy_script["solve"](signed, L, mu, solution, graphs, ROUNDS)


def test_the_numpy_script_and_adom_make_the_same_rounds(made):
    features, labels, (laplacians, least, largest), errors = made
    problem = adom.LogisticRegression(features.reshape(-1, DIM), labels.ravel(), nodes=NODES, kappa=100.0)
    network = adom.networks.from_matrices(laplacians)
    assert (network.lambda_min_plus, network.lambda_max) == pytest.approx((least, largest), rel=1e-9)
    result = adom.solve(problem, network, "adom", "theory", ("gd", 1), rounds=ROUNDS)
    np.testing.assert_allclose(errors, result.columns["error"][-ROUNDS:], rtol=1e-9)


@pytest.mark.parametrize("script", ["numpy_script.py", "jax_script.py"])
def test_plain_scripts_end_at_the_same_error(script, made):
    found = printed(script, "--calls", 2)
    assert found["error"] == pytest.approx(made[-1][-1], rel=1e-9)
    assert len(found["calls"]) == 2
    assert found["per_round"] == pytest.approx(found["calls"][1] / ROUNDS)


def test_the_script_of_adom_says_what_solve_found(made):
    features, labels, _, _ = made
    problem = adom.LogisticRegression(features.reshape(-1, DIM), labels.ravel(), nodes=NODES, kappa=100.0)
    network = adom.networks.geometric(NODES, 0.33, graphs=GRAPHS, seed=0)
    expected = adom.solve(problem, network, "adom", "theory", ("gd", 1), rounds=ROUNDS).last["error"]
    found = printed("adom_script.py", "--oracle", "gd:1", "--calls", 1)
    assert found["error"] == pytest.approx(expected, rel=1e-9)
    assert 0 < found["per_round"] * ROUNDS < found["calls"][0]


def test_tables_are_ratios_to_the_numpy_script_of_the_least_of_the_repeats():
    peers = names_of(BENCHMARKS / "peers.py")
    plain = {"cold wall": 2.0, "cold cpu": 1.0, "warm": 0.4, "per round": 4e-4, "warm / loop": 1.0, "error": 0.1}
    noisy = {**plain, "cold wall": 3.0, "warm": 0.3, "warm / loop": 1.5}
    adom = {**plain, "cold wall": 3.0, "first wall": 3.5, "per round": 2e-4, "warm / loop": 2.0}
    found = {"numpy": peers["least"]([plain, noisy]), "gd:1": peers["least"]([adom])}
    assert found["numpy"] == {**plain, "warm": 0.3, "warm / loop": 1.5, "repeats": 2}
    times, kept = peers["tables"](peers["OURS"], found).split("\n\n")
    assert (
        times.splitlines()[-1]
        == "| adom | ADOM, one gradient | 1.50 | 1.00 | 1.33 | 0.50 | 3.00 | 1.00 | 0.400 | 200 |"
    )
    assert kept.splitlines()[-1] == "| adom | ADOM, one gradient | 1.50 | 1.75 | 0.50 | 2.00 |"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--repeats", "0"], "--repeats must be at least 1, got 0"),
        (["--python-of", "tvopt=/no/such/python"], "got 'tvopt=/no/such/python'"),
        (["--python-of", f"nobody={sys.executable}"], "a peer (nda, dadao, decent-bench, tvopt)"),
        (["--dadao", "/no/such/folder"], "a checkout of AdelNabli/DADAO, got '/no/such/folder'"),
        (["--only", "nobody"], "--only must be one of numpy, jax, gd:1"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(words, message):
    done = run(BENCHMARKS / "peers.py", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
