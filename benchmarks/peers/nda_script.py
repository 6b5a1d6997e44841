"""The job of numpy_script.py with NDA (github.com/liboyue/Network-Distributed-Algorithm): its gradient tracking.

Its weights are changed to those of the next graph before every round.
"""

import sys

import job
import numpy as np
from numpy_script import constants, draw_graphs, draw_samples, metropolis, minimiser


def main():
    asked = job.options(__doc__, checkout=job.CHECKOUT)
    sys.path.insert(0, str(asked.checkout.resolve()))
    from nda.optimizers import DGD_tracking
    from nda.problems import LogisticRegression

    features, labels = draw_samples(asked.nodes, asked.samples, asked.dim)
    signed = features * labels[:, :, None]
    L, mu = constants(signed)
    solution = minimiser(signed, mu)
    weights = [metropolis(W) for W in draw_graphs(asked.nodes, asked.graphs)[0]]

    class SameSamples(LogisticRegression):
        def generate_data(self):
            self.X_train, self.Y_train = features.reshape(-1, asked.dim), (labels.ravel() + 1) / 2
            self.X_test, self.Y_test = self.X_train[:1].copy(), self.Y_train[:1]

        def _init(self, result_queue=None):
            return 1.0, solution, None  # the samples are not scaled

    class ChangingGraphs(DGD_tracking):
        def update(self):
            self.W = weights[(self.t - 1) % len(weights)]
            super().update()

    problem = SameSamples(LAMBDA=mu, n_agent=asked.nodes, m=asked.samples, dim=asked.dim, graph_type="cycle")

    def solve():
        start = np.zeros((asked.dim, asked.nodes))
        method = ChangingGraphs(problem, eta=1 / (2 * L), n_iters=asked.rounds, x_0=start, early_stopping=False)
        method.optimize()
        return ((method.x.T - solution) ** 2).sum(), None

    job.run(asked, solve)


if __name__ == "__main__":
    main()
