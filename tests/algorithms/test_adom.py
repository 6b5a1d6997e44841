import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adom
from adom.algorithms import Constants
from adom.algorithms.adom import ADOM, State
from adom.algorithms.pngd import PNGD
from adom.algorithms.pngd import State as PNGDState
from support.reference import Gossip, Oracle, adom_run, adom_theory, quadratics


def setting(nodes=7, dim=3, kappa=30.0, seed=0):
    network = adom.networks.geometric(nodes, 0.5, graphs=4, seed=seed)
    matrices = [network.matrix(k) for k in range(network.period)]
    c = Constants(1.0, kappa, network.lambda_min_plus, network.lambda_max, nodes)
    return Oracle(*quadratics(nodes, dim, kappa, seed)), matrices, c


def test_follows_an_independent_transcription_of_algorithm_2():
    oracle, matrices, c = setting()
    method, gossip = ADOM.theory(c), Gossip(matrices)
    expected = adom_theory(c.mu, c.L, c.lambda_min_plus, c.lambda_max)
    state = method.init(np.zeros((7, 3)), oracle)
    for g, z, z_f, m in adom_run(oracle.dual_gradient, matrices, expected, (7, 3), rounds=200):
        state, x = method.step(state, oracle, gossip)
        for ours, theirs in ((x, g), (state.z, z), (state.z_f, z_f), (state.m, m)):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_the_page_of_notation_quotes_the_code():
    page = (Path(__file__).parents[2] / "docs" / "notation.md").read_text()
    rows = page.partition("## ADOM, line by line")[2].partition("\n## ")[0]
    quoted = re.findall(r"\| `([^`\n]+ = [^`\n]+)`", rows)
    assert len(quoted) == 7
    assert all(code in inspect.getsource(ADOM.step) for code in quoted)


def test_theory_is_theorem_1_and_unit_drops_its_sevens():
    c = Constants(mu=0.5, L=8.0, lambda_min_plus=0.1, lambda_max=2.0)
    theory, unit = ADOM.theory(c), ADOM.unit(c)
    expected = adom_theory(0.5, 8.0, 0.1, 2.0)
    for name, value in theory.parameters().items():
        assert value == pytest.approx(getattr(expected, name), rel=1e-15)
    assert unit.eta == pytest.approx(2 * np.sqrt(c.mu * c.L) / c.chi)
    assert unit.tau == pytest.approx(np.sqrt(c.mu / c.L) / c.chi)
    assert (unit.alpha, unit.theta, unit.sigma) == (theory.alpha, theory.theta, theory.sigma)


def test_rows_of_z_keep_summing_to_zero():
    oracle, matrices, c = setting()
    method, gossip = ADOM.theory(c), Gossip(matrices)
    state = method.init(np.zeros((7, 3)), oracle)
    for _ in range(300):
        state, _ = method.step(state, oracle, gossip)
        for z in (state.z, state.z_f):
            assert np.abs(z.sum(axis=0)).max() <= 1e-12 * max(1.0, np.abs(z).max())


@pytest.mark.parametrize("cls", [ADOM, PNGD])
def test_stays_at_the_solution(cls):
    oracle, matrices, c = setting()
    solution = np.linalg.solve(oracle.H.sum(axis=0), oracle.c.sum(axis=0))
    z = oracle.gradient(np.tile(solution, (7, 1)))  # z* = grad F(x*), whose rows sum to zero
    # grad F*(z*) is consensus, which W sends to zero, so only m's own consensus part moves.
    state = State(z, z, np.zeros_like(z)) if cls is ADOM else PNGDState(z, z)
    after, x = cls.theory(c).step(state, oracle, Gossip(matrices))
    np.testing.assert_allclose(x, np.tile(solution, (7, 1)), atol=1e-12)
    np.testing.assert_allclose(after.z, z, atol=1e-12)
    np.testing.assert_allclose(after.z_f, z, atol=1e-12)


def test_pngd_is_algorithm_1():
    oracle, _, c = setting()
    method = PNGD.theory(c)
    P = np.eye(7) - np.ones((7, 7)) / 7
    alpha, eta, theta, tau = 1 / (2 * c.L), 2 * np.sqrt(c.mu * c.L) / 7, c.mu, np.sqrt(c.mu / c.L) / 7
    z = z_f = np.zeros((7, 3))
    state = method.init(z, oracle)
    for _ in range(100):
        z_g = tau * z + (1 - tau) * z_f
        Pg = P @ oracle.dual_gradient(z_g)
        z, z_f = z + eta * alpha * (z_g - z) - eta * Pg, z_g - theta * Pg
        state, _ = method.step(state, oracle, Gossip([P]))
        np.testing.assert_allclose(state.z, z, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(state.z_f, z_f, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("oracle", ["exact", ("gd", 1), ("agd", 3)])
def test_on_the_complete_graph_adom_is_pngd(oracle):
    problem = adom.Quadratic(*quadratics(6, 4, 50.0))
    network = adom.networks.complete(6)
    ours = adom.solve(problem, network, "adom", "theory", oracle, rounds=400)
    ideal = adom.solve(problem, network, "pngd", "theory", oracle, rounds=400)
    scale = np.abs(problem.solution()).max()
    np.testing.assert_allclose(ours.x, ideal.x, atol=1e-11 * scale)
    big = ideal.history["error"] > 1e-16
    np.testing.assert_allclose(ours.history["error"][big], ideal.history["error"][big], rtol=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    nodes=st.integers(3, 12),
    dim=st.integers(1, 4),
    kappa=st.floats(1.5, 300.0),
    radius=st.floats(0.2, 1.0),
    seed=st.integers(0, 2**16),
)
def test_theorem_1_holds_on_random_quadratics_and_graphs(nodes, dim, kappa, radius, seed):
    """error_k <= C (1 - sqrt(mu/L) / (7 chi))^k, with the proof's C, in every round, in plain NumPy."""
    network = adom.networks.geometric(nodes, radius, graphs=5, seed=seed)
    matrices = [network.matrix(k) for k in range(5)]
    H, c = quadratics(nodes, dim, kappa, seed)
    oracle = Oracle(H, c)
    mu, L = np.linalg.eigvalsh(H).min(), np.linalg.eigvalsh(H).max()
    constants = Constants(mu, L, network.lambda_min_plus, network.lambda_max, nodes)
    method = ADOM.theory(constants)

    x_star = np.tile(np.linalg.solve(H.sum(axis=0), c.sum(axis=0)), (nodes, 1))
    z_star = oracle.gradient(x_star)

    def conjugate(z):
        x = oracle.dual_gradient(z)
        return (x * z).sum() - (np.einsum("nd,nde,ne->n", x, H, x) / 2 - (c * x).sum(axis=1)).sum()

    eta, alpha, tau = method.eta, method.alpha, method.tau
    gap = conjugate(np.zeros_like(c)) - conjugate(z_star)
    psi_0 = (z_star**2).sum() + 2 * eta * (1 - eta * alpha) / tau * gap
    C = psi_0 * max(2 * tau / mu**2, tau * (1 - tau) * L / (eta * (1 - eta * alpha) * mu**2))

    state, gossip = method.init(np.zeros((nodes, dim)), oracle), Gossip(matrices)
    rate = 1 - np.sqrt(mu / L) / (7 * constants.chi)
    for k in range(200):
        state, x = method.step(state, oracle, gossip)
        assert ((x - x_star) ** 2).sum() <= C * rate**k * (1 + 1e-9) + 1e-24
