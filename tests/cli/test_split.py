"""`adom split`: one file a node on disk, and what is said about them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from adom.data import Shards
from adom.data.node_shards import open_shard
from adom.data.sample_files import read

TEXT = "".join(f"{1 if k < 40 else -1} 1:{k % 7} 2:{(k * k) % 5}{' 9:0.5' if k == 3 else ''}\n" for k in range(100))


@pytest.fixture(autouse=True)
def data() -> None:
    Path("data.svm").write_text(TEXT)


def test_a_file_becomes_one_a_node(adom: Any) -> None:
    outcome = adom("split", "data.svm", "--nodes", 8)
    assert (outcome.code, outcome.err) == (0, "")
    assert "12 to 13, median 12.5" in outcome.out
    assert "both: 1 of 8 nodes, only -1: 4 of 8 nodes, only 1: 3 of 8 nodes" in " ".join(outcome.out.split())
    assert "adom solve --shards shards --kappa 100" in outcome.out
    features, labels = read("data.svm")
    shards = [open_shard(f"shards/node-{node:05d}") for node in range(8)]
    assert (sp.vstack([shard.features for shard in shards]) != features).nnz == 0
    assert np.concatenate([shard.target for shard in shards]).tolist() == labels.tolist()
    assert (Shards("shards", l2=1.0).nodes, Shards("shards", l2=1.0).dim) == (8, 9)


def test_json(adom: Any) -> None:
    said = adom("split", "data.svm", "--nodes", 5, "--by", "label", "--out", "here/my shards", "--json").json
    assert said == {
        "nodes": 5,
        "dim": 9,
        "samples": 100,
        "density": 201 / 900,
        "classes": [-1, 1],
        "by": "label",
        "seed": 0,
        "alpha": None,
        "samples_per_node": {"min": 20, "median": 20, "max": 20},
        "nodes_with_classes": {"both": 0, "only -1": 3, "only 1": 2},
        "files": {"folder": "here/my shards", "manifest": "here/my shards/manifest.json"},
        "next": "adom solve --shards 'here/my shards' --kappa 100 --engine mpi --ranks 4",
    }


def test_draws(adom: Any) -> None:
    def drawn(*more: object) -> dict[str, Any]:
        assert adom("split", "data.svm", "--nodes", 4, "--overwrite", *more).code == 0
        found: dict[str, Any] = json.loads(Path("shards/manifest.json").read_text())
        return found

    first, again, other = (drawn("--by", "shuffled", "--seed", seed) for seed in (1, 1, 2))
    assert first == again
    assert first["files"] != other["files"]
    unlike = drawn("--by", "dirichlet", "--alpha", 0.1)
    assert (unlike["by"], unlike["alpha"], unlike["seed"]) == ("dirichlet", 0.1, 0)
    assert drawn("--by", "dirichlet")["alpha"] == 0.5
    outcome = adom("split", "data.svm", "--nodes", 4, "--by", "dirichlet", "--seed", 7, "--out", "other")
    assert "dirichlet, alpha 0.5, seed 7" in outcome.out
