"""Samples that stay on the disk: the same functions as in memory, and an error that gets out of a compiled program."""

import os
from dataclasses import replace

import jax
import numpy as np
import pytest

import adom
from adom.data import node_shards
from adom.data.node_data import NodeData
from adom.data.preparing import agree
from support import apart


@pytest.mark.parametrize("name", ["cancer", "wine", "diabetes", "words"])
def test_values_and_derivatives_are_those_of_samples_in_memory(name, tmp_path, monkeypatch):
    monkeypatch.setattr(node_shards, "AT_ONCE", 300)  # several blocks a node
    apart.write(name, [tmp_path])
    data = NodeData(tmp_path / "shards", **apart.SETTINGS[name], memory=0)
    shards = data.open(data.names)
    from_disk = agree(data, shards, apart.Alone())
    data.memory = 1e9
    agreed = agree(data, shards, apart.Alone())
    assert (agreed.streamed, from_disk.streamed) == (False, True)
    assert from_disk.l2 == pytest.approx(agreed.l2)
    assert from_disk.column == pytest.approx(agreed.column, rel=2e-3)  # L of many features is a little larger
    in_memory, on_disk = agreed.problem(shards), replace(agreed, streamed=True).problem(shards)
    rng = np.random.default_rng(0)
    x, v = (0.3 * rng.standard_normal((4, in_memory.dim)) for _ in range(2))
    with jax.enable_x64(True):
        for call in (
            lambda problem: problem.value_rows(x),
            lambda problem: problem.gradient_rows(x),
            lambda problem: problem.hessian_product_rows(x, v),
        ):
            expected = np.asarray(call(in_memory))
            np.testing.assert_allclose(call(on_disk), expected, 1e-9, 1e-11 * np.abs(expected).max())
        compiled = jax.jit(on_disk.gradient_rows)(x)
        np.testing.assert_allclose(compiled, in_memory.gradient_rows(x), 1e-9, 1e-11)
    assert (on_disk.L_nodes >= in_memory.L_nodes * (1 - 1e-9)).all()
    assert on_disk.L <= 2.1 * in_memory.L


def test_a_fit_from_the_disk_is_that_of_memory(tmp_path):
    apart.write("wine", [tmp_path])
    data = adom.NodeData(tmp_path / "shards", **apart.SETTINGS["wine"], memory=0)
    result = adom.solve(data, adom.networks.complete(4), "adom+", "unit", rounds=50_000, record_every=50, tol=apart.TOL)
    apart.assert_is_the_pooled_one(result.model(), "wine")


def test_a_file_that_changes_meanwhile_ends_the_run(tmp_path, monkeypatch):
    apart.write("wine", [tmp_path])
    data = adom.NodeData(tmp_path / "shards", memory=0, scale=True)
    passes = [0]
    plain = node_shards.NodeShard.blocks

    def blocks(self):
        passes[0] += 1
        if passes[0] == 200:
            os.utime(self.folder / "target.npy", ns=(1, 1))
        return plain(self)

    monkeypatch.setattr(node_shards.NodeShard, "blocks", blocks)
    with pytest.raises(adom.InputError, match=r"shards/.* was changed while it was in use"):
        adom.solve(data, adom.networks.complete(4), "adom+", "unit", rounds=2000)
    assert passes[0] >= 200
