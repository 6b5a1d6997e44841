"""Runs on networks that lose messages and nodes: the methods as printed, and healing."""

from dataclasses import replace

import numpy as np
import pytest

import adom
from adom.algorithms import Constants, method_class
from adom.run.links import Presence
from adom.run.ranks import on_ranks as distributed
from adom.run.recorder import CLOCK, COLUMNS, ERROR, ITERATION, History, Plan
from adom.run.request import Request, Stop
from support.ranks import needs_mpi, run

NODES, DIM = 12, 3
ROUNDS = {"adom": 400, "adom+": 400, "diging": 4000, "acc-gt": 800, "acc-dngd": 3000, "dnm": 300, "panda": 20_000}
ROUNDS |= {"exact-diffusion": 300, "aug-dgm": 160, "adom+multi": 1500}
"""Rounds in which a method reaches 1e-12 of the start without loss, with room for loss."""


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    bases = np.linalg.qr(rng.standard_normal((NODES, DIM, DIM)))[0]
    H = bases @ (np.array([1.0, 3.0, 10.0])[:, None] * bases.transpose(0, 2, 1))
    return adom.Quadratic(H, rng.standard_normal((NODES, DIM)))


@pytest.fixture(scope="module")
def network():
    return adom.networks.geometric(NODES, 0.7, graphs=20, seed=1)


def relative(result):
    """Return the errors relative to the start's."""
    return result.history["error"].to_numpy() / result.provenance["start_error"]


def solved(problem, network, method, parameters="unit", rounds=None, **more):
    return adom.solve(problem, network, method, parameters, rounds=rounds or ROUNDS[method], **more)


