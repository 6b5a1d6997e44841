"""Each method against a dense transcription of its update, its invariants, its fixed point and its convergence."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adom
from adom.algorithms import METHODS, Constants, method_class
from support.reference import Gossip, Oracle, logistic_data, quadratics

NODES, DIM, KAPPA = 8, 3, 12.0
NETWORK = adom.networks.geometric(NODES, 0.6, graphs=6, seed=4)
MATRICES = [NETWORK.matrix(k) for k in range(NETWORK.period)]
CONSTANTS = Constants(1.0, KAPPA, NETWORK.lambda_min_plus, NETWORK.lambda_max, NODES)
H, C = quadratics(NODES, DIM, KAPPA)
X_STAR = np.tile(np.linalg.solve(H.sum(axis=0), C.sum(axis=0)), (NODES, 1))


def averaging(k):
    return np.eye(NODES) - MATRICES[k % len(MATRICES)] / NETWORK.lambda_max


# One step each, from any state, as the pages of the field write it: full matrices, one formula a line.


def dnm(p, s, oracle, k):
    y = s.z - p.theta * MATRICES[k] @ oracle.dual_gradient(s.z)
    return {"y": y, "z": y + p.beta * (y - s.y)}, oracle.dual_gradient(s.z)


def panda(p, s, oracle, k):
    x = oracle.dual_gradient(s.y)
    tracked = averaging(k) @ s.s + x - s.x
    return {"x": x, "s": tracked, "y": s.y - p.c * (x - tracked)}, x


def diging(p, s, oracle, k):
    x = averaging(k) @ s.x - p.a * s.s
    g = oracle.gradient(x)
    return {"x": x, "s": averaging(k) @ s.s + g - s.g, "g": g}, x


def push_pull(p, s, oracle, k):
    links = (MATRICES[k] != 0).astype(float)
    R, columns = links / links.sum(axis=1)[:, None], links / links.sum(axis=0)[None, :]
    x = R @ (s.x - p.a * s.s)
    g = oracle.gradient(x)
    return {"x": x, "s": columns @ s.s + g - s.g, "g": g}, x


def acc_dngd(p, s, oracle, k):
    M, a = averaging(k), p.a
    x = M @ s.y - p.eta * s.s
    v = (1 - a) * M @ s.v + a * M @ s.y - (p.eta / a) * s.s
    y = (x + a * v) / (1 + a)
    g = oracle.gradient(y)
    return {"v": v, "y": y, "s": M @ s.s + g - s.g, "g": g}, y


def mudag(p, s, oracle, k):
    g = oracle.gradient(s.y)
    x = s.y + s.x - s.y_before - p.step_size * (g - s.g_before)
    for i in range(int(p.K)):
        x = averaging(k + i) @ x
    y = x + (1 - p.a) / (1 + p.a) * (x - s.x)
    return {"x": x, "y": y, "y_before": s.y, "g_before": g}, x


def apm(p, s, oracle, k):
    y = s.x + (1 - p.a) / (1 + p.a) * (s.x - s.x_before)
    x = y - p.step_size * oracle.gradient(y)
    for i in range(max(1, int(np.ceil(s.k * p.growth - 1e-12)))):
        x = averaging(k + i) @ x
    return {"x": x, "x_before": s.x, "k": s.k + 1}, x


def adom_plus(p, s, oracle, k):
    W = MATRICES[k] / NETWORK.lambda_max
    x_g = p.tau_1 * s.x + (1 - p.tau_1) * s.x_f
    y_g = p.sigma_1 * s.y + (1 - p.sigma_1) * s.y_f
    z_g = p.sigma_1 * s.z + (1 - p.sigma_1) * s.z_f
    g = oracle.gradient(x_g) - p.nu * x_g
    # the implicit 2 x 2 system, solved as one
    system = np.array([[1 + p.eta * p.alpha, -p.eta], [p.theta, 1 + p.theta * p.beta]])
    right = np.stack(
        [s.x + p.eta * p.alpha * x_g - p.eta * g, s.y + p.theta * p.beta * g - p.theta * (y_g + z_g) / p.nu]
    )
    x, y = np.linalg.solve(system, right.reshape(2, -1)).reshape(right.shape)
    h = p.gamma / p.nu * (y_g + z_g) + s.m
    return {
        "x": x,
        "y": y,
        "z": s.z + p.gamma * p.delta * (z_g - s.z) - W @ h,
        "m": h - W @ h,
        "z_f": z_g - p.zeta * W @ (y_g + z_g),
        "x_f": x_g + p.tau_2 * (x - s.x),
        "y_f": y_g + p.sigma_2 * (y - s.y),
    }, x_g


def acc_gt(p, s, oracle, k):
    M, th = averaging(k), p.theta
    y = th * s.z + (1 - th) * s.x
    g = oracle.gradient(y)
    tracked = M @ s.s + g - s.g
    z = (M @ ((p.mu * p.a / th) * y + s.z) - (p.a / th) * tracked) / (1 + p.mu * p.a / th)
    return {"x": th * z + (1 - th) * M @ s.x, "z": z, "s": tracked, "g": g}, th * z + (1 - th) * M @ s.x


def dgd(p, s, oracle, k):
    x = averaging(k) @ s.x - p.a * oracle.gradient(s.x)
    return {"x": x}, x


def extra(p, s, oracle, k):
    g = oracle.gradient(s.x)
    x = s.x + averaging(k) @ s.x - s.w - p.a * (g - s.g)
    return {"x": x, "w": (np.eye(NODES) + averaging(k)) @ s.x / 2, "g": g}, x


def nids(p, s, oracle, k):
    g = oracle.gradient(s.x)
    x = (np.eye(NODES) + averaging(k)) / 2 @ (2 * s.x - s.x_before - p.a * (g - s.g))
    return {"x": x, "x_before": s.x, "g": g}, x


def exact_diffusion(p, s, oracle, k):
    adapted = s.x - p.a * oracle.gradient(s.x)
    x = (np.eye(NODES) + averaging(k)) / 2 @ (adapted + s.x - s.psi)
    return {"x": x, "psi": adapted}, x


def aug_dgm(p, s, oracle, k):
    x = averaging(k) @ (s.x - p.a * s.s)
    g = oracle.gradient(x)
    return {"x": x, "s": averaging(k + 1) @ (s.s + g - s.g), "g": g}, x


def sonata(p, s, oracle, k):
    x = averaging(k) @ (s.x - p.a * s.s)
    g = oracle.gradient(x)
    return {"x": x, "s": averaging(k) @ s.s + g - s.g, "g": g}, x


def push_diging(p, s, oracle, k):
    links = (MATRICES[k] != 0).astype(float)
    columns = links / links.sum(axis=0)[None, :]
    v = columns @ s.v
    x = np.linalg.inv(np.diag(v[:, 0])) @ columns @ (np.diag(s.v[:, 0]) @ s.x - p.a * s.s)
    g = oracle.gradient(x)
    return {"x": x, "v": v, "s": columns @ s.s + g - s.g, "g": g}, x


def chebyshev(v, degree, chi):
    """T(c (I - d W)) v / T(c) by the roots of the polynomial T, taken off v; W is the first matrix in every round."""
    W = MATRICES[0] / NETWORK.lambda_max
    c, rest = (chi + 1) / (chi - 1), v
    for root in np.cos(np.pi * (np.arange(int(degree)) + 0.5) / int(degree)):
        rest = (c * (rest - 2 * chi / (1 + chi) * W @ rest) - root * rest) / (c - root)
    return v - rest


def msda(p, s, oracle, k):
    g = oracle.dual_gradient(s.z)
    y = s.z - p.eta * chebyshev(g, p.K, p.chi)
    return {"y": y, "z": y + p.beta * (y - s.y)}, g


def opapc(p, s, oracle, k):
    x_g = p.tau * s.x + (1 - p.tau) * s.x_f
    moved = s.x - p.eta * (oracle.gradient(x_g) - p.alpha * x_g)
    z = s.z + p.theta * chebyshev((moved - p.eta * s.z) / (1 + p.eta * p.alpha), p.T, p.chi)
    x = (moved - p.eta * z) / (1 + p.eta * p.alpha)
    return {"x": x, "x_f": x_g + 2 * p.tau / (2 - p.tau) * (x - s.x), "z": z}, x


def in_windows(one_round):
    """The transcription with the product of T averaging matrices in the place of one."""

    def several(p, s, oracle, k):
        product = np.linalg.multi_dot([np.eye(NODES), *(averaging(k + i) for i in reversed(range(int(p.T))))])
        kept = MATRICES[k]
        MATRICES[k] = (np.eye(NODES) - product) * NETWORK.lambda_max
        try:
            return one_round(p, s, oracle, k)
        finally:
            MATRICES[k] = kept

    return several


TRANSCRIPTIONS = {
    "dnm": dnm,
    "panda": panda,
    "diging": diging,
    "push-pull": push_pull,
    "acc-dngd": acc_dngd,
    "mudag": mudag,
    "apm": apm,
    "adom+": adom_plus,
    "acc-gt": acc_gt,
    "dgd": dgd,
    "extra": extra,
    "nids": nids,
    "exact-diffusion": exact_diffusion,
    "aug-dgm": aug_dgm,
    "sonata": sonata,
    "push-diging": push_diging,
    "msda": msda,
    "opapc": opapc,
    "adom+multi": in_windows(adom_plus),
    "acc-gt-multi": in_windows(acc_gt),
}
STILL = ("msda", "opapc")  # which are for one matrix


def test_every_method_is_transcribed_here_or_in_its_own_file():
    assert set(TRANSCRIPTIONS) | {"adom", "pngd", "newton"} == set(METHODS)


@pytest.mark.parametrize("protocol", ["theory", "unit"])
@pytest.mark.parametrize("name", TRANSCRIPTIONS)
def test_one_step_from_anywhere_equals_the_transcription(name, protocol):
    method = getattr(method_class(name), protocol)(CONSTANTS)
    oracle, rng = Oracle(H, C), np.random.default_rng(7)
    start = method.init(np.zeros((NODES, DIM)), oracle)
    for k in (0, 3):
        state = type(start)(*(rng.standard_normal(v.shape) if isinstance(v, np.ndarray) else 5 for v in start))
        gossip = Still() if name in STILL else Gossip(MATRICES)
        gossip.clock = k
        after, x = method.step(state, oracle, gossip)
        parameters = SimpleNamespace(**method.parameters())
        expected, reported = TRANSCRIPTIONS[name](parameters, SimpleNamespace(**state._asdict()), oracle, k)
        assert set(expected) == set(after._fields)
        for field, value in expected.items():
            np.testing.assert_allclose(getattr(after, field), value, rtol=1e-11, atol=1e-12, err_msg=field)
        np.testing.assert_allclose(x, reported, rtol=1e-11, atol=1e-12)


class Still(Gossip):
    """The first matrix in every round, and lambda_max of all."""

    def __init__(self):
        super().__init__(MATRICES)

    def __call__(self, *vectors):
        self.clock = 0
        return super().__call__(*vectors)


def at_solution(name):
    """The state in which a method has arrived."""
    cls, oracle = method_class(name), Oracle(H, C)
    zero, slope = np.zeros_like(X_STAR), oracle.gradient(X_STAR)
    nu = getattr(cls.theory(CONSTANTS), "nu", None)
    name = name.removesuffix("multi").removesuffix("-")
    values = {
        "dnm": lambda: {"y": slope, "z": slope},
        "panda": lambda: {"x": X_STAR, "s": X_STAR, "y": slope},
        "diging": lambda: {"x": X_STAR, "s": zero, "g": slope},
        "push-pull": lambda: {"x": X_STAR, "s": zero, "g": slope},
        "acc-dngd": lambda: {"v": X_STAR, "y": X_STAR, "s": zero, "g": slope},
        "mudag": lambda: {"x": X_STAR, "y": X_STAR, "y_before": X_STAR, "g_before": slope},
        "acc-gt": lambda: {"x": X_STAR, "z": X_STAR, "s": zero, "g": slope},
        "extra": lambda: {"x": X_STAR, "w": X_STAR, "g": slope},
        "nids": lambda: {"x": X_STAR, "x_before": X_STAR, "g": slope},
        "exact-diffusion": lambda: {"x": X_STAR, "psi": X_STAR - cls.theory(CONSTANTS).a * slope},
        "aug-dgm": lambda: {"x": X_STAR, "s": zero, "g": slope},
        "sonata": lambda: {"x": X_STAR, "s": zero, "g": slope},
        "push-diging": lambda: {"x": X_STAR, "v": np.ones((NODES, 1)), "s": zero, "g": slope},
        "msda": lambda: {"y": slope, "z": slope},
        "opapc": lambda: {"x": X_STAR, "x_f": X_STAR, "z": -slope},
        "adom+": lambda: {
            **dict.fromkeys(("x", "x_f"), X_STAR),
            **dict.fromkeys(("y", "y_f"), slope - nu * X_STAR),
            **dict.fromkeys(("z", "z_f"), -slope),
            "m": zero,
        },
    }[name]()
    state = cls.theory(CONSTANTS).init(zero, oracle)
    return type(state)(**values)


@pytest.mark.parametrize("name", [name for name in TRANSCRIPTIONS if name not in ("apm", "dgd")])
def test_the_solution_is_a_fixed_point(name):
    method, oracle, state = method_class(name).theory(CONSTANTS), Oracle(H, C), at_solution(name)
    after, x = method.step(state, oracle, Gossip(MATRICES))
    np.testing.assert_allclose(x, X_STAR, atol=1e-12)
    for field in state._fields:
        if (name, field) == ("push-diging", "v"):
            np.testing.assert_allclose(after.v.sum(), NODES, rtol=1e-14)
        elif (name[:5], field) == ("adom+", "m"):  # whose consensus part is free
            spread = after.m - after.m.mean(axis=0)
            np.testing.assert_allclose(spread, 0, atol=1e-12)
        else:
            np.testing.assert_allclose(getattr(after, field), getattr(state, field), atol=1e-11, err_msg=field)


def test_apm_rests_at_the_solution_only_in_the_limit_of_averaging():
    method, oracle = method_class("apm").theory(CONSTANTS), Oracle(H, C)
    state = method.init(np.zeros_like(X_STAR), oracle)._replace(x=X_STAR, x_before=X_STAR)
    away = []
    for k in (0, 2, 4):
        _, x = method.step(state._replace(k=k), oracle, Gossip(MATRICES))
        np.testing.assert_allclose(x.mean(axis=0), X_STAR[0], atol=1e-12)
        away.append(np.abs(x - X_STAR).max())
    assert away[0] > 4 * away[1] > 16 * away[2]


def test_dgd_ends_as_far_from_the_solution_as_its_step_is_long():
    oracle, distances = Oracle(H, C), []
    for a in (0.02, 0.01):
        method = method_class("dgd")(a=a)
        state = method.init(np.zeros_like(X_STAR), oracle)
        for _ in range(2000):
            state, x = method.step(state, oracle, Gossip(MATRICES[:1]))
        M = averaging(0)  # the end is where (I - M) x + a grad F(x) = 0
        np.testing.assert_allclose((np.eye(NODES) - M) @ x, -a * oracle.gradient(x), atol=1e-12)
        distances.append(np.linalg.norm(x - X_STAR))
    assert 1.8 < distances[0] / distances[1] < 2.2


def test_nids_and_exact_diffusion_are_one_recursion_from_two_starts():
    nids, diffusion = (method_class(name).theory(CONSTANTS) for name in ("nids", "exact-diffusion"))
    oracle, gossip = Oracle(H, C), Gossip(MATRICES[:1])
    state = diffusion.init(np.zeros_like(X_STAR), oracle)
    before, x = state.x, diffusion.step(state, oracle, gossip)[1]
    other = type(nids.init(before, oracle))(x=x, x_before=before, g=oracle.gradient(before))
    state, _ = diffusion.step(state, oracle, gossip)
    for _ in range(20):
        state, x = diffusion.step(state, oracle, gossip)
        other, y = nids.step(other, oracle, gossip)
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-13)


TRACKED = {"diging": "x", "push-pull": "x", "acc-dngd": "y", "acc-gt": None, "aug-dgm": "x", "sonata": "x"}
TRACKED |= {"push-diging": "x", "acc-gt-multi": None}
SUMLESS = {"dnm": "yz", "adom+": ("z", "z_f"), "adom+multi": ("z", "z_f"), "msda": "yz", "opapc": "z"}
DESCENDING = {"extra": "x", "nids": "x", "exact-diffusion": "x", "dgd": "x"}


@pytest.mark.parametrize("name", [*TRACKED, *DESCENDING, *SUMLESS, "panda", "mudag"])
def test_invariants_hold_all_along(name):
    method, oracle, gossip = method_class(name).unit(CONSTANTS), Oracle(H, C), Gossip(MATRICES)
    state = method.init(np.zeros((NODES, DIM)), oracle)
    for _ in range(40):
        before = state
        state, _ = method.step(state, oracle, gossip)
        if name in TRACKED:  # s tracks the sum of the gradients
            np.testing.assert_allclose(state.s.sum(axis=0), state.g.sum(axis=0), atol=1e-10)
            if TRACKED[name]:
                np.testing.assert_allclose(state.g, oracle.gradient(getattr(state, TRACKED[name])), atol=1e-11)
        elif name in DESCENDING:  # the mean of the rows takes the steps of gradient descent
            mean_step = before.x.mean(axis=0) - method.a * oracle.gradient(before.x).mean(axis=0)
            np.testing.assert_allclose(state.x.mean(axis=0), mean_step, atol=1e-11)
        elif name == "panda":  # s tracks the sum of x, and the rows of y sum to zero
            np.testing.assert_allclose(state.s.sum(axis=0), state.x.sum(axis=0), atol=1e-10)
            np.testing.assert_allclose(state.y.sum(axis=0), 0, atol=1e-11)
        elif name in SUMLESS:
            for field in SUMLESS[name]:
                np.testing.assert_allclose(getattr(state, field).sum(axis=0), 0, atol=1e-11)
        else:  # the mean of the rows takes Nesterov's own steps
            mean_step = before.y.mean(axis=0) - method.step_size * oracle.gradient(before.y).mean(axis=0)
            np.testing.assert_allclose(state.x.mean(axis=0), mean_step, atol=1e-11)


# Parameters with which each method is shown to converge to 1e-10 of the start, and a budget of rounds. On these
# networks (chi about 4 to 6) unit's steps for DIGing, PANDA, Push-Pull, Acc-DNGD and Acc-GT are safe and slow.
BUDGET = {
    "adom": 3000,
    "pngd": 500,
    "dnm": 1000,
    "mudag": 3000,
    "apm": 20_000,
    "diging": 20_000,
    "panda": 30_000,
    "push-pull": 20_000,
    "acc-dngd": 60_000,
    "adom+": 20_000,
    "acc-gt": 20_000,
    "extra": 2000,
    "nids": 2000,
    "exact-diffusion": 2000,
    "aug-dgm": 4000,
    "sonata": 20_000,
    "push-diging": 20_000,
    "msda": 500,
    "opapc": 1000,
    "adom+multi": 4000,
    "acc-gt-multi": 4000,
}
FIXED = adom.networks.geometric(NODES, 0.6, seed=4)


@pytest.mark.parametrize("name", BUDGET)
def test_converges_on_quadratics(name):
    """Over changing graphs where that is proved, and for two of old that do so here."""
    problem = adom.Quadratic(H, C)
    converges(name, problem, network_for(name))


@pytest.mark.parametrize("name", BUDGET)
def test_converges_on_logistic_regression(name):
    A, b = logistic_data(NODES, 10, DIM)
    problem = adom.LogisticRegression(A.reshape(-1, DIM), b.ravel(), nodes=NODES, kappa=KAPPA)
    converges(name, problem, network_for(name))


def network_for(name):
    changing = name in ("dnm", "acc-dngd") or method_class(name).needs != "fixed"
    return NETWORK if changing else FIXED


def converges(name, problem, network):
    tol = 1e-10 * NODES * float((problem.solution() ** 2).sum())
    result = adom.solve(problem, network, name, parameters="unit", rounds=BUDGET[name], tol=tol, record_every=10)
    assert result.status == "converged", result
    late = result.history[result.history["error"] < 1e-2 * result.provenance["start_error"]]
    if name != "apm" and len(late) > 10:  # linear: the last half of the way takes about as long as the half before
        logs = np.log(late["error"].to_numpy())
        half = np.searchsorted(-logs, -(logs[0] + logs[-1]) / 2)
        assert 0.2 < half / len(logs) < 0.8


def test_dnm_loses_its_way_on_a_network_that_changes_fast():
    """The paper's first experiment in small: ring and star in turn."""
    problem = adom.Quadratic(*quadratics(30, 3, 30.0))
    network = adom.networks.alternate([adom.networks.ring(30), adom.networks.star(30)], every=10)
    assert adom.solve(problem, network, "dnm", "theory", "exact", rounds=3000).status == "diverged"
    assert adom.solve(problem, network, "adom", "theory", "exact", rounds=300).status == "max_rounds"


