"""What follows from problem and network: constants, whether the two fit together, and steps on windows of rounds."""

from dataclasses import dataclass, replace
from math import inf
from typing import Any

from ..algorithms import NEEDS, Constants, Gossip, Method, Oracle
from ..algorithms.base import Windows, Wrapped
from ..errors import InputError, InputTypeError
from ..networks import DirectedNetwork, LossyNetwork, Network
from ..problems.base import Problem
from .request import AUTO, method_from, method_type

Array = Any


def constants(problem: Problem, network: Network | DirectedNetwork) -> Constants:
    """Return the constants of a problem on a network, from which every method's parameters are computed.

    A directed network has no symmetric W; its chi stands in for lambda_max / lambda_min_plus.
    """
    return Constants(*_bounds(problem), **of_network(network))


def _bounds(problem: Problem, cls: type[Method] | None = None) -> tuple[float, float]:
    """Return mu and L; refuse a problem that has none for a method that needs them."""
    if 0 < problem.mu <= problem.L < inf:
        return problem.mu, problem.L
    if cls is not None and not cls.bounded:
        return 1.0, 1.0  # its formulas use neither
    raise InputError(
        f"{'this' if cls is None else cls.title} needs f_i with 0 < mu <= L < inf, got mu={problem.mu:g} and "
        f"L={problem.L:g} of {type(problem).__name__}; take method='newton', which needs neither"
    )


def make_method(problem: Problem, network: Network | DirectedNetwork, method: Any, parameters: Any) -> Method:
    """Return the method given by name, class or instance, with its parameters."""
    if parameters != AUTO or isinstance(method, Method):
        return method_from(
            method, parameters, lambda: Constants(*_bounds(problem, method_type(method)), **of_network(network))
        )
    return method_from(method, parameters, lambda: unspectral(problem, network, method_type(method)))


def unspectral(problem: Problem, network: Network | DirectedNetwork, cls: type[Method]) -> Constants:
    """Return the constants of a problem on a network if only lambda_max, the scale of its weights, is known."""
    scale = 1.0 if isinstance(network, DirectedNetwork) else network.lambda_max
    return Constants(*_bounds(problem, cls), scale, scale, network.nodes)


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

    With a `window` of more than one round (`InWindows`), single rounds need not connect the nodes. No proof
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


def check_pair(problem: Any, network: Any, cls: type[Method] | None = None, *, apart: bool = False) -> None:
    """Refuse a problem and a network that do not fit together, and those that a method is not for, if it is given.

    Refuse data that lie apart too (`adom.Shards`, `NodeData`), unless `apart`.
    """
    lies_apart = not isinstance(problem, Problem) and hasattr(problem, "open") and hasattr(problem, "nodes")
    if lies_apart and not apart:
        whole = ", or take the problem of all samples, .whole()" if hasattr(problem, "whole") else ""
        raise InputTypeError(
            f"problem must be held in memory here, got {type(problem).__name__}, whose samples lie apart; "
            f"give it to adom.solve{whole}"
        )
    if not isinstance(problem, Problem) and not lies_apart:
        swapped = isinstance(problem, Network | DirectedNetwork)
        raise InputTypeError(
            f"problem must be an adom problem such as adom.LogisticRegression(...), got {type(problem).__name__}"
            + ("; the problem comes first, then the network" if swapped else "")
        )
    if not isinstance(network, Network | DirectedNetwork):
        raise InputTypeError(
            f"network must be an adom network such as adom.networks.ring({problem.nodes}), got {type(network).__name__}"
        )
    if cls is not None and isinstance(network, DirectedNetwork) and not cls.directed:
        raise InputError(
            f"{cls.title} needs links that go both ways, got the directed {network!r}; "
            "take an undirected network, or the method 'push-pull' or 'push-diging'"
        )
    if cls is not None and getattr(problem, "composite", False) and not cls.composite:
        raise InputError(f"{cls.title} takes no penalty that is not smooth, as {problem!r} has; take method='newton'")
    if problem.nodes != network.nodes:
        raise InputError(
            f"the problem has {problem.nodes} nodes and the network {network.nodes}; they must be the same: "
            f"build one of them with nodes={problem.nodes}"
        )


@dataclass(frozen=True)
class InWindows(Wrapped):
    """A method whose rounds are windows of rounds, for networks on which single rounds do not connect the nodes.

    Theorems about W(k) also hold for the W of a window of B rounds, W = I - M(k + B - 1) ... M(k) with
    M = I - W(k) / lambda_max. It satisfies |W x - x|^2 <= (1 - 1 / chi) |x|^2 for x of zero mean, with the network's
    chi. The analysis of ADOM+ (arXiv:2106.04469) needs no more, nor does the proof of Theorem 1 in the ADOM paper
    (arXiv:2102.09234), although the theorem is stated for symmetric W. Lemma 1 is this inequality, and Lemma 3 follows
    from it. In Lemma 2, with lambda_max = 1 and theta = mu,

        F*(z - theta W g) <= F*(z) - mu <g, W g> + mu / 2 |W g|^2 = F*(z) - mu / 2 (|g|_P^2 - |g - W g|_P^2),

    at most F*(z) - mu / (2 chi) |g|_P^2, as with a symmetric W. `adom.verify` checks all of them in every step. Methods
    that average more than once in a step (APM, Mudag) take as many windows as they would take rounds.

    Parameters
    ----------
    inner : Method
    window : int
        Rounds per window.
    """

    rounds_per_step = None  # the inner method's are windows

    window: Any

    def init(self, zeros: Array, oracle: Oracle) -> Any:
        """Start the method."""
        return self.inner.init(zeros, oracle)

    def renewed(self, state: Any, k: Any) -> Any:
        """Renew the method's state."""
        return self.inner.renewed(state, k)

    def step(self, state: Any, oracle: Oracle, gossip: Gossip) -> tuple[Any, Array]:
        """Make one step of the method, on windows."""
        after: tuple[Any, Array] = self.inner.step(state, oracle, Windows(gossip, self.window))
        return after

    def rounds_of_step(self, k: Any) -> Any:
        """Return the rounds of all windows of a step."""
        return self.window * self.inner.rounds_of_step(k)


def in_windows(method: Method, network: Network | DirectedNetwork) -> Method:
    """Return the method for a network, on windows if single rounds do not connect the nodes."""
    if method.directed or method.singly or network.window == 1 or method.needs == "complete":  # one round is enough
        return method
    return InWindows(method, network.window)


def window_of(method: Method) -> int:
    """Return the rounds per window of a method in a run; 1 without windows."""
    if isinstance(method, InWindows):
        return int(method.window)
    return window_of(method.inner) if isinstance(method, Wrapped) else 1
