"""Every verdict on made-up results where the answer is known: it holds, fails, is on the border, has no runs."""

import numpy as np
import pytest

from adom.errors import InputError
from adom.paper.claims import CLAIMS, OLD_NAMES, entries, find_claim
from adom.paper.evidence import table_of_runs
from adom.paper.verdicts import NOT_REPRODUCED, NOT_TESTED, PARTLY, REPRODUCED
from support.made import absent, four, linear, made, panel, seeds, verified

KAPPAS = (10.0, 100.0, 1000.0)
GROW = -300  # eight digits up in 300 rounds


def judged(claim, outcomes, protocol="unit"):
    return CLAIMS[claim].entry(table_of_runs(outcomes), protocol)


def counts(entry):
    return entry.verdict, entry.holding, entry.tested


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("protocol", ["theory", "tuned"])
def test_without_runs_nothing_is_tested_and_the_reason_is_given(claim, protocol):
    entry = judged(claim, [], protocol)
    assert counts(entry) == (NOT_TESTED, 0, 0)
    assert entry.notes
    assert all(entry.notes)


@pytest.mark.parametrize(
    ("claim", "figure"),
    [
        ("best-over-kappa", "kappa"),
        ("best-over-chi", "chi"),
        ("best-on-real-data", "real_kappa"),
        ("real-networks", "real_networks"),
        ("dnm-diverges", "slow2"),
        ("dnm-faster", "slow2"),
        ("complete-graph", "complete"),
        ("acc-dngd-worsens", "chi"),
        ("apm-flattens", "kappa"),
        ("early-progress", "real_chi"),
    ],
)
def test_a_missing_data_set_is_named(claim, figure):
    entry = judged(claim, [absent(panel(figure), "adom", "w6a is missing")])
    assert entry.verdict == NOT_TESTED
    assert entry.notes == ("1 run missing: w6a is missing",)


def test_claims_are_found_by_their_ids_and_by_those_of_earlier_versions():
    assert [find_claim(name) for name in ("best-over-kappa", "kap")] == [CLAIMS["best-over-kappa"]] * 2
    assert {find_claim(old).name for old in OLD_NAMES} == CLAIMS.keys()
    with pytest.raises(InputError, match=r"no claim 'kapp'; claims: theorem-1, lemmas"):
        find_claim("kapp")


def test_every_protocol_that_was_run_is_judged_and_theory_always():
    judged_under = {}
    for entry in entries(table_of_runs([]), ["unit", "tuned"]):
        judged_under.setdefault(entry.claim, []).append(entry.protocol)
    assert judged_under.keys() == CLAIMS.keys()
    assert judged_under["best-over-kappa"] == ["unit", "tuned"]
    assert judged_under["theorem-1"] == ["theory"]


# Theory


@pytest.mark.parametrize(
    ("ratios", "verdict", "holding"),
    [
        ((0.9, 1.0), REPRODUCED, 2),
        ((0.9, 1.0 + 1e-7), REPRODUCED, 2),
        ((0.9, 1.1), PARTLY, 1),
        ((1.2, 1.1), NOT_REPRODUCED, 0),
    ],
)
def test_lemmas_and_theorem(ratios, verdict, holding):
    outcomes = [verified(ratio, name=str(ratio)) for ratio in ratios]
    lemmas, theorem = judged("lemmas", outcomes, "theory"), judged("theorem-1", outcomes, "theory")
    assert counts(lemmas) == (verdict, holding, 2)
    assert lemmas.evidence["worst"]["Lemma 4"] == pytest.approx(max(ratios), rel=1e-5)
    assert lemmas.evidence["rounds"] == 180
    assert counts(theorem) == (REPRODUCED, 2, 2)
    assert counts(judged("theorem-1", [verified(0.1, theorem=2.0)], "theory")) == (NOT_REPRODUCED, 0, 1)


