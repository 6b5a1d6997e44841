"""Constants of a problem on a network, and the check that the two belong together."""

from dataclasses import replace
from typing import Any

from ..algorithms import NEEDS, Constants, Method
from ..errors import InputError, InputTypeError
from ..networks import DirectedNetwork, LossyNetwork, Network
from ..problems.base import Problem
from .request import AUTO, method_from


def constants(problem: Problem, network: Network | DirectedNetwork) -> Constants:
    """Return the constants of a problem on a network, from which every method's parameters are computed.

    A directed network has no symmetric W; its chi stands in for lambda_max / lambda_min_plus.
    """
    return Constants(problem.mu, problem.L, **of_network(network))


def make_method(problem: Problem, network: Network | DirectedNetwork, method: Any, parameters: Any) -> Method:
    """Return the method given by name, class or instance, with its parameters."""
    if parameters != AUTO or isinstance(method, Method):
        return method_from(method, parameters, lambda: constants(problem, network))
    return method_from(method, parameters, lambda: unspectral(problem, network))


def unspectral(problem: Problem, network: Network | DirectedNetwork) -> Constants:
    """Return the constants of a problem on a network if only lambda_max, the scale of its weights, is known."""
    scale = 1.0 if isinstance(network, DirectedNetwork) else network.lambda_max
    return Constants(problem.mu, problem.L, scale, scale, problem.nodes)


def spectrum(network: Network | DirectedNetwork) -> tuple[float, float]:
    """Return lambda_min_plus and lambda_max of a network; for a directed one, numbers whose ratio gives its chi."""
    if isinstance(network, DirectedNetwork):
        return 1 / network.chi, 1.0
    return network.lambda_min_plus, network.lambda_max


def of_network(network: Network | DirectedNetwork) -> dict[str, Any]:
    """Return the constants that depend on the network, by name."""
    least, most = spectrum(network)
    more = {"least_weight": network.least_weight} if isinstance(network, DirectedNetwork) else {}
    return {"lambda_min_plus": least, "lambda_max": most, "nodes": network.nodes, **more}


ASSUMED = ("mu", "L", "chi")
"""Constants that a sweep or a search may scale before computing parameters."""


def assumed(true: Constants, mu: float = 1.0, L: float = 1.0, chi: float = 1.0) -> Constants:
    """Return constants with mu, L and chi multiplied by the given factors."""
    return replace(true, mu=true.mu * mu, L=true.L * L, lambda_min_plus=true.lambda_min_plus / chi)


def outside(cls: type[Method], network: Network | DirectedNetwork, window: int = 1) -> str:
    """Describe the assumptions of a method's proof that a network violates; "" if there are none.

    With a `window` of more than one round (`adom.run.windows`), single rounds need not connect the nodes. No proof
    covers imperfect links. A method without a proof has no assumptions.
    """
    if cls.needs is None:
        return ""
    lacks = {
        "fixed": not network.fixed,
        "connected": window == 1 and not network.connected,
    }
    asked = [NEEDS[cls.needs]] if lacks.get(cls.needs) else []
    if isinstance(network, LossyNetwork):
        asked += network.unproved
    return f"proved for {', and for '.join(asked)}" if asked else ""


def check_pair(problem: Any, network: Any, *, directed: bool = False, title: str = "ADOM") -> None:
    """Refuse a problem and a network that do not fit together, and a directed network unless `directed`."""
    if not isinstance(problem, Problem) and not hasattr(problem, "open"):  # adom.Shards, NodeData
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
            "take an undirected network, or the method 'push-pull' or 'push-diging'"
        )
    if problem.nodes != network.nodes:
        raise InputError(
            f"the problem has {problem.nodes} nodes and the network {network.nodes}; they must be the same: "
            f"build one of them with nodes={problem.nodes}"
        )
