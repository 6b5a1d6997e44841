"""The pilot of a run with `parameters="auto"`: stops the compiled loop, lets the nodes look, and changes the settings.

All that a decision uses is the greatest of numbers that the nodes have seen themselves. They agree on it by repeating
the greatest they have heard of, in the messages of the rounds that follow: once to hear of all, and once more to know
that all have heard. A block therefore ends with twice the rounds of a flood, and the numbers sent are counted.
"""

from collections.abc import Callable
from dataclasses import replace
from math import ceil
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...algorithms import Constants, Method
from ...networks import DirectedNetwork, LossyNetwork, Network
from ...problems.base import Problem
from ...problems.oracles import INVERSE_DIM, INVERSE_SIZE
from ..constants import check_adapts, unspectral
from ..driver import Chunk
from ..floods import flood_estimate
from ..local.graph_layout import FOREVER
from ..local.jitted import Carry, Session, place, register
from ..lossy import replanted, with_ledgers
from ..recorder import Plan
from ..user_code import bare
from ..windows import plain
from .canaries import WithCanaries, planted
from .policy import CAREFUL, RATIO, STIFFNESS, Policy, curvatures_between

Array = np.ndarray
NOISE = 0.03
"""Share of random numbers in the seeds of new canaries."""
MIXED = 1e-6
"""Change of an averaged column in a block below which it starts afresh."""
REST = 100.0
"""Steps of a run that has come to rest, relative to its rows, in units of rounding."""
SEED = 16


def pilot_for(
    problem: Problem,
    network: Network | DirectedNetwork,
    cls: type[Method],
    first: int = 0,
    greatest: Callable[[Array], Array] = np.asarray,
) -> "Pilot":
    """Return a pilot for a method on some nodes; refuse a method that canaries cannot help."""
    constants = replace(unspectral(problem, network), nodes=network.nodes)
    check_adapts(cls, constants)
    return Pilot(problem, network, cls, constants, first, greatest)


