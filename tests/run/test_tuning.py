"""Tuned parameters: equal budgets, the stated rule, and an account of the search in the result."""

import json

import numpy as np
import pytest

import adom
from adom.algorithms import METHODS, method_class
from adom.errors import InputError
from adom.run.calls import tuning
from adom.run.request import Request, Stop
from support.reference import quadratics

ROUNDS = 150


@pytest.fixture(scope="module")
def problem():
    return adom.Quadratic(*quadratics(6, 2, 10.0))


@pytest.fixture(scope="module")
def network():
    return adom.networks.alternate([adom.networks.ring(6), adom.networks.star(6)], every=3)


@pytest.fixture(scope="module", params=["adom", "acc-gt", "diging"])
def tuned(request, problem, network):
    return adom.solve(problem, network, request.param, "tuned", rounds=ROUNDS, tol=1e-6)


def score(outcome):
    return tuple(np.inf if outcome[name] is None else outcome[name] for name in ("rounds", "relative_error"))


def test_the_best_candidate_is_what_runs(tuned, problem, network):
    found = tuned.provenance["tuning"]
    assert tuned.protocol == "tuned"
    assert found["candidates"] == len(found["outcomes"]) == 96
    assert score(found["chosen"]) == min(map(score, found["outcomes"]))
    assert tuned.status == "converged"
    assert tuned.history["round"].iloc[-1] == found["chosen"]["rounds"]
    start = tuned.provenance["start_error"]
    assert found["target"] == pytest.approx(1e-6 / start)
    assert found["chosen"]["relative_error"] == pytest.approx(tuned.history["error"].iloc[-1] / start, rel=1e-5)


def test_unit_and_theory_are_candidates(tuned, problem, network):
    name = tuned.provenance["method"]["name"]
    outcomes = tuned.provenance["tuning"]["outcomes"]
    oracle = tuned.provenance["oracle"] or "auto"
    for protocol, outcome in zip(("unit", "theory"), outcomes, strict=False):
        alone = adom.solve(problem, network, name, protocol, oracle, rounds=ROUNDS, tol=1e-6)
        last = alone.history["error"].iloc[-1] / alone.provenance["start_error"]
        assert outcome["relative_error"] == pytest.approx(last, rel=1e-5)
        assert outcome["rounds"] == (alone.history["round"].iloc[-1] if alone.status == "converged" else None)


def test_the_chosen_factors_give_the_parameters(tuned, problem, network):
    cls = method_class(tuned.provenance["method"]["name"])
    chosen = tuned.provenance["tuning"]["chosen"]
    assert chosen["name"] is None  # on this network more than unit or theory is to be had
    told = tuning.assumed(adom.constants(problem, network), *(chosen[name] for name in ("mu", "L", "chi")))
    expected = {name: float(value) for name, value in cls.unit(told).parameters().items()}
    assert tuned.provenance["method"]["parameters"] == pytest.approx(expected, rel=1e-4)


def test_the_account_is_kept_with_the_result(tuned, tmp_path):
    loaded = adom.load(tuned.save(tmp_path / "tuned"))
    assert loaded.provenance["tuning"] == tuned.provenance["tuning"]
    assert "fewest rounds to the target error; ties" in loaded.provenance["tuning"]["rule"]
    json.dumps(tuned.provenance, allow_nan=False)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_the_same_number_of_candidates_at_the_same_places(problem, network, monkeypatch, name):
    seen = []

    def run(drawn, problem, network, request, start, batch):
        seen.append(drawn)
        return drawn

    monkeypatch.setattr(tuning, "_run", run)
    cls = method_class(name)
    tuning.tune(problem, network, cls, Request("auto", 500, Stop(), 1, "local", "float64", False))
    assert [len(drawn) for drawn in seen] == [16] * 6
    drawn = [one for stage in seen for one in stage]
    assert [one.name for one in drawn[:3]] == ["unit", "theory", ""]
    assert len([one for one in drawn if one.method is not None]) >= 94
    factors = np.array([one.factors for one in drawn])
    assert factors.min() >= 1 / 16
    assert factors.max() <= 16
    # The first stage is spread over its whole cube: about half of it on either side of the true constants.
    if name == "pngd":
        return
    for column in factors[2:16].T:
        assert 4 <= (column > 1).sum() <= 10


def test_the_search_is_the_same_every_time(problem, network):
    first, second = (adom.solve(problem, network, "diging", "tuned", rounds=100) for _ in range(2))
    assert first.provenance["tuning"] == second.provenance["tuning"]
    assert first.status == "max_rounds"  # without a tolerance it runs on
    assert first.provenance["tuning"]["target"] == pytest.approx(1e-10)


def test_where_nothing_reaches_the_target_the_last_error_decides(problem, network):
    found = adom.solve(problem, network, "diging", "tuned", rounds=6, tol=1e-12).provenance["tuning"]
    assert found["chosen"]["rounds"] is None
    errors = [one["relative_error"] for one in found["outcomes"] if one["relative_error"] is not None]
    assert found["chosen"]["relative_error"] == min(errors)


def test_auto_becomes_a_fixed_number_of_steps_and_others_stay(problem, network):
    auto = adom.solve(problem, network, "dnm", "tuned", rounds=30)
    assert auto.provenance["oracle"] == "agd:7"  # 2 sqrt(10), rounded up
    assert adom.solve(problem, network, "dnm", "tuned", "gd:2", rounds=30).provenance["oracle"] == "gd:2"


def test_compare_takes_tuned_for_all_or_for_some(problem, network):
    found = adom.compare(problem, network, ["diging", "acc-gt"], {"acc-gt": "tuned", "diging": "unit"}, rounds=60)
    assert found.table["protocol"].tolist() == ["unit", "tuned"]
    assert "tuning" not in found.results["diging"].provenance
    both = adom.compare(problem, network, ["push-pull", "diging"], "tuned", rounds=60)
    counts = [one.provenance["tuning"]["candidates"] for one in both.results.values()]
    assert counts == [96, 96]


def test_refusals(problem, network):
    for call in (adom.solve, adom.compare):
        with pytest.raises(InputError, match="tuned parameters cannot be combined with values"):
            call(problem, network, "diging", {"protocol": "tuned", "a": 0.1})
    with pytest.raises(InputError, match="rounds must be at least"):
        adom.solve(problem, network, "mudag", "tuned", rounds=1)
    mine = adom.DIGing(a=0.01)
    assert adom.solve(problem, network, mine, "tuned", rounds=5).protocol == "given"


def test_ctrl_c_ends_the_search(problem, network, monkeypatch):
    from adom.run.progress import Interrupt

    monkeypatch.setattr(Interrupt, "__enter__", lambda self: setattr(self, "asked", True) or self)
    with pytest.raises(KeyboardInterrupt):
        adom.solve(problem, network, "diging", "tuned")