@pytest.mark.parametrize("name", ["push-pull", "push-diging"])
@pytest.mark.parametrize("maker", ["directed_ring", "directed_erdos_renyi", "directed_geometric"])
def test_converges_on_directed_changing_graphs(maker, name):
    more = {"directed_ring": (), "directed_erdos_renyi": (0.4,), "directed_geometric": (0.6,)}[maker]
    changing = {} if maker == "directed_ring" else {"graphs": 5, "seed": 1}
    network = getattr(adom.networks, maker)(NODES, *more, **changing)
    problem = adom.Quadratic(H, C)
    tol = 1e-10 * NODES * float((problem.solution() ** 2).sum())
    result = adom.solve(problem, network, name, "unit", rounds=60_000, tol=tol, record_every=50)
    assert result.status == "converged", result
    links = np.array([len(network.arcs(g)) for g in network.order])
    rounds = int(result.history["round"].iloc[-1])
    width = 2 * DIM + (name == "push-diging")  # two vectors over every arc, and a weight
    expected = width * np.resize(links, rounds).sum()
    assert result.history["floats_sent"].iloc[-1] == expected


def test_directed_networks_are_refused_by_methods_that_need_links_both_ways():
    problem, network = adom.Quadratic(H, C), adom.networks.directed_ring(NODES)
    for name in METHODS:
        if not method_class(name).directed:
            with pytest.raises(adom.InputError, match="needs links that go both ways"):
                adom.solve(problem, network, name, rounds=1)
    with pytest.raises(adom.InputError, match="needs links that go both ways"):
        adom.verify(problem, network, rounds=1)


