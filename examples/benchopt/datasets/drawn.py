"""Samples drawn at random."""

from typing import ClassVar

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Samples of a linear model with noise."""

    name = "drawn"
    parameters: ClassVar = {"samples, dim, nodes": [(200, 5, 10)]}

    def get_data(self):
        """Return samples, targets, and the number of nodes."""
        rng = np.random.default_rng(0)
        A = rng.standard_normal((self.samples, self.dim))
        b = A @ rng.standard_normal(self.dim) + rng.standard_normal(self.samples)
        return {"A": A, "b": b, "nodes": self.nodes}