@pytest.mark.parametrize("method", ROUNDS)
def test_healing_converges_linearly_and_the_printed_form_stalls(problem, network, method):
    lossy = adom.networks.lossy
    every = max(1, ROUNDS[method] // 8)
    for one_way in (0.1, 0.3, 0.5):
        result = solved(problem, lossy(network, one_way), method, rounds=2 * ROUNDS[method], record_every=every)
        errors = relative(result)
        assert errors.min() < 1e-12, one_way
        falling = errors[: np.argmax(errors < 1e-20) or None][1:]
        assert (falling[2:] < falling[:-2]).all(), one_way  # at a steady rate, no floor in between
    printed = relative(solved(problem, lossy(network, 0.1, healing=False), method, record_every=every))
    assert printed[len(printed) // 2 :].min() > 1e-5
    assert printed[-1] > 0.5 * printed[len(printed) // 2]


def test_without_loss_nothing_changes(problem, network):
    for method in ("adom", "acc-gt", "mudag"):
        plain, with_ledgers = (solved(problem, n, method, rounds=150) for n in (network, adom.networks.lossy(network)))
        np.testing.assert_allclose(relative(with_ledgers), relative(plain), 1e-9, 1e-14)
        assert (with_ledgers.history["floats_sent"] > plain.history["floats_sent"]).all()  # the ledgers
        printed = solved(problem, adom.networks.lossy(network, healing=False), method, rounds=150)
        assert (printed.history["floats_sent"] == plain.history["floats_sent"]).all()


@pytest.mark.parametrize(
    ("method", "parameters"), [("adom", "unit"), ("adom", "auto"), ("adom+", "auto"), ("acc-gt", "unit")]
)
def test_deaths_and_joins_end_at_the_answer_of_those_who_are_there(problem, network, method, parameters):
    k = 2 * ROUNDS[method]
    coming = {"leaving": {5: k // 2, 7: [k, 2 * k]}, "joining": {3: k, 7: 3 * k // 2}}
    result = solved(problem, adom.networks.lossy(network, 0.1, **coming), method, parameters, rounds=5 * k // 2)
    error = dict(zip(result.history["round"], relative(result), strict=True))
    for end in (k // 2, k, 3 * k // 2, 2 * k, 5 * k // 2):
        assert error[end] < 1e-12, end
        if end < 5 * k // 2:
            assert error[end + 1] > 1e-6, end  # another answer is asked for
    there = [i for i in range(NODES) if i not in (5, 7)]
    H, c = np.asarray(problem.H), np.asarray(problem.c)
    answer = np.linalg.solve(H[there].sum(axis=0), c[there].sum(axis=0))
    np.testing.assert_allclose(result.x[there], np.tile(answer, (len(there), 1)), atol=1e-6)
    assert np.isnan(result.x[[5, 7]]).all()


def test_no_tolerance_ends_a_run_before_the_last_has_come_or_gone(problem, network):
    lossy = adom.networks.lossy(network, 0.1, leaving={5: 400})
    for engine in ("local", "a rank"):
        request = Request("auto", 1000, Stop(1e-6), 1, "mpi", "float64", False)
        result = (
            adom.solve(problem, lossy, "adom", "unit", rounds=1000, tol=1e-6)
            if engine == "local"
            else distributed.on_one_rank(problem, lossy, "adom", "unit", request)
        )
        assert result.status == "converged"
        assert result.history["error"].iloc[300] < 1e-6
        assert 410 < result.history["round"].iloc[-1] < 1000
        there = np.arange(NODES) != 5
        H, c = np.asarray(problem.H), np.asarray(problem.c)
        answer = np.linalg.solve(H[there].sum(axis=0), c[there].sum(axis=0))
        assert ((result.x[there] - answer) ** 2).sum() == pytest.approx(result.history["error"].iloc[-1])


def test_nodes_that_are_away_send_and_compute_nothing(problem):
    whole = adom.networks.complete(NODES)
    network = adom.networks.lossy(whole, healing=False, leaving=dict.fromkeys(range(1, NODES - 1), 10))
    for imperfect, size in (
        (network, DIM),
        (adom.networks.quantised(network, 32, feedback=False), -(-(DIM * 32 + 64) // 64)),
    ):
        spent = solved(problem, imperfect, "nids", parameters="theory", rounds=30).history.diff()
        assert spent["floats_sent"].iloc[[4, 19]].tolist() == [NODES * (NODES - 1) * size, 2 * size]
        assert spent["gradients"].iloc[[4, 19]].tolist() == pytest.approx([1.0, 2 / NODES])


def test_the_printed_form_does_not_survive_a_death(problem, network):
    result = solved(problem, adom.networks.lossy(network, healing=False, leaving={5: 100}), "adom")
    assert relative(result)[99] < 1e-4 < relative(result)[-1]


def test_found_parameters_heal_too(problem, network):
    """Parameters that change on the way: the entries of the ledgers follow them."""
    result = solved(problem, adom.networks.lossy(network, 0.5), "adom", "auto")
    assert relative(result)[-1] < 1e-12
    assert result.settings["chi"].nunique() > 1


@pytest.mark.parametrize("method", ["diging", "sonata"])
def test_found_parameters_heal_where_curvatures_differ_much(method):
    """What is conserved must not depend on steps of one part in 10^5."""
    problem = adom.Quadratic([np.diag([1.0, 1e5 ** (i / 7)]) for i in range(8)], np.eye(8)[:, :2])
    network = adom.networks.lossy(adom.networks.ring(8), 0.1)
    errors = relative(solved(problem, network, method, "auto", rounds=3000))
    assert errors[-1] < errors[1500] < errors[0]
    assert errors.max() < 1.01


@pytest.mark.parametrize("method", ["adom", "mudag"])
def test_steps_of_several_rounds_heal(problem, method):
    """Windows, where no single round connects the nodes, and methods that average several times a step."""
    network = adom.networks.failing(adom.networks.ring(NODES), 0.3, graphs=60, seed=2)
    assert network.window > 1
    lossy = adom.networks.lossy(network, 0.2, leaving={4: 3000} if method == "adom" else None)
    errors = relative(solved(problem, lossy, method, rounds=20_000, record_every=20))
    assert errors[-1] < 1e-12
    assert relative(solved(problem, adom.networks.lossy(network, 0.2, False), method, rounds=6000))[-1] > 1e-5


def test_apm_conserves_nothing_and_is_off_with_and_without_healing(problem, network):
    pair = [relative(solved(problem, adom.networks.lossy(network, 0.1, h), "apm", rounds=2000)) for h in (True, False)]
    np.testing.assert_array_equal(*pair)
    assert pair[0][-1] > 1e-5


def test_logistic_regression_with_uneven_nodes_and_the_oracle_that_spares_gradients():
    rng = np.random.default_rng(3)
    data = [(rng.standard_normal((4 + i % 3, DIM)), rng.choice([-1, 1], 4 + i % 3)) for i in range(NODES)]
    problem = adom.LogisticRegression.from_nodes(data, kappa=10.0)
    network = adom.networks.geometric(NODES, 0.8, graphs=20, seed=1)
    lossy = adom.networks.lossy(network, 0.3, leaving={0: 300, 6: 300})
    result = solved(problem, lossy, "adom", rounds=1200)
    assert relative(result)[-1] < 1e-12
    left = adom.LogisticRegression.from_nodes([data[i] for i in range(NODES) if i not in (0, 6)], l2=problem.l2)
    np.testing.assert_allclose(result.x[1], left.solution(), atol=1e-7)


def test_a_batch_gives_what_each_would_alone(problem, network):
    lossy = adom.networks.lossy(network, 0.3, leaving={2: 50}, joining={9: 80})
    base = adom.ADOM.unit(adom.constants(problem, lossy))
    settings = [replace(base, eta=base.eta * factor) for factor in (0.5, 1.0)]
    for setting, together in zip(settings, adom.solve_many(problem, lossy, settings, rounds=150), strict=True):
        alone = adom.solve(problem, lossy, setting, rounds=150)
        np.testing.assert_allclose(together.history["error"], alone.history["error"], 1e-9)


def test_engines_agree_and_chunks_do_not_matter(problem, network):
    lossy = adom.networks.lossy(network, 0.3, leaving={2: 50}, joining={9: 80})
    local = adom.solve(problem, lossy, "adom", "unit", rounds=150)
    request = Request("auto", 150, Stop(), 1, "mpi", "float64", False)
    rank = distributed.on_one_rank(problem, lossy, "adom", "unit", request)
    np.testing.assert_allclose(rank.history["error"], local.history["error"], 1e-9)
    assert (rank.history["floats_sent"] == local.history["floats_sent"]).all()
    np.testing.assert_array_equal(np.isnan(rank.x), np.isnan(local.x))
    seldom = adom.solve(problem, lossy, "adom", "unit", rounds=150, record_every=30)
    np.testing.assert_array_equal(seldom.history["error"], local.history["error"].iloc[29::30])


@needs_mpi
def test_ranks_lose_the_same_messages(tmp_path):
    code, out = run(2, "losses", tmp_path)
    assert code == 0, out
    for which in ("", "-coarse"):
        found, local = (adom.load(tmp_path / f"{name}{which}.npz") for name in ("ranks", "local"))
        np.testing.assert_allclose(relative(found), relative(local), 1e-9, 1e-20)
        assert (found.history["floats_sent"] == local.history["floats_sent"]).all()
        assert found.provenance["wire"]["ranks"] == 2


def test_the_provenance_says_what_was_lost(problem, network):
    lossy = adom.networks.lossy(network, 0.25, seed=4, leaving={1: 5})
    result = solved(problem, lossy, "adom", rounds=10)
    recipe = result.provenance["network"]
    assert (recipe["generator"], recipe["one_way"], recipe["healing"], recipe["seed"]) == ("lossy", 0.25, True, 4)
    assert recipe["leaving"] == {"1": [5]}
    again = solved(problem, lossy, "adom", rounds=10)
    np.testing.assert_array_equal(result.x, again.x)
    assert (solved(problem, lossy.reseeded(5), "adom", rounds=10).x[0] != result.x[0]).any()


def test_refusals(problem, network, tmp_path):
    lossy = adom.networks.lossy(network, 0.1)
    with pytest.raises(adom.InputError, match=r"uses full averaging, which cannot run on imperfect links"):
        adom.solve(problem, lossy, "pngd", rounds=10)
    with pytest.raises(adom.InputError, match=r"directed links"):
        adom.solve(problem, lossy, "push-pull", rounds=10)
    with pytest.raises(adom.InputError, match=r"the theorem assumes perfect links"):
        adom.verify(problem, lossy, rounds=10)
    request = Request("auto", 10, Stop(), 1, "mpi", "float64", False)
    with pytest.raises(adom.InputError, match=r"without checkpoints"):
        distributed.on_one_rank(problem, lossy, "adom", "unit", request, adom.Checkpoints(tmp_path))
    big = adom.from_loss(lambda x, c: ((x - c) ** 2).sum(), np.zeros((400, 20_000), np.float32), mu=2.0, L=2.0)
    with pytest.raises(adom.InputError, match=r"ledgers of 79800 links would take"):
        adom.solve(big, adom.networks.lossy(adom.networks.complete(400), 0.1), "adom", "unit", rounds=10)


def test_a_tolerance_ends_a_run_from_the_first_round_of_the_last_nodes_on():
    table = np.ones((6, len(COLUMNS)))
    table[:, ITERATION] = table[:, CLOCK] = np.arange(1, 7)
    table[:, ERROR] = 1e-9
    method = method_class("diging").unit(Constants(mu=1.0, L=10.0, lambda_min_plus=0.1))
    presence = Presence(np.array([0, 3]), np.array([[True, True], [True, False]]), np.zeros((2, 1)))
    history = History(Plan(rounds=100, tol=1e-8, start_error=1.0), method, presence=presence)
    assert history.take(table, final=False) == 3  # rounds 0 to 2 have both nodes, the fourth one is the first without
    assert (history.status, history.table[-1, CLOCK]) == ("converged", 4)