def test_an_oracle_makes_no_sense_for_a_primal_method():
    with pytest.raises(adom.InputError, match="DIGing uses gradients, not a dual oracle"):
        adom.solve(adom.Quadratic(H, C), NETWORK, "diging", oracle="exact", rounds=1)


def spread(c):
    """The ratio of the greatest to the least eigenvalue of P(W) off consensus, with floor(sqrt(chi)) rounds."""
    power = ((np.sqrt(c.chi) - 1) / (np.sqrt(c.chi) + 1)) ** int(np.sqrt(c.chi))
    return ((1 + power) / (1 - power)) ** 2


# Proved rates of the squared error, per step.
RATES = {
    "dnm": (lambda c, m: 1 / np.sqrt(c.chi * c.kappa), "theory", True),
    "pngd": (lambda c, m: m.tau, "theory", False),
    "diging": (lambda c, m: m.a * c.mu / 1.5, "theory", False),
    "adom+": (lambda c, m: 1 / (32 * c.chi * np.sqrt(c.kappa)), "theory", False),
    "nids": (lambda c, m: min(1 / c.kappa, 1 / (2 * c.chi)), "theory", True),
    "exact-diffusion": (lambda c, m: min(1 / c.kappa, 1 / (2 * c.chi)), "theory", True),
    "aug-dgm": (lambda c, m: min(1 / c.kappa, 1 / c.chi**2), "theory", True),
    "msda": (lambda c, m: 1 / np.sqrt(spread(c) * c.kappa), "theory", True),
    "opapc": (lambda c, m: np.log1p(min(1 / np.sqrt(spread(c) * c.kappa), 1 / spread(c)) / 4), "theory", True),
    "adom+multi": (lambda c, m: 1 / (32 * 2 * np.sqrt(c.kappa)), "theory", False),
}