def test_rounds_that_are_nothing_but_rounding_are_no_evidence():
    seen, blind = verified(0.1), verified(0.1, name="blind")
    for row in blind.data["rows"]:
        row |= {"rounds_checked": 0, "worst_ratio": None, "rounds": 100}
    for row in seen.data["rows"]:
        row["rounds"] = 100
    entry = judged("theorem-1", [seen, blind], "theory")
    assert counts(entry) == (REPRODUCED, 1, 1)
    assert "over 90 rounds" in entry.summary
    assert entry.notes == ("10 more rounds not checked: both sides are within rounding of 0",)
    assert judged("theorem-1", [blind], "theory").verdict == NOT_TESTED


def complete(power, apart=0.0, other=1.0):
    found = []
    for kappa in KAPPAS:
        place = panel("complete", f"kappa {kappa:g}", kappa=kappa, chi=1.0)
        rounds = 40 * kappa**power
        rows = np.full((4, 1), apart)
        for seed in range(3):
            found.append(made(place, "adom", rounds, seed=seed, budget=10**4, rows=rows))
            found.append(made(place, "pngd", rounds * other, seed=seed, budget=10**4))
    return found


def test_complete_graph():
    entry = judged("complete-graph", complete(0.5))
    assert counts(entry) == (REPRODUCED, 3, 3)
    assert entry.evidence["exponent"]["exponent"] == pytest.approx(0.5, abs=0.02)
    assert judged("complete-graph", complete(0.9)).verdict == PARTLY  # the same, but at another rate
    assert judged("complete-graph", complete(0.2)).verdict == PARTLY
    assert judged("complete-graph", complete(0.5, apart=1e-9)).verdict == REPRODUCED
    assert judged("complete-graph", complete(0.5, apart=1e-3)).verdict == NOT_REPRODUCED  # the last rows differ
    assert judged("complete-graph", complete(0.5, other=1.1)).verdict == NOT_REPRODUCED  # the histories differ
    alone = [one for one in complete(0.5) if one.job.panel.settings["kappa"] == 10]
    assert judged("complete-graph", alone).verdict == PARTLY
    assert "not fitted" in judged("complete-graph", alone).summary


def sweeps(method, kappa_power, chi_power, spread=(1.0, 1.0, 1.0), figures=("kappa", "chi")):
    found = []
    for kappa in KAPPAS:
        place = panel(figures[0], f"kappa {kappa:g}", kappa=kappa)
        factor = np.log(kappa) if method == "mudag" else 1.0
        found += seeds(place, method, *(20 * s * factor * kappa**kappa_power for s in spread), budget=20_000)
    for chi in (10.0, 30.0, 100.0):
        place = panel(figures[1], f"chi {chi:g}", chi=chi, dim=60)
        found += seeds(place, method, *(2 * chi**chi_power for _ in spread), budget=20_000)
    return found


def test_rates():
    entry = judged("rates", sweeps("adom", 0.5, 1.0) + sweeps("acc-dngd", 0.7, 1.5))
    assert counts(entry) == (REPRODUCED, 4, 4)
    fits = {(row["method"], row["against"]): row for row in entry.evidence["panels"]}
    assert fits["adom", "chi"]["exponent"] == pytest.approx(1.0, abs=0.03)
    assert fits["adom", "chi"]["low"] <= 1.0 <= fits["adom", "chi"]["high"] + 0.03
    assert fits["acc-dngd", "kappa"]["table"] == pytest.approx(5 / 7)
    assert counts(judged("rates", sweeps("mudag", 0.5, 1.0))) == (PARTLY, 2, 2)  # its logarithm is taken out; no ADOM
    assert counts(judged("rates", sweeps("adom", 0.2, 1.0))) == (REPRODUCED, 2, 2)  # a table of upper bounds
    assert counts(judged("rates", sweeps("adom", 0.8, 1.0))) == (PARTLY, 1, 2)
    assert counts(judged("rates", sweeps("adom", 0.8, 1.5))) == (NOT_REPRODUCED, 0, 2)


