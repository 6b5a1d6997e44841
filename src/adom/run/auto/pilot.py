"""The pilot of a run with `parameters="auto"`: it stops the compiled loop, lets the nodes look, and changes settings.

Decisions use only maxima, over all nodes, of numbers that each node observes itself. To agree on them, the nodes send
the largest numbers that they have heard with their next messages. One flood takes these to every node; a second one
lets every node know that all have them. So a block ends with the rounds of two floods, and these numbers are counted.
"""

from collections.abc import Callable
from math import ceil
from time import perf_counter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...algorithms import Constants, Method
from ...algorithms.base import Averaging, Turn
from ...dynamics.auto_state import AutoSettings
from ...networks import DirectedNetwork, LossyNetwork, Network
from ...problems.base import Problem
from ..driver import Chunk
from ..local.graph_layout import FOREVER, flood_estimate
from ..local.jitted import Carry, Session, place, register
from ..recorder import Plan

Array = np.ndarray
Greatest = Callable[[Array], Array]
SEED = 16


class RunPart(NamedTuple):
    """A run that a pilot steers, as one process sees it."""

    problem: Problem  # the nodes of this process
    network: Network | DirectedNetwork
    cls: type[Method]
    constants: Constants  # mu and L; of the network only lambda_max and the number of nodes
    first: int  # number of the first node of this process
    greatest: Greatest  # the elementwise maximum over all processes
    rules: AutoSettings


class Riding(Averaging):
    """The run's network; the first vectors of each round, or all, carry one more column, which is only averaged."""

    def __init__(self, gossip: Any, mixed: Any, *, on_all: bool = False) -> None:
        self._gossip, self.mixed, self._on_all, self.lambda_max = gossip, mixed, on_all, gossip.lambda_max

    @property
    def lossy(self) -> Any:
        """The network without the wrappers around it, if it loses messages."""
        return self._gossip.lossy

    def _loaded(self, vectors: Any) -> list[Any]:
        count = self.mixed.shape[1]
        if self._on_all and len(vectors) != count:
            raise ValueError(f"{len(vectors)} vectors in a round, not {count}")  # a user's own method, see `explained`
        loaded = [jnp.concatenate([v, self.mixed[:, i : i + 1]], axis=1) for i, v in enumerate(vectors[:count])]
        return [*loaded, *vectors[count:]]

    def _unload(self, results: Any) -> tuple[Any, Any]:
        """Return what the round gave for the vectors, and for the columns."""
        results, count = results if isinstance(results, tuple | list) else (results,), self.mixed.shape[1]
        columns = jnp.concatenate([r[:, -1:] for r in results[:count]], axis=1)
        vectors = (*(r[:, :-1] for r in results[:count]), *results[count:])
        return vectors[0] if len(vectors) == 1 else vectors, columns

    def __call__(self, *vectors: Any) -> Any:
        """Spend one round: return W(k) v for every vector."""
        products, columns = self._unload(self._gossip(*self._loaded(vectors)))
        self.mixed = self.mixed - columns / self.lambda_max
        return products

    def repeat(self, rounds: Any, turn: Turn, carried: Any) -> Any:
        """Return `carried` after `rounds` calls ``carried = turn(network, carried)``."""

        def riding(gossip: Any, both: Any) -> Any:
            inner = Riding(gossip, both[0], on_all=self._on_all)
            carried = turn(inner, both[1])
            return inner.mixed, carried

        self.mixed, carried = self._gossip.repeat(rounds, riding, (self.mixed, carried))
        return carried

    def push_pull(self, pulled: Any, pushed: Any) -> Any:
        """Spend one round on a directed graph; return R(k) pulled and C(k) pushed."""
        results, self.mixed = self._unload(self._gossip.push_pull(*self._loaded((pulled, pushed))))
        return results

    def push(self, *vectors: Any) -> Any:
        """Spend one round on a directed graph; return C(k) v for every vector."""
        results, self.mixed = self._unload(self._gossip.push(*self._loaded(vectors)))
        return results