@pytest.mark.parametrize("name", RATES)
@settings(max_examples=8, deadline=None)
@given(kappa=st.floats(2.0, 40.0), seed=st.integers(0, 1000))
def test_is_no_slower_than_proved_on_random_quadratics(name, kappa, seed):
    network = adom.networks.geometric(6, 0.7, graphs=1 if RATES[name][2] else 4, seed=seed)
    matrices = [network.matrix(k) for k in range(network.period)]
    A, b = quadratics(6, 2, kappa, seed)
    oracle = Oracle(A, b)
    eigenvalues = np.linalg.eigvalsh(A)
    constants = Constants(eigenvalues.min(), eigenvalues.max(), network.lambda_min_plus, network.lambda_max, 6)
    rate, protocol, _ = RATES[name]
    method = getattr(method_class(name), protocol)(constants)
    x_star = np.tile(np.linalg.solve(A.sum(axis=0), b.sum(axis=0)), (6, 1))
    state, gossip = method.init(np.zeros((6, 2)), oracle), Gossip(matrices)
    errors = []
    for _ in range(600):
        state, x = method.step(state, oracle, gossip)
        errors.append(((x - x_star) ** 2).sum())
        if errors[-1] < 1e-20 * errors[0]:
            break
    errors = np.array(errors)
    # A bound C (1 - rate)^k: from the peak of the first third to that of the last tenth it must fall at this rate.
    third, tenth = len(errors) // 3, max(1, len(errors) // 10)
    decrease = np.log(errors[:third].max() / errors[-tenth:].max())
    assert decrease >= rate(constants, method) * (len(errors) - tenth - third) * (1 - 1e-6)
