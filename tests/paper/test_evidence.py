"""Measures on curves that are known: rounds, targets, slopes, contests, exponents."""

from dataclasses import replace

import numpy as np
import pytest

from adom.paper import evidence
from adom.paper.evidence import Curve
from adom.paper.growth import power_law
from adom.util.cards import Markup
from adom.util.table import Table
from support.made import absent, four, linear, made, panel, seeds

OTHERS = ["mudag", "acc-dngd", "apm"]


def curve(*args, **more):
    return Curve(made(panel(), *args, **more).result)


def cell(outcomes):
    (runs,) = evidence.cells(evidence.table_of_runs(outcomes), "unit", ["kappa"]).values()
    return runs


def test_rounds_to_a_target():
    run = curve("adom", 400)  # eight digits in 400 rounds: 50 rounds a digit
    assert [run.cost_to(1e-2), run.cost_to(1e-2, "gradients"), run.cost_to(1e-9)] == [100, 100, np.inf]
    assert [run.first_round(1e-2), run.first_round(1e-9)] == [100, None]


def test_between_records_the_step_is_interpolated_and_counts_as_a_whole():
    result = made(panel(), "adom", 400).result
    thinned = replace(result, history=result.history.iloc[9::10])  # a record every 10 steps: rounds 10, 20, ...
    assert Curve(thinned).cost_to(10**-2.1) == 105  # 2.1 digits, not the record at 110
    assert curve("mudag", 400, step=90).cost_to(10**-2.1) == 180  # a step of 90 rounds cannot be cut


def test_a_target_that_was_lost_again_does_not_count():
    touched = curve("adom", lambda k: np.where(k < 500, 10 ** (-k / 100), 10 ** (-5 + (k - 500) / 100)))
    assert [touched.cost_to(1e-4), touched.cost_to(1e-1)] == [np.inf, 100]


def test_the_target_is_what_the_best_met_but_not_beyond_where_runs_stop():
    assert evidence.target_of(cell(four(panel(), 400, 900, 2000, 3000))) == 1e-8
    assert evidence.target_of(cell(four(panel(), 1500, 1900, 2000, 3000))) == 1e-5
    assert np.isnan(evidence.target_of(cell(four(panel(), 9000, 9000, 9000, 9000))))


def test_a_target_within_some_rounds():
    runs = cell(seeds(panel(), "adom", 400, 800, 900))
    assert evidence.target_within(runs, 1000) == 1e-8
    assert evidence.target_within(runs, 500) == 1e-5  # the run of 800 rounds, the median, has met it at 500
    assert np.isnan([evidence.target_within(runs, rounds) for rounds in (10, 0)]).all()


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
    row = evidence.contest(cell(four(panel(), adom, 400, 900, -500)), "adom", OTHERS)
    assert (row["outcome"], row["rival"], row["seeds"]) == (outcome, "mudag", 3)
    assert row["factor"].median == pytest.approx(factor, rel=0.02)
    assert row["rounds"]["apm"] == np.inf


def test_a_contest_where_others_miss_the_target_gives_a_bound():
    row = evidence.contest(cell(four(panel(), 500, 5000, 5000, -500)), "adom", OTHERS)
    assert (row["outcome"], row["bound"]) == ("won", True)
    assert row["factor"].median == 2.0  # the budget of 1000 rounds over 500


def test_where_nobody_gets_anywhere_last_errors_are_compared():
    row = evidence.contest(cell(four(panel(), 8000, 16000, 16000, -500)), "adom", OTHERS)
    assert (row["target"], row["outcome"], row["bound"]) == ("last error", "won", False)
    assert row["factor"].median == pytest.approx(10**0.5)  # digits in 1000 rounds: 1 against 1/2


def test_a_contest_is_seed_by_seed_over_the_seeds_that_both_have():
    here = panel()
    runs = [*seeds(here, "adom", 200, 200, 200), made(here, "mudag", 400, seed=1), made(here, "apm", 100, seed=7)]
    row = evidence.contest(cell(runs), "adom", OTHERS)
    assert (row["seeds"], row["factor"]) == (1, evidence.Interval(2.0, 2.0, 2.0))
    assert evidence.contest(cell(runs), "apm", ["mudag"]) is None


def test_runs_without_a_result_and_of_other_protocols_are_left_out():
    here = panel()
    others = [
        absent(here, "apm", "gone"),
        made(here, "adom", 9, protocol="tuned"),
        made(here, "adom", 9, variant="auto"),
    ]
    runs = cell([*seeds(here, "adom", 100), *others])
    assert set(runs["method"]) == {"adom"}
    assert evidence.contest(runs, "adom", ["mudag"]) is None


