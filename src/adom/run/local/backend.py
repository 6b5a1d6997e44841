"""The local engine: all nodes in one process and one compiled loop, on the default device of JAX.

On a CPU, the compiled loop computes the errors and keeps only the rows with which a run ends. On an accelerator, it
keeps the rows of all records of a chunk, whose errors are computed after the chunk.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from ... import native
from ...algorithms import Method
from ...dynamics.endings import rounding
from ...networks import DirectedNetwork, Network
from ...problems.base import Problem, as_they_are, solutions
from ...util.process import one_thread
from ...util.programs import double_precision
from ..driver import Chunk, drive, slots
from ..links import Presence, as_run, presence_on
from ..progress import Interrupt, Progress, following
from ..recorder import COLUMNS, History, Plan, Recorder, describe, describe_problem
from ..request import Request, Stop, check_budget
from ..result import Result
from .jitted import Carry, Session, Target, distances

if TYPE_CHECKING:
    from ..auto.pilot import Pilot

Array = Any
UNEVEN = 2.0
"""Largest ratio of the longest step to the shortest in a batch, for methods whose steps vary in length."""


def run_settings(
    methods: Sequence[Method],
    problems: Sequence[Problem],
    network: Network | DirectedNetwork,
    protocol: Any,
    request: Request,
    tols: Sequence[float | None] | None = None,
    finished: Callable[[int, Result], None] | None = None,
    pilot: "Pilot | None" = None,
) -> list[Result]:
    """Run one or several settings of one method, each on its problem; pass each result to `finished` once it exists.

    The callers have checked that problems, network and method fit together (`check_pair`).
    A pilot changes the parameters of a single setting during the run. Only without one can rounds become windows.
    """
    cls = type(methods[0])
    problems = as_they_are(problems)
    if pilot is None:
        methods = [as_run(method, network, problems[0].dim) for method in methods]
    oracle, known, histories = request.oracle_for(cls), solutions(problems), []
    aims = tols or [request.stop.tol] * len(methods)
    for method, problem, solution, tol in zip(methods, problems, known, aims, strict=True):
        check_budget(pilot.assumed if pilot else method, request.rounds)
        Stop(tol)  # checks it
        if tol is not None:
            problem.warn_of_tol(tol)
        presence = presence_on(network, problem, request.rounds)
        start_error = presence.start_error if presence else problem.nodes * float((solution**2).sum())
        floor = rounding(request.dtype, problem.kappa) ** 2
        plan = Plan(int(request.rounds), int(request.record_every), tol, request.dtype, start_error, floor)
        history = History(plan, method, presence=presence, pilot=pilot)
        about = (describe_problem(problem), network, oracle, protocol, request.engine)
        history.provenance = describe(history, *about, solution_error=problem.solution_error)
        histories.append(history)
    results: dict[int, Result] = {}

    def finish(member: int) -> None:
        history = histories[member]
        if history.presence is None and (model := history.provenance["problem"]["model"]) is not None:
            assert history.rows is not None
            model["inference"] = problems[member].inference(history.rows.mean(axis=0))
        results[member] = history.result()
        if finished is not None:
            finished(member, results[member])

    # With the oracle `auto`, nodes compute Hessians when they need them: in a batch, all settings would wait for each.
    # Compiled kernels read the same samples for all settings.
    one_by_one = oracle.kind == "auto" and not problems[0].closed_form
    # LAPACK on a batch of large matrices can block all threads, so methods with Hessians run one by one too.
    alone = one_by_one or cls.composite or (native.usable() and not _same_samples(problems))
    size = 1 if alone else len(methods)
    follow = request.follow if len(methods) == 1 else None
    with double_precision(), one_thread(), Interrupt() as interrupt, following(follow) as journal:
        for first in range(0, len(methods), size):
            some = slice(first, first + size)
            plan = histories[first].plan
            recorder = Recorder(histories[some], partial(lambda first, member: finish(first + member), first))
            progress = Progress(plan.rounds, cls.title, request.progress)
            these = methods[some] if pilot is None else [pilot.method]
            begin = partial(Session, problems[some], network, these, oracle, dtype=plan.dtype)
            with LocalBackend(begin, histories[some], np.stack(known[some]), problems[0].nodes) as backend:
                drive(backend, plan, recorder, progress, interrupt, journal)
    return [results[member] for member in range(len(methods))]


def _same_samples(problems: Sequence[Problem]) -> bool:
    """Return whether problems differ in numbers of their own or of their nodes at most, as in their regulariser."""
    first = jax.tree.leaves(problems[0])
    return all(
        mine is own or np.size(own) <= problems[0].nodes or np.array_equal(mine, own)
        for problem in problems[1:]
        for mine, own in zip(first, jax.tree.leaves(problem), strict=True)
    )


def batches(methods: Sequence[Method], most: int) -> Iterator[list[int]]:
    """Split the settings of a method, given by their numbers, into batches of at most `most`.

    Settings whose steps differ much in length are separated, since every step of a batch is as long as its longest.
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
    """A session whose steps are recorded against the solutions of its problems.

    Parameters
    ----------
    begin : callable
        Returns the session, given how many records fit in a chunk and how they are observed.
    histories : sequence of History
        One for each setting.
    solutions : array, (settings, dim)
    nodes : int
    """

    agreed = False

    def __init__(
        self,
        begin: Callable[..., Session],
        histories: Sequence[History],
        solutions: np.ndarray,
        nodes: int,
    ) -> None:
        self.solutions, self.pilot, self.presences = solutions, histories[0].pilot, [h.presence for h in histories]
        plan, presences = histories[0].plan, self.presences
        if jax.default_backend() == "cpu":
            wide = np.full(len(solutions), np.inf)
            target = Target(solutions, -wide, wide) if len(solutions) > 1 else Target(solutions[0], -wide[0], wide[0])
            if presences[0] is not None:
                together = jax.tree.map(lambda *each: np.stack(each), *presences)
                target = target._replace(presence=together if len(solutions) > 1 else presences[0])
            self.session = begin(
                slots=slots(plan, 8 * len(COLUMNS) * len(solutions)), observe=observe_errors, target=target
            )
        else:
            row_bytes = np.dtype(plan.dtype).itemsize * nodes * solutions.size
            self.session = begin(slots=slots(plan, row_bytes), observe=observe_iterate)
        self.fits = self.session.fits
        self._bounded = self.session.target is None  # whether the bounds on the error are known
        if self.pilot is not None:
            self.pilot.board(self.session)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.session.__exit__(*exc)

    def advance(self, plan: Plan, pace: int) -> Chunk:
        """Make about `pace` steps; the first record, which sets the bounds on later errors, is a chunk of its own."""
        pace = pace if self._bounded else min(pace, plan.record_every)
        return (self.pilot or self.session).advance(plan, pace)

    def measure(self, chunk: Chunk, members: list[int]) -> np.ndarray:
        """Return the records of all members."""
        if self.session.kept is not None:
            *counters, error, consensus = np.moveaxis(np.asarray(chunk.observed), -1, 0)
            rows = np.asarray(self.session.kept.rows)  # of the last record that counts
            chunk.observed = (np.moveaxis(rows, self.session.kind.axis, 0) if self.session.batched else rows)[None]
        else:
            *counters, chunk.observed = chunk.observed
            solutions = self.solutions[members] if self.session.batched else self.solutions[0]
            error, consensus = _distances(chunk.observed, solutions)
            if self.presences[0] is not None:
                error, consensus = self._of_those_present(chunk.observed, np.asarray(counters[1]), members)
        columns = (*counters, np.zeros_like(counters[0]), error, consensus)  # no times yet
        tables = [np.asarray(column, dtype=float) for column in columns]
        assert len(tables) == len(COLUMNS)
        return np.stack([table.reshape(len(table), -1)[: chunk.records].T for table in tables], axis=-1)

    def _of_those_present(self, rows: Array, clock: np.ndarray, members: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return errors and consensus of records of all members, (records, members) or (records,)."""
        rows = np.asarray(rows)
        if not self.session.batched:
            error, consensus = self.presences[0].distances(rows, clock)
            return error, consensus
        each = [self.presences[m].distances(rows[:, i], clock[:, i]) for i, m in enumerate(members)]
        error, consensus = (np.stack(column, axis=1) for column in zip(*each, strict=True))
        return error, consensus

    def share(self, taken: list[int | None] | None, chunk: Chunk, recorder: Recorder) -> list[int | None]:
        """Change nothing: there are no other ranks."""
        assert taken is not None
        return taken

    def rows(self, chunk: Chunk, record: int, position: int) -> np.ndarray:
        """Return the rows of a record of one member."""
        rows = chunk.observed[record if self.session.kept is None else 0]
        return np.array(rows[position] if self.session.batched else rows)

    def anyone(self, asked: bool) -> bool:
        """Return whether this process was asked to stop."""
        return asked

    def between(self, chunk: Chunk, recorder: Recorder) -> None:
        """Drop ended members once they are half of the batch; after the first record, set the bounds on the error."""
        going = recorder.going
        if self.session.batched and 1 < len(going) <= len(recorder.members) / 2:
            self.session.keep(going)
            recorder.members = [recorder.members[position] for position in going]
        histories = [recorder.histories[member] for member in recorder.members]
        if not self._bounded and all(history.tables for history in histories):
            bounds = np.array([history.bounds for history in histories])
            self.session.bound(*(bounds.T if self.session.batched else bounds[0]))
            self._bounded = True


def _counters(carry: Carry) -> tuple[Array, ...]:
    return tuple(count.mean(dtype=jnp.float64) if count.ndim else count for count in carry.counts)


def observe_iterate(carry: Carry) -> tuple[Array, ...]:
    """Observe the counters and the reported rows."""
    return *_counters(carry), carry.x


def observe_errors(carry: Carry, target: Target) -> tuple[Array, ...]:
    """Observe the counters, and the distances of the reported rows from the solution and from each other."""
    if target.presence is not None:
        return *_counters(carry), *Presence(*target.presence).distances(carry.x, carry.clock)
    return *_counters(carry), *distances(carry.x, target.solution)


_distances = jax.jit(distances)