def test_rates_are_taken_from_the_sweeps_made_for_them_where_there_are_any():
    both = sweeps("adom", 0.9, 1.9) + sweeps("adom", 0.5, 1.0, figures=("rates", "rates"))
    assert counts(judged("rates", both)) == (REPRODUCED, 2, 2)


def test_a_rate_whose_interval_covers_the_limit_is_undecided():
    found = []
    for kappa, bend in zip(KAPPAS, (1.0, 1.8, 1.0), strict=True):
        place = panel("kappa", f"kappa {kappa:g}", kappa=kappa)
        found += seeds(place, "adom", 40 * bend * kappa**0.55, budget=5000)
    entry = judged("rates", found)
    assert [row["outcome"] for row in entry.evidence["panels"]] == ["undecided"]
    assert counts(entry) == (NOT_REPRODUCED, 0, 1)


# DNM


def slow(dnm, adom=600):
    places = [panel("slow2", f"every {number}", every=number) for number in range(8)]
    found = []
    for place, curve in zip(places, dnm, strict=False):
        found += seeds(place, "dnm", *(curve if isinstance(curve, tuple) else (curve,)))
        found += seeds(place, "adom", *(adom if isinstance(adom, tuple) else (adom,)))
    return found


def test_dnm_diverges():
    assert counts(judged("dnm-diverges", slow([GROW] * 7 + [200]))) == (REPRODUCED, 7, 8)
    assert counts(judged("dnm-diverges", slow([GROW] * 8))) == (REPRODUCED, 8, 8)
    assert counts(judged("dnm-diverges", slow([GROW] * 6 + [200] * 2))) == (PARTLY, 6, 8)
    assert counts(judged("dnm-diverges", slow([200] * 8))) == (NOT_REPRODUCED, 0, 8)
    assert counts(judged("dnm-diverges", slow([GROW] * 8, adom=GROW))) == (NOT_REPRODUCED, 0, 8)
    assert counts(judged("dnm-diverges", slow([GROW] * 8, adom=(600, 600, GROW)))) == (NOT_REPRODUCED, 0, 8)
    once = slow([GROW] * 8) + seeds(panel("slow2", "ring"), "dnm", GROW) + seeds(panel("slow2", "ring"), "adom", GROW)
    assert counts(judged("dnm-diverges", once)) == (PARTLY, 8, 9)


def test_dnm_diverges_in_a_panel_if_it_does_in_most_seeds():
    most = judged("dnm-diverges", slow([GROW] * 6 + [(GROW, GROW, 200), 200]))
    assert counts(most) == (REPRODUCED, 7, 8)
    assert most.evidence["panels"][6]["seeds DNM diverges"] == "2 of 3"
    assert counts(judged("dnm-diverges", slow([GROW] * 6 + [(GROW, 200, 200), 200]))) == (PARTLY, 6, 8)
    slowly = judged("dnm-diverges", slow([lambda k: 1 + k / 1000] * 8))  # ends above its start without an alarm
    assert counts(slowly) == (REPRODUCED, 8, 8)


def test_a_stall_is_told_and_not_counted():
    entry = judged("dnm-diverges", slow([GROW] * 6 + [lambda k: 10.0 ** -np.minimum(k / 100, 0.5), 200]))
    assert counts(entry) == (PARTLY, 6, 8)
    assert [row["DNM diverges or stalls"] for row in entry.evidence["panels"]] == [True] * 7 + [False]
    assert entry.evidence["panels"][6]["seeds DNM stalls"] == "3 of 3"
    assert "diverges in 6, diverges or stalls in 7" in entry.summary


def test_dnm_may_be_faster():
    entry = judged("dnm-faster", slow([GROW] * 7 + [200]))
    assert counts(entry) == (REPRODUCED, 1, 1)
    assert entry.evidence["panels"][0]["factor"] == {"median": 3.0, "low": 3.0, "high": 3.0}
    assert counts(judged("dnm-faster", slow([GROW] * 7 + [900]))) == (NOT_REPRODUCED, 0, 1)
    assert counts(judged("dnm-faster", slow([GROW] * 7 + [(500, 500, 700)]))) == (PARTLY, 0, 1)
    never = judged("dnm-faster", slow([GROW] * 8))
    assert (never.verdict, never.notes) == (NOT_TESTED, ("DNM converges in none of 8 panels",))


