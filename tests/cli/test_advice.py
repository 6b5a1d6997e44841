"""Advice fits how a run ended, and never names what is set already."""

import numpy as np
import pytest

from adom.cli.exit_codes import Exit, of_run
from adom.cli.solve import advice
from adom.dynamics.endings import FINISHED, judge
from support.drawn import made

FLOOR = "at the floor of rounding since round 3"
SET = {"--parameters theory": "theory", "--oracle exact": "exact", "--dtype float64": "float64"}


@pytest.mark.parametrize("status", FINISHED)
@pytest.mark.parametrize("message", ["", FLOOR, "the error rose from 1 at round 3 to 2 at round 9"])
@pytest.mark.parametrize("protocol", ["theory", "unit", {"protocol": "theory", "eta": 0.1}])
@pytest.mark.parametrize("oracle", [None, "exact", "gd:1"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nothing_is_advised_that_is_set_or_does_not_help(status, message, protocol, oracle, dtype):
    run = made([1.0, 0.5], status=status, protocol=protocol, oracle=oracle, dtype=dtype, message=message)
    told = advice(run, "--rtol")
    for option, value in SET.items():
        assert not (option in told and value in (run.protocol, oracle, dtype)), told
    if oracle is None:
        assert "--oracle" not in told
    assert ("--rounds" in told) == (status == "max_rounds" and message != FLOOR)
    assert bool(told) == (status != "converged")


def test_a_larger_tolerance_is_named_by_the_option_that_set_it():
    run = made([1.0], status="stalled", message=FLOOR, dtype="float64")
    assert advice(run, "--tol") == "ask for less by a larger --tol"


def noisy(recipe):
    return {"generator": "delayed", "rounds": 1, "network": {"generator": "noisy", "std": 1e-3, "network": recipe}}


RING = {"generator": "ring", "nodes": 5}


@pytest.mark.parametrize(
    ("network", "cause"),
    [
        (noisy(RING), "noise on the links leaves a floor, or errors that grow, with any parameters; docs/links.md"),
        ({"generator": "quantised", "feedback": False, "network": RING}, "leave --no-feedback out (docs/links.md)"),
        (
            {"generator": "sparsified", "choice": "largest", "feedback": False},
            "leave --no-feedback out (docs/links.md)",
        ),
        ({"generator": "lossy", "one_way": 0.1, "healing": False}, "leave --no-healing out (docs/loss.md)"),
        ({"generator": "lossy", "one_way": 0.0, "leaving": {"1": [3]}, "healing": False}, "leave --no-healing out"),
        ({"generator": "noisy", "std": 0.0, "network": RING}, ""),
        ({"generator": "quantised", "feedback": True, "network": RING}, ""),
        ({"generator": "sparsified", "choice": "random", "feedback": False}, ""),
        ({"generator": "lossy", "one_way": 0.1, "healing": True}, ""),
        ({"generator": "delayed", "rounds": 2, "network": RING}, ""),
    ],
)
def test_links_are_named_where_they_are_the_cause(network, cause):
    for status in ("growing", "stalled"):
        told = advice(made([1.0, 0.5], status=status, protocol="unit", oracle="auto", network=network), "--rtol")
        assert cause in told
        assert ("take --parameters theory" in told) == (not cause)
    assert "take --parameters theory" in advice(
        made([1.0], status="diverged", protocol="unit", network=network), "--rtol"
    )
    told = advice(made([1.0, 0.5], status="max_rounds", protocol="unit", network=network), "--rtol")
    assert told.startswith("raise --rounds for more")
    assert cause in told


def test_the_codes_of_runs():
    assert [of_run(status, 1e-8) for status in FINISHED] == [0, 0, 1, 1, 1]
    assert [of_run(status, None) for status in FINISHED] == [0, 0, 1, 0, 1]
    assert of_run("interrupted", None) == Exit.INTERRUPTED


@pytest.mark.parametrize("status", ["growing", "stalled", "diverged"])
def test_theory_is_no_advice_where_it_proves_nothing(status):
    run = made([1.0, 0.5], status=status, oracle="exact", outside="proved for networks that do not change")
    assert "theory" not in advice(run, "--rtol")
    assert "--method adom" in advice(run, "--rtol")
    connected = made(
        [1.0, 0.5], status=status, oracle="exact", outside="proved for graphs that are connected in every round"
    )
    assert "--parameters theory" in advice(connected, "--rtol")  # in windows its proof holds


def test_a_run_that_falls_but_stays_above_its_start_may_take_more_rounds():
    message = judge(np.arange(1, 1001), 1e6 * np.exp(-1e-3 * np.arange(1000)), 1.0).message
    told = advice(made([1.0], status="stalled", message=message), "--rtol")
    assert told.startswith("raise --rounds; take")
