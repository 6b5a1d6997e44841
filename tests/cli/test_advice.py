"""Advice fits how a run ended, and never names what is set already."""

import pytest

from adom.cli.exit_codes import Exit, of_run
from adom.cli.solve import advice
from adom.run.endings import FINISHED
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
    told = advice(run)
    for option, value in SET.items():
        assert not (option in told and value in (run.protocol, oracle, dtype)), told
    if oracle is None:
        assert "--oracle" not in told
    assert ("--rounds" in told) == (status == "max_rounds" and message != FLOOR)
    assert bool(told) == (status != "converged")


def test_a_larger_tolerance_is_named_by_the_option_that_set_it():
    run = made([1.0], status="stalled", message=FLOOR, dtype="float64")
    assert advice(run, "--tol") == "ask for less by a larger --tol"


def test_the_codes_of_runs():
    assert [of_run(status, 1e-8) for status in FINISHED] == [0, 0, 1, 1, 1]
    assert [of_run(status, None) for status in FINISHED] == [0, 0, 1, 0, 1]
    assert of_run("interrupted", None) == Exit.INTERRUPTED