# Rankings


def ranking(figure, *adom, others=(400, 900, 900)):
    found = []
    for number, curve in enumerate(adom):
        found += four(panel(figure, f"panel {number}"), curve, *others)
    return found


@pytest.mark.parametrize(("claim", "figure"), [("best-over-kappa", "kappa"), ("best-over-chi", "chi")])
def test_adom_is_best(claim, figure):
    entry = judged(claim, ranking(figure, *[200] * 16))
    assert counts(entry) == (REPRODUCED, 16, 16)
    assert entry.notes == ()
    assert entry.evidence["factor"] == 2.0
    partly = judged(claim, ranking(figure, 200, 300, 800, (300, 390, 410)))
    assert counts(partly) == (PARTLY, 2, 4)
    assert [row["outcome"] for row in partly.evidence["panels"]] == ["won", "won", "lost", "undecided"]
    assert (partly.evidence["lost"], partly.evidence["undecided"]) == (1, 1)
    assert partly.notes == ("4 of the paper's 16 panels",)
    assert counts(judged(claim, ranking(figure, 800, GROW))) == (NOT_REPRODUCED, 0, 2)
    assert counts(judged(claim, ranking(figure, (300, 390, 410)))) == (NOT_REPRODUCED, 0, 1)  # undecided does not hold


def test_the_ranking_says_when_an_earlier_target_would_change_it():
    slow_start = lambda k: np.where(k < 300, 0.5, 10 ** (-(k - 300) / 10))  # noqa: E731  # late, then fast
    entry = judged("best-over-kappa", ranking("kappa", slow_start, others=(600, 900, 900)))
    assert counts(entry) == (REPRODUCED, 1, 1)
    assert entry.evidence["won at 1e-2"] == 0


def test_few_seeds_and_last_errors_are_noted():
    one_seed = [made(panel(), name, rounds) for name, rounds in (("adom", 9000), ("mudag", 20000))]
    entry = judged("best-over-kappa", one_seed)
    assert counts(entry) == (REPRODUCED, 1, 1)
    assert "1 seed only: no error bars" in entry.notes
    assert any("last errors" in note for note in entry.notes)


def test_real_data():
    stuck = ranking("real_kappa", 200, others=(400, 10**5, 900))
    assert counts(judged("best-on-real-data", stuck + ranking("real_chi", 200))) == (REPRODUCED, 2, 2)
    assert counts(judged("best-on-real-data", ranking("real_chi", 200, 200))) == (
        PARTLY,
        2,
        2,
    )  # but Acc-DNGD converges everywhere
    assert counts(judged("best-on-real-data", stuck + ranking("real_chi", 800))) == (PARTLY, 1, 2)
    assert counts(judged("best-on-real-data", ranking("real_chi", 800))) == (NOT_REPRODUCED, 0, 1)
    half = judged("best-on-real-data", [*stuck, absent(panel("real_chi"), "adom", "w6a is missing")])
    assert half.notes == ("1 of the paper's 24 panels", "1 run missing: w6a is missing")


def infectious(adom, small, large, chi=232.0, nodes=50):
    found = []
    for kappa, (mudag, apm) in {10.0: small, 1e4: large}.items():
        place = panel("real_networks", f"kappa {kappa:g}", kappa=kappa, chi=chi, nodes=nodes)
        found += four(place, adom, mudag, 900, apm, network={"graphs": 200})
    return found


