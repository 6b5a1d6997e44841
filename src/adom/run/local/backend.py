"""The local engine: all nodes in one process, one compiled loop, on whatever device JAX has.

Metrics are computed between chunks of the compiled loop, outside of the timed part.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...algorithms import Method
from ...networks import DirectedNetwork, Network
from ...problems.base import Problem, solutions
from ...util.compile_cache import double_precision
from ...util.threads import one_thread
from ..constants import check_pair
from ..driver import Chunk, drive, slots
from ..endings import rounding
from ..progress import Interrupt, Progress
from ..provenance import describe_problem
from ..recorder import COLUMNS, History, Plan, Recorder, describe
from ..request import Request, check_budget
from ..result import Result
from .jitted import Carry, Session

Array = Any
UNEVEN = 2.0
"""Ratio of the longest step to the shortest in a batch, of methods whose steps take several rounds."""


def run_settings(
    methods: Sequence[Method],
    problems: Sequence[Problem],
    network: Network | DirectedNetwork,
    protocol: Any,
    request: Request,
    tols: Sequence[float | None] | None = None,
    finished: Callable[[int, Result], None] | None = None,
) -> list[Result]:
    """Run one or several settings of one method, each on its problem; hand each result over as soon as it is there."""
    cls = type(methods[0])
    for problem in problems:
        check_pair(problem, network, directed=cls.directed, title=cls.title)
    oracle = request.oracle_for(cls)
    histories, provenances = [], []
    each = zip(methods, problems, solutions(problems), tols or [request.tol] * len(methods), strict=True)
    for method, problem, solution, tol in each:
        check_budget(method, request.rounds)
        request = replace(request, tol=tol)  # checks it
        if tol is not None:
            problem.warn_of_tol(tol)
        start_error = problem.nodes * float((solution**2).sum())
        floor = rounding(request.dtype, problem.kappa) ** 2
        plan = Plan(int(request.rounds), int(request.record_every), tol, request.dtype, start_error, floor)
        histories.append(History(plan, method))
        about = (describe_problem(problem), network, oracle, protocol, request.engine)
        provenances.append(describe(histories[-1], *about, solution_error=problem.solution_error))
    results: dict[int, Result] = {}

    def finish(member: int) -> None:
        results[member] = histories[member].result(provenances[member])
        if finished is not None:
            finished(member, results[member])

    # With `auto`, nodes take Hessians when they need them: side by side, every setting would wait for all others'.
    alone = oracle.kind == "auto" and not problems[0].closed_form
    size = 1 if alone else len(methods)
    with double_precision(), one_thread(), Interrupt() as interrupt:
        for first in range(0, len(methods), size):
            some = slice(first, first + size)
            plan = histories[first].plan
            recorder = Recorder(histories[some], partial(lambda first, member: finish(first + member), first))
            progress = Progress(plan.rounds, cls.title, request.progress)
            row_bytes = np.dtype(plan.dtype).itemsize * problems[0].nodes * problems[0].dim * size
            begin = partial(Session, dtype=plan.dtype, slots=slots(plan, row_bytes), observe=observe_iterate)
            with begin(problems[some], network, methods[some], oracle) as session:
                backend = LocalBackend(session, np.stack(solutions(problems[some])))
                drive(backend, plan, recorder, progress, interrupt)
    return [results[member] for member in range(len(methods))]


def batches(methods: Sequence[Method], most: int) -> Iterator[list[int]]:
    """Split settings of a method, by number, into batches of at most `most`.

    Settings whose steps differ much in length come apart: a batch waits for the longest in every step.
    """
    parts = [list(range(len(methods)))] if methods else []
    if methods and methods[0].rounds_per_step is None:
        lengths = [float(method.rounds_of_step(16)) for method in methods]
        parts = []
        for number in sorted(range(len(methods)), key=lengths.__getitem__):
            if not parts or lengths[number] > UNEVEN * lengths[parts[-1][0]]:
                parts.append([])
            parts[-1].append(number)
    for part in parts:
        count = ceil(len(part) / most)
        for index in range(count):
            yield part[index * len(part) // count : (index + 1) * len(part) // count]


class LocalBackend:
    """A session whose steps are recorded against the solutions of its problems."""

    agreed = False

    def __init__(self, session: Session, solutions: np.ndarray) -> None:
        self.session, self.solutions = session, solutions
        self.fits, self.advance = session.fits, session.advance

    def measure(self, chunk: Chunk, members: list[int]) -> np.ndarray:
        """Return the records of all members."""
        iteration, clock, gradients, floats, rows = chunk.observed
        solutions = self.solutions[members] if self.session.batched else self.solutions[0]
        error, consensus = _distances(rows, solutions)
        no_time = np.zeros_like(iteration)
        columns = (iteration, clock, gradients, floats, no_time, error, consensus)
        chunk.observed = np.asarray(rows) if self.session.on_cpu else rows  # a view; elsewhere only kept rows travel
        tables = [np.asarray(column, dtype=float).reshape(len(rows), -1)[: chunk.records].T for column in columns]
        assert len(tables) == len(COLUMNS)
        return np.stack(tables, axis=-1)

    def share(self, taken: list[int | None] | None, chunk: Chunk, recorder: Recorder) -> list[int | None]:
        """Change nothing: there are no other ranks."""
        assert taken is not None
        return taken

    def rows(self, chunk: Chunk, record: int, position: int) -> np.ndarray:
        """Return the rows of a record of one member."""
        return np.array(chunk.observed[record, position] if self.session.batched else chunk.observed[record])

    def anyone(self, asked: bool) -> bool:
        """Return whether this process was asked to stop."""
        return asked

    def between(self, chunk: Chunk, recorder: Recorder) -> None:
        """Drop members that have ended once they are half of those that are carried."""
        going = recorder.going
        if self.session.batched and 1 < len(going) <= len(recorder.members) / 2:
            self.session.keep(going)
            recorder.members = [recorder.members[position] for position in going]


def observe_iterate(carry: Carry) -> tuple[Array, ...]:
    """Observe the counters and the reported rows."""
    return carry.iteration, carry.clock, carry.memory.gradients.mean(dtype=jnp.float64), carry.floats, carry.x


@jax.jit
def _distances(rows: Array, solution: Array) -> tuple[Array, Array]:
    """Return error and consensus of rows of shape (..., nodes, dim), each against a solution of shape (..., dim)."""
    mean = rows.mean(axis=-2, keepdims=True)
    return ((rows - solution[..., None, :]) ** 2).sum(axis=(-2, -1)), ((rows - mean) ** 2).sum(axis=(-2, -1))
