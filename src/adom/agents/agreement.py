"""When to stop: the tolerance is met, all know it, and all know that all know it."""

from collections.abc import Sequence

from .members import READY, SURE
from .wire import Member


def agree(own: Member, present: Sequence[Member], distance: float, tol: float) -> bool:
    """Update this agent's level from a bound on every |x_i - x*|; return whether the agent may stop."""
    if own.level < SURE:
        before, own.level = own.level, READY if len(present) * distance**2 <= tol else 0
        if own.level and all(member.level >= READY for member in present):
            own.level = SURE
        own.beat += own.level != before  # others accept a changed entry only with a newer heartbeat
    return all(member.level >= SURE for member in present)
