"""The job of numpy_script.py with the code of DADAO (github.com/AdelNabli/DADAO): its ADOM+ on the changing graphs.

The loop here only takes steps and records their error: its own also copies lists that grow by every link of a round.
All start from zero; its own random start overflows where mu is small.
"""

import sys

import job
import numpy as np
from numpy_script import constants, draw_graphs, draw_samples, minimiser


def main():
    asked = job.options(__doc__, checkout=job.CHECKOUT)
    sys.path.insert(0, str(asked.checkout.resolve()))
    import torch
    from cvx_functions import logistic_regression
    from optimizers import ADOMplus_optimizer
    from utils import compute_average_distance_to_opt

    features, labels = draw_samples(asked.nodes, asked.samples, asked.dim)
    signed = features * labels[:, :, None]
    L, mu = constants(signed)
    solution = minimiser(signed, mu)
    laplacians, least, largest = draw_graphs(asked.nodes, asked.graphs)
    averaging = [torch.from_numpy(np.eye(asked.nodes) - W / largest) for W in laplacians]
    data, targets = torch.from_numpy(features), torch.from_numpy(labels[:, :, None])

    def solve():
        f = logistic_regression(mu, asked.dim, asked.nodes, asked.samples)
        f.theta_i.data.zero_()
        method = ADOMplus_optimizer(f, data, targets, mu=mu, L=L, chi=largest / least)
        method.M = method.Y = method.Y_f = torch.zeros_like(method.Y)
        errors = np.empty(asked.rounds)
        for k in range(asked.rounds):
            method.step(averaging[k % asked.graphs])
            errors[k] = compute_average_distance_to_opt(method.X, solution)
        return asked.nodes * errors[-1], None

    job.run(asked, solve)


if __name__ == "__main__":
    main()
