"""Engine mpi on real ranks: the same bits on any number of them, neighbours only, kills, faults."""

import json
import os
import random
import re
import signal
import time

import numpy as np
import pytest

import adom
from adom.run.ranks.partition import Partition
from support import mpi_program
from support.ranks import needs_mpi, run, start

pytestmark = needs_mpi
ROUNDS = 130


SOME = ("adom-auto", "adom-loss", "mudag-auto", "push-pull-directed")


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Every method on 1 and 3 ranks, some also on 2 and 4: number of ranks -> name -> result."""
    found = {}
    for ranks in (1, 2, 3, 4):
        folder = tmp_path_factory.mktemp(f"ranks{ranks}")
        code, out = run(ranks, "methods", folder, ROUNDS, *(SOME if ranks in (2, 4) else ()))
        assert code == 0, out
        found[ranks] = {path.stem: adom.load(path) for path in sorted(folder.glob("*.npz"))}
    return found


def untimed(result):
    return result.history.drop(columns="seconds")


def test_the_number_of_ranks_changes_no_bit(everything):
    names = [name for name, *_ in mpi_program.runs()]
    assert sorted(everything[1]) == sorted(everything[3]) == sorted(names)
    assert sorted(everything[2]) == sorted(everything[4]) == sorted(SOME)
    assert {name.partition("-")[0] for name in names} >= {"adom", "dnm", "mudag", "apm", "push", "panda", "pngd"}
    for ranks in (2, 3, 4):
        for name, result in everything[ranks].items():
            alone = everything[1][name]
            assert result.x.tobytes() == alone.x.tobytes(), (ranks, name)
            assert untimed(result).equals(untimed(alone)), (ranks, name)
            assert result.status == alone.status
            assert result.provenance["wire"]["ranks"] == ranks


def test_ranks_agree_with_the_local_engine(everything):
    """For a few; test_checkpoints.py holds all of them on one rank against the local engine, over 500 rounds."""
    for name, problem, network, method, oracle in mpi_program.runs():
        if name in SOME:
            local = adom.solve(problem, network, method, "unit", oracle, rounds=ROUNDS)
            found = everything[3][name]
            assert found.status == local.status, name
            error, expected = found.history["error"].to_numpy(), local.history["error"].to_numpy()
            start = local.provenance["start_error"]
            np.testing.assert_allclose(error, expected, rtol=1e-9, atol=1e-20 * start, err_msg=name)
            for column in ("iteration", "round", "floats_sent"):
                assert (found.history[column] == local.history[column]).all(), name


def test_only_neighbours_talk_once_a_round_with_the_rows_of_the_cut(tmp_path):
    ranks = 4
    code, out = run(ranks, "messages", tmp_path)
    assert code == 0, out
    blocks = Partition(mpi_program.NODES, ranks)
    network = next(mpi_program.runs())[2]
    width = {"adom": 2, "mudag": 1}  # vectors a round
    for method, rounds in (("adom", 30), ("mudag", 12)):
        sent = {
            (k, rank, to): (rows, columns)
            for rank in range(ranks)
            for k, to, rows, columns in json.loads((tmp_path / f"rank{rank}.json").read_text())[method]
        }
        expected = {}
        for k in range(rounds):
            edges = np.array(list(network.graph(k).edges))
            for u, v in np.concatenate([edges, edges[:, ::-1]]):
                a, b = blocks.owner(np.array([u, v]))
                if a != b:
                    expected.setdefault((k, int(a), int(b)), set()).add(int(u))
        assert sent == {pair: (len(rows), 6 * width[method]) for pair, rows in expected.items()}
        total = sum(len(json.loads((tmp_path / f"rank{rank}.json").read_text())[method]) for rank in range(ranks))
        assert total == len(sent)  # one message for each pair of ranks and round, not several


def wait_for(condition, seconds, process):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def generation(folder):
    found = sorted((folder / "checkpoints").glob("iteration-*"))
    return found[-1].name if found else ""


def test_twenty_kills_change_no_bit(tmp_path):
    """Five runs, each killed four times at random and gone on with another number of ranks."""
    rounds, chance = 400, random.Random(7)
    whole = tmp_path / "whole"
    whole.mkdir()
    code, out = run(2, "long", whole, rounds)
    assert code == 0, out
    expected = adom.load(whole / "result.npz")
    kills = 0
    for series in range(5):
        folder = tmp_path / f"series{series}"
        folder.mkdir()
        ranks, word = 2, "no"
        for _ in range(4):
            before = generation(folder)
            for old in folder.glob("pid-*"):
                old.unlink()
            process = start(ranks, "long", folder, rounds, "0.004", word)
            wait_for(lambda folder=folder, before=before: generation(folder) > before, 90, process)
            time.sleep(chance.uniform(0, 0.15))
            victim = int((folder / f"pid-{chance.randrange(ranks)}").read_text())
            os.kill(victim, signal.SIGKILL)
            out, _ = process.communicate(timeout=30)
            assert process.returncode != 0
            assert not (folder / "result.npz").exists()
            kills += 1
            ranks, word = chance.choice([other for other in (1, 2, 3) if other != ranks]), "resume"
        code, out = run(ranks, "long", folder, rounds, "0", word)
        assert code == 0, out
        assert "going on from iteration" in out
        result = adom.load(folder / "result.npz")
        assert result.x.tobytes() == expected.x.tobytes()
        assert untimed(result).equals(untimed(expected))
    assert kills == 20


STARTS = {
    "unborn": "not all ranks have started within 5 s",
    "stopped": r"rank 1 of 2 \(nodes 2 to 3; process \d+ on \S+\) has not answered for 5 s",
    "blocked": r"rank 1 of 2 \(nodes 2 to 3; .*\) has done nothing for 5 s while reading .*/node-00002.svm: it is",
}


@pytest.mark.parametrize("kind", STARTS)
def test_a_rank_that_does_not_get_through_its_start_ends_the_job(tmp_path, kind):
    samples = "".join(f"{(-1) ** i} 1:{i / 7:.3f} 2:{(i * 3) % 5}\n" for i in range(1, 17))
    (tmp_path / "data.svm").write_text(samples)
    adom.data.write_shards(tmp_path / "data.svm", 4, tmp_path / "shards")
    code, out = run(2, "starting", tmp_path, kind)
    assert code != 0
    assert len(re.findall(STARTS[kind], out)) == 1, out
    assert "killed or crashed" not in out


@pytest.mark.parametrize("kind", ["kill", "raise", "hang", "full"])
def test_a_rank_in_trouble_ends_the_job_and_is_named(tmp_path, kind):
    if kind == "kill":
        process = start(3, "long", tmp_path, 100_000, "0.001")
        wait_for(lambda: len(list((tmp_path / "checkpoints").glob("iteration-*"))) > 1, 90, process)
        os.kill(int((tmp_path / "pid-1").read_text()), signal.SIGKILL)
        begun = time.monotonic()
        out, _ = process.communicate(timeout=60)
        code = process.returncode
        assert time.monotonic() - begun < 15
    else:
        code, out = run(3, "trouble", tmp_path, kind, 1)
    assert code != 0
    assert "rank 1 of 3 (nodes 4 to 7" in out, out
    cause = {
        "kill": "killed or crashed",
        "raise": "ZeroDivisionError: this node's data are broken",
        "hang": "has not answered for 5 s",
        "full": "No space left on device",
    }
    assert cause[kind] in out, out
    assert not re.search(r"rank [02] of 3 [^;]*; process \d+ on \S+\)[^;]*(;|:) (killed or crashed|rank)", out), out
    from adom.run.ranks import checkpoints

    assert checkpoints.latest(tmp_path / "checkpoints", print) is not None
