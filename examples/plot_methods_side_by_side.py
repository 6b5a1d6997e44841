"""
Methods side by side, as a figure for a paper
=============================================

Which method needs the fewest rounds on a network that changes all the time? Four of
them get the same problem, the same network and the same budget; one table and one
figure, as wide as a column of a paper, say how they did.
"""

# %%
# Twenty nodes share the samples of a logistic regression with condition number 100. In
# every round the nodes have moved, and those that are close to one another can talk.

import numpy as np

import adom

generator = np.random.default_rng(0)
features = generator.standard_normal((2000, 20))
labels = features @ generator.standard_normal(20) + generator.standard_normal(2000) > 0
problem = adom.LogisticRegression(features, labels, nodes=20, kappa=100.0)
network = adom.networks.geometric(nodes=20, chi=10, graphs=100, seed=0)
network

# %%
# ``parameters="unit"`` is each method's own theorem without its absolute constants: a
# fair and practical start. ``tol`` is the error at which a run stops.

methods = ["adom", "adom+", "acc-gt", "diging"]
comparison = adom.compare(
    problem, network, methods, parameters="unit", rounds=600, tol=1e-3
)
comparison

# %%
# The same as a table of numbers, to compute with or to print. The costs are those of
# the first record at the target.

costs = ["rounds_to_target", "gradients_to_target", "floats_sent_to_target"]
comparison.table.set_index("label")[["status", *costs]]

# %%
# The figure is 3.5 inches wide with text of 8 points. Methods differ in colour, in
# dashes and in markers, so it survives a black-and-white printer.
# ``.savefig("methods.pdf")`` writes it, with fonts that journals accept.

comparison.plot(style="column").show()

# %%
# Rounds are one cost; gradients, numbers sent and time are others. All four across a
# page. Figures of your own get the same look from
# ``plt.style.use("adom.styles.page")``.

comparison.plot("all", style="page").show()
