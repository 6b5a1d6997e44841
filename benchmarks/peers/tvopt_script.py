"""The job of numpy_script.py with tvopt: its distributed gradient method, one round on each of the changing graphs.

Its other methods keep a state of their own and stay on one graph. It always adds an intercept, which takes the place
of the first feature, and sums over samples, so that the step is smaller by their number.
"""

import job
import numpy as np
from numpy_script import constants, draw_graphs, draw_samples, metropolis, minimiser
from tvopt import costs, networks
from tvopt.distributed_solvers import dpgm


def main():
    asked = job.options(__doc__)
    features, labels = draw_samples(asked.nodes, asked.samples, asked.dim)
    features[:, :, 0] = 1.0
    signed = features * labels[:, :, None]
    L, mu = constants(signed)
    solution = minimiser(signed, mu)
    weight = asked.samples * mu
    f = costs.SeparableCost(
        [costs.LogisticRegression(A[:, 1:], b, weight) for A, b in zip(features, labels, strict=True)]
    )
    laplacians, _, _ = draw_graphs(asked.nodes, asked.graphs)
    network = networks.DynamicNetwork([networks.Network((W < 0).astype(float), metropolis(W)) for W in laplacians])
    step = 1 / (L * asked.samples)

    def solve():
        x, errors = np.zeros(f.dom.shape), np.empty(asked.rounds)
        for k in range(asked.rounds):
            x = dpgm({"f": f, "network": network.sample(k % asked.graphs)}, step, x, num_iter=1)
            errors[k] = ((x[:, 0] - solution[:, None]) ** 2).sum()
        return errors[-1], None

    job.run(asked, solve)


if __name__ == "__main__":
    main()
