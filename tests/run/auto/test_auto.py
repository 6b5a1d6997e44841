"""Runs with parameters="auto": they need no constants of the network, and say what they assumed."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import adom
from adom.algorithms import COMPARED, METHODS, method_class
from adom.dynamics.auto_state import SETTINGS
from adom.errors import InputError
from adom.networks import Network
from adom.run import recorder
from adom.run.auto.pilots import resolve
from adom.run.local.backend import run_settings
from adom.run.local.graph_layout import flood_estimate
from adom.run.request import Request
from support.reference import logistic_data, quadratics

NODES, DIM = 8, 3
CANARIES = (len(SETTINGS.first) + 1) * len(SETTINGS.stiffness)


@pytest.fixture(scope="module")
def problem():
    A, b = logistic_data(NODES, 12, DIM)
    return adom.LogisticRegression.from_nodes(list(zip(A, b, strict=True)), kappa=60.0)


@pytest.fixture(scope="module")
def network():
    return adom.networks.alternate([adom.networks.ring(NODES), adom.networks.star(NODES)], every=10)


def target(problem, part=1e-10):
    return part * problem.nodes * float((problem.solution() ** 2).sum())


def rounds(problem, network, method, parameters, most=20_000):
    result = adom.solve(problem, network, method, parameters, rounds=most, tol=target(problem))
    return result.last["round"] if result.status == "converged" else np.inf


@pytest.fixture(scope="module")
def found(problem, network):
    return adom.solve(problem, network, parameters="auto", rounds=2000, tol=target(problem))


def test_it_converges_in_fewer_rounds_than_with_the_true_constants(found, problem, network):
    assert found.status == "converged"
    assert found.protocol == "auto"
    assert found.last["round"] < rounds(problem, network, "adom", "theory")


@pytest.mark.parametrize("name", [name for name in METHODS if name != "dgd"])  # which stays away from the solution
def test_every_method_converges(name, problem, network):
    """Also those that average for several rounds, and those without chi in their formulas."""
    fixed = method_class(name).needs == "fixed" and name not in COMPARED
    assert rounds(problem, adom.networks.ring(NODES) if fixed else network, name, "auto", 6000) <= 6000


@pytest.mark.parametrize("name", ["mudag", "apm", "opapc"])
def test_averaging_is_measured_where_a_step_takes_several_rounds(name, problem):
    fast, slow = adom.networks.complete(NODES), adom.networks.path(NODES)
    each = [adom.solve(problem, network, name, rounds=1500).settings["chi"] for network in (fast, slow)]
    assert each[0].iloc[-1] < 2 < 0.5 * slow.chi < each[1].iloc[-1] < 2 * slow.chi


def test_momentum_starts_afresh_at_every_decision(problem, network):
    """A state at rest is at the same point, and its rows sum to zero as before."""
    constants = adom.constants(problem, network)
    method = adom.ADOM.unit(constants)
    from adom.algorithms.adom import State

    z, z_f = (np.random.default_rng(seed).standard_normal((NODES, DIM)) for seed in (0, 1))
    rest = method.at_rest(State(z - z.mean(axis=0), z_f - z_f.mean(axis=0), z))
    assert np.array_equal(rest.z, rest.z_f)
    assert not rest.m.any()
    np.testing.assert_allclose(rest.z.sum(axis=0), 0, atol=1e-12)


def test_a_method_that_fails_where_functions_are_flat_is_watched_there():
    """ADOM+ grew a billion times here when its canaries were steep, as those of other primal methods are."""
    draws = np.random.default_rng(0)
    H = [np.diag([1.0, 100.0, draws.uniform(1, 100)]) for _ in range(6)]
    problem = adom.Quadratic(np.array(H), draws.standard_normal((6, 3)))
    result = adom.solve(problem, adom.networks.path(6), "adom+", rounds=3000)
    assert result.last["error"] < 1e-3 * result.provenance["start_error"]


def test_a_step_without_numbers_diverges(problem, network):
    class Broken(method_class("diging")):
        def step(self, state, oracle, gossip):
            state, x = super().step(state, oracle, gossip)
            return state._replace(x=np.nan * x), np.nan * x

    assert adom.solve(problem, network, Broken, rounds=50).status == "diverged"


def test_nobody_computes_the_networks_spectrum(problem, monkeypatch):
    network = adom.networks.geometric(NODES, 0.6, graphs=5, seed=1)

    def refuse(self):
        raise AssertionError("looked at the spectrum")

    monkeypatch.setattr(recorder, "CHI_NODES", 0)  # nor for the record
    monkeypatch.setattr(Network, "chi_known", False)
    monkeypatch.setattr(Network, "chi", property(refuse))
    monkeypatch.setattr(Network, "lambda_min_plus", property(refuse))
    assert adom.solve(problem, network, parameters="auto", rounds=60).last["round"] == 60


def test_it_follows_a_network_that_gets_worse():
    H, c = quadratics(6, 2, 30.0)
    problem = adom.Quadratic(H, c)
    good, bad = adom.networks.complete(6), adom.networks.path(6)
    network = adom.networks.alternate([good, bad], every=50)
    order = np.concatenate([network.order[:50], np.full(20_000, network.order[50])])
    worse = Network(network._pool, order, {"generator": "worse"})
    result = adom.solve(problem, worse, parameters="auto", rounds=12_000, tol=1e-18)
    chis = result.settings["chi"].to_numpy()
    assert result.status == "converged"
    assert chis[-1] > 2 * np.nanmin(chis[result.settings["round"] < 100])


def test_where_every_round_averages_fully_the_run_is_that_of_chi_1():
    """Four rounds later: two to see it, two to agree."""
    problem, network = adom.Quadratic(*quadratics(6, 2, 30.0)), adom.networks.complete(6)
    found, given = (adom.solve(problem, network, parameters=p, rounds=500, tol=1e-12) for p in ("auto", "unit"))
    assert found.settings["round"].tolist()[:2] == [0, 4]
    assert set(found.settings["chi"].tolist()[1:]) == {1.0}
    assert found.last["round"] <= given.last["round"] + 4


def test_a_run_may_decide_by_other_numbers(problem, network):
    method, pilot, _ = resolve(problem, network, "adom", "auto", rules=replace(SETTINGS, first_block=32))
    (result,) = run_settings([method], [problem], network, "auto", Request(rounds=60), pilot=pilot)
    assert result.settings["round"][1] >= 32


def test_it_runs_where_no_graph_is_connected_and_waits_carefully_until_canaries_start():
    """A path whose links come one at a time, with rounds without any between them."""
    H, c = quadratics(5, 2, 10.0)
    graphs = [nx.empty_graph(5) for _ in range(8)]
    for link in range(4):
        graphs[2 * link + 1].add_edge(link, link + 1)
    problem, network = adom.Quadratic(H, c), adom.networks.from_graphs(graphs)
    for method in ("adom", "diging"):
        result = adom.solve(problem, network, method, rounds=20_000, tol=1e-12)
        assert result.status == "converged"
    assert result.settings["chi"][1] > 1e4
    assert "canaries have not started" in result.settings["why"][1]


def test_every_number_sent_is_counted(problem, network, found):
    """Two vectors a round, each with the run's columns, the canaries and one that is only averaged; and agreement."""
    links = np.array([2 * len(network.edges(int(g))) for g in network.order])
    last = int(found.last["round"])
    sent = 2 * (DIM + CANARIES + 1) * links[np.arange(last) % network.period].sum()
    decided = ~found.settings["why"].str.contains("longer to agree")
    for end in found.settings["round"][decided][1:]:
        begin = next(k for k in range(end, 0, -1) if k + 2 * flood_estimate(network, k) == end)
        sent += (CANARIES + 4) * links[np.arange(begin, end) % network.period].sum()
    agreeing = found.last["floats_sent"] - sent  # begun when the run ended
    assert 0 <= agreeing <= (CANARIES + 4) * 2 * NODES * links.max()


