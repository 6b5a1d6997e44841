"""Checkpoints and the loop on a single rank, which needs no MPI."""

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

import adom
from adom import native
from adom.algorithms import Constants
from adom.errors import InputError
from adom.run.local import graph_layout
from adom.run.local.graph_layout import flood_rounds
from adom.run.ranks import checkpoints
from adom.run.ranks import on_ranks as distributed
from adom.run.ranks.agreement import AgreedStop
from adom.run.ranks.checkpoints import FolderLock
from adom.run.ranks.peers import Ranks
from adom.run.ranks.rank_rounds import Partition, RankGossip, RankRounds, RowTravel
from adom.run.recorder import History, Plan, Recorder
from adom.run.request import Request, Stop
from support import apart, mpi_program


def request(rounds=100, tol=None, record_every=1, oracle="gd:1", dtype="float64", **more):
    return Request(oracle, rounds, Stop(tol), record_every, "mpi", dtype, False, **more)


@cache
def network():
    return adom.networks.geometric(13, 0.45, graphs=12, seed=3)


def solved(rounds=100, kept=None, method="adom", oracle="gd:1", problem=None, parameters="unit", **more):
    problem = problem or mpi_program.problems()["dense"]
    return distributed.on_one_rank(problem, network(), method, parameters, request(rounds, oracle=oracle, **more), kept)


def same(one, other):
    history = [r.history.drop(columns="seconds") for r in (one, other)]
    return one.x.tobytes() == other.x.tobytes() and history[0].equals(history[1]) and one.status == other.status


@pytest.mark.parametrize("oracle", ["auto", "exact", "gd:1", "agd:3"])
@pytest.mark.parametrize("record_every", [1, 7])
def test_going_on_from_a_checkpoint_changes_no_bit(tmp_path, oracle, record_every):
    whole = solved(90, oracle=oracle, record_every=record_every)
    solved(50, adom.Checkpoints(tmp_path, every_rounds=20), oracle=oracle, record_every=record_every)
    rest = adom.Checkpoints(tmp_path, every_rounds=20, resume=True)
    again = solved(90, rest, oracle=oracle, record_every=record_every)
    assert again.provenance["resumed"] == 40
    assert same(again, whole)


@pytest.mark.parametrize("method", ["mudag", "apm", "push-pull", "acc-dngd", "pngd"])
def test_other_methods_go_on_as_well(tmp_path, method):
    oracle = "gd:1" if method == "pngd" else "auto"
    whole = solved(900, method=method, oracle=oracle)
    solved(600, adom.Checkpoints(tmp_path, every_rounds=60), method=method, oracle=oracle)
    again = solved(900, adom.Checkpoints(tmp_path, resume=True), method=method, oracle=oracle)
    assert again.provenance["resumed"] > 0
    assert same(again, whole)


@pytest.mark.parametrize(("method", "saved"), [("adom", 40), ("adom", 90), ("mudag", 200)])
def test_a_run_that_finds_its_parameters_goes_on_with_what_it_has_found(tmp_path, method, saved):
    settings = {"method": method, "oracle": "auto" if method == "mudag" else "gd:2", "parameters": "auto"}
    whole = solved(saved + 150, **settings)
    solved(saved + 20, adom.Checkpoints(tmp_path, every_rounds=saved), **settings)
    again = solved(saved + 150, adom.Checkpoints(tmp_path, resume=True), **settings)
    assert again.provenance["resumed"] > 0
    assert same(again, whole)
    assert again.provenance["settings"] == whole.provenance["settings"]
    assert len({row["chi"] for row in whole.provenance["settings"]}) > 1


@pytest.mark.parametrize(("method", "oracle"), [("adom", "gd:1"), ("apm", "auto"), ("push-pull", "auto")])
def test_windows_of_rounds_change_no_bit(monkeypatch, method, oracle):
    whole = solved(300, method=method, oracle=oracle)
    monkeypatch.setattr(graph_layout, "POOL_BYTES", 0)
    monkeypatch.setattr(graph_layout, "WINDOW_BYTES", 5000)
    assert same(solved(300, method=method, oracle=oracle), whole)


class Uneven(adom.DIGing):
    """DIGing, which sends a column more with s."""

    def step(self, state, oracle, gossip):
        x, s, g = state
        W_x, W_s = gossip(x, jnp.concatenate([s, s[:, :1]], axis=1))
        x = x - W_x / gossip.lambda_max - self.a * s
        g_next = oracle.gradient(x)
        return type(state)(x, s - W_s[:, :-1] / gossip.lambda_max + g_next - g, g_next), x


