"""The two pilots of `parameters="auto"`, and what a run runs: the method, its parameters and its pilot.

The first is for methods whose steps are single rounds: canary columns show which chi to assume.
Canaries are scalar problems that run beside the real one, each with its own assumed chi. A step is arithmetic on rows,
so the rows of a run can carry extra columns. A canary is such a column: the same method, with the parameters of another
chi, on h_i x^2 / 2 at node i, whose solution is 0. On quadratics a method is linear, so a canary shrinks as fast as the
run would converge with that chi, on the graphs met so far. Every node sees its own entries. Hyper-parameters become
arrays of one value per column; the algorithm files need no change.

The second is for methods that average several rounds per gradient: it measures how fast averaging works.
Such a method uses chi only to choose the number of averaging rounds. Canaries cannot try several such numbers with the
same messages. Instead, one extra column is only averaged: its spread shrinks as fast as averaging works on the graphs
that the run has met.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...algorithms import Constants, Gossip, Method, Oracle
from ...algorithms.base import Wrapped, bare, halving, made, plain
from ...dynamics.auto_state import SETTINGS, AutoSettings
from ...dynamics.policy import Policy, Scalars, WideOracle
from ...errors import InputError
from ...networks import DirectedNetwork, LossyNetwork, Network
from ...problems.base import Problem
from ...problems.oracles import held
from ...util.programs import compiled, forget_many
from ..constants import InWindows, make_method, unspectral
from ..links import replanted, rested, rule_on, serving, with_ledgers
from ..local.gossip import Graphs, network_of
from ..local.jitted import place, register
from ..request import AUTO, method_type
from .pilot import Greatest, Pilot, Riding, RunPart

Array = Any
MIXED = 1e-6
"""An averaged column that changes less than this in a block restarts from random numbers."""


class CanaryState(NamedTuple):
    """State of a run with canaries."""

    inner: Any  # the method's own, canaries in the last columns
    x: Array  # the run's last answer
    answers: Array  # the canaries'
    mixed: Array  # columns that are only averaged
    greatest: Array  # (rows, canaries): the largest |answer| since the last look
    moved: Array  # (rows,): the answer's longest move in one step since the last look


@dataclass(frozen=True)
class WithCanaries(Wrapped):
    """A method on the run's columns and the canaries', each with hyper-parameters of its own.

    Parameters
    ----------
    inner : Method
        Its hyper-parameters are arrays, one value a column.
    curvature : (rows, canaries) array
    """

    curvature: Any

    def init(self, zeros: Array, oracle: Oracle) -> CanaryState:
        """Start the run; the canaries are planted afterwards."""
        empty = jnp.zeros_like(self.curvature, dtype=zeros.dtype)
        state = self.inner.init(jnp.concatenate([zeros, empty], axis=1), WideOracle(oracle, self.curvature))
        mixed = jnp.zeros((zeros.shape[0], plain(self.inner).vectors_per_round), zeros.dtype)
        return CanaryState(state, zeros, empty, mixed, empty, zeros[:, 0])

    def step(self, state: CanaryState, oracle: Oracle, gossip: Gossip) -> tuple[CanaryState, Array]:
        """Make one step of all columns, and update the nodes' observations."""
        count, network = self.curvature.shape[-1], Riding(gossip, state.mixed, on_all=True)
        inner, wide = self.inner.step(state.inner, WideOracle(oracle, self.curvature), network)
        x, answers = wide[:, :-count], wide[:, -count:]
        greatest = jnp.maximum(state.greatest, jnp.abs(answers))
        moved = jnp.maximum(state.moved, jnp.sqrt(((x - state.x) ** 2).sum(axis=1)))
        return CanaryState(inner, x, answers, network.mixed, greatest, moved), x


@cache
def planting() -> Any:
    """Return `planted`, compiled."""
    return compiled(planted, quick=True)


