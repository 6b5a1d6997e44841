"""Every verdict on made-up results where the answer is known: it holds, fails, is on the border, has no runs."""

import numpy as np
import pytest

from adom.errors import InputError
from adom.paper.claims import CLAIMS, entries, find_claim
from adom.paper.evidence import table_of_runs
from adom.paper.verdicts import NOT_REPRODUCED, NOT_TESTED, PARTLY, REPRODUCED
from support.made import absent, four, linear, made, panel, seeds, verified

KAPPAS = (10.0, 100.0, 1000.0)
GROW = -300  # eight digits up in 300 rounds


def judged(claim, outcomes, protocol="unit"):
    return CLAIMS[claim].entry(table_of_runs(outcomes), protocol)


def counts(entry):
    return entry.verdict, entry.holding, entry.tested


def rows(entry, column):
    return [row[column] for row in entry.evidence["panels"]]


# Made-up runs, from what is said of their curves


def complete(power, apart=0.0, other=1.0, kappas=KAPPAS):
    runs = []
    for kappa in kappas:
        place = panel("complete", f"kappa {kappa:g}", kappa=kappa, chi=1.0)
        rounds = 40 * kappa**power
        for seed in range(3):
            runs.append(made(place, "adom", rounds, seed=seed, budget=10**4, rows=np.full((4, 1), apart)))
            runs.append(made(place, "pngd", rounds * other, seed=seed, budget=10**4))
    return runs


def sweeps(method, kappa_power, chi_power, figures=("kappa", "chi")):
    runs = []
    for kappa in KAPPAS:
        place = panel(figures[0], f"kappa {kappa:g}", kappa=kappa)
        factor = np.log(kappa) if method == "mudag" else 1.0
        runs += seeds(place, method, 20 * factor * kappa**kappa_power, budget=20_000)
    for chi in (10.0, 30.0, 100.0):
        place = panel(figures[1], f"chi {chi:g}", chi=chi, dim=60)
        runs += seeds(place, method, 2 * chi**chi_power, budget=20_000)
    return runs


def slow(*dnm, adom=600):
    runs = []
    for number, curve in enumerate(dnm):
        place = panel("slow2", f"every {number}", every=number)
        runs += seeds(place, "dnm", *(curve if isinstance(curve, tuple) else (curve,)))
        runs += seeds(place, "adom", *(adom if isinstance(adom, tuple) else (adom,)))
    return runs


def ranking(figure, *adom, others=(400, 900, 900)):
    return [one for number, curve in enumerate(adom) for one in four(panel(figure, f"panel {number}"), curve, *others)]


def infectious(adom, small, large, chi=232.0, nodes=50):
    runs = []
    for kappa, (mudag, apm) in {10.0: small, 1e4: large}.items():
        place = panel("real_networks", f"kappa {kappa:g}", kappa=kappa, chi=chi, nodes=nodes)
        runs += four(place, adom, mudag, 900, apm, network={"graphs": 200})
    return runs


def row_of(acc, others=(100, 200, 400), figure="kappa"):
    runs = []
    for kappa, own, other in zip(KAPPAS, acc, others, strict=True):
        runs += four(panel(figure, f"{figure} {kappa:g}", **{figure: kappa}), other, 2 * other, own, 2 * other)
    return runs


def truncated(*pairs):
    runs = []
    for number, (few, exact) in enumerate(pairs):
        place = panel("kappa", f"panel {number}")
        runs += seeds(place, "adom", *(few if isinstance(few, tuple) else (few,)), oracle="gd:1")
        runs += seeds(place, "adom", exact, variant="exact", oracle="exact")
    return runs


def bent(k):
    return 10 ** -np.sqrt(k / 40)


def steeper(k):
    return 10 ** -((k / 400) ** 2)


def hump(k):
    return linear(500)(k) * (1 + 49 * np.minimum(k / 20, 1) * np.exp(-np.maximum(k - 20, 0) / 30))


