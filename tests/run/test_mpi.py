"""Engine mpi on real ranks that are killed, hang, raise, or do not get through their start."""

import os
import random
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import adom
from support.ranks import needs_mpi, run, start

pytestmark = needs_mpi


def untimed(result):
    return result.history.drop(columns="seconds")


def wait_for(condition, seconds, process):
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def generation(folder):
    found = sorted((folder / "checkpoints").glob("iteration-*"))
    return found[-1].name if found else ""


def killed_ten_times(folder, rounds, chance):
    """Return the result of a run that is killed ten times at random and gone on with another number of ranks."""
    folder.mkdir()
    ranks, word = 2, "no"
    for _ in range(10):
        before = generation(folder)
        for old in folder.glob("pid-*"):
            old.unlink()
        process = start(ranks, "long", folder, rounds, "0.004", word)
        wait_for(lambda before=before: generation(folder) > before, 90, process)
        time.sleep(chance.uniform(0, 0.15))
        victim = int((folder / f"pid-{chance.randrange(ranks)}").read_text())
        os.kill(victim, signal.SIGKILL)
        process.communicate(timeout=30)
        assert process.returncode != 0
        assert not (folder / "result.npz").exists()
        ranks, word = chance.choice([other for other in (1, 2, 3) if other != ranks]), "resume"
    code, out = run(ranks, "long", folder, rounds, "0", word)
    assert code == 0, out
    assert "going on from iteration" in out
    return adom.load(folder / "result.npz")


def test_twenty_kills_change_no_bit(tmp_path):
    """Two runs side by side, each killed ten times."""
    rounds = 1200
    whole = tmp_path / "whole"
    whole.mkdir()
    code, out = run(2, "long", whole, rounds)
    assert code == 0, out
    expected = adom.load(whole / "result.npz")
    with ThreadPoolExecutor() as pool:
        series = [
            pool.submit(killed_ten_times, tmp_path / f"series{seed}", rounds, random.Random(seed)) for seed in (7, 8)
        ]
    for one in series:
        result = one.result()
        assert result.x.tobytes() == expected.x.tobytes()
        assert untimed(result).equals(untimed(expected))


STARTS = {
    "unborn": "not all ranks have started within 5 s",
    "stopped": r"rank 1 of 2 \(nodes 2 to 3; process \d+ on \S+\) has not answered for 5 s",
    "blocked": r"rank 1 of 2 \(nodes 2 to 3; .*\) has done nothing for 5 s while reading .*/node-00002: it is",
}


@pytest.fixture(scope="module")
def waits(tmp_path_factory):
    """Jobs that end after some seconds of waiting, side by side: kind -> folder, exit code and what was printed."""
    samples = "".join(f"{(-1) ** i} 1:{i / 7:.3f} 2:{(i * 3) % 5}\n" for i in range(1, 17))
    begun = {}
    for kind in (*STARTS, "hang"):
        folder = tmp_path_factory.mktemp(kind)
        if kind == "hang":
            begun[kind] = folder, start(3, "trouble", folder, kind, 1)
            continue
        (folder / "data.svm").write_text(samples)
        adom.data.write_shards(folder / "data.svm", 4, folder / "shards")
        begun[kind] = folder, start(2, "starting", folder, kind)
    said = {kind: process.communicate(timeout=240)[0] for kind, (_, process) in begun.items()}
    return {kind: (folder, process.returncode, said[kind]) for kind, (folder, process) in begun.items()}


@pytest.mark.parametrize("kind", STARTS)
def test_a_rank_that_does_not_get_through_its_start_ends_the_job(waits, kind):
    _, code, out = waits[kind]
    assert code != 0
    assert len(re.findall(STARTS[kind], out)) == 1, out
    assert "killed or crashed" not in out


@pytest.mark.parametrize("kind", ["kill", "raise", "hang", "full"])
def test_a_rank_in_trouble_ends_the_job_and_is_named(tmp_path, waits, kind):
    if kind == "kill":
        process = start(3, "long", tmp_path, 100_000, "0.001")
        wait_for(lambda: len(list((tmp_path / "checkpoints").glob("iteration-*"))) > 1, 90, process)
        os.kill(int((tmp_path / "pid-1").read_text()), signal.SIGKILL)
        begun = time.monotonic()
        out, _ = process.communicate(timeout=60)
        code = process.returncode
        assert time.monotonic() - begun < 15
    elif kind == "hang":
        tmp_path, code, out = waits[kind]
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