def planted(method: Any, state: CanaryState, seeds: Array, slow: Array, graphs: Graphs, clock: Array) -> Any:
    """Return the state with new canaries, started from W(k) `seeds` + `slow`; the rows of `slow` sum to zero already.

    The rows of some methods' states must sum to zero. Those of W(k) v do for any v; the run's messages of one round
    compute them. Canaries without a mean miss nothing: how it moves does not depend on the network. Directed networks
    have no W, so their canaries start from seeds + slow. Where messages are lost, the rows sum to zero once the ledgers
    agree, so the ends of links get entries for the new states too.
    """
    whole, oracle = plain(method.inner), Scalars(method.curvature)
    columns = ((name, value[-seeds.shape[1] :]) for name, value in whole.parameters().items())
    canaries: Method = bare(type(whole), columns)
    if graphs.W is None:
        return replanted(method.inner, state.inner, canaries.init(seeds + slow, oracle), None)
    network: Any = network_of(graphs, clock, jnp.zeros((), jnp.int64))
    if graphs.loss is None:
        return replanted(method.inner, state.inner, canaries.init(network(seeds) + slow, oracle), None)
    fresh = canaries.init(network(seeds + slow), oracle)  # here the rows of `slow` need not sum to zero
    ends = network.exchanges[0][:, :, 0].reshape(-1, seeds.shape[1])
    return replanted(method.inner, state.inner, fresh, canaries.init(ends, Scalars(jnp.ones_like(ends))))