STUCK = ranking("real_kappa", 200, others=(400, 10**5, 900))  # Acc-DNGD does not get anywhere
OFTEN = ranking("real_chi", 200, others=(hump, 900, 900)) + ranking("real_kappa", 200, others=(900, 900, 900))
CASES = [
    ("complete-graph", complete(0.5), REPRODUCED, 3, 3),
    ("complete-graph", complete(0.9), PARTLY, 3, 3),  # the same, but at another rate
    ("complete-graph", complete(0.2), PARTLY, 3, 3),
    ("complete-graph", complete(0.5, apart=1e-9), REPRODUCED, 3, 3),
    ("complete-graph", complete(0.5, apart=1e-3), NOT_REPRODUCED, 0, 3),  # the last rows differ
    ("complete-graph", complete(0.5, other=1.1), NOT_REPRODUCED, 0, 3),  # the histories differ
    ("complete-graph", complete(0.5, kappas=[10.0]), PARTLY, 1, 1),  # no exponent
    ("rates", sweeps("adom", 0.5, 1.0) + sweeps("acc-dngd", 0.7, 1.5), REPRODUCED, 4, 4),
    ("rates", sweeps("mudag", 0.5, 1.0), PARTLY, 2, 2),  # its logarithm is taken out; no ADOM
    ("rates", sweeps("adom", 0.2, 1.0), REPRODUCED, 2, 2),  # a table of upper bounds
    ("rates", sweeps("adom", 0.8, 1.0), PARTLY, 1, 2),
    ("rates", sweeps("adom", 0.8, 1.5), NOT_REPRODUCED, 0, 2),
    # the sweeps made for it count, where there are any
    ("rates", sweeps("adom", 0.9, 1.9) + sweeps("adom", 0.5, 1.0, ("rates", "rates")), REPRODUCED, 2, 2),
    ("dnm-diverges", slow(*[GROW] * 7, 200), REPRODUCED, 7, 8),
    ("dnm-diverges", slow(*[GROW] * 8), REPRODUCED, 8, 8),
    ("dnm-diverges", slow(*[GROW] * 6, 200, 200), PARTLY, 6, 8),
    ("dnm-diverges", slow(*[200] * 8), NOT_REPRODUCED, 0, 8),
    ("dnm-diverges", slow(*[GROW] * 8, adom=GROW), NOT_REPRODUCED, 0, 8),
    ("dnm-diverges", slow(*[GROW] * 8, adom=(600, 600, GROW)), NOT_REPRODUCED, 0, 8),
    ("dnm-diverges", slow(*[GROW] * 6, (GROW, GROW, 200), 200), REPRODUCED, 7, 8),  # most seeds
    ("dnm-diverges", slow(*[GROW] * 6, (GROW, 200, 200), 200), PARTLY, 6, 8),
    ("dnm-diverges", slow(*[lambda k: 1 + k / 1000] * 8), REPRODUCED, 8, 8),  # ends above its start without an alarm
    ("dnm-faster", slow(*[GROW] * 7, 200), REPRODUCED, 1, 1),
    ("dnm-faster", slow(*[GROW] * 7, 900), NOT_REPRODUCED, 0, 1),
    ("dnm-faster", slow(*[GROW] * 7, (500, 500, 700)), PARTLY, 0, 1),
    ("best-over-kappa", ranking("kappa", *[200] * 16), REPRODUCED, 16, 16),
    ("best-over-chi", ranking("chi", *[200] * 16), REPRODUCED, 16, 16),
    ("best-over-kappa", ranking("chi", 200), NOT_TESTED, 0, 0),
    ("best-over-chi", ranking("chi", 800, GROW), NOT_REPRODUCED, 0, 2),
    ("best-over-kappa", ranking("kappa", (300, 390, 410)), NOT_REPRODUCED, 0, 1),  # undecided does not hold
    ("best-on-real-data", STUCK + ranking("real_chi", 200), REPRODUCED, 2, 2),
    ("best-on-real-data", ranking("real_chi", 200, 200), PARTLY, 2, 2),  # but Acc-DNGD converges everywhere
    ("best-on-real-data", STUCK + ranking("real_chi", 800), PARTLY, 1, 2),
    ("best-on-real-data", ranking("real_chi", 800), NOT_REPRODUCED, 0, 1),
    ("real-networks", infectious(200, (400, 600), (600, 400)), REPRODUCED, 2, 2),
    ("real-networks", infectious(200, (400, 600), (400, 600)), PARTLY, 1, 2),
    ("real-networks", infectious(200, (600, 400), (400, 600)), PARTLY, 0, 2),  # ADOM is best at least
    ("real-networks", infectious(800, (400, 600), (600, 400)), NOT_REPRODUCED, 0, 2),
    ("real-networks", infectious(200, (400, 600), (600, 400), chi=240.0), REPRODUCED, 2, 2),
    ("real-networks", infectious(200, (400, 600), (600, 400), nodes=49), PARTLY, 2, 2),
    ("acc-dngd-worsens", row_of((200, 400, 1600)) + row_of((200, 800, GROW), figure="chi"), REPRODUCED, 2, 2),
    ("acc-dngd-worsens", row_of((200, 400, 700)), NOT_REPRODUCED, 0, 1),  # it slows down, but less than the others do
    ("acc-dngd-worsens", row_of((200, 400, 1600)) + row_of((300, 200, 100), figure="chi"), PARTLY, 1, 2),
    ("acc-dngd-worsens", four(panel(), 100, 100, 100, 100), NOT_TESTED, 0, 0),  # one value of kappa
    ("apm-flattens", ranking("kappa", 500, others=(900, 900, steeper)), NOT_REPRODUCED, 0, 1),
    ("apm-flattens", ranking("kappa", 500, others=(900, 900, GROW)), NOT_REPRODUCED, 0, 1),
    (
        "apm-flattens",
        ranking("kappa", 5, others=(9, 9, bent)) + ranking("chi", 5, others=(9, 9, steeper)),
        PARTLY,
        1,
        2,
    ),
    ("few-inner-steps", truncated((450, 400), (600, 400)), REPRODUCED, 2, 2),
    ("few-inner-steps", truncated((GROW, 400)), NOT_REPRODUCED, 0, 1),
    ("few-inner-steps", truncated((GROW, GROW), (400, 400)), REPRODUCED, 1, 1),  # the exact oracle fails too
    ("few-inner-steps", truncated((9000, 8000), (20000, 8000)), PARTLY, 1, 2),  # nobody meets 1e-2: by pace
    ("early-progress", OFTEN, REPRODUCED, 1, 2),  # half of the panels are "often"
    ("early-progress", OFTEN + ranking("chi", 200, others=(900, 900, 900)), PARTLY, 1, 3),
    ("early-progress", ranking("real_chi", 200, others=(900, 900, 900)), NOT_REPRODUCED, 0, 1),
    ("early-progress", ranking("real_chi", hump, others=(hump, 900, 900)), NOT_REPRODUCED, 0, 1),
]


