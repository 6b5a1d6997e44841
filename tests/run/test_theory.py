from dataclasses import replace

import numpy as np
import pytest

import adom
from adom.errors import InputError
from support.reference import logistic_data, quadratics


def networks(nodes):
    yield adom.networks.geometric(nodes, 0.4, graphs=20, seed=2)
    yield adom.networks.complete(nodes)
    yield adom.networks.alternate([adom.networks.ring(nodes), adom.networks.star(nodes)], every=5)


def test_theorem_and_lemmas_hold_on_quadratics():
    problem = adom.Quadratic(*quadratics(8, 3, 60.0))
    for network in networks(8):
        report = adom.verify(problem, network, rounds=400)
        assert report.holds, str(report)
        assert [row.name for row in report.rows] == ["Lemma 1", "Lemma 2", "Lemma 3", "Lemma 4", "Theorem 1"]
        for row in report.rows:
            assert 0 <= row.worst_ratio <= 1
            assert row.rounds_checked > 350


def test_theorem_and_lemmas_hold_on_logistic_regression():
    A, b = logistic_data(8, 6, 3)
    problem = adom.LogisticRegression(A.reshape(-1, 3), b.ravel(), nodes=8, kappa=30.0)
    report = adom.verify(problem, next(networks(8)), rounds=300)
    assert report.holds, str(report)
    assert all(row.rounds_checked == 300 for row in report.rows)


def test_the_check_can_fail():
    """Beyond the theorem's parameters the inequalities break, and the report says where."""
    problem = adom.Quadratic(*quadratics(8, 3, 60.0))
    network = adom.networks.ring(8)
    theory = adom.ADOM.theory(adom.constants(problem, network))

    def broken(**changed):
        factors = {name: factor * getattr(theory, name) for name, factor in changed.items()}
        report = adom.verify(problem, network, rounds=200, method=replace(theory, **factors))
        assert report.holds == all(row.holds for row in report.rows)
        return {row.name for row in report.rows if not row.holds}

    assert broken(tau=30) == {"Lemma 4", "Theorem 1"}
    assert broken(theta=8) == {"Lemma 2", "Lemma 4", "Theorem 1"}
    assert broken(sigma=3) == {"Lemma 1", "Lemma 3", "Lemma 4", "Theorem 1"}
    assert broken() == set()


def test_a_run_is_followed_far_below_rounding_of_function_values():
    """F* is of order 1 here, so differences of its values would be noise below 1e-16."""
    problem = adom.Quadratic(*quadratics(6, 2, 5.0))
    network = adom.networks.complete(6)
    report = adom.verify(problem, network, rounds=400)
    assert report.holds
    error = adom.solve(problem, network, parameters="theory", oracle="exact", rounds=200).history["error"].iloc[-1]
    assert error < 1e-18
    assert all(row.rounds_checked >= 200 for row in report.rows)


def test_past_rounding_there_is_nothing_to_check_and_no_alarm():
    """The bound goes on falling when the iterates are x* to the last digit."""
    problem = adom.Quadratic(*quadratics(6, 3, 2.0))
    report = adom.verify(problem, adom.networks.complete(6), rounds=4000)
    assert report.holds, str(report)
    for row in report.rows:
        assert 150 < row.rounds_checked < row.rounds == 4000
        assert row.first_unchecked > 150  # the rounds before are those that count
        left = 4000 - row.rounds_checked
        assert row.why_unchecked.startswith(f"{left:,} of 4,000 rounds were not checked, the first of them round ")
        assert row.why_unchecked in str(report)
    lemma_2, theorem = report.rows[1], report.rows[-1]
    assert theorem.first_unchecked == theorem.rounds_checked > 400  # (1 - tau)^400 < 1e-16
    assert lemma_2.why_unchecked.endswith(": both sides are within rounding of 0")


class SinglePrecision(adom.ADOM):
    """Forgets half of the digits of z: near the solution that breaks the theorem."""

    def step(self, state, oracle, gossip):
        state, x = super().step(state, oracle, gossip)
        return state._replace(z=state.z.astype("float32").astype("float64")), x


class WrongSign(adom.ADOM):
    """Takes its gradient steps uphill."""

    def step(self, state, oracle, gossip):
        after, x = super().step(state, oracle, gossip)
        z_g = self.tau * state.z + (1 - self.tau) * state.z_f
        return after._replace(z_f=2 * z_g - after.z_f), x


@pytest.mark.parametrize(
    ("wrong", "rounds", "broken", "ratio"),
    [
        (SinglePrecision, 900, {"Lemma 4", "Theorem 1"}, 10),
        (WrongSign, 1600, {"Lemma 1", "Lemma 2", "Lemma 3", "Lemma 4", "Theorem 1"}, np.inf),
    ],
)
def test_what_is_taken_off_for_rounding_hides_no_wrong_method(wrong, rounds, broken, ratio):
    """One goes wrong at the seventh digit only, the other beyond all numbers."""
    problem = adom.Quadratic(*quadratics(6, 3, 2.0))
    network = adom.networks.complete(6)
    theory = adom.ADOM.theory(adom.constants(problem, network))
    report = adom.verify(problem, network, rounds=rounds, method=wrong(**theory.parameters()))
    assert {row.name for row in report.rows if not row.holds} == broken
    assert report.rows[-1].worst_ratio >= ratio


def test_nodes_that_agree_from_the_start_leave_nothing_to_check():
    problem = adom.Quadratic(np.tile(np.diag([1.0, 2.0, 3.0]), (6, 1, 1)), np.ones((6, 3)))
    report = adom.verify(problem, adom.networks.complete(6), rounds=20)
    assert report.holds
    assert [row.rounds_checked for row in report.rows] == [0] * 5
    assert all(np.isnan(row.worst_ratio) and row.why_unchecked for row in report.rows)


def test_bad_input_is_refused():
    problem = adom.Quadratic(*quadratics(6, 2, 5.0))
    with pytest.raises(InputError, match="the problem has 6 nodes and the network 4"):
        adom.verify(problem, adom.networks.ring(4))
    with pytest.raises(InputError, match="rounds must be a whole number"):
        adom.verify(problem, adom.networks.ring(6), rounds=-1)


def test_report_prints_a_line_for_each():
    problem = adom.Quadratic(np.ones((3, 1, 1)) * [[[1.0]], [[2.0]], [[3.0]]], [[1.0], [0.0], [2.0]])
    text = str(adom.verify(problem, adom.networks.ring(3), rounds=20))
    assert len(text.splitlines()) == 5
