"""How much the samples of nodes of different sizes weigh, in numbers and in words."""

from typing import Any

import numpy as np


def weighting(counts: np.ndarray, totals: np.ndarray) -> dict[str, Any]:
    """Return the fewest and the most samples of a node, and what counts alike: "nodes", "samples" or "neither".

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


def weighting_text(weights: dict[str, Any] | None) -> str:
    """Say how nodes of different sizes are weighted; "" where there is nothing to say.

    Examples
    --------
    >>> weighting_text({"fewest": 100, "most": 169, "alike": "nodes"})
    'nodes count alike: 100 to 169 samples each, so a sample of a small node weighs more'
    """
    if not weights or weights.get("fewest") == weights.get("most") or weights.get("alike") != "nodes":
        return ""
    sizes = f"{weights['fewest']:,} to {weights['most']:,} samples each"
    return f"nodes count alike: {sizes}, so a sample of a small node weighs more"


def penalty_of(kind: str, l2: float, weights: dict[str, Any], samples: int) -> dict[str, Any]:
    """Return the penalty as it is, and as scikit-learn counts it where every sample weighs the same.

    Divided by the number of samples N, scikit-learn's objectives are the mean loss + |w|^2 / (2 C N) for classes and
    half the mean squared error + alpha |w|^2 / (2 N) for numbers.

    Examples
    --------
    >>> penalty_of("logistic", 0.1, {"alike": "samples"}, 20), penalty_of("ridge", 0.1, {"alike": "samples"}, 20)
    ({'l2': 0.1, 'C': 0.5}, {'l2': 0.1, 'alpha': 2.0})
    """
    if weights["alike"] != "samples" and weights["fewest"] != weights["most"]:
        return {"l2": l2}
    return {"l2": l2, **({"alpha": l2 * samples} if kind == "ridge" else {"C": 1 / (l2 * samples)})}
