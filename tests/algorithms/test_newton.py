"""Newton by gossip against a plain transcription of its round, its invariants, its end and what it promises."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import adom
from adom.algorithms import Constants
from adom.algorithms.newton import Newton, packed, unpacked
from support.reference import Gossip, Oracle, logistic_data, quadratics

NODES, DIM = 6, 3
NETWORK = adom.networks.geometric(NODES, 0.6, graphs=5, seed=4)
MATRICES = [NETWORK.matrix(k) for k in range(NETWORK.period)]
METHOD = Newton(sigma=1 / NETWORK.lambda_max, hold=1 / (4 * NODES))


class Logistic:
    """Logistic regression with an l2 penalty, node by node; counts what it was asked."""

    def __init__(self, A, b, l2):
        self.A, self.b, self.l2 = A, b, l2
        self.gradients, self.hessians = np.zeros(len(A)), np.zeros(len(A))

    def slope(self, i, x):
        return -self.b[i] / (1 + np.exp(self.b[i] * (self.A[i] @ x)))

    def one_gradient(self, i, x):
        return self.A[i].T @ self.slope(i, x) / len(self.b[i]) + self.l2 * x

    def one_hessian(self, i, x):
        s = self.b[i] * self.slope(i, x)
        return (self.A[i].T * (-s * (1 + s))) @ self.A[i] / len(self.b[i]) + self.l2 * np.eye(len(x))

    def gradient(self, x, where=None):
        self.gradients += 1 if where is None else where
        return np.stack([self.one_gradient(i, row) for i, row in enumerate(x)])

    def hessian(self, x, where=None):
        self.hessians += 1 if where is None else where
        return np.stack([self.one_hessian(i, row) for i, row in enumerate(x)])

    def each(self, function, *arrays):
        return np.stack([function(*row) for row in zip(*arrays, strict=True)])

    def model_minimum(self, H, b, start):
        return np.linalg.solve(H, b[..., None])[..., 0]


def logistic(l2=1e-3, scale=1.0, dim=DIM, samples=12):
    A, b = logistic_data(NODES, samples, dim, seed=3)
    return Logistic(scale * A, b, l2)


def total(of, x):
    return sum(of.one_gradient(i, x) for i in range(NODES))


def pooled(of, dim=DIM):
    """The solution, by Newton's method on the sum with halved steps."""
    x = np.zeros(dim)
    for _ in range(100):
        step, t = np.linalg.solve(sum(of.one_hessian(i, x) for i in range(NODES)), total(of, x)), 1.0
        while np.linalg.norm(total(of, x - t * step)) > np.linalg.norm(total(of, x)) and t > 1e-9:
            t /= 2
        x = x - t * step
    return x


def run(of, rounds, method=METHOD, dim=DIM, matrices=MATRICES, start=None):
    gossip, k = Gossip(matrices), 0
    state = method.init(np.zeros((len(of.gradient(np.zeros((NODES, dim)))), dim)), of) if start is None else start
    for k in range(rounds):
        state, x = method.step(method.renewed(state, k), of, gossip)
    return state, x


def one_round(p, s, of, W):
    """A round as the page writes it: one node after the other, whole matrices, one formula a line."""
    H = [unpacked(s.h[i : i + 1], DIM)[0] for i in range(NODES)]
    g = [H[i] @ s.z[i] - s.g[i] for i in range(NODES)]
    sent = [np.concatenate([packed(H[i][None])[0], g[i]]) + s.exchanged[i] for i in range(NODES)]
    out = {name: np.array(value) for name, value in s._asdict().items()}
    x = np.array(s.z)
    for i in range(NODES):
        out["exchanged"][i] = s.exchanged[i] - s.theta[i, 0] * p.sigma * sum(W[i, j] * sent[j] for j in range(NODES))
        averaged = unpacked((s.h[i] + out["exchanged"][i, :-DIM])[None], DIM)[0]
        vector = g[i] + out["exchanged"][i, -DIM:]
        S = averaged + 1e-9 * np.diag(np.abs(np.diag(averaged)))
        out["t"][i] = max(s.t[i, 0] / 2, 1e-4)
        if np.linalg.eigvalsh(S - p.hold * H[i])[0] <= 0:
            continue  # hold
        step = np.linalg.solve(S, vector - averaged @ s.z[i])
        x[i] = s.z[i] + step
        K, t = (S + H[i]) / 2, min(1.0, 4 * s.t[i, 0])
        for _ in range(6):
            there = s.z[i] + t * step
            r = of.one_gradient(i, there) - s.g[i] - t * H[i] @ step
            off, length = np.sqrt(r @ np.linalg.solve(K, r)), t * np.sqrt(step @ K @ step)
            if off <= p.miss * length:
                out["z"][i], out["g"][i], out["t"][i] = there, of.one_gradient(i, there), t
                if off > 0.01 * length:
                    out["h"][i] = packed(of.one_hessian(i, there)[None])[0]
                break
            t /= 2
    return out, x


