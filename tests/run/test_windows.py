"""Steps of windows, on networks that are not connected at every instant."""

from dataclasses import replace

import jax
import networkx as nx
import numpy as np
import pytest

import adom
from adom.algorithms import method_class
from adom.errors import InputError
from adom.networks import (
    DirectedNetwork,
    Network,
    alternate,
    bounded,
    failing,
    from_contacts,
    from_digraphs,
    ring,
    waypoint,
    windowed,
)
from adom.run.ranks.on_ranks import on_one_rank
from adom.run.request import Request, Stop

NODES, DIM = 6, 2


@pytest.fixture(scope="module")
def problem() -> adom.Quadratic:
    rng = np.random.default_rng(0)
    return adom.Quadratic(np.stack([np.diag(rng.uniform(1, 9, DIM)) for _ in range(NODES)]), rng.random((NODES, DIM)))


@pytest.fixture(scope="module")
def network() -> Network:
    return failing(ring(NODES), 0.7, graphs=40, seed=1)


class DenseWindows:
    """The window's W = I - M ... M as a matrix, and what it costs."""

    def __init__(self, network, clock):
        self.network, self.clock, self.floats = network, clock, 0

    def _matrix(self, width):
        product = np.eye(self.network.nodes)
        for _ in range(self.network.window):
            product = (np.eye(len(product)) - self.network.matrix(self.clock) / self.network.lambda_max) @ product
            links = len(self.network.edges(int(self.network.order[self.clock % self.network.period])))
            self.floats += 2 * links * width
            self.clock += 1
        return product

    def __call__(self, *vectors):
        M = self._matrix(sum(v.shape[1] for v in vectors))
        results = tuple(self.network.lambda_max * (v - M @ v) for v in vectors)
        return results[0] if len(results) == 1 else results

    def average(self, *vectors):
        M = self._matrix(sum(v.shape[1] for v in vectors))
        results = tuple(M @ v for v in vectors)
        return results[0] if len(results) == 1 else results

    def mix(self, v, rounds):
        for _ in range(int(rounds)):
            v = self.average(v)
        return v


class ExactOracle:
    def __init__(self, problem):
        self.problem = problem

    def gradient(self, x):
        return np.asarray(self.problem.gradient_rows(x))

    def dual_gradient(self, z):
        return np.asarray(self.problem.exact_dual_gradient_rows(z, np.zeros_like(z))[0])


@pytest.mark.parametrize("name", ["adom", "adom+", "mudag"])
def test_a_step_is_a_window_and_all_its_rounds_count(problem, network, name):
    """Three steps against the same method on the windows' matrices."""
    assert network.window > 3
    cls = method_class(name)
    method = cls.unit(adom.constants(problem, network))
    oracle = {"oracle": "exact"} if cls.oracle == "dual" else {}
    rounds = 3 * network.window * int(method.rounds_of_step(0))
    result = adom.solve(problem, network, name, "unit", rounds=rounds + network.window - 1, **oracle)
    state, dense, x = method.init(np.zeros((NODES, DIM)), ExactOracle(problem)), DenseWindows(network, 0), None
    with jax.enable_x64(True):
        for _ in range(3):
            state, x = method.step(state, ExactOracle(problem), dense)
    np.testing.assert_allclose(result.x, x, rtol=1e-9, atol=1e-12)
    assert (result.last["iteration"], result.last["round"]) == (3, rounds == dense.clock and rounds)
    assert result.last["floats_sent"] == dense.floats
    assert result.provenance["window"] == network.window
    assert result.provenance["network"]["chi"] == network.chi
    given = adom.solve(problem, network, method, rounds=rounds, **oracle)
    np.testing.assert_array_equal(given.x, result.x)


def test_theory_keeps_its_promise_on_windows(problem, network):
    """Every inequality of the paper's proof, in every step."""
    checked = adom.verify(problem, network, rounds=150)
    assert checked.holds
    assert all(row.rounds == row.rounds_checked == 150 for row in checked.rows)
    assert not adom.verify(problem, bounded(network, chi=1.01), rounds=150).holds


def test_engines_batches_and_replay_agree(problem, network):
    method = adom.ADOM.unit(adom.constants(problem, network))
    alone = adom.solve(problem, network, method, rounds=400, oracle="exact")
    ranks = on_one_rank(problem, network, "adom", "unit", Request("exact", 400))
    np.testing.assert_allclose(ranks.x, alone.x, rtol=1e-12, atol=1e-14)
    for name in ("round", "floats_sent", "gradients"):
        assert ranks.history[name].tolist() == alone.history[name].tolist()
    assert ranks.provenance["window"] == network.window
    both = adom.solve_many(problem, network, [method, replace(method, eta=method.eta / 2)], rounds=400, oracle="exact")
    np.testing.assert_allclose(both[0].history["error"], alone.history["error"], rtol=1e-9)
    assert both[1].last["round"] == alone.last["round"]
    motion = adom.replay(alone, problem, network)
    assert motion.rounds[1] == network.window


@pytest.fixture(scope="module")
def by_turns() -> DirectedNetwork:
    """Two directed paths, a circle together; in every round some nodes hear nobody, and some are heard by nobody."""
    halves = [nx.DiGraph([(0, 1), (1, 2), (2, 3)]), nx.DiGraph([(3, 4), (4, 5), (5, 0)])]
    for half in halves:
        half.add_nodes_from(range(NODES))
    return from_digraphs(halves)


