"""Independent, dense, plain transcriptions to compare with. Nothing here imports the package's numerics."""

from functools import cached_property
from types import SimpleNamespace

import numpy as np


def logistic_data(nodes, samples, dim, seed=0):
    """Different data at every node: features (nodes, samples, dim), labels -1/+1 of shape (nodes, samples)."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(dim)
    A = rng.standard_normal((nodes, samples, dim)) * rng.uniform(0.3, 1.5, size=(nodes, 1, dim))
    b = np.where(A @ truth + 0.5 * rng.standard_normal((nodes, samples)) > 0, 1.0, -1.0)
    b[0, 0], b[-1, -1] = 1.0, -1.0
    return A, b


def logistic_gradient(A, b, l2):
    """Return x -> rows of gradients, node by node in plain loops over nodes."""

    def gradient(x):
        out = np.empty_like(x)
        for i in range(len(A)):
            slopes = -b[i] / (1 + np.exp(b[i] * (A[i] @ x[i])))
            out[i] = A[i].T @ slopes / len(b[i]) + l2 * x[i]
        return out

    return gradient


def quadratics(nodes, dim, kappa, seed=0):
    """Random H (nodes, dim, dim) with eigenvalues in [1, kappa], both reached, and c (nodes, dim)."""
    rng = np.random.default_rng(seed)
    H = np.empty((nodes, dim, dim))
    for i in range(nodes):
        Q, _ = np.linalg.qr(rng.standard_normal((dim, dim)))
        eigenvalues = np.exp(rng.uniform(0, np.log(kappa), dim))
        if i == 0:
            eigenvalues[0], eigenvalues[-1] = 1.0, kappa
        H[i] = Q @ np.diag(eigenvalues) @ Q.T
    return (H + H.transpose(0, 2, 1)) / 2, rng.standard_normal((nodes, dim))


class Oracle:
    """Quadratics' oracle in NumPy, exact."""

    def __init__(self, H, c):
        self.H, self.c = H, c

    def gradient(self, x, where=None):
        return np.einsum("nde,...ne->...nd", self.H, x) - self.c

    def hessian(self, x, where=None):
        return self.H

    def each(self, function, *arrays):
        return np.stack([function(*row) for row in zip(*arrays, strict=True)])

    def model_minimum(self, H, b, start):
        return np.linalg.solve(H, b[..., None])[..., 0]

    def dual_gradient(self, z):
        return np.linalg.solve(self.H, (z + self.c)[..., None])[..., 0]


class Gossip:
    """A fixed sequence of dense matrices."""

    def __init__(self, matrices):
        self.matrices, self.clock = matrices, 0

    @cached_property
    def top(self):
        """The largest eigenvalue of all matrices."""
        return max(np.linalg.eigvalsh(W)[-1] for W in self.matrices)

    def __call__(self, *vectors):
        W = self.matrices[self.clock % len(self.matrices)]
        self.clock += 1
        out = tuple(W @ v for v in vectors)
        return out[0] if len(out) == 1 else out

    def average(self, *vectors):
        moved = self(*vectors)
        if len(vectors) == 1:
            return vectors[0] - moved / self.top
        return tuple(v - w / self.top for v, w in zip(vectors, moved, strict=True))

    def mix(self, v, rounds):
        for _ in range(int(rounds)):
            v = self.average(v)
        return v

    def accelerated(self, v, rounds, chi):
        """AcceleratedGossip as Scaman et al. print it; W is scaled by its own lambda_max."""
        if chi == 1:
            return v - self.mix(v, rounds)
        c_2, c_3 = (chi + 1) / (chi - 1), 2 * chi / ((1 + chi) * self.top)
        a_before, a, before, x = 1.0, c_2, v, c_2 * (v - c_3 * self(v))
        for _ in range(1, int(rounds)):
            a_before, a = a, 2 * c_2 * a - a_before
            before, x = x, 2 * c_2 * (x - c_3 * self(x)) - before
        return v - x / a

    def windows(self, rounds):
        return Windows(self, rounds)

    def push(self, *vectors):
        links = (self.matrices[self.clock % len(self.matrices)] != 0).astype(float)
        self.clock += 1
        return tuple((links / links.sum(axis=0, keepdims=True)) @ v for v in vectors)

    def push_pull(self, pulled, pushed):
        links = (self.matrices[self.clock % len(self.matrices)] != 0).astype(float)  # symmetric, with a full diagonal
        self.clock += 1
        return (links / links.sum(axis=1, keepdims=True)) @ pulled, (links / links.sum(axis=0, keepdims=True)) @ pushed

    def project(self, v):
        self.clock += 1
        return v - v.mean(axis=-2, keepdims=True)


