"""Any method of adom, by name, on a network that changes in every round."""

from typing import ClassVar

import numpy as np
from benchopt import BaseSolver

import adom


class Solver(BaseSolver):
    """A method of adom; an iteration is a communication round."""

    name = "adom"
    sampling_strategy = "iteration"
    parameters: ClassVar = {
        "method": ["adom", "adom+", "diging"],
        "protocol": ["auto"],
        "radius": [0.7],
    }

    def set_objective(self, A, b, l2, nodes):
        """Share the samples out, and draw a network."""
        shares = adom.data.split(A, b, nodes, seed=0)
        self.problem = adom.LeastSquares(shares, l2=l2)
        self.network = adom.networks.geometric(nodes, self.radius, graphs=20, seed=0)

    def run(self, rounds):
        """Spend so many communication rounds; without any, all rows are at 0."""
        if not rounds:
            self.rows = np.zeros((self.problem.nodes, self.problem.dim))
            return
        result = adom.solve(
            self.problem,
            self.network,
            self.method,
            self.protocol,
            rounds=rounds,
            record_every=rounds,
        )
        self.rows = result.x

    def get_result(self):
        """Return the row of every node."""
        return {"rows": self.rows}
