"""The local engine: all nodes in one process, one compiled loop, on whatever device JAX has.

Between chunks of the compiled loop the host computes the metrics (outside the timed part), reports progress,
looks at the tolerance, dates divergence and obeys Ctrl-C. Chunks last a fraction of a second.
"""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...algorithms import Method
from ...networks import DirectedNetwork, Network
from ...problems.base import Problem, solutions
from ...problems.oracle_spec import OracleSpec
from ...util.threads import one_thread
from ..progress import Interrupt, Progress
from ..recorder import Plan, Run
from .jitted import Carry, Session

Array = Any
CHUNK_SECONDS = 0.2
SNAPSHOT_BYTES = 2**25


def run(
    problems: Problem | Sequence[Problem],
    network: Network | DirectedNetwork,
    methods: Sequence[Method],
    spec: OracleSpec,
    plans: Sequence[Plan],
    progress: Progress,
    finished: Callable[[int, Run, np.ndarray], None],
) -> None:
    """Run one or several settings of one method; hand over each one's records and last rows as soon as it ends.

    The plans differ in the tolerance and the error at the start only.
    """
    each = [problems] * len(methods) if isinstance(problems, Problem) else list(problems)
    runs = [Run(plan, method) for plan, method in zip(plans, methods, strict=True)]
    plan = plans[0]
    with jax.enable_x64(True), one_thread(), Interrupt() as interrupt:
        answers = np.stack(solutions(each))
        snapshot = np.dtype(plan.dtype).itemsize * each[0].nodes * each[0].dim * len(methods)
        slots = max(1, min(512, -(-plan.rounds // plan.record_every), SNAPSHOT_BYTES // snapshot))
        session = Session(problems, network, methods, spec, dtype=plan.dtype, slots=slots, observe=observe_iterate)
        with progress, session:
            _loop(session, runs, plan, slots, answers, progress, interrupt, finished)


def _loop(
    session: Session,
    runs: list[Run],
    plan: Plan,
    slots: int,
    answers: np.ndarray,
    progress: Progress,
    interrupt: Interrupt,
    finished: Callable[[int, Run, np.ndarray], None],
) -> None:
    members = np.arange(len(runs))  # which of the runs the session still carries
    last_rows: list[Any] = [None] * len(runs)
    seconds, iteration, pace = 0.0, 0, 8
    while True:
        records, steps = plan.next_chunk(iteration, min(pace, session.reach()), slots)
        records, steps = session.fit(records, steps)
        session.prepare(records, steps)
        began = perf_counter()
        seen = session.chunk(records, steps, plan.rounds)
        elapsed = perf_counter() - began
        asked = interrupt.asked

        *columns, rows = seen
        columns += _distances(rows, answers[members] if session.batched else answers[0])
        counted, clocks, gradients, floats, error, consensus = (
            np.asarray(c, dtype=float).reshape(slots, -1)[:records].T for c in columns
        )
        reached = int(counted.max())
        times = seconds + elapsed * (counted - iteration) / max(1, reached - iteration)
        table = np.stack([counted, clocks, gradients, floats, times, error, consensus], axis=-1)
        if session.on_cpu:  # a view; elsewhere only what is taken travels
            rows = np.asarray(rows)
        for place, member in enumerate(members):
            one = runs[member]
            taken = one.take(table[place], asked)
            if taken is not None:
                last_rows[member] = np.array(rows[taken, place] if session.batched else rows[taken])
            if one.status and last_rows[member] is not None:
                finished(int(member), one, last_rows[member])
                last_rows[member] = None

        going = [place for place, member in enumerate(members) if not runs[member].status]
        progress.update(int(clocks.max()), max(runs[member].error for member in members))
        if asked or not going:
            break
        seconds, iteration = seconds + elapsed, reached
        pace = int(np.clip(CHUNK_SECONDS / max(elapsed, 1e-9) * records * steps, 1, 8 * pace))
        if session.batched and len(going) <= len(members) / 2 and len(going) > 1:
            session.keep(going)
            members = members[going]
    for member in members:
        if not runs[member].status:
            runs[member].status = "interrupted"
            finished(int(member), runs[member], last_rows[member])


def observe_iterate(carry: Carry) -> tuple[Array, ...]:
    """Observe the counters and the reported rows: what a result is made of."""
    return carry.iteration, carry.clock, carry.memory.gradients.mean(dtype=jnp.float64), carry.floats, carry.x


@jax.jit
def _distances(rows: Array, solution: Array) -> tuple[Array, Array]:
    """Return error and consensus of rows of shape (..., nodes, dim), each against a solution of shape (..., dim)."""
    mean = rows.mean(axis=-2, keepdims=True)
    return ((rows - solution[..., None, :]) ** 2).sum(axis=(-2, -1)), ((rows - mean) ** 2).sum(axis=(-2, -1))