class CanaryPilot(Pilot):
    """Steers a session by its canaries."""

    def __init__(self, run: RunPart) -> None:
        super().__init__(run)
        self._policy = Policy(run.cls, run.constants, run.cls.plain, self.apart, run.rules)
        self._ends = self._curvatures(np.zeros((run.problem.nodes, run.problem.dim)))
        self._curvature = self._ends[0]
        # One answer per canary; the run's step and size, the extremes of an averaged column, two curvatures.
        self.numbers = self._curvature.shape[1] + 6

    @property
    def assumed(self) -> Method:
        """The method with the present parameters, without canaries."""
        return self._policy.method(self._policy.assumed)

    @property
    def _chi(self) -> float:
        return self._policy.chi

    @property
    def method(self) -> Method:
        """The method that the session runs with the present settings, canaries included."""
        dim = self._problem.dim
        columns = self._policy.columns(dim, self._policy.assumed)
        inner = with_ledgers(columns, self._network, dim, self._rows.start, self._rows.stop)
        return WithCanaries(inner, self._curvature)

    @property
    def steps(self) -> int:
        """Steps until the nodes look again."""
        return min(self._stop, self._next_change) - self._clock

    @property
    def arrays(self) -> Any:
        """The pilot's arrays in a checkpoint."""
        rows = (self._mixed, self._curvature, self._ends[0])
        return super().arrays, tuple(jnp.asarray(part) for part in rows)

    @property
    def facts(self) -> dict[str, Any]:
        """The pilot's plain data in a checkpoint."""
        more = {"stop": self._stop, "quarter": self._quarter_end, "ends": self._ends[1]}
        return {**super().facts, **more, "policy": self._policy.facts}

    def recall(self, arrays: Any, facts: dict[str, Any]) -> None:
        """Resume from a checkpoint."""
        run, rows = arrays
        self._mixed, self._curvature, ends = (np.asarray(part, dtype=float) for part in rows)
        self._stop, self._quarter_end = int(facts["stop"]), int(facts["quarter"])
        self._ends = ends, (float(facts["ends"][0]), float(facts["ends"][1]))
        self._policy.recall(facts["policy"])
        super().recall(run, facts)

    def _begin(self) -> None:
        self._new_quarter()
        self._mixed = self._stir()
        seeds = self._draw(self._policy.canaries)
        self._plant(seeds, np.zeros_like(seeds[:, :1]))

    def _new_quarter(self) -> None:
        self._quarter_end = self._clock + self._policy.quarter
        self._stop = self._clock + self._policy.glance

    def _look(self) -> None:
        """Evaluate a quarter of a block, or a glance within it; at the block's end, start the nodes' agreement."""
        if self._clock < self._quarter_end:
            moved = np.asarray(self.session.carry.state.moved).max()
            if not self._policy.wild(float(self._greatest(np.array([moved]))[0])):
                self._stop = min(self._clock + self._policy.glance, self._quarter_end)
                return
        if not self._policy.see(*self._seen()):
            self._new_quarter()
            return
        self._ends = self._curvatures(np.asarray(self.session.carry.x))
        rounds = self._agreement()
        self._stop = self._clock + rounds
        if self._policy.state.grown:  # at once, lest the budget end in a bad state; after the agreement once more
            self._go_back()
        if why := self._policy.wait(rounds):
            self.session.method = place(self.method, self.session.dtype)
            self._tell(why)

    def _seen(self) -> tuple[Array, float, bool, bool]:
        """Collect what the nodes saw since the last look, and reset it.

        Return each canary's largest |answer|, the run's longest step, whether it rests, and if rounds average fully.
        """
        state: Any = self.session.carry.state
        averaged, eps = np.asarray(state.mixed)[:, 0], float(np.finfo(self.session.dtype).eps)
        others = (averaged, -averaged, np.asarray(state.moved), np.abs(np.asarray(state.x)))
        own = np.append(np.asarray(state.greatest).max(axis=0), [part.max() for part in others])
        greatest, moved = (np.zeros(part.shape, self.session.dtype) for part in (state.greatest, state.moved))
        self._keep(state._replace(greatest=greatest, moved=moved))
        tops, (highest, lowest, step, size) = np.split(self._greatest(own), [-len(others)])
        return (
            tops,
            float(step),
            self._policy.rests(step, size, eps),
            bool(highest + lowest <= self._policy.rules.fully * eps),
        )

    def _curvatures(self, x: Array) -> tuple[Array, tuple[float, float]]:
        """Return the curvatures of every node's canaries, and the least and the greatest curvature of any node."""
        problem = self._problem
        lowest, highest = np.asarray(problem.mu_nodes), np.asarray(problem.L_nodes)
        if (
            problem.dim <= self._policy.rules.eigen_dim
            and held(self._network.nodes, problem.dim)
            and np.isfinite(x).all()
        ):
            values = np.linalg.eigvalsh(problem.hessians_at(x))
            lowest, highest = (np.clip(values[:, end], problem.mu, problem.L) for end in (0, -1))
        ends = self._greatest(np.array([-lowest.min(), highest.max()]))
        return self._policy.curvatures(lowest, highest), (-float(ends[0]), float(ends[1]))

    def _decide(self) -> None:
        policy = self._policy
        window, tops = policy.state.window, policy.state.block.tops[-1]
        decision = policy.decide(self._clock, *self._ends[1], left=self._budget - self._clock)
        seeds, slow = self._seeds(window, tops)
        if decision.back:
            self._go_back()
        elif decision.good:
            self._save_good()
        if self._cls.plain and decision.rest:
            state: Any = self.session.carry.state
            method: Any = self.session.method
            inner = jax.tree.map(np.asarray, state.inner) if self.session.on_cpu else state.inner  # NumPy: no program
            self._keep(state._replace(inner=rested(method.inner, inner)))
        self._curvature = self._ends[0]
        self._go_on(seeds, slow)
        self._tell(decision.why)

    def _go_on(self, seeds: Array, slow: Array) -> None:
        """Continue with the present settings and new canaries."""
        self.session.method = place(self.method, self.session.dtype)
        self._plant(seeds, slow)
        self._seen()
        self._new_quarter()

    def _begin_anew(self) -> None:
        self._policy.forget(self._clock)
        self._save_good()
        seeds = self._draw(self._policy.canaries)
        self._go_on(seeds, np.zeros_like(seeds[:, :1]))
        self._tell("nodes have left or joined")

    def _seeds(self, window: list[int], tops: Array) -> tuple[Array, Array]:
        """Return the next canaries' seeds (last answers plus noise) and the slowest part of an averaged column."""
        state: Any = self.session.carry.state
        policy, count = self._policy, len(self._policy.rules.stiffness)
        nearest = [int(np.argmin(np.abs(np.array(window) - power))) for power in policy.state.window]
        take = np.concatenate([count * i + np.arange(count) for i in nearest])
        noise = self._draw(len(take))
        ended = np.asarray(state.answers, dtype=float)[:, take] / np.maximum(tops.reshape(-1)[take], 1e-290)
        slow = self._mixed - np.asarray(state.mixed, dtype=float)[:, :1]
        most = float(self._greatest(np.array([np.abs(slow).max()]))[0])
        seeds: Array = np.nan_to_num(ended, nan=0.0, posinf=0.0, neginf=0.0) + policy.rules.noise * noise
        self._mixed = np.asarray(state.mixed, dtype=float)[:, :1] if most > MIXED else self._stir()
        if isinstance(self._network, LossyNetwork):
            slow = slow * policy.rules.chi(policy.state.centre)  # since planting multiplies it by W(k)
        return seeds, slow / most if most > 0 and np.isfinite(most) else np.zeros_like(slow)

    def _plant(self, seeds: Array, slow: Array) -> None:
        """Replace the canaries by new ones."""
        session = self.session
        session.reach()
        state: Any = session.carry.state
        starts = (seeds.astype(session.dtype), slow.astype(session.dtype))
        forget_many(planting())
        inner = planting()(session.method, state, *starts, session.graphs, session.carry.clock)
        self._keep(state._replace(inner=jax.block_until_ready(inner)))  # before this rank sends anything else


