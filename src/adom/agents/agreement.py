"""When to stop: the tolerance is met, all know it, and all know that all know it.

In a dual method the gradients of the f_i at the agents' answers x_i sum to zero. So at any x_i the gradient of their
mean is at most L s, where s is the greatest distance between two answers, and |x_i - x*| is at most L s / mu. If the
links connect n agents, s is at most n - 1 times the greatest distance over a link. Every agent tells all others the
greatest distance over its own links.
"""

from collections.abc import Sequence

from .members import READY, SURE
from .wire import Member


def distance_bound(present: Sequence[Member]) -> float:
    """Return a bound on |x_i - x*| for every agent, from what all tell; for dual methods.

    Examples
    --------
    >>> two = [Member(name, 1, 1, mu=1.0, L=2.0, apart=0.1) for name in "ab"]
    >>> distance_bound(two)
    0.2
    """
    spread = (len(present) - 1) * max(member.apart for member in present)
    return max(m.L for m in present) / min(m.mu for m in present) * spread


def agree(own: Member, present: Sequence[Member], distance: float, tol: float) -> bool:
    """Update this agent's level from a bound on every |x_i - x*|; return whether the agent may stop."""
    if own.level < SURE:
        before, own.level = own.level, READY if len(present) * distance**2 <= tol else 0
        if own.level and all(member.level >= READY for member in present):
            own.level = SURE
        own.beat += own.level != before  # others accept a changed entry only with a newer heartbeat
    return all(member.level >= SURE for member in present)
