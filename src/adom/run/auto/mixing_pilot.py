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
from ...algorithms.base import halving, made
from ...dynamics.policy import RATIO, most_growth
from ...dynamics.wrapping import Wrapped
from ..contract import Averaging, Turn
from ..local.placing import place, register
from ..windows import InWindows
from .pilot import Pilot, Steered

Array = Any
MARGIN = 1.2
"""Ratio of the assumed chi to the measured one."""
START = 1.5
"""The chi assumed at first, a bold one."""
STRETCH = 5.0
"""Rounds of a measurement per unit of the assumed chi: enough to leave only the slowest part."""
DEAD = 100.0
"""Spread of the averaged column, in units of rounding, that is only rounding."""
MOST_MORE = 4.0
"""Limit on the measured chi, relative to the assumed one: a block is too short to show more."""
SMALL = 1e-3
"""Spread, from about 1 at the start, at which a new averaged column replaces the old one."""


class _Riding(Averaging):
    """The run's network with one more column in its messages."""

    def __init__(self, gossip: Any, mixed: Array) -> None:
        self._gossip, self.mixed, self.lambda_max = gossip, mixed, gossip.lambda_max

    def __call__(self, *vectors: Array) -> Any:
        wide, *others = vectors
        products = self._gossip(jnp.concatenate([wide, self.mixed], axis=1), *others)
        first, *rest = products if others else (products,)
        self.mixed = self.mixed - first[:, -1:] / self.lambda_max
        return (first[:, :-1], *rest) if others else first[:, :-1]

    def repeat(self, rounds: Any, turn: Turn, carried: Any) -> Any:
        def riding(gossip: Any, both: Any) -> Any:
            inner = _Riding(gossip, both[0])
            carried = turn(inner, both[1])
            return inner.mixed, carried

        self.mixed, carried = self._gossip.repeat(rounds, riding, (self.mixed, carried))
        return carried


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
        network: Any = _Riding(gossip, state.mixed)
        inner, x = self.inner.step(state.inner, oracle, network)
        moved = jnp.maximum(state.moved, jnp.sqrt(((x - state.x) ** 2).sum(axis=1)))
        return MixingState(inner, x, network.mixed, moved), x


class MixingPilot(Pilot):
    """Steers a session by how fast averaging works."""

    numbers = 5  # extremes of the column at start and end of a block, the run's longest step

    def __init__(self, run: Steered) -> None:
        super().__init__(run)
        self._assumed, self._before, self._caution = max(START, self.apart), 0.0, 1.0
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
        while steps < 2 or rounds < STRETCH * self._chi:
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
        first, last, step = self._seen
        dead, why = DEAD * float(np.finfo(self.session.dtype).eps), "as fast as averaging works"
        if last < first:
            measured = self._span / float(np.log(first / max(last, dead)))
            measured = min(measured, MOST_MORE * self._assumed)
            if last <= dead and self._before:  # it was too fast to measure
                measured = min(measured, self._before)
        else:
            measured, why = 2 * self._assumed, "averaging has not begun to work"
        if self._returned:  # the last good state needs steps this long
            self._good_step = max(self._good_step, step)
        self._returned = not step <= most_growth(self._constants.kappa) * self._good_step
        if self._returned:
            self._go_back()
            self._windows |= self._cls.windowed and self._caution > 1 and not self._network.fixed  # not the first time
            self._caution, why = self._caution * RATIO, "the run grew: back to the last good state"
        elif step < self._good_step:
            self._good_step = step
            self._save_good()
        self._assumed = max(1.0, MARGIN * self._caution * max(measured, self._before))
        self._before = measured
        self.session.method = place(self.method, self.session.dtype)
        if not last > SMALL:
            self._stir()
        self._new_block()
        self._tell(why)