@pytest.mark.parametrize("scale", [1.0, 30.0])  # at 30, steps are halved and nodes hold
def test_a_round_equals_its_transcription(scale):
    of = logistic(scale=scale)
    for k in (1, 2, 5, 9):
        state, _ = run(of, k)
        state = METHOD.renewed(state, k)
        after, x = METHOD.step(state, of, Gossip([MATRICES[2]]))
        expected, reported = one_round(METHOD, state, of, MATRICES[2])
        for field, value in expected.items():
            size = np.abs(value).max()
            np.testing.assert_allclose(getattr(after, field), value, rtol=1e-8, atol=1e-9 * size, err_msg=field)
        np.testing.assert_allclose(x, reported, rtol=1e-7, atol=1e-8 * np.abs(reported).max())


def test_the_transcription_saw_holds_and_halved_steps():
    of = logistic(scale=30.0)
    states = [run(of, k)[0] for k in range(1, 12)]
    assert any((s.t < 1).any() for s in states[3:])
    assert any((after.z == s.z).all(axis=1).any() for s, after in pairwise(states))


def test_what_came_over_links_sums_to_zero_and_the_average_is_that_of_the_models():
    of = logistic(scale=30.0)
    for rounds in (1, 4, 40):
        state, _ = run(of, rounds)
        size = np.abs(state.exchanged).max()
        np.testing.assert_allclose(state.exchanged.sum(axis=0), 0, atol=1e-13 * size)
        held = np.abs(unpacked(state.h, DIM) - of.hessian(state.z)).max()
        assert held <= 0.05 * np.abs(state.h).max()  # a chord, at most


def test_the_weights_of_rounds_go_round_and_all_nodes_have_the_same():
    state = METHOD.init(np.zeros((NODES, DIM)), logistic())
    assert [np.unique(METHOD.renewed(state, k).theta).tolist() for k in range(6)] == [[1.0], [1.6], [1.6]] * 2


def test_the_solution_is_a_fixed_point():
    of = logistic()
    x = np.tile(pooled(of), (NODES, 1))
    H, slope = of.hessian(x), of.gradient(x)
    own = np.concatenate([packed(H), np.einsum("nij,nj->ni", H, x) - slope], axis=1)
    state = METHOD.init(0 * x, of)
    ones = np.ones((NODES, 1))
    state = state._replace(z=x, g=slope, h=packed(H), exchanged=own.mean(axis=0) - own, t=ones, theta=ones)
    after, reported = METHOD.step(state, of, Gossip(MATRICES))
    np.testing.assert_allclose(reported, x, rtol=1e-10)
    for field in ("z", "exchanged"):
        np.testing.assert_allclose(getattr(after, field), getattr(state, field), atol=1e-9, err_msg=field)


def test_least_squares_on_the_complete_graph_are_solved_by_the_first_round():
    H, c = quadratics(NODES, DIM, 1e6)
    W = adom.networks.complete(NODES)
    method = Newton.theory(Constants(1.0, 1e6, W.lambda_min_plus, W.lambda_max, NODES))
    _, x = run(Oracle(H, c), 1, method, matrices=[W.matrix(0)])
    x_star = np.linalg.solve(H.sum(axis=0), c.sum(axis=0))
    np.testing.assert_allclose(x, np.tile(x_star, (NODES, 1)), rtol=1e-8)


@pytest.mark.parametrize("l2", [1e-2, 1e-4, 1e-6, 0.0])
def test_rounds_are_those_of_averaging_whatever_kappa(l2):
    network = adom.networks.ring(NODES)
    matrices = [network.matrix(0)]
    method = Newton(sigma=1 / network.lambda_max, hold=1 / (4 * NODES))
    of = logistic(l2=l2)
    x_star, rows = pooled(of), np.random.default_rng(0).standard_normal((NODES, 20))
    rows -= rows.mean(axis=0)
    averaging, size = 0, (rows**2).sum()
    while (rows**2).sum() > 1e-20 * size:
        rows, averaging = rows - matrices[0] @ rows / network.lambda_max, averaging + 1
    _, x = run(of, averaging, method, matrices=matrices)
    assert ((x - x_star) ** 2).sum() <= 1e-16 * NODES * (x_star**2).sum()


