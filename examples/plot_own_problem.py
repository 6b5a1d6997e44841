"""
A loss of your own, on graphs of your own
=========================================

Any smooth, strongly convex loss that JAX can trace is a problem: here a line is fitted
by the pseudo-Huber loss, which does not mind outliers. The network is a sequence of
NetworkX graphs.
"""

# %%
# Twelve nodes hold points on a line. Three of them are broken: much of what they hold
# is far off. Nobody knows which.

import jax.numpy as jnp
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np

import adom

nodes, samples, slope, offset = 12, 20, 1.5, 0.5
generator = np.random.default_rng(3)
t = generator.uniform(-1, 1, (nodes, samples))
y = slope * t + offset + 0.1 * generator.standard_normal(t.shape)
broken = np.zeros(t.shape, dtype=bool)
broken[:3] = generator.random((3, samples)) < 0.8
y[broken] = -4 * t[broken] - 2 + 0.5 * generator.standard_normal(broken.sum())

# %%
# A node's loss is a function of x and of that node's data alone. The pseudo-Huber loss
# is a parabola near 0 and straight far out; its curvature is at most 1, so L is that of
# least squares. A little l2 makes it strongly convex, with mu = l2. Both numbers are
# data too, the same at every node.

l2, delta = 0.005, 0.3


def robust(x, data):
    """Return the pseudo-Huber loss of the residuals of one node."""
    A, b, l2, delta = data
    residuals = (A @ x - b) / delta
    return delta**2 * (jnp.sqrt(1 + residuals**2) - 1).mean() + l2 / 2 * (x @ x)


A = np.stack([t, np.ones_like(t)], axis=-1)
curvature = np.linalg.eigvalsh(np.einsum("nmi,nmj->nij", A, A) / samples)[:, -1]
data = (A, y, np.full(nodes, l2), np.full(nodes, delta))
problem = adom.from_loss(robust, data, mu=l2, L=l2 + curvature)
problem

# %%
# Ten small worlds, one after the other, again and again.

graphs = [
    nx.connected_watts_strogatz_graph(nodes, 4, 0.3, seed=seed) for seed in range(10)
]
network = adom.networks.from_graphs(graphs)
network.plot([0, 1, 2]).show()

# %%
# All nodes agree on one line, the broken ones too.

result = adom.solve(problem, network, parameters="unit", rounds=3000, tol=1e-10)
result

# %%
# Least squares on all data in one place is led astray.

# sphinx_gallery_thumbnail_number = 2
squares = np.linalg.lstsq(A.reshape(-1, 2), y.ravel())[0]
lines = {
    "truth": (slope, offset),
    "what the nodes found": result.x.mean(axis=0),
    "least squares": squares,
}
ends = np.array([-1, 1])
with plt.style.context("adom.styles.column"):
    figure, axes = plt.subplots(figsize=(3.5, 2.8))
    axes.plot(t[~broken], y[~broken], ".", color="0.75", label="good samples")
    axes.plot(
        t[broken], y[broken], "x", color="0.45", label="bad ones, at 3 of 12 nodes"
    )
    for label, (rise, start) in lines.items():
        axes.plot(ends, rise * ends + start, label=label)
    axes.set(xlabel="t", ylabel="y")
    figure.legend(loc="outside lower center", ncols=2)
plt.show()
