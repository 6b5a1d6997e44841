"""The local engine: all nodes in one process, one compiled loop, on whatever device JAX has.

Between chunks of the compiled loop the host computes the metrics (outside the timed part), reports progress,
looks at the tolerance, dates divergence and obeys Ctrl-C. Chunks last a fraction of a second.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..algorithms import Method
from ..networks import DirectedNetwork, Network
from ..problems.base import Problem
from ..problems.oracles import OracleSpec
from .compiled import Carry, Session
from .progress import Interrupt, Progress
from .records import Plan, Run

Array = Any
CHUNK_SECONDS = 0.2
SNAPSHOT_BYTES = 2**25


def run(
    problem: Problem,
    network: Network | DirectedNetwork,
    methods: Sequence[Method],
    spec: OracleSpec,
    plan: Plan,
    progress: Progress,
) -> list[tuple[Run, np.ndarray]]:
    """Run one or several settings of one method; return each one's records and last rows."""
    with jax.enable_x64(True), Interrupt() as interrupt:
        solution = jnp.asarray(problem.solution())
        snapshot = np.dtype(plan.dtype).itemsize * problem.nodes * problem.dim * len(methods)
        slots = max(1, min(512, -(-plan.rounds // plan.record_every), SNAPSHOT_BYTES // snapshot))
        session = Session(problem, network, methods, spec, dtype=plan.dtype, slots=slots, observe=observe_iterate)
        with progress:
            return _loop(session, [Run(plan, method) for method in methods], plan, slots, solution, progress, interrupt)


def _loop(
    session: Session,
    runs: list[Run],
    plan: Plan,
    slots: int,
    solution: Array,
    progress: Progress,
    interrupt: Interrupt,
) -> list[tuple[Run, np.ndarray]]:
    last_rows: list[Any] = [None] * len(runs)
    seconds, iteration, pace = 0.0, 0, 8
    while True:
        records, steps = plan.next_chunk(iteration, pace, slots)
        began = perf_counter()
        seen = session.chunk(records, steps, plan.rounds)
        elapsed = perf_counter() - began
        asked = interrupt.asked

        *columns, rows = seen
        columns += _distances(rows, solution)
        counted, clocks, gradients, floats, error, consensus = (
            np.asarray(c, dtype=float).reshape(len(runs), -1)[:, :records] for c in columns
        )
        reached = int(counted.max())
        times = seconds + elapsed * (counted - iteration) / max(1, reached - iteration)
        table = np.stack([counted, clocks, gradients, floats, times, error, consensus], axis=-1)
        for member, one in enumerate(runs):
            taken = one.take(table[member], asked)
            if taken is not None:
                last_rows[member] = np.asarray(rows[member, taken] if session.batched else rows[taken])

        progress.update(int(clocks.max()), max(one.error for one in runs))
        if asked or all(one.status for one in runs):
            break
        seconds, iteration = seconds + elapsed, reached
        pace = int(np.clip(CHUNK_SECONDS / max(elapsed, 1e-9) * records * steps, 1, 8 * pace))
    for one in runs:
        one.status = one.status or "interrupted"
    return list(zip(runs, last_rows, strict=True))


def observe_iterate(carry: Carry) -> tuple[Array, ...]:
    """Observe the counters and the reported rows: what a result is made of."""
    return carry.iteration, carry.clock, carry.memory.gradients.mean(dtype=jnp.float64), carry.floats, carry.x


@jax.jit
def _distances(rows: Array, solution: Array) -> tuple[Array, Array]:
    """Return error and consensus of rows of shape (..., nodes, dim)."""
    mean = rows.mean(axis=-2, keepdims=True)
    return ((rows - solution) ** 2).sum(axis=(-2, -1)), ((rows - mean) ** 2).sum(axis=(-2, -1))