def test_converging_failed_and_slopes():
    fell, grew, flat = curve("adom", 4000), curve("adom", -400), curve("adom", lambda k: 0.5 + 0 * k)
    assert [run.converging for run in (fell, grew, flat)] == [True, False, False]
    assert [run.failed for run in (fell, grew, flat)] == [False, True, False]
    assert [run.stalled for run in (fell, grew, flat)] == [False, False, True]
    assert fell.slopes == pytest.approx((-0.002,) * 3, rel=1e-2)
    first, _, last = curve("apm", lambda k: 10 ** -np.sqrt(k / 40)).slopes
    assert last / first == pytest.approx((1 - np.sqrt(2 / 3)) / np.sqrt(1 / 3), rel=1e-2)
    assert (fell.pace, grew.pace) == (pytest.approx(2.0), 0)


@pytest.mark.parametrize("status", ["growing", "stalled"])
@pytest.mark.parametrize("shape", [lambda k: 1.01**k, lambda k: 0.5 + 0 * k, lambda k: 0.99**k + 1e-9 * 1.02**k])
def test_old_results_and_new_ones_are_judged_alike(status, shape):
    old = made(panel(), "adom", shape)
    assert old.result.status == "max_rounds"
    new = replace(old, result=replace(old.result, status=status))
    ours, theirs = (cell([one]).drop(columns=["status", "curve"]) for one in (new, old))
    assert ours.equals(theirs)
    assert Curve(new.result).cost_to(0.1) == Curve(old.result).cost_to(0.1)


def sweep(power, noise=(1.0, 1.0, 1.0), method="adom", kappas=(10.0, 100.0, 1000.0, 10000.0)):
    runs = []
    for kappa in kappas:
        place = panel("kappa", f"kappa {kappa:g}", kappa=kappa)
        runs += seeds(place, method, *(linear(8 * factor * kappa**power) for factor in noise), budget=10**5)
    return runs


def fitted(outcomes, method="adom", swept="kappa"):
    runs = evidence.finished(evidence.table_of_runs(outcomes), "unit", ["kappa", "chi"])
    return power_law(runs, method, swept)


def test_fit_finds_the_exponent_whatever_the_seed_contributes():
    law = fitted(sweep(0.6, noise=(1.0, 2.0, 5.0)))
    assert law.exponent == pytest.approx(0.6, abs=0.01)
    assert law.low <= law.exponent <= law.high < law.low + 0.05
    assert (law.points, law.target, law.dropped) == (12, 1e-8, 0)


def test_fit_interval_covers_what_noise_hides():
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(100):
        outcomes = []
        for kappa in (10.0, 100.0, 1000.0):
            place = panel("kappa", f"kappa {kappa:g}", kappa=kappa)
            outcomes += seeds(place, "adom", *(100 * kappa**0.5 * np.exp(rng.normal(0, 0.1, 3))), budget=10**4)
        law = fitted(outcomes)
        covered += law.low <= 0.5 <= law.high
    assert 88 <= covered <= 100


def test_fit_leaves_out_panels_that_get_nowhere_and_says_so():
    law = fitted(sweep(0.5, kappas=(10.0, 100.0, 1000.0)) + seeds(panel(name="far", kappa=1e4), "adom", 10**7))
    assert (law.dropped, law.target, law.points) == (3, 1e-4, 9)
    assert law.exponent == pytest.approx(0.5, abs=0.02)
    assert fitted(sweep(0.5, kappas=(10.0, 100.0))) == "fewer than three values of kappa"
    assert fitted(sweep(0.5), swept="chi") == "fewer than three values of chi"
    assert fitted(sweep(0.5), method="apm") == "no runs"


def test_evidence_is_what_json_can_hold():
    given = {"a": np.float64(1 / 3), "b": [np.inf, np.nan], "c": evidence.Interval(1.0, 0.5, np.inf)}
    wanted = {"a": 0.333333, "b": ["inf", "nan"], "c": {"median": 1.0, "low": 0.5, "high": "inf"}}
    assert evidence.plain(given) == wanted


def test_a_table_is_the_same_in_markdown_and_in_html():
    table = Table(["panel", Markup("<b>n</b>")], [["one | two\nthree", "<i>"], ["four", "5"]])
    assert table.markdown().splitlines()[2:] == ["| one \\| two three | <i> |", "| four | 5 |"]
    page = table.html("all & more", ["curves/one", ""])
    assert 'aria-label="all &amp; more"' in page
    assert '<th scope="col"><b>n</b></th>' in page
    assert '<tr><td><a href="#curves/one">one | two\nthree</a></td><td>&lt;i&gt;</td></tr>' in page
    assert "<tr><td>four</td><td>5</td></tr>" in page
    heads = table.html("", row_heads=True)
    assert '<tr><th scope="row">four</th><td class="number">5</td></tr>' in heads