@pytest.mark.parametrize(("claim", "outcomes", "verdict", "holding", "tested"), CASES)
def test_verdicts(claim, outcomes, verdict, holding, tested):
    assert counts(judged(claim, outcomes)) == (verdict, holding, tested)


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


def test_claims_are_found_by_their_ids():
    assert find_claim("best-over-kappa") is CLAIMS["best-over-kappa"]
    with pytest.raises(InputError, match=r"no claim 'kapp'; claims: theorem-1, lemmas"):
        find_claim("kapp")


def test_every_protocol_that_was_run_is_judged_and_theory_always():
    protocols = {}
    for entry in entries(table_of_runs([]), ["unit", "tuned"]):
        protocols.setdefault(entry.claim, []).append(entry.protocol)
    assert protocols.keys() == CLAIMS.keys()
    assert protocols["best-over-kappa"] == ["unit", "tuned"]
    assert protocols["theorem-1"] == ["theory"]


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


def test_exponents_of_the_complete_graph_and_of_table_1():
    entry = judged("complete-graph", complete(0.5))
    assert entry.evidence["exponent"]["exponent"] == pytest.approx(0.5, abs=0.02)
    assert "not fitted" in judged("complete-graph", complete(0.5, kappas=[10.0])).summary
    entry = judged("rates", sweeps("adom", 0.5, 1.0) + sweeps("acc-dngd", 0.7, 1.5))
    fits = {(row["method"], row["against"]): row for row in entry.evidence["panels"]}
    assert fits["adom", "chi"]["exponent"] == pytest.approx(1.0, abs=0.03)
    assert fits["adom", "chi"]["low"] <= 1.0 <= fits["adom", "chi"]["high"] + 0.03
    assert fits["acc-dngd", "kappa"]["table"] == pytest.approx(5 / 7)


