"""Thousands of damaged checkpoints and shards, from a seed: refused in one line or passed over, never believed."""

import os
import shutil
from dataclasses import asdict, replace

import jax
import numpy as np
import pytest

import adom
from adom.data import write_shards
from adom.errors import InputError
from adom.run.ranks import checkpoints
from adom.run.ranks.rank_rounds import Partition
from adom.util.checked_npz import DIGEST, read_npz, write_npz
from support.damage import archive, members, mutants, sealed

NODES, RANKS = 5, 2
ABOUT = checkpoints.Facts({"oracle": "gd:1"}, clock=7, floats=70, seconds=0.5, look=None)


def rows(iteration):
    return np.arange(NODES * 3.0).reshape(NODES, 3) + iteration


def write(folder, *iterations):
    blocks = Partition(NODES, RANKS)
    for iteration in iterations:
        for rank in range(RANKS):
            first, end = blocks.of(rank)
            arrays = {"rows/x": rows(iteration)[first:end], "one/1": np.array(iteration)}
            checkpoints.write(folder, iteration, rank, blocks, arrays, ABOUT)


def file(folder, iteration, rank, ranks=RANKS):
    return folder / f"iteration-{iteration:012d}" / f"rank-{rank}-of-{ranks}.npz"


def believed(folder):
    """Return the iteration that would be gone on from, which must be what was written; None where there is none."""
    said = []
    found = checkpoints.latest(folder, said.append)
    assert not any("\n" in words for words in said)
    if found is None:
        return None
    iteration = int(found.name[-12:])
    arrays, about = checkpoints.read(found, 1, NODES)
    np.testing.assert_array_equal(arrays["rows/x"], rows(iteration)[1:])
    assert about == ABOUT
    return iteration


def test_no_damage_to_a_checkpoint_is_believed(tmp_path):
    write(tmp_path, 10, 20)
    assert believed(tmp_path) == 20
    for rank in range(RANKS):
        path = file(tmp_path, 20, rank)
        whole = path.read_bytes()
        for content in mutants(whole, 1000, seed=rank):
            path.write_bytes(content)
            with pytest.raises(InputError, match="damaged"):
                checkpoints._read(path)  # with all others, `check` would take ten times as long
        assert believed(tmp_path) == 10  # the last of them; the one before it is used
        path.write_bytes(whole)
    assert believed(tmp_path) == 20


@pytest.mark.parametrize("kind", ["other rank", "other iteration", "other run", "pipe", "folder", "link to nowhere"])
def test_a_file_in_another_ones_place_is_not_taken_for_it(tmp_path, kind):
    write(tmp_path, 10, 20)
    place = file(tmp_path, 20, 1)
    if kind == "other rank":
        shutil.copy(file(tmp_path, 20, 0), place)
    elif kind == "other iteration":
        shutil.copy(file(tmp_path, 10, 1), place)
    elif kind == "other run":
        checkpoints.write(tmp_path, 20, 1, Partition(NODES, RANKS), {"rows/x": rows(0)[2:]}, replace(ABOUT, clock=8))
    else:
        place.unlink()
        make = {"pipe": os.mkfifo, "folder": os.mkdir, "link to nowhere": lambda path: path.symlink_to("nowhere")}
        make[kind](place)
    assert believed(tmp_path) == 10


def test_a_checksum_that_fits_does_not_make_a_checkpoint(tmp_path):
    """Two thousand files that were changed before their checksum was made: refused, or the same as before."""
    write(tmp_path, 10, 20)
    path = file(tmp_path, 20, 1)
    whole, parts = path.read_bytes(), members(path)
    refused = 0
    for content in mutants(parts["provenance.npy"], 1000):
        archive(path, {**parts, "provenance.npy": content}.items())
        refused += _refused(path)
    for content in mutants(whole[:-DIGEST], 1000):
        sealed(path, content)
        refused += _refused(path)
    assert refused > 1800


def _refused(path):
    try:
        checkpoints.check(path.parent)
        arrays, _ = checkpoints.read(path.parent, 0, NODES)
    except InputError:
        return True
    if "rows/x" not in arrays:
        return True  # by `RankRun.restore`, which knows what must be there
    np.testing.assert_array_equal(arrays["rows/x"], rows(20))
    return False


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rows": [0, 5]}, "another rank or another iteration"),
        ({"iteration": 10}, "another rank or another iteration"),
        ({"iteration": "20"}, "its iteration is '20'; it must be a whole number"),
        ({"nodes": 10**30}, "rank 1 of 2 has no part of 1000"),
        ({"nodes": 1}, "rank 1 of 2 has no part of 1 nodes"),
        ({"format": "adom-checkpoint-9"}, "its format is 'adom-checkpoint-9'"),
        ({"about": [1]}, "its about is .1.; it must be"),
        ({"about": {**asdict(ABOUT), "clock": "7"}}, "its about.clock is '7'; it must be a whole number"),
        ({"x": rows(20)}, "not one row for each of its 3 nodes"),
        ({"x": np.float64(1)}, "not one row for each of its 3 nodes"),
    ],
)
def test_headers_and_arrays_that_do_not_fit(tmp_path, change, why):
    write(tmp_path, 20)
    path = file(tmp_path, 20, 1)
    arrays, header = read_npz(path)
    arrays["rows/x"] = np.asarray(change.pop("x", arrays["rows/x"]))
    write_npz(path, arrays, {**header, **change})
    with pytest.raises(InputError, match=why):
        checkpoints.check(path.parent)


@pytest.fixture
def shards(tmp_path):
    samples = "".join(f"{(-1) ** i} 1:{i / 7:.3f} 2:{(i * 3) % 5}\n" for i in range(1, 13))
    (tmp_path / "data.svm").write_text(samples)
    return write_shards(tmp_path / "data.svm", 3, tmp_path / "shards")


def opened(folder):
    """Return the samples of shards, or None where they are refused in one line."""
    try:
        problem = adom.Shards(folder, l2=0.1).open(0, 3)
    except InputError as error:
        assert "\n" not in str(error), error  # noqa: PT017  # neither is a failure
        return None
    return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(problem))


def test_no_damage_to_shards_is_believed(shards):
    whole = opened(shards)
    for name in ("shard.json", "features.npy", "target.npy"):
        path = shards / "node-00001" / name
        content = path.read_bytes()
        for damaged in mutants(content, 300):
            path.write_bytes(damaged)
            with pytest.raises(InputError, match=r"is not the shard of node 1 in the manifest|was changed after"):
                adom.Shards(shards, l2=0.1).open(0, 3)
        if name != "target.npy":  # both nodes have the same labels
            shutil.copy(shards / "node-00000" / name, path)
            assert opened(shards) is None
        path.write_bytes(content)
    assert opened(shards) == whole


def test_no_damage_to_a_manifest_is_believed(shards):
    """Refused, or the same numbers: where it is still the same JSON."""
    whole = opened(shards)
    path = shards / "manifest.json"
    content = path.read_bytes()
    refused = 0
    for damaged in mutants(content, 1000):
        path.write_bytes(damaged)
        found = opened(shards)
        refused += found is None
        assert found in (None, whole), damaged
    assert refused > 900