@pytest.mark.parametrize("kernels", [True, False])
def test_vectors_of_different_widths_travel_together(kernels, monkeypatch):
    if kernels and not native.usable():
        pytest.skip("no compiler")
    monkeypatch.setattr(native, "usable", lambda backend="cpu": kernels)
    even, uneven = (solved(60, method=cls(a=0.05), oracle="auto") for cls in (adom.DIGing, Uneven))
    np.testing.assert_allclose(uneven.history["error"], even.history["error"], rtol=1e-12)
    assert (uneven.history["floats_sent"] * 12 == even.history["floats_sent"] * 13).all()


def test_a_budget_that_a_checkpoint_has_spent_already_ends_at_once(tmp_path):
    solved(50, adom.Checkpoints(tmp_path, every_rounds=20))
    assert same(solved(40, adom.Checkpoints(tmp_path, resume=True)), solved(40))
    with pytest.raises(InputError, match=r"iteration-000000000040 is at round 40, beyond the budget of rounds=39"):
        solved(39, adom.Checkpoints(tmp_path, resume=True))


@pytest.fixture
def shards(tmp_path):
    return apart.split(tmp_path)


@pytest.mark.parametrize("tol", [None, 1e-6])
@pytest.mark.parametrize("a", [5.0, 50.0])
def test_a_run_that_nobody_monitors_is_seen_to_diverge(shards, a, tol):
    given = (adom.Shards(shards, kappa=20.0), adom.networks.ring(6), "diging", {"a": a})
    result = distributed.on_one_rank(*given, request(3000, tol, oracle="auto", monitor=False))
    assert result.status == "diverged"
    assert result.message.startswith("the rows' squared norm reached ")
    assert list(result.history) == ["iteration", "round", "gradients", "floats_sent", "seconds"]
    assert np.isfinite(result.x).all()
    fine = distributed.on_one_rank(*given[:3], "unit", request(300, tol, oracle="auto", monitor=False))
    assert fine.status == "max_rounds"