def test_a_rate_whose_interval_covers_the_limit_is_undecided():
    runs = []
    for kappa, bend in zip(KAPPAS, (1.0, 1.8, 1.0), strict=True):
        runs += seeds(panel("kappa", f"kappa {kappa:g}", kappa=kappa), "adom", 40 * bend * kappa**0.55, budget=5000)
    entry = judged("rates", runs)
    assert rows(entry, "outcome") == ["undecided"]
    assert counts(entry) == (NOT_REPRODUCED, 0, 1)


def test_a_panel_where_both_diverge_does_not_hold():
    once = slow(*[GROW] * 8) + seeds(panel("slow2", "ring"), "dnm", GROW) + seeds(panel("slow2", "ring"), "adom", GROW)
    assert counts(judged("dnm-diverges", once)) == (PARTLY, 8, 9)


def test_a_stall_is_told_and_not_counted():
    entry = judged("dnm-diverges", slow(*[GROW] * 6, lambda k: 10.0 ** -np.minimum(k / 100, 0.5), (GROW, 200, 200)))
    assert counts(entry) == (PARTLY, 6, 8)
    assert rows(entry, "DNM diverges or stalls") == [True] * 7 + [False]
    assert rows(entry, "seeds DNM stalls")[6:] == ["3 of 3", "0 of 3"]
    assert rows(entry, "seeds DNM diverges")[6:] == ["0 of 3", "1 of 3"]
    assert "diverges in 6, diverges or stalls in 7" in entry.summary


def test_how_much_faster_dnm_is():
    entry = judged("dnm-faster", slow(*[GROW] * 7, 200))
    assert rows(entry, "factor") == [{"median": 3.0, "low": 3.0, "high": 3.0}]
    never = judged("dnm-faster", slow(*[GROW] * 8))
    assert (never.verdict, never.notes) == (NOT_TESTED, ("DNM converges in none of 8 panels",))


def test_the_ranking_counts_what_is_won_lost_and_undecided():
    entry = judged("best-over-chi", ranking("chi", *[200] * 16))
    assert entry.notes == ()
    assert entry.evidence["factor"] == 2.0
    partly = judged("best-over-chi", ranking("chi", 200, 300, 800, (300, 390, 410)))
    assert counts(partly) == (PARTLY, 2, 4)
    assert rows(partly, "outcome") == ["won", "won", "lost", "undecided"]
    assert (partly.evidence["lost"], partly.evidence["undecided"]) == (1, 1)
    assert partly.notes == ("4 of the paper's 16 panels",)


def test_the_ranking_says_when_an_earlier_target_would_change_it():
    late = ranking("kappa", lambda k: np.where(k < 300, 0.5, 10 ** (-(k - 300) / 10)), others=(600, 900, 900))
    entry = judged("best-over-kappa", late)
    assert counts(entry) == (REPRODUCED, 1, 1)
    assert entry.evidence["won at 1e-2"] == 0


