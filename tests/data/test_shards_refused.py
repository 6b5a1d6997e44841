"""Shards that are not what their manifest says, and manifests that are none: one clear line, and nothing is opened."""

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import adom
from adom.data import Shards
from adom.data.model import unnamed
from adom.data.node_shards import put_shard
from adom.data.sample_files import Block, Table

from .conftest import refusal, samples


def change(folder, edit):
    """Change the manifest, without its checksum as if somebody else had written it."""
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    content.pop("sealed", None)
    content.pop("sha256", None)
    edit(content)
    path.write_text(json.dumps(content))


def forge(folder, node, features, labels, **counts):
    """Put other samples into a node's shard, and its checksum into the manifest."""
    name, matrix = f"node-{node:05d}", sp.csr_array(features)
    table = Table(unnamed(matrix.shape[1]), "label", iter([Block(matrix, np.array(labels))]))
    content = (put_shard(Path("made"), table, name, folder) / "shard.json").read_bytes()
    new = {"sha256": hashlib.sha256(content).hexdigest(), **counts}
    change(folder, lambda content: content["files"][node].update(new))


@pytest.mark.parametrize(
    "given", [{}, {"l2": 1.0, "kappa": 2.0}, {"l2": 0.0}, {"l2": float("inf")}, {"kappa": 1.0}, {"kappa": float("nan")}]
)
def test_the_regulariser_is_given_as_for_the_problem_itself(write, given):
    folder = write(*samples())
    expected = refusal(lambda: adom.LogisticRegression(*samples(), 6, **given))
    assert refusal(Shards, folder, **given) == expected


@pytest.mark.parametrize("place", [(2, 2), (3, 2), (0, 7), (6, 7)])
def test_blocks_that_are_none(write, place):
    some = Shards(write(*samples()), l2=1.0)
    assert f"nodes {place[0]} up to {place[1]} cannot be opened" in refusal(some.open, *place)
    assert "first must be a whole number of at least 0, got 0.0" in refusal(some.open, 0.0, 2)
    assert "end must be a whole number of at least 1, got True" in refusal(some.open, 0, True)
    assert some.open(np.int64(5), np.int64(6)).nodes == 1


def test_a_changed_file_is_named(write):
    folder = write(*samples(density=0.3))
    place = folder / "node-00002"
    file = place / "values.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\1")
    some = Shards(folder, l2=1.0)
    assert some.open(0, 2).nodes == 2
    assert f"{file} was changed after" in refusal(some.open, 1, 4)
    (place / "shard.json").write_bytes((place / "shard.json").read_bytes() + b" ")
    message = refusal(some.open, 1, 4)
    assert message.startswith(f"{place} is not the shard of node 2 in the manifest: the sha256 of its shard.json must ")
    assert message.endswith("copy it again, or split the data again")


def test_a_shard_that_the_manifest_describes_wrongly(write):
    folder = write(*samples())
    two = [[1, 0, 0, 0, 0], [0, 1, 1, 0, 0]]
    forge(folder, 1, two, [0, 2.5])
    message = refusal(Shards(folder, l2=1.0).open, 1, 2)
    assert "has 2 samples of 5 features, and the manifest lists 5 of 5 for node 1; split" in message
    forge(folder, 1, two, [0, 2.5], samples=2)
    assert Shards(folder, l2=1.0).open(1, 2).nodes == 1
    forge(folder, 1, two, [0, 1])
    assert "node 1, has the label 1, and the manifest's classes are 0 and 2.5" in refusal(
        Shards(folder, l2=1.0).open, 1, 2
    )
    forge(folder, 1, [[*row, 0] for row in two], [0, 2.5])
    assert "2 samples of 6 features, and the manifest" in refusal(Shards(folder, l2=1.0).open, 1, 2)


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/passwd", "a/b.svm", "..", ".", "", ".hidden", "a\\b", "C:x", "a\n", "a\0", "-x", "x" * 300, 7, None],
)
def test_a_name_that_leads_out_of_the_folder(write, name):
    folder = write(*samples())
    shutil.copytree(folder / "node-00001", folder.parent / "x")
    change(folder, lambda content: content["files"][1].update(name=name))
    message = refusal(Shards, folder, l2=1.0)
    words = "a shard must have a plain name inside" if isinstance(name, str) else f"its files.1.name is {name}; it must"
    assert message.startswith(f"{folder / 'manifest.json'} is not a manifest of shards: {words}")
    assert len(message) < 500


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: m.update(format="adom-shards-1"), "its format is 'adom-shards-1', not adom-shards-3"),
        (lambda m: m.pop("format"), "it has no format"),
        (lambda m: m.update(files=[]), "it must list one shard for each node"),
        (lambda m: m.update(dim=0), "it must list features and samples"),
        (lambda m: m.update(dim="5"), "its dim is '5'; it must be a whole number"),
        (lambda m: m.update(dim=10**30), "it must list features and samples"),
        (lambda m: m.update(classes=[1, -1]), "its classes must be two labels, the smaller first, got [1, -1]"),
        (lambda m: m.update(classes=[1]), "its classes must be two labels"),
        (
            lambda m: m.update(classes=[0, 10**400]),
            "its classes.1 is 1000000000",
        ),
        (lambda m: m.update(more=1), "it has an unknown 'more'"),
        (lambda m: m["files"][0].update(samples=0), "it must list features and samples"),
        (lambda m: m["files"][0].update(samples=True), "its files.0.samples is True; it must be a whole number"),
        (lambda m: m["files"][0].update(name="node-00001"), "it must list one shard for each node"),
        (lambda m: m["source"].pop("sha256"), "it has no source.sha256"),
    ],
)
def test_a_manifest_that_was_tampered_with(write, edit, message):
    folder = write(*samples())
    change(folder, edit)
    found = refusal(Shards, folder, l2=1.0)
    assert found.startswith(f"{folder / 'manifest.json'} is not a manifest of shards: {message}")
    assert found.endswith("; split the data again")


def test_a_manifest_that_was_changed_in_a_single_number(write):
    path = write(*samples()) / "manifest.json"
    path.write_text(path.read_text().replace('"samples": 5', '"samples": 4', 1))
    assert "it was changed: its SHA-256 does not match" in refusal(Shards, path.parent, l2=1.0)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000, b"cos\nsystem\n(S'ls'\ntR."])
def test_a_manifest_that_is_none(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)
    assert "is not a manifest of shards: " in refusal(Shards, tmp_path, l2=1.0)


def test_a_folder_without_a_manifest(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        message = refusal(Shards, folder, l2=1.0)
        assert f"{folder} holds no manifest.json; give a folder that `adom split" in message
    (tmp_path / "manifest.json").mkdir()
    assert "cannot read" in refusal(Shards, tmp_path, l2=1.0)