class Windows:
    """Several rounds of another network for one."""

    def __init__(self, network, rounds):
        self.network, self.rounds = network, int(rounds)

    def average(self, *vectors):
        for _ in range(self.rounds):
            averaged = self.network.average(*vectors)
            vectors = averaged if len(vectors) > 1 else (averaged,)
        return vectors if len(vectors) > 1 else vectors[0]


def adom_theory(mu, L, lambda_min_plus, lambda_max):
    """Theorem 1's parameters, typed off the paper."""
    return SimpleNamespace(
        alpha=1 / (2 * L),
        eta=2 * lambda_min_plus * np.sqrt(mu * L) / (7 * lambda_max),
        theta=mu / lambda_max,
        sigma=1 / lambda_max,
        tau=lambda_min_plus / (7 * lambda_max) * np.sqrt(mu / L),
    )


def adom_run(dual_gradient, matrices, p, shape, rounds):
    """Algorithm 2, with nd-vectors and Kronecker products as the paper writes it; yield grad F*(z_g^k)."""
    n, d = shape
    z, z_f, m = np.zeros(n * d), np.zeros(n * d), np.zeros(n * d)
    for k in range(rounds):
        W = np.kron(matrices[k % len(matrices)], np.eye(d))
        z_g = p.tau * z + (1 - p.tau) * z_f
        g = dual_gradient(z_g.reshape(n, d)).ravel()
        delta = p.sigma * (W @ (m - p.eta * g))
        m = m - p.eta * g - delta
        z = z + p.eta * p.alpha * (z_g - z) + delta
        z_f = z_g - p.theta * (W @ g)
        yield g.reshape(n, d), z.reshape(n, d), z_f.reshape(n, d), m.reshape(n, d)


def gd_oracle(gradient, L, steps, shape):
    """Warm-started gradient descent on f(x) - <x, z>."""
    memory = {"x": np.zeros(shape)}

    def dual_gradient(z):
        x = memory["x"]
        for _ in range(steps):
            x = x - (gradient(x) - z) / L
        memory["x"] = x
        return x

    return dual_gradient


def agd_oracle(gradient, mu, L, steps, shape):
    """Warm-started Nesterov, the momentum reset every round."""
    memory = {"x": np.zeros(shape)}
    beta = (np.sqrt(L / mu) - 1) / (np.sqrt(L / mu) + 1)

    def dual_gradient(z):
        x = y = memory["x"]
        for _ in range(steps):
            x_next = y - (gradient(y) - z) / L
            y = x_next + beta * (x_next - x)
            x = x_next
        memory["x"] = x
        return x

    return dual_gradient


def close(one, other):
    """Two results are equal but for rounding: the rows to 1e-12 of their size, and so the distances."""
    size = np.linalg.norm(other.x)
    assert np.linalg.norm(one.x - other.x) <= 1e-12 * size
    assert one.status == other.status
    kept = ["iteration", "round", "gradients", "floats_sent"]
    assert one.history[kept].equals(other.history[kept])
    for name in ("error", "consensus"):
        distance, expected = np.sqrt(one.history[name]), np.sqrt(other.history[name])
        np.testing.assert_allclose(distance, expected, rtol=1e-12, atol=1e-12 * size)
