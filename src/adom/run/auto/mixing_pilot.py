"""The pilot for methods that average several rounds per gradient: it measures how fast averaging works.

Such a method uses chi only to choose the number of averaging rounds. Canaries cannot try several such numbers with the
same messages. Instead, one extra column is only averaged: its spread shrinks as fast as averaging works on the graphs
that the run has met.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ...algorithms import Gossip, Method, Oracle
from ...algorithms.base import Wrapped, halving, made
from ..constants import InWindows
from ..local.jitted import place, register
from .pilot import Pilot, Riding, RunPart

Array = Any


class MixingState(NamedTuple):
    """State of a run with a column that is only averaged."""

    inner: Any
    x: Array  # the run's last answer
    mixed: Array  # (rows, 1)
    moved: Array  # (rows,): the answer's longest move in one step since the last look


@dataclass(frozen=True)
class WithMixing(Wrapped):
    """A method, and a column that is averaged with its messages."""

    def init(self, zeros: Array, oracle: Oracle) -> MixingState:
        """Start the run."""
        return MixingState(self.inner.init(zeros, oracle), zeros, zeros[:, :1], zeros[:, 0])

    def step(self, state: MixingState, oracle: Oracle, gossip: Gossip) -> tuple[MixingState, Array]:
        """Make one step, and update the nodes' observations."""
        network: Any = Riding(gossip, state.mixed)
        inner, x = self.inner.step(state.inner, oracle, network)
        moved = jnp.maximum(state.moved, jnp.sqrt(((x - state.x) ** 2).sum(axis=1)))
        return MixingState(inner, x, network.mixed, moved), x


class MixingPilot(Pilot):
    """Steers a session by how fast averaging works."""

    numbers = 5  # extremes of the column at start and end of a block, the run's longest step

    def __init__(self, run: RunPart) -> None:
        super().__init__(run)
        self._assumed, self._before, self._caution = max(run.rules.bold, self.apart), 0.0, 1.0
        self._good_step, self._returned = np.inf, False  # the last good state's longest step; began the block there?
        self._windows = run.cls.windowed and self.apart > 0
        register(InWindows)
        self._span, self._seen = 0, [0.0, 0.0, 0.0]  # of the finished block: rounds; spreads, longest step

    @property
    def _chi(self) -> float:
        return self._assumed

    @property
    def assumed(self) -> Method:
        """The method with the present parameters."""
        constants = replace(self._constants, lambda_min_plus=self._constants.lambda_max / self._chi)
        if not self._windows:
            return made(self._cls, "unit", constants)
        easier, rounds = halving(constants)
        return InWindows(made(self._cls, "unit", easier), rounds)

    @property
    def method(self) -> Method:
        """The method that the session runs with the present settings, the averaged column included."""
        return WithMixing(self.assumed)

    @property
    def steps(self) -> int:
        """Steps until the nodes look again."""
        if self._deciding:
            rounds = max(1, int(self.rounds_of_step(self.session.iteration)))
            return -(-(self._stop - self._clock) // rounds)
        return self._stop - self.session.iteration

    @property
    def facts(self) -> dict[str, Any]:
        """The pilot's plain data in a checkpoint."""
        numbers = [self._assumed, self._before, self._caution, self._good_step, self._returned]
        return {
            **super().facts,
            "numbers": numbers,
            "windows": self._windows,
            "block": [self._started, self._stop, self._span, self._seen],
        }

    def recall(self, arrays: Any, facts: dict[str, Any]) -> None:
        """Resume from a checkpoint."""
        self._assumed, self._before, self._caution, self._good_step, self._returned = facts["numbers"]
        self._windows = bool(facts["windows"])
        self._started, self._stop, self._span, self._seen = facts["block"]
        super().recall(arrays, facts)

    _stop: int

    def _begin(self) -> None:
        self._stir()
        self._new_block()

    def _new_block(self) -> None:
        """Begin a block of at least two steps, long enough for the column to show its rate."""
        state: Any = self.session.carry.state
        self._keep(state._replace(moved=place(np.zeros(state.moved.shape), self.session.dtype)))
        self._seen = [self._spread(), 0.0, 0.0]
        begun, rounds, steps = self.session.iteration, 0, 1
        while steps < 2 or rounds < self._rules.stretch * self._chi:
            rounds, steps = rounds + int(self.rounds_of_step(begun + steps - 1)), steps + 1
        self._started, self._stop = self._clock, begun + steps

    def _spread(self) -> float:
        """Return the largest minus the smallest entry of the averaged column."""
        mixed = np.asarray(self.session.carry.state.mixed, dtype=float)
        return float(self._greatest(np.array([mixed.max(), -mixed.min()])).sum())

    def _look(self) -> None:
        moved = np.asarray(self.session.carry.state.moved, dtype=float).max()
        self._seen[1:] = [self._spread(), float(self._greatest(np.array([moved]))[0])]
        self._span = self._clock - self._started
        self._stop = self._clock + self._agreement()

    def _decide(self) -> None:
        rules, (first, last, step) = self._rules, self._seen
        dead, why = rules.averaged * float(np.finfo(self.session.dtype).eps), "as fast as averaging works"
        if last < first:
            measured = self._span / float(np.log(first / max(last, dead)))
            measured = min(measured, rules.most_more * self._assumed)
            if last <= dead and self._before:  # it was too fast to measure
                measured = min(measured, self._before)
        else:
            measured, why = 2 * self._assumed, "averaging has not begun to work"
        if self._returned:  # the last good state needs steps this long
            self._good_step = max(self._good_step, step)
        self._returned = not step <= rules.most_growth(self._constants.kappa) * self._good_step
        if self._returned:
            self._go_back()
            self._windows |= self._cls.windowed and self._caution > 1 and not self._network.fixed  # not the first time
            self._caution, why = self._caution * rules.ratio, "the run grew: back to the last good state"
        elif step < self._good_step:
            self._good_step = step
            self._save_good()
        self._assumed = max(1.0, rules.margin * self._caution * max(measured, self._before))
        self._before = measured
        self.session.method = place(self.method, self.session.dtype)
        if not last > rules.stirred:
            self._stir()
        self._new_block()
        self._tell(why)