def test_real_networks():
    entry = judged("real-networks", infectious(200, small=(400, 600), large=(600, 400)))
    assert counts(entry) == (REPRODUCED, 2, 2)
    assert "50 nodes, 200 graphs, chi 232" in entry.summary
    assert counts(judged("real-networks", infectious(200, (400, 600), (400, 600)))) == (PARTLY, 1, 2)
    assert counts(judged("real-networks", infectious(200, (600, 400), (400, 600)))) == (
        PARTLY,
        0,
        2,
    )  # ADOM is best at least
    assert counts(judged("real-networks", infectious(800, (400, 600), (600, 400)))) == (NOT_REPRODUCED, 0, 2)
    other = judged("real-networks", infectious(200, (400, 600), (600, 400), chi=300.0))
    assert counts(other) == (PARTLY, 2, 2)
    assert any("chi about 232" in note for note in other.notes)
    assert judged("real-networks", infectious(200, (400, 600), (600, 400), chi=240.0)).verdict == REPRODUCED
    assert judged("real-networks", infectious(200, (400, 600), (600, 400), nodes=49)).verdict == PARTLY


# Curves


def row_of(acc, others=(100, 200, 400), figure="kappa"):
    found = []
    for kappa, own, other in zip(KAPPAS, acc, others, strict=True):
        place = panel(figure, f"{figure} {kappa:g}", **{figure: kappa})
        found += four(place, other, 2 * other, own, 2 * other)
    return found


def test_acc_dngd_worsens():
    entry = judged("acc-dngd-worsens", row_of((200, 400, 1600)) + row_of((200, 800, GROW), figure="chi"))
    assert counts(entry) == (REPRODUCED, 2, 2)
    first = entry.evidence["panels"][0]
    assert first["slower"]["median"] == pytest.approx(8, rel=0.05)
    assert first["slower than others"]["median"] == pytest.approx(2, rel=0.05)
    same = row_of((200, 400, 700))  # it slows down, but less than the others do
    assert counts(judged("acc-dngd-worsens", same)) == (NOT_REPRODUCED, 0, 1)
    assert counts(judged("acc-dngd-worsens", row_of((200, 400, 1600)) + row_of((300, 200, 100), figure="chi"))) == (
        PARTLY,
        1,
        2,
    )
    torn = judged("acc-dngd-worsens", row_of((200, 400, (700, 1600, 1600))))
    assert [row["outcome"] for row in torn.evidence["panels"]] == ["undecided"]
    assert torn.verdict == NOT_REPRODUCED
    assert judged("acc-dngd-worsens", four(panel(), 100, 100, 100, 100)).verdict == NOT_TESTED  # one value of kappa
    still = judged("acc-dngd-worsens", row_of((10**6, 10**6, 10**6)))
    assert still.verdict == NOT_TESTED
    assert "say nothing" in still.notes[0]
    assert judged("acc-dngd-worsens", row_of((200, 400, 10**6))).evidence["panels"][0]["slower"]["median"] == "inf"


def bent(scale=40.0):
    return lambda k: 10 ** -np.sqrt(k / scale)


def test_apm_flattens():
    entry = judged(
        "apm-flattens", ranking("kappa", 500, others=(900, 900, bent())) + ranking("chi", 500, others=(9, 9, bent()))
    )
    assert counts(entry) == (REPRODUCED, 2, 2)
    row = entry.evidence["panels"][0]
    assert row["ratio"]["median"] == pytest.approx(0.32, abs=0.01)
    assert row["ADOM's ratio"]["median"] == pytest.approx(1.0, abs=0.01)
    steeper = lambda k: 10 ** -((k / 400) ** 2)  # noqa: E731  # a curve, named
    assert counts(judged("apm-flattens", ranking("kappa", 500, others=(900, 900, steeper)))) == (NOT_REPRODUCED, 0, 1)
    assert counts(judged("apm-flattens", ranking("kappa", 500, others=(900, 900, GROW)))) == (NOT_REPRODUCED, 0, 1)
    torn = judged("apm-flattens", ranking("kappa", 500, others=(900, 900, (bent(), bent(), steeper))))
    assert [row["outcome"] for row in torn.evidence["panels"]] == ["undecided"]
    both = ranking("kappa", 500, others=(900, 900, bent())) + ranking("chi", 500, others=(900, 900, steeper))
    assert counts(judged("apm-flattens", both)) == (PARTLY, 1, 2)