@pytest.mark.parametrize("method", ["diging", "adom"])
def test_a_run_at_its_floor_of_rounding_does_not_become_more_and_more_careful(problem, network, method):
    """The floor of a dual method is kappa times as high."""
    steeper = problem.with_kappa(3000.0) if method == "adom" else problem
    result = adom.solve(steeper, network, method, "auto", rounds=20_000, record_every=200)
    assert result.message.startswith("at the floor of rounding")
    late = result.settings["chi"][result.settings["round"] > 5000]
    assert late.max() <= 2 * late.min()


def test_where_records_fall_changes_nothing(problem, network, found):
    other = adom.solve(problem, network, parameters="auto", rounds=int(found.last["round"]), record_every=7)
    assert other.x.tobytes() == found.x.tobytes()
    assert other.provenance["settings"] == found.provenance["settings"]


def test_the_settings_stay_with_the_result(found, tmp_path):
    saved = adom.load(found.save(tmp_path / "found.npz"))
    assert list(saved.settings.columns) == ["round", "chi", "why"]
    assert saved.settings.equals(found.settings)
    assert saved.settings["round"].is_monotonic_increasing
    assert (saved.settings["why"].str.len() > 0).all()


def test_a_run_is_replayed_with_the_settings_it_found(found, problem, network):
    motion = adom.replay(found, problem, network)
    assert motion.distances[-1].max() < motion.distances[0].max()


def test_other_parameters_have_no_settings(problem, network):
    assert adom.solve(problem, network, parameters="unit", rounds=3).settings.empty


def test_compare_takes_it(problem, network):
    table = adom.compare(problem, network, ["adom", "diging"], parameters="auto", rounds=2000, tol=1e-6).table
    assert (table["status"] == "converged").all()
    every = adom.compare(problem, network, rounds=20_000, tol=1e-6)
    assert not every.skipped
    assert set(every.table["status"]) == {"converged"}


@pytest.mark.parametrize(
    ("method", "parameters", "message"),
    [
        ("adom", {"protocol": "auto", "eta": 0.1}, "auto parameters cannot be combined with values"),
    ],
)
def test_refusals(problem, network, method, parameters, message):
    with pytest.raises(InputError, match=message):
        adom.solve(problem, network, method, parameters)


def test_a_sweep_does_not_start_from_it(problem, network):
    with pytest.raises(InputError, match="a sweep cannot start from auto parameters"):
        adom.sweep(problem, network, ["adom"], parameters="auto", rounds=10)


def test_the_picture_shows_what_was_assumed(found, problem, network):
    left, right = found.plot().axes
    (line,) = right.lines
    assert right.get_ylabel() == "assumed chi (dotted)"
    assert np.array_equal(line.get_ydata()[:-1], found.settings["chi"], equal_nan=True)
    assert line.get_xdata()[-1] == left.lines[0].get_xdata()[-1]
    assert len(adom.solve(problem, network, parameters="unit", rounds=3).plot().axes) == 1


def test_the_command_says_what_was_assumed(tmp_path):
    from typer.testing import CliRunner

    from adom.cli.main import app

    words = "solve --nodes 6 --dim 4 --parameters auto --rounds 40 --network ring --out"
    done = CliRunner().invoke(app, [*words.split(), str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "assumed chi" in done.output
