"""Weights of samples when nodes have different numbers of them, as numbers and as text."""

from typing import Any

import numpy as np

from ..errors import InputError, nearest
from .losses import Loss

COUNTS = ("samples", "nodes")
"""What may count equally."""


def sample_weight(counts: np.ndarray, count: str) -> float | None:
    """Return the weight n / N with which all N samples of n nodes count equally, or None for weights 1 / m_i.

    With n / N, the mean of the f_i is the mean over all samples, as in a fit to the pooled data. If all nodes have
    equally many samples, both weights are the same and None is returned.

    Examples
    --------
    >>> sample_weight(np.array([1, 3]), "samples"), sample_weight(np.array([2, 2]), "samples")
    (0.5, None)
    >>> sample_weight(np.array([1, 3]), "nodes")
    """
    if count not in COUNTS:
        raise InputError(f"count must be 'samples' or 'nodes', got {count!r}; {nearest(count, COUNTS)}")
    if count == "nodes" or (counts == counts[0]).all():
        return None
    return float(counts.size / counts.sum())


def weighting(counts: np.ndarray, totals: np.ndarray) -> dict[str, Any]:
    """Return the fewest and the most samples of a node, and what counts equally: "nodes", "samples" or "neither".

    `counts` has each node's number of samples, `totals` the sum of their weights.

    Examples
    --------
    >>> weighting(np.array([100, 169]), np.array([1.0, 1.0]))
    {'fewest': 100, 'most': 169, 'alike': 'nodes'}
    >>> weighting(np.array([2, 4]), np.array([0.5, 1.0]))["alike"]
    'samples'
    """
    each = totals / np.maximum(counts, 1)
    alike = "nodes" if _even(totals) else "samples" if _even(each) else "neither"
    return {"fewest": int(counts.min()), "most": int(counts.max()), "alike": alike}


def _even(values: np.ndarray) -> bool:
    return bool(np.ptp(values) <= 1e-9 * np.abs(values).max())


def weighting_text(weights: dict[str, Any] | None, *, usual: bool = False) -> str:
    """Return text on how nodes of different sizes are weighted, "" if there is nothing to say.

    That samples count equally is the usual case, which is mentioned only if `usual` is True.

    Examples
    --------
    >>> weighting_text({"fewest": 100, "most": 169, "alike": "nodes"})
    'nodes count alike: 100 to 169 samples each, so a sample of a small node weighs more'
    >>> weighting_text({"fewest": 100, "most": 169, "alike": "samples"}, usual=True)
    'samples count alike, 100 to 169 a node'
    """
    if not weights or weights.get("fewest") == weights.get("most"):
        return ""
    sizes = f"{weights['fewest']:,} to {weights['most']:,}"
    if weights.get("alike") == "samples" and usual:
        return f"samples count alike, {sizes} a node"
    if weights.get("alike") != "nodes":
        return ""
    return f"nodes count alike: {sizes} samples each, so a sample of a small node weighs more"


def penalty_of(loss: Loss, l2: float, weights: dict[str, Any], samples: int) -> dict[str, Any]:
    """Return the penalty as l2 and, if every sample weighs the same, as scikit-learn's C or alpha.

    Examples
    --------
    >>> from adom.problems.losses import LOGISTIC
    >>> penalty_of(LOGISTIC, 0.1, {"alike": "samples"}, 20)
    {'l2': 0.1, 'C': 0.5}
    """
    alike = weights["alike"] == "samples" or weights["fewest"] == weights["most"]
    return loss.penalties(l2, samples) if alike else {"l2": l2}


def penalty_text(penalty: dict[str, Any]) -> str:
    """Return a penalty as text.

    Examples
    --------
    >>> penalty_text({"l2": 0.1, "C": 0.5}), penalty_text({"l2": 0.1})
    ('l2 0.1, C 0.5 as scikit-learn counts', 'l2 0.1')
    """
    scikit_learn = [f"{name} {penalty[name]:.6g}" for name in ("C", "alpha") if name in penalty]
    return ", ".join([f"l2 {penalty['l2']:.6g}", *(f"{words} as scikit-learn counts" for words in scikit_learn)])
