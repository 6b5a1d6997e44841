"""Every method, oracle and kind of problem by both engines: the same curves, the same bits on any number of ranks."""

import json
from functools import cache

import numpy as np
import pytest

import adom
from adom.algorithms import METHODS
from adom.run.local import jitted
from adom.run.ranks import on_ranks as distributed
from adom.run.ranks.rank_rounds import Partition
from adom.run.request import Request, Stop
from support import default_xla, mpi_program
from support.ranks import needs_mpi, run

ROUNDS = 130  # on several ranks; 500 on one
SOME = ("adom-auto", "adom-loss", "mudag-auto", "push-pull-directed", "found-adom")


def on_one_rank(problem, network, method, oracle, parameters, rounds=500):
    """Return the result of one rank, which needs no MPI."""
    request = Request(oracle, rounds, Stop(), 1, "mpi", "float64", False)
    return distributed.on_one_rank(problem, network, method, parameters, request)


def locally(problem, network, method, oracle, parameters):
    return adom.solve(problem, network, method, parameters, oracle, rounds=500)


@pytest.fixture(scope="module")
def runs():
    """Name -> how the run is made, and its results by the local engine and by one rank."""
    return {name: (how, locally(*how), on_one_rank(*how)) for name, *how in mpi_program.runs()}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """All runs on 2 ranks, some also on 1, 3 and 4: number of ranks -> folder of results, and messages of 4.

    On 4, XLA compiles as it does by default, elsewhere in a hurry, as in all tests (conftest.py).
    """
    found = {}
    for ranks in (1, 2, 3, 4):
        found[ranks] = tmp_path_factory.mktemp(f"ranks{ranks}")
        task = "methods_and_messages" if ranks == 4 else "methods"
        more = {"env": {"XLA_FLAGS": ""}} if ranks == 4 else {}
        code, out = run(ranks, task, found[ranks], ROUNDS, *(() if ranks == 2 else SOME), **more)
        assert code == 0, out
    return found


def untimed(result):
    return result.history.drop(columns="seconds")


def assert_same_bits(one, other, label):
    assert one.x.tobytes() == other.x.tobytes(), label
    assert untimed(one).equals(untimed(other)), label
    assert one.status == other.status, label
    assert one.provenance.get("settings") == other.provenance.get("settings"), label


def test_the_arithmetic_of_a_rank_is_the_local_engines(runs):
    for name, (_, local, found) in runs.items():
        assert found.status == local.status, name
        for column in ("iteration", "round", "floats_sent"):
            assert (found.history[column] == local.history[column]).all(), (name, column)
        if name == "dnm-exact":
            continue  # beyond its stability: rounding grows
        error, expected = (one.history["error"].to_numpy() for one in (found, local))
        np.testing.assert_allclose(error, expected, 1e-9, 1e-20 * local.provenance["start_error"], err_msg=name)


@needs_mpi
def test_the_number_of_ranks_changes_no_bit(runs, folders):
    assert {how[2] for how, *_ in runs.values()} == set(METHODS)
    alone = {name: on_one_rank(*how, ROUNDS) for name, (how, *_) in runs.items()}
    for ranks, folder in folders.items():
        found = {path.stem: adom.load(path) for path in folder.glob("*.npz")}
        assert found.keys() == (runs.keys() if ranks == 2 else set(SOME))
        for name, result in found.items():
            assert_same_bits(result, alone[name], (ranks, name))
            assert result.provenance["wire"]["ranks"] == ranks


@needs_mpi
def test_only_neighbours_talk_once_a_round_with_the_rows_of_the_cut(folders):
    ranks = 4
    said = [json.loads((folders[ranks] / f"rank{rank}.json").read_text()) for rank in range(ranks)]
    blocks = Partition(mpi_program.NODES, ranks)
    network = next(mpi_program.runs())[2]
    width = {"adom": 2, "mudag": 1}  # vectors a round
    for method, rounds in (("adom", 30), ("mudag", 12)):
        sent = {(k, rank, to): (rows, columns) for rank in range(ranks) for k, to, rows, columns in said[rank][method]}
        expected = {}
        for k in range(rounds):
            edges = np.array(list(network.graph(k).edges))
            for u, v in np.concatenate([edges, edges[:, ::-1]]):
                a, b = blocks.owner(np.array([u, v]))
                if a != b:
                    expected.setdefault((k, int(a), int(b)), set()).add(int(u))
        assert sent == {pair: (len(rows), 6 * width[method]) for pair, rows in expected.items()}
        total = sum(len(messages[method]) for messages in said)
        assert total == len(sent)  # one message for each pair of ranks and round, not several


def test_programs_of_xla_as_it_is_by_default_give_the_same_bits(runs, monkeypatch):
    """What the tests have compiled in a hurry (conftest.py) computes what a user's programs do.

    Here all runs by the local engine and some by a rank, above some on 4 ranks.
    """
    monkeypatch.setattr(jitted, "compiled", lambda function, quick, **how: default_xla.jit(function, **how))
    monkeypatch.setattr(jitted, "_programs", cache(jitted._programs.__wrapped__))
    for name, (how, local, rank) in runs.items():
        if name == "acc-gt-multi-quadratic":  # sums of two products, which a processor can round in two ways
            np.testing.assert_allclose(locally(*how).history["error"], local.history["error"], rtol=1e-11)
            continue
        assert_same_bits(locally(*how), local, name)
        if name in SOME:
            assert_same_bits(on_one_rank(*how), rank, name)
