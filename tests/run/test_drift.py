"""Runs stay at their floor of rounding: what all rows share must leave nothing behind, however long it adds up."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import adom
from adom import native
from adom.algorithms.adom import State
from adom.run.local.gossip import DenseMatrices, PaddedMatrices, SparseMatrices
from adom.run.local.graph_layout import GraphLayout
from adom.run.ranks.rank_rounds import Partition, RankRounds
from support import default_xla
from support.reference import quadratics

NODES, DIM = 6, 3
FLOORS = {
    ("adom", "float64"): 1e-25,
    ("adom", "float32"): 1e-8,
    ("adom+", "float64"): 1e-21,
    ("adom+", "float32"): 1e-5,
}
"""Of the error, over its start; before rows were centred, these runs ended above 1e-20 and 1e-4."""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("method", "protocol"), [("adom", "theory"), ("adom", "unit"), ("adom+", "theory")])
def test_a_long_run_stays_at_its_floor(method, protocol, dtype):
    problem = adom.Quadratic(*quadratics(NODES, DIM, 30.0))
    network = adom.networks.complete(NODES)
    run = adom.solve(problem, network, method, protocol, rounds=100_000, record_every=5_000, dtype=dtype)
    errors = run.history["error"].to_numpy() / (NODES * float((problem.solution() ** 2).sum()))
    assert errors[-1] <= FLOORS[method, dtype]
    assert run.status == "max_rounds"


class Zeros:
    """An oracle that is asked once."""

    def gradient(self, x):
        return 0 * x


def test_m_is_forgotten_long_after_the_floor_is_reached_and_never_before():
    constants = adom.constants(adom.Quadratic(*quadratics(NODES, DIM, 30.0)), adom.networks.ring(NODES))
    method = adom.ADOM.theory(constants)
    period = int(36 / method.tau)
    ones = np.ones((NODES, DIM))
    for k in (1, 5, period - 1, period + 1):
        assert (method.renewed(State(ones, ones, ones), k).m == 1).all()
    renewed = method.renewed(State(ones, ones, ones), period)
    assert (renewed.m == 0).all()
    assert (renewed.z == 1).all()
    hasty = replace(method, tau=0.9)  # the run is no faster for that
    assert (hasty.renewed(State(ones, ones, ones), 40).m == 1).all()
    assert (hasty.renewed(State(ones, ones, ones), period).m == 0).all()
    plus = adom.ADOMPlus.theory(constants)
    state = plus.init(0 * ones, Zeros())._replace(m=ones)
    assert (plus.renewed(state, int(36 / plus.sigma_2)).m == 0).all()
    assert (replace(plus, sigma_2=0.9).renewed(state, 40).m == 1).all()


LAYOUTS = [DenseMatrices, SparseMatrices, PaddedMatrices]


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_all_rows_share_does_not_change_a_product_by_a_bit(layout, kernels, monkeypatch):
    """W (v + c) is W v to the bit where v + c is exact; the rows of W v sum to zero."""
    if kernels and (layout is not SparseMatrices or not native.usable()):
        pytest.skip("the kernels have one layout" if layout is not SparseMatrices else "no compiler")
    monkeypatch.setattr(native, "usable", lambda backend="cpu": kernels)
    network = adom.networks.erdos_renyi(20, 0.3, graphs=3, seed=1)
    supply = GraphLayout(network, directed=False)
    supply.kind = layout
    v = np.random.default_rng(0).integers(-99, 99, (20, 5)).astype(float)
    with jax.enable_x64(True):
        W = jax.device_put(supply.window(0)[0]).W
        times = default_xla.jit(lambda u: W.times(jnp.int32(1), (u,))[0])
        plain, shifted = (np.asarray(times(u)) for u in (v, v + 2.0**40))
    np.testing.assert_array_equal(plain, shifted)
    np.testing.assert_allclose(plain, network.matrix(1) @ v, atol=1e-11)
    assert np.abs(shifted.sum(axis=0)).max() < 1e-11


@pytest.mark.parametrize("kernels", [True, False])
def test_a_rank_computes_products_from_differences_too(kernels, monkeypatch):
    if kernels and not native.usable():
        pytest.skip("no compiler")
    monkeypatch.setattr(native, "usable", lambda backend="cpu": kernels)
    network = adom.networks.erdos_renyi(20, 0.3, graphs=3, seed=1)
    v = np.random.default_rng(0).integers(-99, 99, (20, 5)).astype(float)
    plan = RankRounds(network, Partition(20, 1), 0, directed=False, dtype="float64").at(1)
    np.testing.assert_array_equal(plan.times(0, v), plan.times(0, v + 2.0**40))
    np.testing.assert_allclose(plan.times(0, v), network.matrix(1) @ v, atol=1e-11)
