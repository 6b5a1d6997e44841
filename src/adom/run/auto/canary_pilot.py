"""The pilot for methods whose steps are single rounds: canary columns show which chi to assume."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...algorithms import Method
from ...dynamics.policy import FULLY, MOST, NOISE, RATIO, STIFFNESS, Policy
from ...dynamics.wrapping import bare
from ...networks import LossyNetwork
from ...problems.oracles import held
from ...util.compiling import forget_many
from ..links.ledgers import rested, with_ledgers
from ..local.placing import place
from .canaries import WithCanaries, planting
from .pilot import Pilot, Steered

Array = np.ndarray
EIGEN_DIM = 128
"""The largest dim for which canaries take their curvatures from eigenvalues of the present Hessians, at cubic cost."""
MIXED = 1e-6
"""An averaged column that changes less than this in a block restarts from random numbers."""


class CanaryPilot(Pilot):
    """Steers a session by its canaries."""

    def __init__(self, run: Steered) -> None:
        super().__init__(run)
        self._policy = Policy(run.cls, run.constants, run.cls.plain, tries=run.cls.plain, apart=self.apart)
        self._ends = self._curvatures(np.zeros((run.problem.nodes, run.problem.dim)))
        self._curvature = self._ends[0]
        self._waiting = False  # whether the run is careful because agreement takes longer than the block
        # One answer per canary; the run's step and size, the extremes of an averaged column, two curvatures.
        self.numbers = self._curvature.shape[1] + 6

    @property
    def assumed(self) -> Method:
        """The method with the present parameters, without canaries."""
        return self._policy.method(self._power)

    @property
    def _power(self) -> int:
        return self._policy.careful if self._waiting else self._policy.power

    @property
    def _chi(self) -> float:
        return np.inf if self._cls.plain and self._power == MOST else float(RATIO**self._power)

    @property
    def method(self) -> Method:
        """The method that the session runs with the present settings, canaries included."""
        policy, dim = self._policy, self._problem.dim
        run, others = self.assumed.parameters(), [policy.method(power).parameters() for power in policy.window]
        columns = {
            name: np.concatenate([np.full(dim, run[name]), np.repeat([v[name] for v in others], len(STIFFNESS))])
            for name in run
        }
        inner = with_ledgers(bare(self._cls, columns.items()), self._network, dim, self._rows.start, self._rows.stop)
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
        own = {"stop": self._stop, "quarter": self._quarter_end, "ends": self._ends[1], "waiting": self._waiting}
        own["policy"] = self._policy.facts
        return {**super().facts, **own}

    def recall(self, arrays: Any, facts: dict[str, Any]) -> None:
        """Resume from a checkpoint."""
        run, rows = arrays
        self._mixed, self._curvature, ends = (np.asarray(part, dtype=float) for part in rows)
        self._stop, self._waiting = int(facts["stop"]), bool(facts["waiting"])
        self._quarter_end = int(facts["quarter"])
        self._ends = ends, (float(facts["ends"][0]), float(facts["ends"][1]))
        self._policy.recall(facts["policy"])
        super().recall(run, facts)

    def _begin(self) -> None:
        self._new_quarter()
        self._mixed = self._stir()
        seeds = self._draw(len(STIFFNESS) * len(self._policy.window))
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
        self._policy.agreement = rounds = self._agreement()
        self._stop = self._clock + rounds
        if self._policy.grown:  # at once, lest the budget end in a bad state; after the agreement once more
            self._go_back()
        slow = rounds > self._policy.block.rounds
        if (slow or self._policy.grown) and self._policy.power < self._policy.careful:
            self._waiting = True
            self.session.method = place(self.method, self.session.dtype)
            takes = "the nodes take longer to agree than the block lasted"
            self._tell(f"careful: {takes if slow else 'the run grew'}")

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
        return tops, float(step), self._policy.rests(step, size, eps), bool(highest + lowest <= FULLY * eps)

    def _curvatures(self, x: Array) -> tuple[Array, tuple[float, float]]:
        """Return the curvatures of every node's canaries, and the least and the greatest curvature of any node."""
        problem = self._problem
        lowest, highest = np.asarray(problem.mu_nodes), np.asarray(problem.L_nodes)
        if problem.dim <= EIGEN_DIM and held(self._network.nodes, problem.dim) and np.isfinite(x).all():
            values = np.linalg.eigvalsh(problem.own_hessians(x))
            lowest, highest = (np.clip(values[:, end], problem.mu, problem.L) for end in (0, -1))
        ends = self._greatest(np.array([-lowest.min(), highest.max()]))
        return self._policy.curvatures(lowest, highest), (-float(ends[0]), float(ends[1]))

    def _decide(self) -> None:
        policy = self._policy
        window, tops = policy.window, policy.block.tops[-1]
        decision = policy.decide(self._clock, *self._ends[1], left=self._budget - self._clock)
        seeds, slow = self._seeds(window, tops)
        if decision.back:
            self._go_back()
        elif decision.good:
            self._save_good()
        if self._cls.plain and (decision.rest or self._waiting):
            state: Any = self.session.carry.state
            method: Any = self.session.method
            inner = jax.tree.map(np.asarray, state.inner) if self.session.on_cpu else state.inner  # NumPy: no program
            self._keep(state._replace(inner=rested(method.inner, inner)))
        self._curvature = self._ends[0]
        self._go_on(seeds, slow)
        self._tell(decision.why)

    def _go_on(self, seeds: Array, slow: Array) -> None:
        """Continue with the present settings and new canaries."""
        self._waiting = False
        self.session.method = place(self.method, self.session.dtype)
        self._plant(seeds, slow)
        self._seen()
        self._new_quarter()

    def _begin_anew(self) -> None:
        self._policy.forget(self._clock)
        self._save_good()
        seeds = self._draw(len(STIFFNESS) * len(self._policy.window))
        self._go_on(seeds, np.zeros_like(seeds[:, :1]))
        self._tell("nodes have left or joined")

    def _seeds(self, window: list[int], tops: Array) -> tuple[Array, Array]:
        """Return the next canaries' seeds (last answers plus noise) and the slowest part of an averaged column."""
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
            slow = slow * self._policy.chi  # since planting multiplies it by W(k)
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