def test_going_on_changes_no_bit_where_nodes_agree_on_when_to_stop(shards, tmp_path):
    def run(rounds, kept=None):
        problem, asked = adom.Shards(shards, kappa=20.0), request(rounds, 1e-3, oracle="agd:9")
        return distributed.on_one_rank(problem, adom.networks.ring(6), "adom", "unit", asked, kept)

    whole = run(2000)
    assert whole.status == "converged"
    run(int(whole.history["round"].iloc[-1]) // 2, adom.Checkpoints(tmp_path / "kept", every_rounds=20))
    again = run(2000, adom.Checkpoints(tmp_path / "kept", every_rounds=20, resume=True))
    assert again.provenance["resumed"] > 0
    assert same(again, whole)


def alone(network):
    """The network as the only rank sees it between two steps."""
    rounds = RankRounds(network, Partition(network.nodes, 1), 0, False, "float64")
    return RankGossip(RowTravel(rounds, Ranks(network.nodes).exchange))


def test_rows_beyond_all_numbers_do_not_look_near_and_raise_nothing():
    """The old square of a float raised OverflowError where this one is infinite."""
    network, constants = adom.networks.ring(6), Constants(1e-9, 1.0, 1.0, 4.0, 6)
    gossip = alone(network)
    for size in (1e150, 1e308, np.inf, np.nan):
        stop = AgreedStop(1e-6, network, constants, steepest=1e300)
        with np.errstate(all="ignore"):
            x = np.full((6, 2), size) * np.arange(6)[:, None]
            assert not stop.reached(gossip, x, x)
        assert 1 <= stop.averaging < 10_000


def test_the_bound_of_the_error_counts_the_gradient_and_the_disagreement():
    """With mu = L = 1 and one coordinate, no row is farther from x* than |mean gradient| + width of the rows."""
    network, nodes = adom.networks.ring(6), 6
    gossip = alone(network)
    stop = AgreedStop(1e-5, network, Constants(1.0, 1.0, 1.0, 4.0, nodes), steepest=1.0)
    x = np.zeros((nodes, 1))
    x[2] = 1e-3
    assert not stop.reached(gossip, x, np.full((nodes, 1), 1e-3))
    assert stop.last.disagreement == pytest.approx(nodes * 1e-3**2)
    assert stop.last.error == pytest.approx(nodes * 2e-3**2)
    assert stop.reached(gossip, 0 * x, np.full((nodes, 1), 1e-3))
    stop.averaging = 0  # then the mean gradient is known only to lie among the nodes'
    stop.reached(gossip, x, np.array([[1e-3]] * 3 + [[-3e-3]] * 3))
    assert stop.last.error == pytest.approx(nodes * 4e-3**2)


def test_data_that_stay_home_are_judged_by_what_is_recorded(shards):
    def ended(a, monitor=True):
        asked = request(60, oracle="auto", monitor=monitor)
        one = distributed.on_one_rank(adom.Shards(shards, l2=1.0), adom.networks.ring(6), adom.DIGing(a=a), None, asked)
        return one.status, one.message

    assert ended(0.01) == ("max_rounds", "")
    status, said = ended(2.0)
    assert (status, said[:40]) == ("growing", "the disagreement of the nodes rose from ")
    assert ended(0.01, monitor=False) == ("max_rounds", "the error was not recorded")


def test_a_budget_that_is_spent_when_all_agree_to_stop_is_a_success():
    recorder = Recorder([History(Plan(rounds=9), adom.DIGing(a=1.0))], lambda member: None)
    recorder.take(np.array([[[9.0, 9.0, 9.0, 9.0, 1.0, 1.0, 1.0]]]), "converged")
    assert recorder.histories[0].status == "converged"
    assert not recorder.going


def test_two_generations_are_kept(tmp_path):
    solved(100, adom.Checkpoints(tmp_path, every_rounds=10))
    assert [number for number, _ in checkpoints.generations(tmp_path)] == [90, 80]


@pytest.mark.parametrize("damage", ["cut", "flipped", "header", "gone", "empty"])
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_it_used(tmp_path, capfd, damage):
    whole = solved(100)
    solved(95, adom.Checkpoints(tmp_path, every_rounds=10))
    file = tmp_path / "iteration-000000000090" / "rank-0-of-1.npz"
    content = bytearray(file.read_bytes())
    if damage == "gone":
        file.unlink()
    else:
        place = {"flipped": len(content) // 2, "header": 80}.get(damage, 0)
        content[place] ^= 1
        size = {"cut": len(content) * 2 // 3, "empty": 0}.get(damage, len(content))
        content[place] ^= damage in ("cut", "empty")
        file.write_bytes(content[:size])
    again = solved(100, adom.Checkpoints(tmp_path, every_rounds=50, resume=True))
    said = capfd.readouterr().err
    assert "iteration-000000000090" in said
    assert ("not complete" if damage == "gone" else "damaged") in said
    assert "the generation before it is tried" in said
    assert "going on from iteration 80" in said
    assert same(again, whole)


def test_where_no_generation_is_whole_nothing_is_run(tmp_path):
    solved(30, adom.Checkpoints(tmp_path, every_rounds=20))
    for file in tmp_path.glob("*/*.npz"):
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(InputError, match=r"no checkpoint in .* is whole; remove the folder to start afresh"):
        solved(30, adom.Checkpoints(tmp_path, resume=True))
    assert list(tmp_path.glob("*/*.npz"))


def test_a_kill_in_the_first_checkpoint_costs_no_more_than_a_start(tmp_path, capfd):
    solved(30, adom.Checkpoints(tmp_path, every_rounds=20))
    file = tmp_path / "iteration-000000000020" / "rank-0-of-1.npz"
    file.rename(file.with_name("rank-0-of-2.npz"))  # and rank 1 was killed before it wrote its own
    assert same(solved(40, adom.Checkpoints(tmp_path, every_rounds=20, resume=True)), solved(40))
    said = capfd.readouterr().err
    assert "is not complete: 1 of 2 of its files are there" in said
    assert "starting from the beginning" in said


def test_checkpoints_of_another_run_are_refused(tmp_path):
    solved(30, adom.Checkpoints(tmp_path, every_rounds=20))
    with pytest.raises(InputError, match="holds checkpoints of an earlier run; go on from them"):
        solved(30, adom.Checkpoints(tmp_path))
    with pytest.raises(InputError, match="was written with oracle = 'gd:1', now it is 'agd:2'"):
        solved(60, adom.Checkpoints(tmp_path, resume=True), oracle="agd:2")


def test_checkpoints_of_other_data_or_another_loss_are_refused(tmp_path):
    """Nodes, dim, mu and L are the same, and do not tell the problems apart."""
    network, factor = adom.networks.ring(3), 1.0

    def run(problem, folder, rounds, **more):
        kept = adom.Checkpoints(tmp_path / folder, every_rounds=20, **more)
        return distributed.on_one_rank(
            problem, network, adom.DIGing(a=0.2), "given", request(rounds, oracle="auto"), kept
        )

    H, c = np.ones((3, 1, 1)), np.array([[1.0], [2.0], [3.0]])
    run(adom.Quadratic(H, c), "data", 30)
    with pytest.raises(InputError, match=r"data was written with other data of node 2; give the same data"):
        run(adom.Quadratic(H, c + np.array([[0.0], [0.0], [1.0]])), "data", 60, resume=True)
    assert run(adom.Quadratic(H, c), "data", 60, resume=True).provenance["resumed"] == 20

    def loss(x, c):
        return 0.5 * ((x - factor * c) ** 2).sum()

    run(adom.from_loss(loss, c, mu=1.0, L=1.0), "loss", 30)
    factor = 2.0
    with pytest.raises(InputError, match=r"loss was written with code = "):
        run(adom.from_loss(loss, c, mu=1.0, L=1.0), "loss", 60, resume=True)


def other_labels():
    """The problem of `solved` with other labels: mu and L, which depend on the features alone, are the same."""
    dense = [(features, -labels) for features, labels in mpi_program.data()]
    return adom.LogisticRegression.from_nodes(dense, kappa=20.0)


def test_other_data_with_the_same_constants_are_refused(tmp_path):
    solved(30, adom.Checkpoints(tmp_path, every_rounds=20))
    other, one = other_labels(), mpi_program.problems()["dense"]
    assert (other.mu, other.L) == (one.mu, one.L)
    with pytest.raises(InputError, match="was written with other data of node 0; give the same data"):
        solved(60, adom.Checkpoints(tmp_path, resume=True), problem=other)


def test_two_jobs_do_not_share_a_folder(tmp_path):
    with FolderLock(tmp_path), pytest.raises(InputError, match=r"is in use by process \d+ on .*; wait until it has"):
        solved(30, adom.Checkpoints(tmp_path, every_rounds=20))
    solved(30, adom.Checkpoints(tmp_path, every_rounds=20))
    assert {path.name for path in tmp_path.iterdir()} == {"iteration-000000000020"}


def test_resuming_without_a_checkpoint_starts_from_the_beginning(tmp_path, capfd):
    assert same(solved(40, adom.Checkpoints(tmp_path / "new", resume=True)), solved(40))
    assert "starting from the beginning" in capfd.readouterr().err


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*file"):
        solved(40, adom.Checkpoints(tmp_path / "file", every_rounds=10))


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    import errno

    plain, calls = np.lib.format.write_array, []

    def full(*given, **more):
        calls.append(1)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return plain(*given, **more)

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises((InputError, OSError), match="No space left"):
        solved(100, adom.Checkpoints(tmp_path, every_rounds=10))
    monkeypatch.undo()
    assert same(solved(100, adom.Checkpoints(tmp_path, resume=True)), solved(100))


def test_checkpoints_check_their_numbers():
    with pytest.raises(InputError, match=r"every_rounds of checkpoints must be positive, got 0"):
        adom.Checkpoints("folder", every_rounds=0)
    assert adom.Checkpoints("folder").seconds == 60
    assert adom.Checkpoints("folder", every_rounds=5).seconds == float("inf")


def test_blocks_cover_all_nodes_once():
    for nodes in range(1, 20):
        for count in range(1, nodes + 1):
            blocks = Partition(nodes, count)
            owners = blocks.owner(np.arange(nodes))
            assert [blocks.of(int(owner))[0] <= i < blocks.of(int(owner))[1] for i, owner in enumerate(owners)]
            assert min(end - first for first, end in map(blocks.of, range(count))) >= nodes // count
    with pytest.raises(InputError, match="5 ranks cannot share 4 nodes"):
        Partition(4, 5)


def test_a_flood_takes_as_long_as_a_word_to_get_everywhere():
    assert flood_rounds(adom.networks.path(6), 0) == 5
    assert flood_rounds(adom.networks.star(6), 3) == 2
    assert flood_rounds(adom.networks.directed_ring(5), 0) == 4


def test_a_run_on_float32_is_near_that_on_float64():
    single = solved(60, dtype="float32")
    assert single.x.dtype == np.float32
    np.testing.assert_allclose(single.x, solved(60).x, atol=1e-4)


def test_ranks_alone_send_nothing():
    assert solved(20).provenance["wire"] == {"ranks": 1, "messages": 0, "bytes": 0}
    assert Ranks(5).collect(np.zeros(3))[0].shape == (3,)
