"""MSDA and ADOM+ by DADAO's code and by adom, on least squares over a ring: errors to compare, no times.

Run it twice: with `--checkout FOLDER` in an environment that has what DADAO needs, and without in adom's. Both print
the squared distance to x*, summed over nodes, after the same steps.
"""

import argparse
import sys
from pathlib import Path

import networkx as nx
import numpy as np

NODES, SAMPLES, DIM = 12, 30, 5
STEPS = {"msda": (1, 14, 27, 40), "adom+": (1, 100, 500, 1500)}


def draw():
    """Return features (nodes, samples, dim) and targets (nodes, samples)."""
    rng = np.random.default_rng(3)
    features = rng.standard_normal((NODES, SAMPLES, DIM)) * rng.uniform(0.5, 2.0, (NODES, 1, DIM))
    return features, features @ rng.standard_normal(DIM) + 0.5 * rng.standard_normal((NODES, SAMPLES))


def quadratics(features, targets):
    """Return H and c of f_i(x) = mean of (a'x - b)^2, up to a constant."""
    H = 2 * np.einsum("nsd,nse->nde", features, features) / SAMPLES
    return H, 2 * np.einsum("nsd,ns->nd", features, targets) / SAMPLES


def theirs(checkout):
    """Return the errors that DADAO's code gives."""
    sys.path.insert(0, str(checkout.resolve()))
    import torch
    from cvx_functions import linear_regression
    from optimizers import ADOMplus_optimizer, MSDA_optimizer
    from utils import dual_grad_linear_regression

    features, targets = draw()
    H, c = quadratics(features, targets)
    values, ring = np.linalg.eigvalsh(H), nx.cycle_graph(NODES)
    mu, L, solution = values.min(), values.max(), np.linalg.solve(H.sum(axis=0), c.sum(axis=0))
    data, labels = torch.from_numpy(features), torch.from_numpy(targets[:, :, None])
    errors = {name: [] for name in STEPS}
    msda = MSDA_optimizer(data, labels, mu, L, ring)
    for _ in range(STEPS["msda"][-1]):
        x = np.stack([dual_grad_linear_regression(data, labels, msda.X[i], i).numpy() for i in range(NODES)])
        errors["msda"].append(((x - solution) ** 2).sum())
        msda.step()
    W = nx.laplacian_matrix(ring).toarray().astype(float)
    spectrum = np.linalg.eigvalsh(W)
    f = linear_regression(DIM, NODES, SAMPLES)
    f.theta_i.data.zero_()
    plus = ADOMplus_optimizer(f, data, labels, mu=mu, L=L, chi=spectrum[-1] / spectrum[1])
    plus.M = plus.Y = plus.Y_f = torch.zeros_like(plus.Y)
    averaging = torch.from_numpy(np.eye(NODES) - W / spectrum[-1])
    for _ in range(STEPS["adom+"][-1]):
        x = (plus.tau_1 * plus.X + (1 - plus.tau_1) * plus.X_f).detach().numpy().reshape(NODES, DIM)
        errors["adom+"].append(((x - solution) ** 2).sum())
        plus.step(averaging)
    return errors


def ours():
    """Return the errors that adom gives."""
    import adom

    problem, network = adom.Quadratic(*quadratics(*draw())), adom.networks.ring(NODES)
    errors = {}
    for name, (*_, steps) in STEPS.items():
        oracle = {"oracle": "exact"} if name == "msda" else {}
        method = adom.algorithms.method_class(name).theory(adom.constants(problem, network))
        rounds = steps * int(method.rounds_of_step(0))
        errors[name] = adom.solve(problem, network, name, "theory", rounds=rounds, **oracle).history["error"].to_list()
    return errors


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, help="folder of DADAO's code")
    checkout = parser.parse_args().checkout
    for name, errors in (theirs(checkout) if checkout else ours()).items():
        print(name, *(f"{errors[step - 1]:.12e}" for step in STEPS[name]))
