"""How a run ended, told by its curve: synthetic ones here, and runs whose end is known."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import adom
from adom.dynamics.endings import FINISHED, judge

ROUNDS = np.arange(1, 1001)


def ripple(period, depth, decay):
    """A curve that falls as exp(-decay k), with dips of so many decades."""
    return np.exp(-decay * ROUNDS) * 10 ** (-depth * (1 - np.cos(2 * np.pi * ROUNDS / period)) / 2)


def noise(spread, seed=0):
    return 10 ** (spread * np.random.default_rng(seed).standard_normal(len(ROUNDS)))


CURVES = {
    "linear": (0.95**ROUNDS, "max_rounds"),
    "slow": (np.exp(-1e-6 * ROUNDS), "max_rounds"),
    "slow after a fast start": (0.3 * np.exp(-1e-4 * ROUNDS) + 0.7 * 0.8**ROUNDS, "max_rounds"),
    "sublinear": (1.0 / ROUNDS**2, "max_rounds"),
    "ripples": (ripple(90, 4.0, 0.02), "max_rounds"),
    "slow ripples": (ripple(700, 3.0, 0.02), "max_rounds"),
    "a rise at first": (np.exp(-((ROUNDS - 100) ** 2) / 2e5 + 5), "max_rounds"),
    "noisy fall": (0.99**ROUNDS * noise(0.5), "max_rounds"),
    "growth": (1.002**ROUNDS, "growing"),
    "growth to 2e11": (np.exp(26 * ROUNDS / 1000), "growing"),
    "growth after a least": (0.9**ROUNDS + 1e-12 * 1.02**ROUNDS, "growing"),
    "growth in noise": (1.02**ROUNDS * noise(0.3), "growing"),
    "growth in ripples": (ripple(90, 2.0, -0.02), "growing"),
    "slow growth after the floor": (np.maximum(0.9**ROUNDS, 1e-24) * (1 + 1e-5 * ROUNDS**2.0) ** 6, "growing"),
    "plateau": (0.9**ROUNDS + 1e-3, "stalled"),
    "plateau above the start": (50 * (1 - 0.9**ROUNDS) * (1 + 1e-15 * ROUNDS), "stalled"),
    "noisy plateau": (0.9**ROUNDS + 1e-3 * noise(0.1), "stalled"),
    "nothing happens": (np.ones(1000), "stalled"),
    "above the start": (30 + 20 * np.sin(ROUNDS / 7.0), "stalled"),
    "a rise at first, and far to go": (1e6 * np.exp(-1e-3 * ROUNDS), "stalled"),
    "high and falling in the end": (1e24 * np.where(ROUNDS < 800, 1.0, 0.5), "stalled"),
    "up and down above the start": (10 ** (1.0 + 30 * np.sin(ROUNDS / 60) ** 2), "stalled"),
    "lost": (np.append(1.1 ** ROUNDS[:-1], np.nan), "diverged"),
    "overflow": (np.append(1.1 ** ROUNDS[:-1], np.inf), "diverged"),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("tol", [None, 1e-30])
def test_the_curve_says_how_a_run_ended(name, tol):
    errors, expected = CURVES[name]
    ending = judge(ROUNDS, errors, 1.0, tol, floor=1e-24)
    assert ending.status == expected, ending
    assert ending.message or expected == "max_rounds"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_few_records_show_no_trend(count):
    high = judge(ROUNDS[:count], np.linspace(2, 3, count), 1.0)
    assert high == ("max_rounds", f"it ended at {3 if count > 1 else 2} times its start")
    assert judge(ROUNDS[:count], np.linspace(0.3, 0.2, count), 1.0) == ("max_rounds", "")
    assert judge(ROUNDS[:count], np.full(count, 1e-9), 1.0, tol=1e-8).status == "converged"


def test_without_a_record_or_a_measure_nothing_is_said():
    for rounds, measure in ((ROUNDS[:0], "error"), (ROUNDS, "")):
        assert judge(rounds, np.zeros(len(rounds)), 1.0, measure=measure).message == "the error was not recorded"


def test_at_the_floor_of_rounding():
    errors = np.maximum(0.8**ROUNDS, 3e-25 * noise(0.1))
    ending = judge(ROUNDS, errors, 1.0, floor=1e-24)
    assert ending == ("max_rounds", "at the floor of rounding since round 248")  # 0.8^248 < 1e-24
    assert judge(ROUNDS, errors, 1.0, tol=1e-28, floor=1e-24).status == "stalled"
    assert judge(ROUNDS, errors, 1.0, floor=1e-27).status == "stalled"  # above the floor, it is no excuse
    assert judge(ROUNDS, np.zeros(1000), 1.0, floor=1e-24).message == "at the floor of rounding since round 1"


def test_an_error_that_falls_tells_how_far_it_still_has_to_go():
    errors = 0.95**ROUNDS * (1.5 + np.sin(ROUNDS / 5))
    told = judge(ROUNDS[:200], errors[:200], 1.0, tol=1e-12).message
    needed = int(np.argmax(errors <= 1e-12)) + 1 - 200
    estimate = int(told.removeprefix("at this pace about ").partition(" more rounds to 1e-12")[0].replace(",", ""))
    assert estimate == pytest.approx(needed, rel=0.1)


def test_the_first_record_stands_in_for_a_start_that_is_not_known():
    ending = judge(ROUNDS, 5 * 1.01**ROUNDS, measure="gradient norm")
    assert ending.status == "growing"
    assert ending.message.startswith("the gradient norm rose from 5.05 at round 1 to")
    assert ending.message.endswith("times its first record")


curves = st.lists(st.floats(1e-30, 1e15) | st.just(float("inf")), min_size=1, max_size=80)


@settings(max_examples=150, deadline=None)
@given(curves, st.sampled_from([0.0, 1.0, 37.0]), st.sampled_from([None, 1e-6]), st.floats(-6, 6))
@example([1.0, 1.0, 1.0, 0.5, 2.0, 1.0], 1.0, 1e-6, 0.0)  # fewer records than eighths
def test_any_curve_gets_a_status_that_does_not_depend_on_units(errors, start, tol, power):
    errors, unit = np.array(errors), 2.0 ** round(power)
    rounds = np.arange(1, len(errors) + 1)
    ending = judge(rounds, errors, start, tol, 1e-20)
    assert ending.status in FINISHED
    assert judge(rounds, unit * errors, unit * start, tol and unit * tol, 1e-20).status == ending.status
    assert judge(3 * rounds, errors, start, tol, 1e-20).status == ending.status
    if np.isfinite(errors[-1]):
        assert ending.status != "diverged"
        assert (ending.status == "converged") == (tol is not None and errors[-1] <= tol)


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-5, 0.5), st.integers(4, 300), st.floats(0, 0.4))
def test_a_steady_fall_is_never_called_growth_and_its_mirror_always_is(pace, count, wobble):
    rounds = np.arange(1, count + 1)
    logs = pace * (rounds + wobble * np.sin(rounds))
    assert judge(rounds, np.exp(-logs), 1.0).status == "max_rounds"
    grown = judge(rounds, np.exp(logs), 1.0)
    assert grown.status == "growing" or logs[-1] < 0.5, grown


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(0)
    problem = adom.Quadratic(np.stack([np.diag([1.0, 4.0, 9.0])] * 6), rng.standard_normal((6, 3)))
    network = adom.networks.ring(6)
    good = adom.DIGing.unit(adom.constants(problem, network))
    steps = {"calm": good.a, "bold": 0.08}
    made = [replace(good, a=a) for a in steps.values()]
    found = adom.solve_many(problem, network, made, rounds=60)
    return dict(zip(steps, found, strict=True))


def test_a_run_that_grows_by_less_than_a_divergence_says_so(runs):
    bold = runs["bold"]
    grown = bold.history["error"].iloc[-1] / bold.provenance["start_error"]
    assert 2 < grown < 1e12  # it was called max_rounds
    assert bold.status == "growing"
    assert f"it ended at {grown:.3g} times its start" in bold.message
    assert bold.status in repr(bold)
    assert (runs["calm"].status, runs["calm"].message) == ("max_rounds", "")


def apart(nodes=6):
    rng = np.random.default_rng(1)
    return adom.Quadratic(np.stack([np.diag([1.0, 30.0])] * nodes), 100 * rng.standard_normal((nodes, 2)))


@pytest.mark.parametrize("every", [1, 7])
def test_a_dual_method_starts_at_its_first_iterate(every):
    """It ends far above the error at 0, and far below where it began, and still falls: it has not stalled."""
    rng, H = np.random.default_rng(0), []
    for _ in range(8):
        q, values = np.linalg.qr(rng.standard_normal((3, 3)))[0], 1e4 ** rng.uniform(0, 1, 3)
        H.append((q * values) @ q.T)
    H[0], H[-1] = np.eye(3), 1e4 * np.eye(3)
    problem, network = adom.Quadratic(np.stack(H), rng.standard_normal((8, 3))), adom.networks.ring(8)
    result = adom.solve(problem, network, "adom", "unit", rounds=399, record_every=every)
    first = adom.solve(problem, network, "adom", "unit", rounds=1).last["error"]
    errors, start = result.history["error"].to_numpy(), result.provenance["start_error"]
    assert 10 * start < errors[-1] < 0.5 * errors[len(errors) // 2] < 1e-3 * first
    assert (result.status, result.message) == ("max_rounds", "")


@pytest.mark.parametrize("every", [1, 7])
def test_a_dual_method_that_ends_above_its_first_iterate_says_so(every):
    """Even where that is far below the error at 0."""
    problem = apart()
    network = adom.networks.ring(6)
    bold = adom.DNM(theta=1.02 * problem.mu / network.lambda_max * 2, beta=0.0)
    first = adom.solve(problem, network, bold, rounds=1).last["error"]
    result = adom.solve(problem, network, bold, rounds=210, record_every=every)
    assert first < result.last["error"]
    assert result.status == "growing"
    assert f"it ended at {result.last['error'] / first:.3g} times its start" in result.message


def test_a_pilot_that_ends_far_above_its_start_has_diverged(monkeypatch):
    """Up to 1e200 a run may still go back; at its end it cannot."""
    from adom.run.auto.pilots import MixingPilot

    monkeypatch.setattr(MixingPilot, "_go_back", lambda self: None)
    network = adom.networks.alternate([adom.networks.ring(8), adom.networks.star(8)], every=1)
    problem = adom.Quadratic(np.stack([np.eye(3)] + [100 * np.eye(3)] * 7), np.ones((8, 3)) * np.arange(8)[:, None])
    result = adom.solve(problem, network, "opapc", rounds=400)
    assert 1e12 < result.last["error"] / result.provenance["start_error"] < 1e200
    assert result.status == "diverged"
    assert "when the rounds ended" in result.message
