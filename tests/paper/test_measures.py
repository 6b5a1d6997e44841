"""Measures on curves that are known: rounds, targets, slopes, contests, exponents."""

from dataclasses import replace

import numpy as np
import pytest

from adom.paper import measures
from support.made import absent, four, linear, made, panel, seeds


def cell(outcomes):
    (runs,) = measures.grouped(outcomes, "unit", ["kappa"]).values()
    return runs


def test_rounds_to_a_target():
    run = made(panel(), "adom", 400)  # eight digits in 400 rounds: 50 rounds a digit
    assert measures.cost_to(run, 1e-2) == 100
    assert measures.cost_to(run, 1e-2, "gradients") == 100
    assert measures.cost_to(run, 1e-9) == np.inf


def test_between_records_the_step_is_interpolated_and_counts_as_a_whole():
    run = made(panel(), "adom", 400)
    sparse = run.result.history.iloc[9::10]  # a record every 10 steps: rounds 10, 20, ...
    thinned = type(run)(run.job, type(run.result)(run.result.x, sparse, "converged", run.result.provenance))
    assert measures.cost_to(thinned, 10**-2.1) == 105  # 2.1 digits, not the record at 110
    long_steps = made(panel(), "mudag", 400, step=90)  # a step of 90 rounds cannot be cut
    assert measures.cost_to(long_steps, 10**-2.1) == 180


def test_a_target_that_was_lost_again_does_not_count():
    touched = made(panel(), "adom", lambda k: np.where(k < 500, 10 ** (-k / 100), 10 ** (-5 + (k - 500) / 100)))
    assert measures.cost_to(touched, 1e-4) == np.inf
    assert measures.cost_to(touched, 1e-1) == 100


def test_the_target_is_what_the_best_met_but_not_beyond_where_runs_stop():
    assert measures.target_of(cell(four(panel(), 400, 900, 2000, 3000))) == 1e-8
    assert measures.target_of(cell(four(panel(), 1500, 1900, 2000, 3000))) == 1e-5
    assert np.isnan(measures.target_of(cell(four(panel(), 9000, 9000, 9000, 9000))))


def test_a_target_within_some_rounds():
    runs = cell(seeds(panel(), "adom", 400, 800, 900))["adom"]
    assert measures.target_within(runs, 1000) == 1e-8
    assert measures.target_within(runs, 500) == 1e-5  # the run of 800 rounds, the median, has met it at 500
    assert np.isnan(measures.target_within(runs, 10))
    assert np.isnan(measures.target_within(runs, 0))


@pytest.mark.parametrize(
    ("adom", "outcome", "factor"),
    [
        (200, "won", 2.0),
        (800, "lost", 0.5),
        ((200, 300, 401), "undecided", 400 / 300),
        ((300, 350, 400), "undecided", 400 / 350),  # a tie in one seed
    ],
)
def test_contest(adom, outcome, factor):
    found = measures.contest(cell(four(panel(), adom, 400, 900, -500)), "adom", ["mudag", "acc-dngd", "apm"])
    assert (found.outcome, found.rival, found.seeds) == (outcome, "mudag", 3)
    assert found.factor.median == pytest.approx(factor, rel=0.02)
    assert found.rounds["apm"] == np.inf


def test_a_contest_where_others_miss_the_target_gives_a_bound():
    found = measures.contest(cell(four(panel(), 500, 5000, 5000, -500)), "adom", ["mudag", "acc-dngd", "apm"])
    assert found.outcome == "won"
    assert found.bound
    assert found.factor.median == 2.0  # the budget of 1000 rounds over 500


def test_where_nobody_gets_anywhere_last_errors_are_compared():
    found = measures.contest(cell(four(panel(), 8000, 16000, 16000, -500)), "adom", ["mudag", "acc-dngd", "apm"])
    assert np.isnan(found.target)
    assert found.outcome == "won"
    assert found.factor.median == pytest.approx(10**0.5)  # digits in 1000 rounds: 1 against 1/2


def test_runs_without_a_result_and_of_other_protocols_are_left_out():
    here = panel()
    others = [
        absent(here, "apm", "gone"),
        made(here, "adom", 9, protocol="tuned"),
        made(here, "adom", 9, variant="auto"),
    ]
    assert cell([*seeds(here, "adom", 100), *others]).keys() == {"adom"}
    assert measures.contest(cell(seeds(here, "adom", 100)), "adom", ["mudag"]) is None


