"""The pilot of a run with `parameters="auto"`: stops the compiled loop, lets the nodes look, and changes the settings.

All that a decision uses is the greatest of numbers that the nodes have seen themselves. They agree on it by repeating
the greatest they have heard of, in the messages of the rounds that follow: once to hear of all, and once more to know
that all have heard. A block therefore ends with twice the rounds of a flood, and the numbers sent are counted.
"""

from collections.abc import Callable
from math import ceil
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...algorithms import Constants, Method
from ...networks import DirectedNetwork, LossyNetwork, Network
from ...problems.base import Problem
from ..driver import Chunk
from ..floods import flood_estimate
from ..local.graph_layout import FOREVER
from ..local.jitted import Carry, Session
from ..local.placing import place, register
from ..recorder import Plan

Array = np.ndarray
Greatest = Callable[[Array], Array]
SEED = 16


class Steered(NamedTuple):
    """A run that a pilot steers, as one process sees it."""

    problem: Problem  # the nodes of this process
    network: Network | DirectedNetwork
    cls: type[Method]
    constants: Constants  # of the problem; of the network, lambda_max alone
    first: int  # number of the first node of this process
    greatest: Greatest  # returns the greatest of all processes' values, number by number


class Pilot:
    """Steers a session."""

    numbers: int
    """Numbers that the nodes agree on."""

    def __init__(self, run: Steered) -> None:
        self._problem, self._network, self._cls, self._constants, first, self._greatest = run
        self._rows = slice(first, first + run.problem.nodes)
        self._random = np.random.default_rng(np.random.SeedSequence(SEED))
        self._deciding = False  # whether a block is over and its decision under way
        self._epoch = 1  # the next stretch of rounds with other nodes
        self._budget = FOREVER  # rounds that the run may take
        self.settings: list[dict[str, Any]] = []
        """One row for each decision: round, chi (None for plain descent), why."""
        register(run.cls)

    @property
    def assumed(self) -> Method:
        """The method with the present parameters, and nothing that rides along."""
        raise NotImplementedError

    @property
    def method(self) -> Method:
        """The method that a session runs, for the present settings."""
        raise NotImplementedError

    def rounds_of_step(self, k: Any) -> Any:
        """Return how many rounds step k takes, with the present parameters."""
        return self.assumed.rounds_of_step(k)

    def board(self, session: Session) -> None:
        """Take over a session that is about to begin."""
        self.session = session
        self._good = _copied(session.carry)
        self._begin()
        self._tell("the start: nothing is known yet")

    def fits(self, plan: Plan) -> bool:
        """Return whether the budget may cover one more step."""
        return self.session.fits(plan)

    @property
    def steps(self) -> int:
        """Steps until the nodes look again."""
        raise NotImplementedError

    def advance(self, plan: Plan, pace: int) -> Chunk:
        """Make about `pace` steps, fewer where the nodes have to look; then let them, and decide."""
        self._budget = plan.rounds
        pace = min(pace, max(1, self.steps))  # agreeing on the end may have taken the rounds until they look
        chunk = self.session.advance(plan, pace)
        if self.steps <= 0:
            began = perf_counter()
            if self._clock >= self._next_change:
                self._epoch += 1
                self._deciding = False
                self._begin_anew()
            elif self._deciding:
                self._deciding = False
                self._decide()
            else:
                self._look()
            chunk.seconds += perf_counter() - began
        return chunk

    # What a checkpoint holds

    @property
    def arrays(self) -> Any:
        """What to go on from besides `facts`: a tree of arrays with one row a node, or none."""
        return self._good.state, self._good.memory, self._good.x

    @property
    def facts(self) -> dict[str, Any]:
        """What to go on from besides `arrays`, as data that JSON can hold; the same in all processes."""
        return {"random": self._random.bit_generator.state, "deciding": self._deciding, "settings": self.settings}

    def recall(self, arrays: Any, facts: dict[str, Any]) -> None:
        """Go on from a checkpoint, whose state and counters the session has already."""
        state, memory, x = arrays
        self._good = self.session.carry._replace(state=state, memory=memory, x=x)
        self._random.bit_generator.state = facts["random"]
        self._deciding = bool(facts["deciding"])
        self.settings[:] = facts["settings"]
        self.session.method = place(self.method, self.session.dtype)

    # What each pilot does in its own way

    def _begin(self) -> None:
        raise NotImplementedError

    def _look(self) -> None:
        raise NotImplementedError

    def _decide(self) -> None:
        raise NotImplementedError

    def _begin_anew(self) -> None:
        """Forget what the run has been like, now that nodes have left or joined."""
        raise NotImplementedError

    @property
    def _next_change(self) -> int:
        """The next round in which nodes leave or join that has not been seen to yet."""
        starts = self._network.loss.starts if isinstance(self._network, LossyNetwork) else np.zeros(1)
        return int(starts[self._epoch]) if self._epoch < len(starts) else FOREVER

    @property
    def _clock(self) -> int:
        return int(self.session.carry.clock)

    def _agreement(self) -> int:
        """Return the rounds that it takes to agree, and count what is sent meanwhile."""
        rounds, graphs = 2 * flood_estimate(self._network, self._clock), self.session.graphs
        if isinstance(self._network, LossyNetwork):
            rounds = ceil(rounds / (1 - self._network.loss.one_way))
        order, links = np.asarray(graphs.order), np.asarray(graphs.links)
        if graphs.loss is not None and graphs.loss.messages is not None:
            links = np.asarray(graphs.loss.messages[graphs.loss.epoch(self.session.carry.clock)])
        messages = links[order[(self._clock - int(graphs.first) + np.arange(rounds)) % len(order)]].sum()
        carry = self.session.carry
        sent = np.int64(int(carry.floats) + int(messages) * self.numbers)
        self.session.carry = carry._replace(floats=sent)
        self._deciding = True
        return rounds

    def _stir(self) -> Array:
        """Start new columns that are only averaged; return the first."""
        columns = self._draw(self.session.carry.state.mixed.shape[1])
        self._keep(self.session.carry.state._replace(mixed=columns.astype(self.session.dtype)))
        return columns[:, :1]

    def _draw(self, columns: int) -> Array:
        """Draw random numbers, the same for a node whoever has it."""
        drawn: Array = self._random.standard_normal((self._network.nodes, columns))[self._rows]
        return drawn

    def _keep(self, state: Any) -> None:
        self.session.carry = self.session.carry._replace(state=state)

    def _save_good(self) -> None:
        """Keep the present state as the last good one."""
        self._good = _copied(self.session.carry)

    def _go_back(self) -> None:
        """Go on from the last good state, with the counters and the averaged columns of the present."""
        kept: Carry = _copied(self._good)
        now = self.session.carry
        memory = kept.memory._replace(gradients=now.memory.gradients)
        state = kept.state._replace(mixed=now.state.mixed)
        counters = {"iteration": now.iteration, "clock": now.clock, "floats": now.floats}
        self.session.carry = kept._replace(state=state, memory=memory, **counters)

    def _tell(self, why: str) -> None:
        chi = round(self._chi, 6) if np.isfinite(self._chi) else None
        self.settings.append({"round": self._clock, "chi": chi, "why": why})

    @property
    def _chi(self) -> float:
        """The chi assumed at present; infinite for plain descent."""
        raise NotImplementedError


@jax.jit
def _copied(carry: Carry) -> Carry:
    """Return a carry that no step of the session writes into."""
    copy: Carry = jax.tree.map(jnp.copy, carry)
    return copy
