"""A benchopt benchmark of decentralized methods: ridge regression on shared samples."""

from typing import ClassVar

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """The value at the worst node, above the least."""

    name = "Decentralized ridge regression"
    min_benchopt_version = "1.6"
    parameters: ClassVar = {"l2": [0.1]}

    def set_data(self, A, b, nodes):
        """Take the samples, and the number of nodes that they are shared out over."""
        self.A, self.b, self.nodes = A, b, nodes
        whole = A.T @ A / len(b) + self.l2 * np.eye(A.shape[1])
        self.least = self._value(np.linalg.solve(whole, A.T @ b / len(b)))

    def get_objective(self):
        """Return what solvers are given."""
        return {"A": self.A, "b": self.b, "l2": self.l2, "nodes": self.nodes}

    def evaluate_result(self, rows):
        """Judge the rows of all nodes: the worst value, and how far they are apart."""
        worst = max(self._value(x) for x in rows)
        return {
            "value": worst - self.least,
            "consensus": float(((rows - rows.mean(axis=0)) ** 2).sum()),
        }

    def get_one_result(self):
        """Return a result of the right shape, for benchopt's own tests."""
        return {"rows": np.zeros((self.nodes, self.A.shape[1]))}

    def _value(self, x):
        residual = self.A @ x - self.b
        return residual @ residual / (2 * len(self.b)) + self.l2 / 2 * x @ x