class Pilot:
    """Steers a session."""

    numbers: int
    """How many numbers the nodes agree on."""

    def __init__(self, run: RunPart) -> None:
        self._problem, self._network, self._cls, self._constants, first, self._greatest, self._rules = run
        self._rows = slice(first, first + run.problem.nodes)
        self._random = np.random.default_rng(np.random.SeedSequence(SEED))
        self._deciding = False  # whether the nodes are agreeing on the numbers of a finished block
        self._epoch = 1  # the next epoch in which other nodes are present
        self._budget = FOREVER  # rounds that the run may take
        self.settings: list[dict[str, Any]] = []
        """One row for each decision: round, chi (None for plain descent), why."""
        register(run.cls)
        self.apart = 0 if run.network.connected else flood_estimate(run.network, 0)
        """Rounds in which all nodes hear of each other, where single rounds do not connect them; else 0."""

    @property
    def assumed(self) -> Method:
        """The method with the present parameters, without extra columns."""
        raise NotImplementedError

    @property
    def method(self) -> Method:
        """The method that the session runs with the present settings, extra columns included."""
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
        """Make about `pace` steps, but no further than the nodes' next look; if it is due, look or decide."""
        self._budget = plan.rounds
        pace = min(pace, max(1, self.steps))  # <= 0 if agreeing on the run's end took these rounds
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

    # Checkpoints

    @property
    def arrays(self) -> Any:
        """The pilot's arrays in a checkpoint: a tree of scalars and of arrays with one row per node."""
        return self._good.state, self._good.memory, self._good.x

    @property
    def facts(self) -> dict[str, Any]:
        """The pilot's plain data in a checkpoint, fit for JSON and the same in all processes."""
        return {"random": self._random.bit_generator.state, "deciding": self._deciding, "settings": self.settings}

    def recall(self, arrays: Any, facts: dict[str, Any]) -> None:
        """Resume from a checkpoint; the session has already restored its state and counters."""
        state, memory, x = arrays
        self._good = self.session.carry._replace(state=state, memory=memory, x=x)
        self._random.bit_generator.state = facts["random"]
        self._deciding = bool(facts["deciding"])
        self.settings[:] = facts["settings"]
        self.session.method = place(self.method, self.session.dtype)

    # Each subclass defines these

    def _begin(self) -> None:
        raise NotImplementedError

    def _look(self) -> None:
        raise NotImplementedError

    def _decide(self) -> None:
        raise NotImplementedError

    def _begin_anew(self) -> None:
        """Restart the search after nodes have left or joined."""
        raise NotImplementedError

    @property
    def _next_change(self) -> int:
        """The first round in which nodes leave or join that is still to be handled."""
        starts = self._network.loss.starts if isinstance(self._network, LossyNetwork) else np.zeros(1)
        return int(starts[self._epoch]) if self._epoch < len(starts) else FOREVER

    @property
    def _clock(self) -> int:
        return int(self.session.carry.clock)

    def _agreement(self) -> int:
        """Return how many rounds agreement takes, and count the numbers sent for it."""
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
        """Fill the averaged columns with new random numbers; return the first column."""
        columns = self._draw(self.session.carry.state.mixed.shape[1])
        self._keep(self.session.carry.state._replace(mixed=columns.astype(self.session.dtype)))
        return columns[:, :1]

    def _draw(self, columns: int) -> Array:
        """Draw random numbers for own nodes; they do not depend on how processes share the nodes."""
        drawn: Array = self._random.standard_normal((self._network.nodes, columns))[self._rows]
        return drawn

    def _keep(self, state: Any) -> None:
        self.session.carry = self.session.carry._replace(state=state)

    def _save_good(self) -> None:
        """Keep the present state as the last good one."""
        self._good = _copied(self.session.carry)

    def _go_back(self) -> None:
        """Return to the last good state, but keep the present counters and averaged columns."""
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
    """Return a copy of a carry, which steps of the session do not overwrite."""
    copy: Carry = jax.tree.map(jnp.copy, carry)
    return copy
