"""Shards that are not what their manifest says, and manifests that are none: one clear line, and nothing is opened."""

import hashlib
import json

import numpy as np
import pytest

import adom
from adom.data import Shards

from .conftest import refusal, samples


def change(folder, edit):
    """Tamper with the manifest."""
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def forge(folder, node, text, **counts):
    """Put other samples into a node's file, and their checksum into the manifest."""
    (folder / f"node-{node:05d}.svm").write_text(text)
    new = {"sha256": hashlib.sha256(text.encode()).hexdigest(), **counts}
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
    folder = write(*samples())
    file = folder / "node-00002.svm"
    file.write_bytes(file.read_bytes().replace(b"2.5 ", b"0 ", 1) + b"0 1:1\n")
    some = Shards(folder, l2=1.0)
    assert some.open(0, 2).nodes == 2
    message = refusal(some.open, 1, 4)
    assert message.startswith(f"{file} is not the file of node 2 in the manifest: its sha256 must be ")
    assert message.endswith("copy it again, or split the data again")


def test_a_file_that_the_manifest_describes_wrongly(write):
    folder = write(*samples())
    forge(folder, 1, "0 1:1\n2.5 2:1 3:1\n")
    message = refusal(Shards(folder, l2=1.0).open, 1, 2)
    assert "has 2 samples and 3 non-zeros, and the manifest lists 5 and 25 for node 1" in message
    forge(folder, 1, "0 1:1\n2.5 2:1 3:1\n", samples=2, nonzeros=3)
    assert Shards(folder, l2=1.0).open(1, 2).nodes == 1
    forge(folder, 1, "0 1:1\n1 2:1 3:1\n")
    assert "node 1, has the label 1, and the manifest's classes are 0 and 2.5" in refusal(
        Shards(folder, l2=1.0).open, 1, 2
    )
    forge(folder, 1, "0 1:1\n2.5 2:1 9:1\n")
    assert "line 2: index 9 exceeds the 5 features allowed" in refusal(Shards(folder, l2=1.0).open, 1, 2)
    forge(folder, 1, "")
    assert "holds no samples" in refusal(Shards(folder, l2=1.0).open, 1, 2)


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/passwd", "a/b.svm", "..", ".", "", ".hidden", "a\\b", "C:x", "a\n", "a\0", "-x", "x" * 300, 7, None],
)
def test_a_name_that_leads_out_of_the_folder(write, name):
    folder = write(*samples())
    (folder.parent / "x").write_bytes((folder / "node-00001.svm").read_bytes())
    change(folder, lambda content: content["files"][1].update(name=name))
    message = refusal(Shards, folder, l2=1.0)
    assert message.startswith(f"{folder / 'manifest.json'} is not a manifest of shards: files.1.name: ")
    if isinstance(name, str):
        assert "a file must have a plain name inside the folder" in message
    assert len(message) < 500


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: m.update(format="adom-shards-2"), "format: Input should be 'adom-shards-1', got 'adom-shards-2'"),
        (lambda m: m.pop("format"), "format: Field required"),
        (lambda m: m.update(nodes=5), "nodes is 5, but 6 files are listed"),
        (lambda m: m.update(nodes="6"), "nodes: Input should be a valid integer, got '6'"),
        (lambda m: m.update(nodes=0, files=[]), "nodes: Input should be greater than or equal to 1, got 0"),
        (lambda m: m.update(dim=0), "dim: Input should be greater than or equal to 1, got 0"),
        (lambda m: m.update(dim=10**30), "dim: "),
        (lambda m: m.update(classes=[1, -1]), "classes must be two labels, the smaller first, got [1, -1]"),
        (lambda m: m.update(classes=[1]), "classes"),
        (lambda m: m.update(classes=[0, 10**400]), "classes"),
        (lambda m: m.update(more=1), "more: Extra inputs are not permitted, got 1"),
        (lambda m: m["files"][0].update(samples=0), "files.0.samples: Input should be greater than or equal to 1"),
        (lambda m: m["files"][0].update(samples=2**60), "files.0.samples: Input should be less than or equal to"),
        (
            lambda m: m["files"][0].update(nonzeros=10**6),
            "node-00000.svm has 1000000 non-zeros, more than its samples have features",
        ),
        (lambda m: m["files"][0].update(sha256="A" * 64), "files.0.sha256: String should match pattern"),
        (lambda m: m["files"][0].update(name="node-00001.svm"), "node-00001.svm is listed for 2 nodes"),
        (lambda m: m["source"].pop("sha256"), "source.sha256: Field required"),
    ],
)
def test_a_manifest_that_was_tampered_with(write, edit, message):
    folder = write(*samples())
    change(folder, edit)
    found = refusal(Shards, folder, l2=1.0)
    assert found.startswith(f"{folder / 'manifest.json'} is not a manifest of shards: {message}")
    assert found.endswith("; correct it, or split the data again")


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
