"""ADOM on logistic regression over a changing network, as one would write it in NumPy alone."""

import job
import numpy as np


def draw_samples(nodes, samples, dim, seed=0):
    """Return features, and labels of a linear model with noise."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((nodes, samples, dim))
    noise = rng.standard_normal((nodes, samples))
    return features, np.where(features @ rng.standard_normal(dim) + noise > 0, 1.0, -1.0)


def draw_graphs(nodes, graphs, radius=job.RADIUS, seed=0):
    """Return Laplacians of connected geometric graphs, their least positive and their largest eigenvalue."""
    rng = np.random.default_rng(seed)
    laplacians, least, largest = [], np.inf, 0.0
    while len(laplacians) < graphs:
        points = rng.random((nodes, 2))
        near = ((points[:, None] - points) ** 2).sum(2) < radius**2
        W = np.diag(near.sum(1)) - near.astype(float)
        spectrum = np.linalg.eigvalsh(W)
        if spectrum[1] > 1e-9:  # else it is not connected, and another is drawn
            laplacians.append(W)
            least, largest = min(least, spectrum[1]), max(largest, spectrum[-1])
    return laplacians, least, largest


def metropolis(W):
    """Return the weights of averaging that most other methods take, from a Laplacian."""
    degrees = np.diag(W)
    weights = np.where(W < 0, 1 / (1 + np.maximum.outer(degrees, degrees)), 0.0)
    return weights + np.diag(1 - weights.sum(1))


def constants(signed, kappa=job.KAPPA):
    """Return L, and mu that makes L / mu the condition number."""
    samples = signed.shape[1]
    loss = np.linalg.eigvalsh(signed.transpose(0, 2, 1) @ signed)[:, -1].max() / (4 * samples)
    mu = loss / (kappa - 1)
    return loss + mu, mu


def minimiser(signed, mu):
    """Return x*, found by Newton's method."""
    flat = signed.reshape(-1, signed.shape[2])
    x = np.zeros(flat.shape[1])
    for _ in range(50):
        slope = 1 / (1 + np.exp(flat @ x))
        gradient = mu * x - slope @ flat / len(flat)
        hessian = mu * np.eye(len(x)) + (flat.T * (slope * (1 - slope))) @ flat / len(flat)
        step = np.linalg.solve(hessian, gradient)
        x = x - step
        if abs(step).max() < 1e-14:
            break
    return x


def parameters(L, mu, least, largest):
    """Return alpha, eta, theta, sigma and tau of ADOM's theorem 1."""
    chi = largest / least
    eta, tau = 2 * np.sqrt(mu * L) / (7 * chi), np.sqrt(mu / L) / (7 * chi)
    return 1 / (2 * L), eta, mu / largest, 1 / largest, tau


def solve(signed, L, mu, solution, graphs, rounds):
    """Return the squared error after every round of ADOM with one gradient step a round."""
    laplacians, least, largest = graphs
    alpha, eta, theta, sigma, tau = parameters(L, mu, least, largest)
    nodes, samples, dim = signed.shape
    z = z_f = m = x = np.zeros((nodes, dim))
    errors = np.empty(rounds)
    for k in range(rounds):
        z_g = tau * z + (1 - tau) * z_f
        margins = (signed @ x[:, :, None])[:, :, 0]
        slopes = -1 / (1 + np.exp(margins)) / samples
        gradient = (slopes[:, None, :] @ signed)[:, 0] + mu * x
        x = x - (gradient - z_g) / L
        W = laplacians[k % len(laplacians)]
        step = m - eta * x
        delta = sigma * (W @ step)
        m = step - delta
        z = z + eta * alpha * (z_g - z) + delta
        z_f = z_g - theta * (W @ x)
        errors[k] = ((x - solution) ** 2).sum()
    return errors


def main():
    asked = job.options(__doc__)
    features, labels = draw_samples(asked.nodes, asked.samples, asked.dim)
    signed = features * labels[:, :, None]
    graphs = draw_graphs(asked.nodes, asked.graphs)
    L, mu = constants(signed)
    solution = minimiser(signed, mu)
    job.run(asked, lambda: (solve(signed, L, mu, solution, graphs, asked.rounds)[-1], None))


if __name__ == "__main__":
    main()