def truncated(*pairs, figure="kappa"):
    found = []
    for number, (few, exact) in enumerate(pairs):
        place = panel(figure, f"panel {number}")
        found += seeds(place, "adom", *(few if isinstance(few, tuple) else (few,)), oracle="gd:1")
        found += seeds(place, "adom", exact, variant="exact", oracle="exact")
    return found


def test_few_inner_steps():
    entry = judged("few-inner-steps", truncated((450, 400), (600, 400)))
    assert counts(entry) == (REPRODUCED, 2, 2)
    assert entry.evidence["panels"][0]["ratio"]["median"] == pytest.approx(450 / 400)
    partly = judged("few-inner-steps", truncated((450, 400), (610, 400), (GROW, 400), ((600, 620, 400), 400)))
    assert counts(partly) == (PARTLY, 1, 4)
    outcomes = [row["outcome"] for row in partly.evidence["panels"]]
    assert outcomes == ["enough", "not enough", "not enough", "undecided"]
    assert partly.evidence["panels"][2]["ratio"]["median"] == "inf"
    assert counts(judged("few-inner-steps", truncated((GROW, 400)))) == (NOT_REPRODUCED, 0, 1)


def test_where_the_exact_oracle_fails_too_nothing_is_said_about_inner_steps():
    entry = judged("few-inner-steps", truncated((GROW, GROW)))
    assert entry.verdict == NOT_TESTED
    assert "exact oracle does not converge" in entry.notes[0]
    assert counts(judged("few-inner-steps", truncated((GROW, GROW), (400, 400)))) == (REPRODUCED, 1, 1)
    slowly = judged("few-inner-steps", truncated((9000, 8000), (20000, 8000)))  # nobody meets 1e-2: by pace
    assert counts(slowly) == (PARTLY, 1, 2)


def test_inner_steps_are_not_judged_by_a_target_that_their_budget_forbids():
    late = judged("few-inner-steps", truncated((1100, 990)))  # the exact oracle meets 1e-8 at the end of 1000 rounds
    assert counts(late) == (REPRODUCED, 1, 1)
    assert late.evidence["panels"][0]["ratio"]["median"] == pytest.approx(1100 / 990, rel=0.01)


def hump(peak, rounds=500):
    return lambda k: linear(rounds)(k) * (1 + (peak - 1) * np.minimum(k / 20, 1) * np.exp(-np.maximum(k - 20, 0) / 30))


def test_early_progress():
    entry = judged("early-progress", ranking("real_chi", 200, 200, others=(hump(50.0), 900, hump(50.0))))
    assert counts(entry) == (REPRODUCED, 2, 2)
    assert entry.evidence["rises"] == {"apm": 2, "mudag": 2}
    often = ranking("real_chi", 200, others=(hump(50.0), 900, 900)) + ranking("real_kappa", 200, others=(900, 900, 900))
    assert counts(judged("early-progress", often)) == (REPRODUCED, 1, 2)  # half of the panels are "often"
    seldom = often + ranking("chi", 200, others=(900, 900, 900))
    assert counts(judged("early-progress", seldom)) == (PARTLY, 1, 3)
    assert counts(judged("early-progress", ranking("real_chi", 200, others=(900, 900, 900)))) == (NOT_REPRODUCED, 0, 1)
    assert counts(judged("early-progress", ranking("real_chi", hump(50.0), others=(hump(50.0), 900, 900)))) == (
        NOT_REPRODUCED,
        0,
        1,
    )
    slight = ranking("real_chi", 200, others=(lambda k: 1.05 * linear(900)(k), 900, 900))
    assert judged("early-progress", slight).evidence["rises"]["mudag"] == 0  # five per cent are no divergence
