"""A problem and a network together: whether they fit, and the constants that theorems take from them."""

from typing import Any

from ..algorithms import Constants
from ..errors import InputError, InputTypeError
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem


def constants(problem: Problem, network: Network | DirectedNetwork) -> Constants:
    """Return the constants of a problem on a network, from which every method's parameters are computed.

    A directed network has no symmetric W; its chi stands in for lambda_max / lambda_min_plus.
    """
    if isinstance(network, DirectedNetwork):
        return Constants(problem.mu, problem.L, 1 / network.chi, 1.0, problem.nodes)
    return Constants(problem.mu, problem.L, network.lambda_min_plus, network.lambda_max, problem.nodes)


def check_pair(problem: Any, network: Any, *, directed: bool = False, title: str = "ADOM") -> None:
    """Refuse a problem and a network that do not belong together, and a directed network where it will not do."""
    if not isinstance(problem, Problem) and not hasattr(problem, "whole"):  # adom.Shards
        swapped = isinstance(problem, Network | DirectedNetwork)
        raise InputTypeError(
            f"problem must be an adom problem such as adom.LogisticRegression(...), got {type(problem).__name__}"
            + ("; the problem comes first, then the network" if swapped else "")
        )
    if not isinstance(network, Network | DirectedNetwork):
        raise InputTypeError(
            f"network must be an adom network such as adom.networks.ring({problem.nodes}), got {type(network).__name__}"
        )
    if isinstance(network, DirectedNetwork) and not directed:
        raise InputError(
            f"{title} needs links that go both ways, got the directed {network!r}; "
            "take an undirected network, or the method 'push-pull'"
        )
    if problem.nodes != network.nodes:
        raise InputError(
            f"the problem has {problem.nodes} nodes and the network {network.nodes}; they must be the same: "
            f"build one of them with nodes={problem.nodes}"
        )