def test_converging_failed_and_slopes():
    fell, grew = made(panel(), "adom", 4000), made(panel(), "adom", -400)
    flat = made(panel(), "adom", lambda k: 0.5 + 0 * k)
    assert [measures.converging(one) for one in (fell, grew, flat)] == [True, False, False]
    assert [measures.failed(one) for one in (fell, grew, flat)] == [False, True, False]
    assert measures.thirds(fell) == pytest.approx((-0.002,) * 3, rel=1e-2)
    bent = made(panel(), "apm", lambda k: 10 ** -np.sqrt(k / 40))
    first, _, last = measures.thirds(bent)
    assert last / first == pytest.approx((1 - np.sqrt(2 / 3)) / np.sqrt(1 / 3), rel=1e-2)
    assert measures.pace(fell) == pytest.approx(2.0)
    assert measures.pace(grew) == 0


@pytest.mark.parametrize("status", ["growing", "stalled"])
@pytest.mark.parametrize("curve", [lambda k: 1.01**k, lambda k: 0.5 + 0 * k, lambda k: 0.99**k + 1e-9 * 1.02**k])
def test_old_results_and_new_ones_are_judged_alike(status, curve):
    old = made(panel(), "adom", curve)
    assert old.result.status == "max_rounds"
    new = replace(old, result=replace(old.result, status=status))
    for judged in (measures.last_error, measures.failed, measures.stalled, measures.converging, measures.pace):
        assert judged(new) == judged(old)
    assert measures.cost_to(new, 0.1) == measures.cost_to(old, 0.1)
    assert cell([new]).keys() == cell([old]).keys()


def sweep(power, noise=(1.0, 1.0, 1.0), method="adom", kappas=(10.0, 100.0, 1000.0, 10000.0), **more):
    found = []
    for kappa in kappas:
        place = panel("kappa", f"kappa {kappa:g}", kappa=kappa)
        found += seeds(place, method, *(linear(8 * factor * kappa**power) for factor in noise), budget=10**5, **more)
    return found


def fitted(outcomes, method="adom", swept="kappa", **more):
    return measures.fit(measures.grouped(outcomes, "unit", ["kappa", "chi"]).values(), method, swept, **more)


def test_fit_finds_the_exponent_whatever_the_seed_contributes():
    found = fitted(sweep(0.6, noise=(1.0, 2.0, 5.0)))
    assert found.exponent == pytest.approx(0.6, abs=0.01)
    assert found.low <= found.exponent <= found.high < found.low + 0.05
    assert (found.points, found.target, found.dropped) == (12, 1e-8, 0)


def test_fit_interval_covers_what_noise_hides():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(100):
        outcomes = []
        for kappa in (10.0, 100.0, 1000.0):
            place = panel("kappa", f"kappa {kappa:g}", kappa=kappa)
            outcomes += seeds(place, "adom", *(100 * kappa**0.5 * np.exp(rng.normal(0, 0.1, 3))), budget=10**4)
        found = fitted(outcomes)
        covered += found.low <= 0.5 <= found.high
    assert 88 <= covered <= 100


def test_fit_leaves_out_panels_that_get_nowhere_and_says_so():
    found = fitted(sweep(0.5, kappas=(10.0, 100.0, 1000.0)) + seeds(panel(name="far", kappa=1e4), "adom", 10**7))
    assert (found.dropped, found.target, found.points) == (3, 1e-4, 9)
    assert found.exponent == pytest.approx(0.5, abs=0.02)
    assert fitted(sweep(0.5, kappas=(10.0, 100.0))) == "fewer than three values of kappa"
    assert fitted(sweep(0.5), swept="chi") == "fewer than three values of chi"
    assert fitted(sweep(0.5), method="apm") == "no runs"


def test_evidence_is_what_json_can_hold():
    found = measures.plain({"a": np.float64(1 / 3), "b": [np.inf, np.nan], "c": measures.Interval(1.0, 0.5, np.inf)})
    assert found == {"a": 0.333333, "b": ["inf", "nan"], "c": {"median": 1.0, "low": 0.5, "high": "inf"}}