class Pilot:
    """Steers a session by canaries.

    Parameters
    ----------
    problem : Problem
        The nodes of this process.
    network : Network
    cls : type of Method
    constants : Constants
        Of the problem; those of the network are not used, its lambda_max aside.
    first : int
        Number of the first node of this process.
    greatest : callable
        Returns the greatest of all processes' values, number by number.
    """

    def __init__(
        self,
        problem: Problem,
        network: Network | DirectedNetwork,
        cls: type[Method],
        constants: Constants,
        first: int,
        greatest: Callable[[Array], Array],
    ) -> None:
        self._problem, self._network, self._cls, self._greatest = problem, network, cls, greatest
        self._rows = slice(first, first + problem.nodes)
        self._policy = Policy(cls, constants)
        self._random = np.random.default_rng(np.random.SeedSequence(SEED))
        self._curvature, _ = self._curvatures(np.zeros((problem.nodes, problem.dim)))
        self._deciding = False  # whether a block is over and its decision under way
        self._waiting = False  # carefully, since that takes longer than the block has
        self._epoch = 1  # the next stretch of rounds with other nodes
        self.settings: list[dict[str, Any]] = []
        """One row for each decision: round, chi, why."""
        register(cls)

    @property
    def assumed(self) -> Method:
        """The method with the present parameters, without canaries."""
        return self._policy.method(self._policy.power)

    @property
    def method(self) -> Method:
        """The method that a session runs, for the present settings."""
        policy, dim = self._policy, self._problem.dim
        each = [policy.method(power) for power in policy.window]
        run = (policy.method(CAREFUL) if self._waiting else self.assumed).parameters()
        others = [m.parameters() for m in each]
        columns = {
            name: np.concatenate([np.full(dim, run[name]), np.repeat([v[name] for v in others], len(STIFFNESS))])
            for name in run
        }
        inner = with_ledgers(bare(self._cls, columns.items()), self._network, dim, self._rows.start, self._rows.stop)
        values = [("inner", inner), ("curvature", self._curvature), ("directed", self._cls.directed)]
        return bare(WithCanaries, values)

    def board(self, session: Session) -> None:
        """Take over a session that is about to begin."""
        self.session = session
        self._good = jax.tree.map(jnp.copy, session.carry)
        self._stop = self._clock + self._policy.quarter
        self._mixed = self._stir()
        seeds = self._draw(len(STIFFNESS) * len(self._policy.window))
        self._plant(seeds, np.zeros_like(seeds[:, :1]))
        self._tell("the start: nothing is known yet")

    @property
    def steps(self) -> int:
        """Steps until the nodes look again."""
        return min(self._stop, self._next_change) - self._clock

    @property
    def _next_change(self) -> int:
        """The next round in which nodes leave or join that has not been seen to yet."""
        starts = self._network.loss.starts if isinstance(self._network, LossyNetwork) else np.zeros(1)
        return int(starts[self._epoch]) if self._epoch < len(starts) else FOREVER

    def fits(self, plan: Plan) -> bool:
        """Return whether the budget may cover one more step."""
        return self.session.fits(plan)

    def advance(self, plan: Plan, pace: int) -> Chunk:
        """Make about `pace` steps, fewer where the nodes have to look; then let them, and decide."""
        pace = min(pace, max(1, self.steps))  # agreeing on the end may have taken the rounds until they look
        chunk = self.session.advance(plan, pace)
        if self.steps <= 0:
            began = perf_counter()
            self._turn()
            chunk.seconds += perf_counter() - began
        return chunk

    def _turn(self) -> None:
        if self._clock >= self._next_change:
            self._begin_anew()
        elif self._deciding:
            self._decide()
        elif self._policy.see(*self._look()):
            self._deciding = True
            self._ends = self._curvatures(np.asarray(self.session.carry.x))
            rounds = self._agreement()
            self._stop = self._clock + rounds
            if rounds > self._policy.block.rounds and self._policy.power < CAREFUL:
                self._waiting = True
                self.session.method = place(self.method, self.session.dtype)
                self._tell("careful: the nodes take longer to agree than they have looked", RATIO**CAREFUL)
        else:
            self._stop = self._clock + self._policy.quarter

    # What the nodes see

    @property
    def _clock(self) -> int:
        return int(self.session.carry.clock)

    def _look(self) -> tuple[Array, float, bool]:
        """Return each canary's greatest |answer|, the run's longest step lately, and whether it is at rest."""
        state: Any = self.session.carry.state
        run = [float(np.asarray(state.moved).max()), float(np.abs(np.asarray(state.x)).max())]
        own = np.append(np.asarray(state.greatest).max(axis=0), run)
        self._keep(state._replace(greatest=jnp.zeros_like(state.greatest), moved=jnp.zeros_like(state.moved)))
        all_nodes = self._greatest(own)
        step, size = (float(value) for value in all_nodes[-2:])
        return all_nodes[:-2], step, step <= REST * float(np.finfo(self.session.dtype).eps) * size

    def _curvatures(self, x: Array) -> tuple[Array, tuple[float, float]]:
        """Return the curvatures of every node's canaries, and the least and the greatest curvature of any node."""
        problem, count = self._problem, len(self._policy.window)
        lowest, highest = np.asarray(problem.mu_nodes), np.asarray(problem.L_nodes)
        if problem.dim <= INVERSE_DIM and problem.nodes * problem.dim**2 <= INVERSE_SIZE and np.isfinite(x).all():
            with jax.enable_x64(True):
                values = np.linalg.eigvalsh(np.asarray(_hessians(problem, x)))
            lowest, highest = (np.clip(values[:, end], problem.mu, problem.L) for end in (0, -1))
        ends = self._greatest(np.array([-lowest.min(), highest.max()]))
        dual = self._cls.oracle == "dual"
        return np.tile(curvatures_between(lowest, highest, dual), (1, count)), (-float(ends[0]), float(ends[1]))

    def _agreement(self) -> int:
        """Return the rounds that it takes to agree, and count what is sent meanwhile."""
        rounds, graphs = 2 * flood_estimate(self._network, self._clock), self.session.graphs
        if isinstance(self._network, LossyNetwork):
            rounds = ceil(rounds / (1 - self._network.loss.one_way))
        order, links = np.asarray(graphs.order), np.asarray(graphs.links)
        numbers = links[order[(self._clock - int(graphs.first) + np.arange(rounds)) % len(order)]].sum()
        width = self._curvature.shape[1] + 4  # the canaries' answers, the run's step and size, two curvatures
        carry = self.session.carry
        self.session.carry = carry._replace(floats=carry.floats + int(numbers) * width)
        return rounds

    # What they do

    def _decide(self) -> None:
        session, policy = self.session, self._policy
        window, tops = policy.window, policy.block.tops[-1]
        decision = policy.decide(self._clock, *self._ends[1])
        seeds, slow = self._seeds(window, tops)
        if decision.back:
            session.carry = _resumed(self._good, session.carry)
        elif decision.good:
            self._good = jax.tree.map(jnp.copy, session.carry)
        self._curvature = self._ends[0]
        self._resume(seeds, slow)
        self._tell(decision.why)

    def _resume(self, seeds: Array, slow: Array) -> None:
        """Go on with the present settings and new canaries."""
        self._deciding = self._waiting = False
        self.session.method = place(self.method, self.session.dtype)
        self._plant(seeds, slow)
        self._look()
        self._stop = self._clock + self._policy.quarter

    def _begin_anew(self) -> None:
        """Forget what the run has been like, now that nodes have left or joined."""
        self._epoch += 1
        self._policy.forget(self._clock)
        self._good = jax.tree.map(jnp.copy, self.session.carry)
        seeds = self._draw(len(STIFFNESS) * len(self._policy.window))
        self._resume(seeds, np.zeros_like(seeds[:, :1]))
        self._tell("nodes have left or joined")

    def _seeds(self, window: list[int], tops: Array) -> tuple[Array, Array]:
        """Return where the next canaries start: where the last ones ended, with noise; and what mixes most slowly."""
        state: Any = self.session.carry.state
        count = len(STIFFNESS)
        nearest = [int(np.argmin(np.abs(np.array(window) - power))) for power in self._policy.window]
        take = np.concatenate([count * i + np.arange(count) for i in nearest])
        noise = self._draw(len(take))
        ended = np.asarray(state.answers, dtype=float)[:, take] / np.maximum(tops.reshape(-1)[take], 1e-290)
        slow = self._mixed - np.asarray(state.mixed, dtype=float)[:, :1]
        most = float(self._greatest(np.array([np.abs(slow).max()]))[0])
        seeds: Array = np.nan_to_num(ended, nan=0.0, posinf=0.0, neginf=0.0) + NOISE * noise
        self._mixed = np.asarray(state.mixed, dtype=float)[:, :1] if most > MIXED else self._stir()
        if isinstance(self._network, LossyNetwork):
            slow = slow * self._policy.chi  # for W(k) is to shrink it again
        return seeds, slow / most if most > 0 and np.isfinite(most) else np.zeros_like(slow)

    def _plant(self, seeds: Array, slow: Array) -> None:
        """Put new canaries in the place of the old ones."""
        session, dim = self.session, self._problem.dim
        method: Any = session.method
        narrow = bare(self._cls, [(name, value[dim:]) for name, value in plain(method).parameters().items()])
        session.reach()
        starts = place((seeds, slow), session.dtype)
        plant = planted(narrow, method.curvature, *starts, session.graphs, session.carry.clock)
        fresh, at_ends = jax.block_until_ready(plant)  # before this rank sends anything else
        state: Any = session.carry.state
        self._keep(state._replace(inner=replanted(method.inner, state.inner, fresh, at_ends)))

    def _stir(self) -> Array:
        """Start new columns that are only averaged; return the first."""
        state: Any = self.session.carry.state
        columns = self._draw(state.mixed.shape[1])
        self._keep(state._replace(mixed=place(columns, self.session.dtype)))
        return columns[:, :1]

    def _draw(self, columns: int) -> Array:
        """Draw random numbers, the same for a node whoever has it."""
        drawn: Array = self._random.standard_normal((self._network.nodes, columns))[self._rows]
        return drawn

    def _keep(self, state: Any) -> None:
        self.session.carry = self.session.carry._replace(state=state)

    def _tell(self, why: str, chi: float | None = None) -> None:
        self.settings.append({"round": self._clock, "chi": round(chi or self._policy.chi, 6), "why": why})


@jax.jit
def _hessians(problem: Problem, x: Any) -> Any:
    return problem.hessian_rows(x)


def _resumed(good: Carry, now: Carry) -> Carry:
    """Return the last good state, with the counters and the averaged columns of the present."""
    kept: Carry = jax.tree.map(jnp.copy, good)
    memory = kept.memory._replace(gradients=now.memory.gradients)
    state = kept.state._replace(mixed=now.state.mixed)
    return kept._replace(state=state, memory=memory, iteration=now.iteration, clock=now.clock, floats=now.floats)