# Averaging, measured


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


# What a run runs


class Resolved(NamedTuple):
    """What a run runs."""

    method: Method
    pilot: Pilot | None  # changes the method's parameters on the way
    protocol: Any  # how the parameters are chosen, as a result tells it


def resolve(
    problem: Problem,
    network: Network | DirectedNetwork,
    method: Any,
    parameters: Any,
    first: int = 0,
    greatest: Greatest = np.asarray,
    rules: AutoSettings = SETTINGS,
) -> Resolved:
    """Return what runs the method given by name, class or instance, for the nodes of `problem`: `first` and the next.

    `greatest` returns the elementwise maximum over all processes. "tuned" parameters are found elsewhere.
    """
    if isinstance(method, Method):
        return Resolved(make_method(problem, network, method, parameters), None, "given")
    if parameters == AUTO and (pilot := pilot_for(problem, network, method_type(method), first, greatest, rules)):
        return Resolved(plain(pilot.assumed), pilot, AUTO)
    return Resolved(make_method(problem, network, method, parameters), None, parameters)


def pilot_for(
    problem: Problem,
    network: Network | DirectedNetwork,
    cls: type[Method],
    first: int = 0,
    greatest: Greatest = np.asarray,
    rules: AutoSettings = SETTINGS,
) -> Pilot | None:
    """Return the pilot of a method for the nodes of `problem`; None if the method's formulas do not use chi."""
    constants = unspectral(problem, network, cls)
    if not _uses_chi(cls, constants):
        return None
    check_findable(cls, network)
    run = RunPart(problem, network, cls, constants, first, greatest, rules)
    in_windows = cls.windowed and not network.connected and not isinstance(network, LossyNetwork)
    if cls.rounds_per_step == 1 and not in_windows:
        return CanaryPilot(run)
    return MixingPilot(run)


def check_findable(cls: type[Method], network: Network | DirectedNetwork) -> None:
    """Raise an `InputError` if a method's parameters cannot be found on this network."""
    some = Constants(mu=1.0, L=10.0)
    if not isinstance(network, LossyNetwork) or not _uses_chi(cls, some):
        return
    rule_on(made(cls, "unit", some), network)
    if not network.channel.perfect:
        other = ", or a method without chi in its formulas, e.g. NIDS" if serving(network) == "NIDS" else ""
        raise InputError(
            f"parameters='auto' needs links that deliver messages unchanged and without delay, which {network!r} "
            f"does not have; take 'theory', 'unit' or 'tuned'{other}"
        )
    if cls.rounds_per_step != 1:
        raise InputError(
            f"parameters='auto' cannot measure how fast {cls.title} averages where messages are lost; "
            "take 'theory' or 'unit'"
        )


def _uses_chi(cls: type[Method], constants: Constants) -> bool:
    top = constants.lambda_max
    some = [made(cls, "unit", replace(constants, lambda_min_plus=top / chi)) for chi in (30.0, 300.0)]
    return some[0].parameters() != some[1].parameters()