def test_few_seeds_and_last_errors_and_missing_runs_are_noted():
    one_seed = [made(panel(), name, rounds) for name, rounds in (("adom", 9000), ("mudag", 20000))]
    entry = judged("best-over-kappa", one_seed)
    assert counts(entry) == (REPRODUCED, 1, 1)
    assert "1 seed only: no error bars" in entry.notes
    assert any("last errors" in note for note in entry.notes)
    half = judged("best-on-real-data", [*STUCK, absent(panel("real_chi"), "adom", "w6a is missing")])
    assert half.notes == ("1 of the paper's 24 panels", "1 run missing: w6a is missing")


def test_the_network_is_described():
    entry = judged("real-networks", infectious(200, (400, 600), (600, 400)))
    assert "50 nodes, 200 graphs, chi 232" in entry.summary
    other = judged("real-networks", infectious(200, (400, 600), (600, 400), chi=300.0))
    assert counts(other) == (PARTLY, 2, 2)
    assert any("chi about 232" in note for note in other.notes)


def test_how_much_slower_acc_dngd_gets():
    entry = judged("acc-dngd-worsens", row_of((200, 400, 1600)))
    assert rows(entry, "slower")[0]["median"] == pytest.approx(8, rel=0.05)
    assert rows(entry, "slower than others")[0]["median"] == pytest.approx(2, rel=0.05)
    torn = judged("acc-dngd-worsens", row_of((200, 400, (700, 1600, 1600))))
    assert (rows(torn, "outcome"), torn.verdict) == (["undecided"], NOT_REPRODUCED)
    still = judged("acc-dngd-worsens", row_of((10**6, 10**6, 10**6)))
    assert still.verdict == NOT_TESTED
    assert "say nothing" in still.notes[0]
    assert rows(judged("acc-dngd-worsens", row_of((200, 400, 10**6))), "slower")[0]["median"] == "inf"


def test_how_much_apm_flattens():
    both = ranking("kappa", 500, others=(900, 900, bent)) + ranking("chi", 500, others=(9, 9, bent))
    entry = judged("apm-flattens", both)
    assert counts(entry) == (REPRODUCED, 2, 2)
    assert rows(entry, "ratio")[0]["median"] == pytest.approx(0.32, abs=0.01)
    assert rows(entry, "ADOM's ratio")[0]["median"] == pytest.approx(1.0, abs=0.01)
    torn = judged("apm-flattens", ranking("kappa", 500, others=(900, 900, (bent, bent, steeper))))
    assert rows(torn, "outcome") == ["undecided"]


def test_rounds_of_few_inner_steps_over_those_of_the_exact_oracle():
    partly = judged("few-inner-steps", truncated((450, 400), (610, 400), (GROW, 400), ((600, 620, 400), 400)))
    assert counts(partly) == (PARTLY, 1, 4)
    assert rows(partly, "outcome") == ["enough", "not enough", "not enough", "undecided"]
    assert rows(partly, "ratio")[0]["median"] == pytest.approx(450 / 400)
    assert rows(partly, "ratio")[2]["median"] == "inf"
    both_fail = judged("few-inner-steps", truncated((GROW, GROW)))
    assert both_fail.verdict == NOT_TESTED
    assert "exact oracle does not converge" in both_fail.notes[0]
    # a target that their budget forbids does not count: the exact oracle meets 1e-8 at the end of 1000 rounds
    late = judged("few-inner-steps", truncated((1100, 990)))
    assert counts(late) == (REPRODUCED, 1, 1)
    assert rows(late, "ratio")[0]["median"] == pytest.approx(1100 / 990, rel=0.01)


def test_who_rises_at_first():
    entry = judged("early-progress", ranking("real_chi", 200, 200, others=(hump, 900, hump)))
    assert counts(entry) == (REPRODUCED, 2, 2)
    assert entry.evidence["rises"] == {"apm": 2, "mudag": 2}
    slight = ranking("real_chi", 200, others=(lambda k: 1.05 * linear(900)(k), 900, 900))
    assert judged("early-progress", slight).evidence["rises"]["mudag"] == 0  # five per cent are no divergence
