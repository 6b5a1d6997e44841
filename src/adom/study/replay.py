"""The first stretch of a run once more, looked at as it goes: the links, and how far each node is from the solution.

A result has the rows of its last record only. But what made it is known: the problem and the network can be built
again, and the method's parameters and its oracle stand in the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import Method, method_class
from ..errors import InputError
from ..networks import Network
from ..paper.runs import Job, load_plan, outcome
from ..problems.base import Problem
from ..problems.oracle_spec import OracleSpec, parse_oracle
from ..run.progress import Progress
from ..run.result import Result

NODES = 100
"""The most nodes that can be told apart in a picture."""
FRAMES = 120
STRIDE = 20
"""The most steps from one frame to the next."""
ENOUGH = 1e-10
"""Relative squared error beyond which there is nothing more to see."""
ALIKE = 1e-3
"""How far an error may lie from the saved one, relative to it."""
ROUNDING = 1e-14
"""Relative squared error below which errors are rounding, which differs from machine to machine."""

REMEDY = "give the problem and the network of that very run, on the command line by the config.toml written with it"


@dataclass(frozen=True)
class Motion:
    """A stretch of a run, frame by frame.

    Attributes
    ----------
    title : str
        Method and network.
    rounds : (frames,) array of int
        Communication rounds before each frame.
    graph : (frames,) array of int
        Index into `edges` of the graph of the last of them.
    edges : sequence of (links, 2) arrays of int
        The distinct graphs.
    places : sequence of (nodes, 2) arrays
        Positions of the nodes: one for each graph, or one for all.
    distances : (frames, nodes) array
        Distance of each node's row to the solution.
    """

    title: str
    rounds: np.ndarray
    graph: np.ndarray
    edges: Sequence[np.ndarray]
    places: Sequence[np.ndarray]
    distances: np.ndarray


class Seen(NamedTuple):
    """What was seen after a step."""

    iteration: int
    clock: int
    rows: np.ndarray


def replay(result: Result, problem: Problem, network: Any, *, progress: bool | None = None) -> Motion:
    """Run the first stretch of a saved run again.

    It is refused where problem and network are not those of the saved run: the errors have to be the saved ones.

    Parameters
    ----------
    result : Result
    problem : Problem
    network : Network
        Of no more than 100 nodes.
    progress : bool, optional

    Returns
    -------
    Motion
        ``rounds`` after which the nodes were looked at, and their ``distances`` to the solution then, one row a look.

    Examples
    --------
    >>> import adom
    >>> problem, network = adom.Quadratic([[[2.0]], [[4.0]]], [[2.0], [0.0]]), adom.networks.path(2)
    >>> seen = adom.replay(adom.solve(problem, network, rounds=50), problem, network)
    >>> seen.distances.shape == (len(seen.rounds), 2)
    True
    >>> network.animate(seen.rounds, seen.distances)
    Animation(2 nodes and their links, rounds 0 to 50, 51 frames)
    """
    made, history = result.provenance, result.history
    if not isinstance(network, Network):
        raise InputError(
            "runs are replayed on undirected networks only, and this is a directed one; adom report takes --no-network"
        )
    check_size(network.nodes)
    _check_made(made, problem, network)
    method = _method(made["method"])
    spec = parse_oracle(made["oracle"]) if made.get("oracle") else OracleSpec("none")
    steps, rounds = int(history["iteration"].iloc[-1]), int(history["round"].iloc[-1])
    if "error" in history and made.get("start_error"):
        near = history["error"].to_numpy(dtype=float) <= ENOUGH * float(made["start_error"])
        if near.any():
            steps, rounds = (int(history[name].iloc[int(np.argmax(near))]) for name in ("iteration", "round"))
    seen = _run(problem, network, method, spec, steps, rounds, str(made.get("dtype", "float64")), progress)
    solution = np.asarray(problem.solution())
    _check_same(seen, result, solution)
    about = f"{result.label}, parameters {result.protocol}" if result.protocol else result.label
    return _motion(seen, network, solution, about)


def replay_panel(folder: Path, *, progress: bool | None = None) -> Motion:
    """Run again the first stretch of a run of a reproduction, on a network that changes every round if there is one."""
    from ..paper.work import Workshop

    plan = load_plan(folder)
    for job in sorted((one for one in plan.jobs if _fit(one)), key=_preference):
        result = outcome(job, folder).result
        if result is not None:
            workshop = Workshop(folder, plan.stages)
            found = replay(result, workshop.problem(job), workshop.network(job), progress=progress)
            about = f"Figure {job.panel.figure}, panel {job.panel.name}, seed {job.seed}: {found.title}"
            return replace(found, title=about)
    raise InputError(
        f"{folder} has no run on synthetic data and at most {NODES} nodes to show in motion yet; "
        "`adom reproduce kappa --out` that folder makes some"
    )


def _fit(job: Job) -> bool:
    settings = job.panel.settings
    small = settings["nodes"] <= NODES and settings["data"] == "synthetic"
    return small and not job.variant and method_class(job.method).title == "ADOM"


def _preference(job: Job) -> tuple[bool, bool]:
    """Return what sorts runs: first those whose links change every round, and among them the quicker ones."""
    settings = job.panel.settings
    return settings["network"] != "geometric" or "every" in settings, job.protocol != "unit"


def check_size(nodes: int) -> None:
    """Refuse a network that a picture cannot show."""
    if nodes > NODES:
        raise InputError(
            f"the network in motion shows {NODES} nodes at most, got {nodes}; run a smaller one with "
            f"`adom solve --nodes {NODES}` and report that"
        )


def _method(described: Mapping[str, Any]) -> Method:
    try:
        return method_class(described["name"])(**described["parameters"])
    except (TypeError, KeyError):
        raise InputError(
            f"the parameters of {described['name']} in this result are those of another version; run it again"
        ) from None


def _check_made(made: Mapping[str, Any], problem: Problem, network: Network) -> None:
    """Refuse a problem or a network that cannot be the saved run's, before anything is run."""
    described = {"nodes": problem.nodes, "dim": problem.dim, "mu": problem.mu, "L": problem.L}
    for name, value in described.items():
        before = (made.get("problem") or {}).get(name)
        if before is not None and not np.isclose(before, value, rtol=1e-6, atol=0):
            raise InputError(f"this is a problem with {name} = {value:.6g}, the run had {before:.6g}; {REMEDY}")
    saved = {name: value for name, value in (made.get("network") or {}).items() if name != "chi"}
    if saved != {name: value for name, value in network.recipe.items() if name != "chi"}:
        raise InputError(f"this is another network than the run had; {REMEDY}")