def test_directed_rounds_need_not_be_strongly_connected_each(problem, by_turns):
    """Push-DIGing by hand, round by round; ranks and batches do the same."""
    method = method_class("push-diging")(a=0.01)
    result = adom.solve(problem, by_turns, method, rounds=30)
    gradient = ExactOracle(problem).gradient
    with jax.enable_x64(True):
        x, v = np.zeros((NODES, DIM)), np.ones((NODES, 1))
        s = g = gradient(x)
        for k in range(30):
            C = by_turns.column_stochastic(k)
            v, x, s, before = C @ v, C @ (v * x - 0.01 * s), C @ s, g
            x = x / v
            g = gradient(x)
            s = s + g - before
    np.testing.assert_allclose(result.x, x, rtol=1e-10)
    assert result.last["floats_sent"] == 30 * 3 * (2 * DIM + 1)
    assert result.provenance["window"] == 1
    ranks = on_one_rank(problem, by_turns, "push-diging", {"a": 0.01}, Request(rounds=30))
    np.testing.assert_allclose(ranks.x, result.x, rtol=1e-12)
    both = adom.solve_many(problem, by_turns, [method, replace(method, a=0.005)], rounds=30)
    np.testing.assert_allclose(both[0].x, result.x, rtol=1e-9)


@pytest.mark.parametrize(("parameters", "rounds"), [("unit", 20_000), ("auto", 3000)])
@pytest.mark.parametrize("name", ["push-diging", "push-pull"])
def test_directed_methods_converge_on_windows(problem, by_turns, name, parameters, rounds):
    result = adom.solve(problem, by_turns, name, parameters, rounds=rounds, tol=1e-10, record_every=10)
    assert result.status == "converged"
    assert result.outside == ("" if name == "push-diging" else "proved for networks that do not change")


def test_rounds_that_are_not_connected_are_outside_of_some_proofs(problem, network):
    """With windows for steps they are not; with `auto`, steps are rounds."""
    for name, parameters, outside in (
        ("adom", "auto", "proved for graphs that are connected in every round"),
        ("adom", "unit", ""),
        ("diging", "auto", ""),
        ("nids", "unit", "proved for networks that do not change"),
    ):
        assert adom.solve(problem, network, name, parameters, rounds=50).outside == outside, (name, parameters)
    assert adom.solve(problem, ring(NODES), "adom", "auto", rounds=5).outside == ""
    same = alternate([ring(NODES), ring(NODES)], every=2)  # two graphs, and a network that does not change
    assert adom.solve(problem, same, "nids", rounds=5).outside == ""
    assert not network.fixed


@pytest.mark.parametrize("method", ["adom", "adom+"])
def test_auto_runs_round_by_round(problem, network, method):
    result = adom.solve(problem, network, method, "auto", rounds=20_000, tol=1e-10)
    assert result.status == "converged"
    assert result.provenance["window"] == 1
    assert result.history["round"].tolist() == list(range(1, len(result.history) + 1))


def test_contacts_and_motion_converge_with_theory(problem):
    rng = np.random.default_rng(3)
    rows = [(t, *rng.choice(NODES, 2, replace=False).tolist()) for t in range(60)]
    for network in (from_contacts(rows), waypoint(NODES, 0.25, graphs=100, speed=0.1, seed=1)):
        assert network.window > 1
        result = adom.solve(problem, network, "adom", "theory", rounds=100_000, tol=1e-8, record_every=20)
        assert result.status == "converged"


def test_a_budget_below_one_window_is_refused(problem, network):
    with pytest.raises(InputError, match=rf"rounds must be at least {network.window}, which one step of ADOM takes"):
        adom.solve(problem, network, parameters="theory", rounds=network.window - 1)
    longer = windowed(network, network.window + 5)
    assert adom.solve(problem, longer, parameters="theory", rounds=100).history["round"].iloc[0] == network.window + 5


def test_full_averaging_takes_no_windows(problem, network):
    result = adom.solve(problem, network, "pngd", "theory", "exact", rounds=5)
    assert result.history["round"].tolist() == [1, 2, 3, 4, 5]


def test_nodes_that_keep_their_data_agree_over_windows_when_to_stop(network, tmp_path):
    rng = np.random.default_rng(4)
    features = rng.standard_normal((5 * NODES, DIM))
    labels = np.where(features[:, 0] + rng.standard_normal(len(features)) > 0, 1, -1)
    lines = (f"{label} 1:{a:.6f} 2:{b:.6f}" for label, (a, b) in zip(labels, features, strict=True))
    (tmp_path / "data.svm").write_text("\n".join(lines))
    folder = adom.data.write_shards(tmp_path / "data.svm", NODES, tmp_path / "shards")
    shards, tol = adom.Shards(folder, kappa=5.0), 1e-6
    result = on_one_rank(shards, network, "adom", "unit", Request(rounds=5000, stop=Stop(tol)))
    assert result.status == "converged"
    whole = shards.whole()
    error = float(((result.x - whole.solution()) ** 2).sum())
    assert error <= result.provenance["error_bound"] <= tol


@pytest.mark.parametrize("name", ["dnm", "opapc"])
def test_windows_of_their_own_choice_are_the_same_on_ranks(problem, network, name):
    alone = adom.solve(problem, network, name, rounds=800)
    ranks = on_one_rank(problem, network, name, "auto", Request(rounds=800))
    np.testing.assert_allclose(ranks.x, alone.x, rtol=1e-9, atol=1e-12)
    assert ranks.provenance["settings"] == alone.provenance["settings"]
    assert ranks.history["round"].tolist() == alone.history["round"].tolist()
    assert np.ptp(np.diff(alone.history["round"])) > 0  # windows change in length