def test_badly_scaled_features_and_nodes_without_rank_take_no_more():
    of = logistic(l2=0.0, dim=5, samples=4)  # less than the features, at every node
    of.A = of.A * np.logspace(-3, 3, 5)
    rng = np.random.default_rng(1)
    of.b = np.where(rng.random(of.b.shape) < 0.3, -of.b, of.b)  # so that a solution exists
    x_star = pooled(of, 5)
    _, x = run(of, 60, dim=5)
    np.testing.assert_allclose(x, np.tile(x_star, (NODES, 1)), rtol=1e-7)


def test_gradients_and_hessians_are_asked_only_where_they_are_needed():
    of = logistic(scale=10.0)
    run(of, 60)
    assert of.gradients.mean() < 60 * 1.5
    assert of.hessians.mean() < 30
    settled = of.hessians.copy()
    H, c = quadratics(NODES, DIM, 100.0)
    squares = Logistic(*logistic_data(NODES, 5, DIM), 0.1)
    squares.one_gradient, squares.one_hessian = lambda i, x: H[i] @ x - c[i], lambda i, x: H[i]
    run(squares, 30)
    assert settled.min() > 1
    assert squares.hessians.max() == 1  # a quadratic function has one


@pytest.mark.parametrize("name", ["hold", "miss"])
def test_shares_lie_between_zero_and_one(name):
    with pytest.raises(adom.InputError, match=rf"^{name} must lie in \(0, 1\), got 1.0"):
        Newton(**{"sigma": 1.0, "hold": 0.1, "miss": 0.5, name: 1.0})


def test_more_coordinates_than_memory_holds_are_refused_before_they_fill_it():
    problem = adom.LogisticRegression(sp.eye_array(40_000, format="csr"), np.arange(40_000) % 2, nodes=4, l2=0.1)
    with pytest.raises(adom.InputError, match=r"4 nodes with matrices of 40000 x 40000 take .* GB.*e.g. NIDS"):
        adom.solve(problem, adom.networks.ring(4), "newton", rounds=5)


@pytest.fixture(scope="module")
def stiff():
    A, b = logistic_data(NODES, 12, DIM, seed=3)
    return adom.LogisticRegression(A.reshape(-1, DIM), b.ravel(), nodes=NODES, kappa=1e5)


LINKS = {
    "lost": lambda network: adom.networks.lossy(network, one_way=0.3, seed=1),
    "leaving": lambda network: adom.networks.lossy(network, one_way=0.1, leaving={4: 20, 2: 10}, joining={2: 30}),
    "late": lambda network: adom.networks.delayed(network, 2),
    "coarse": lambda network: adom.networks.quantised(network, 16),
}


@pytest.mark.parametrize("kind", LINKS)
def test_it_is_exact_on_imperfect_links(stiff, kind):
    network = LINKS[kind](NETWORK)
    result = adom.solve(stiff, network, "newton", rounds=400, rtol=1e-10 if kind == "coarse" else 1e-18)
    assert result.status == "converged"
    assert result.last["round"] < 200


def test_it_goes_round_by_round_where_only_windows_connect_the_nodes(stiff):
    halves = [[(0, 1), (2, 3), (4, 5)], [(1, 2), (3, 4), (5, 0)]]
    network = adom.networks.from_graphs([nx.Graph(links) for links in halves])
    assert not network.connected
    result = adom.solve(stiff, network, "newton", rounds=400, rtol=1e-18)
    assert result.status == "converged"
    assert result.history["round"].diff().max() == 1
    assert result.last["floats_sent"] == 6 * result.last["round"] * DIM * (DIM + 3) / 2


def test_a_run_needs_few_rounds_at_any_kappa_and_batches_are_single_runs(stiff):
    network = adom.networks.geometric(NODES, 0.6, graphs=5, seed=4)
    assert adom.solve(stiff, network, "newton", rounds=60, rtol=1e-18).status == "converged"
    assert adom.solve(stiff, network, "nids", rounds=60, rtol=1e-18).status != "converged"
    settings = [Newton(sigma=1 / network.lambda_max, hold=hold) for hold in (0.01, 0.04)]
    for setting, one in zip(settings, adom.solve_many(stiff, network, settings, rounds=20), strict=True):
        alone = adom.solve(stiff, network, setting, rounds=20)
        np.testing.assert_allclose(one.x, alone.x, rtol=1e-9)
        np.testing.assert_array_equal(one.history["gradients"], alone.history["gradients"])