def _run(
    problem: Problem,
    network: Network,
    method: Method,
    spec: OracleSpec,
    steps: int,
    rounds: int,
    dtype: str,
    progress: bool | None,
) -> list[Seen]:
    """Make steps and keep the rows after some of them, evenly spread."""
    import jax

    from ..run.driver import chunks
    from ..run.local.backend import observe_iterate
    from ..run.local.jitted import Session
    from ..run.recorder import Plan

    stride = min(STRIDE, max(1, -(-steps // (FRAMES - 1))))
    last = min(steps, stride * (FRAMES - 1))
    seen = [Seen(0, 0, np.zeros((problem.nodes, problem.dim)))]
    plan = Plan(rounds, stride)
    with (
        jax.enable_x64(True),
        Session(problem, network, [method], spec, dtype=dtype, observe=observe_iterate) as session,
        Progress(last, "network", progress, "steps") as bar,
    ):
        for chunk in chunks(session, plan):
            (iteration,), (clock,), _, _, (rows,) = chunk.observed
            if chunk.end > chunk.begin and (chunk.end % stride == 0 or chunk.end == last):
                seen.append(Seen(int(iteration), int(clock), np.asarray(rows, dtype=float)))
            bar.update(chunk.end)
            if chunk.end >= last:
                break
    return seen


def _check_same(seen: Sequence[Seen], result: Result, solution: np.ndarray) -> None:
    """Refuse a run whose errors are not those that were saved."""
    if "error" not in result.history:
        return
    start = float(result.provenance.get("start_error") or 0)
    saved = dict(zip(result.history["iteration"], result.history["error"], strict=True))
    for one in seen[1:]:
        before, now = saved.get(one.iteration), float(((one.rows - solution) ** 2).sum())
        if before is None or not before > ROUNDING * start:
            continue
        if not abs(now - before) <= ALIKE * before:
            raise InputError(
                f"run again, the error after {one.iteration} steps is {now:.3g} and not {before:.3g} as saved, so the "
                f"problem or the network is another one; {REMEDY}"
            )


def _motion(seen: Sequence[Seen], network: Network, solution: np.ndarray, title: str) -> Motion:
    used = [int(network.order[max(0, one.clock - 1) % network.period]) for one in seen]
    distinct = list(dict.fromkeys(used))
    with np.errstate(over="ignore", invalid="ignore"):
        distances = np.stack([np.sqrt(((one.rows - solution) ** 2).sum(axis=1)) for one in seen])
    return Motion(
        f"{title}; {network.nodes} nodes, {network.recipe.get('generator', 'network')}",
        np.array([one.clock for one in seen]),
        np.array([distinct.index(g) for g in used]),
        [network.edges(g) for g in distinct],
        _places(network, distinct),
        distances,
    )


def _places(network: Network, graphs: Sequence[int]) -> list[np.ndarray]:
    """Return where the nodes lie in each graph; where they lie nowhere, one layout of all links together."""
    from ..plot.rounds import common_layout

    given = [network.positions(g) for g in graphs]
    known = [np.asarray(place) for place in given if place is not None]
    if len(known) == len(graphs):
        return known[:1] if all(np.array_equal(place, known[0]) for place in known) else known
    return [common_layout(network)]
