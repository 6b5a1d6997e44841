"""Replay of the beginning of a run: its links, and the distance of each node to the solution.

A result holds only its last rows, but also the method's parameters and oracle. With the same problem and network, the
run can be repeated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import Method, method_class
from ..errors import InputError
from ..networks import LossyNetwork, Network
from ..problems.base import Problem
from ..run.progress import Progress
from ..run.request import AUTO, OracleSpec, parse_oracle
from ..run.result import Result

NODES = 100
"""Maximum number of nodes in an animation."""
FRAMES = 120
STRIDE = 20
"""Maximum number of steps from one frame to the next."""
ENOUGH = 1e-10
"""Relative squared error at which the replay stops."""
ALIKE = 1e-3
"""Relative difference allowed between an error and the saved one."""
ROUNDING = 1e-14
"""Relative squared error below which rounding dominates, which differs between machines."""

REMEDY = "give the problem and the network of that run, on the command line by the config.toml written with it"


@dataclass(frozen=True)
class Motion:
    """Part of a run, frame by frame.

    Attributes
    ----------
    title : str
        Method and network.
    rounds : (frames,) array of int
        Communication rounds before each frame.
    graph : (frames,) array of int
        Index into `edges` of the graph in the last of these rounds.
    edges : sequence of (links, 2) arrays of int
        The distinct graphs.
    places : sequence of (nodes, 2) arrays
        Positions of the nodes: one array per graph, or one for all graphs.
    distances : (frames, nodes) array
        Distance of each node's row to the solution.
    """

    title: str
    rounds: np.ndarray
    graph: np.ndarray
    edges: Sequence[np.ndarray]
    places: Sequence[np.ndarray]
    distances: np.ndarray


class Frame(NamedTuple):
    """The nodes' rows after a step."""

    iteration: int
    clock: int
    rows: np.ndarray


def replay(result: Result, problem: Problem, network: Any, *, progress: bool | None = None) -> Motion:
    """Repeat the beginning of a saved run.

    A different problem or network is refused: the errors must be the saved ones.

    Parameters
    ----------
    result : Result
    problem : Problem
    network : Network
        Undirected, with at most 100 nodes.
    progress : bool, optional

    Returns
    -------
    Motion
        The ``rounds`` before each frame, and the ``distances`` of the nodes to the solution, one row per frame.

    Examples
    --------
    >>> import adom
    >>> problem, network = adom.Quadratic([[[2.0]], [[4.0]]], [[2.0], [0.0]]), adom.networks.path(2)
    >>> motion = adom.replay(adom.solve(problem, network, parameters="theory", rounds=50), problem, network)
    >>> motion.distances.shape == (len(motion.rounds), 2)
    True
    >>> network.animate(motion.rounds, motion.distances)
    Animation(2 nodes and their links, rounds 0 to 50, 51 frames)
    """
    provenance, history = result.provenance, result.history
    if not isinstance(network, Network):
        raise InputError(
            "only runs on undirected networks can be replayed, got a directed one; adom report takes --no-network"
        )
    if isinstance(network, LossyNetwork) and network.loss.changing:
        raise InputError("runs in which nodes leave or join cannot be replayed; adom report takes --no-network")
    check_size(network.nodes)
    _check_origin(provenance, problem, network)
    method = _method(provenance["method"])
    spec = parse_oracle(provenance["oracle"]) if provenance.get("oracle") else OracleSpec("none")
    steps, rounds = int(history["iteration"].iloc[-1]), int(history["round"].iloc[-1])
    if "error" in history and provenance.get("start_error"):
        near = history["error"].to_numpy(dtype=float) <= ENOUGH * float(provenance["start_error"])
        if near.any():
            steps, rounds = (int(history[name].iloc[int(np.argmax(near))]) for name in ("iteration", "round"))
    dtype, found = str(provenance.get("dtype", "float64")), provenance.get("protocol") == AUTO
    frames = _run(problem, network, method, spec, steps, rounds, dtype, progress, found)
    solution = np.asarray(problem.solution())
    _check_same(frames, result, solution)
    about = f"{result.label}, parameters {result.protocol}" if result.protocol else result.label
    return _motion(frames, network, solution, about)


def check_size(nodes: int) -> None:
    """Refuse a network that is too large for an animation."""
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


def _check_origin(provenance: Mapping[str, Any], problem: Problem, network: Network) -> None:
    """Refuse a problem or a network that cannot be the saved run's, before anything is run."""
    for name in ("nodes", "dim", "mu", "L"):
        saved, value = (provenance.get("problem") or {}).get(name), getattr(problem, name)
        if saved is not None and not abs(saved - value) <= 1e-6 * abs(value):
            raise InputError(
                f"this is a problem with {name} = {value:.6g}, but the saved run had {saved:.6g}; {REMEDY}"
            )
    if {**(provenance.get("network") or {}), "chi": None} != {**network.recipe, "chi": None}:
        raise InputError(f"this is not the network of the saved run; {REMEDY}")


def _run(
    problem: Problem,
    network: Network,
    method: Method,
    spec: OracleSpec,
    steps: int,
    rounds: int,
    dtype: str,
    progress: bool | None,
    found: bool,
) -> list[Frame]:
    """Run the method and return evenly spaced frames; if `found`, choose parameters on the way as "auto" does."""
    from ..run.auto.pilots import pilot_for
    from ..run.driver import chunks
    from ..run.links import as_run
    from ..run.local.backend import observe_iterate
    from ..run.local.jitted import Session
    from ..run.recorder import Plan
    from ..util.programs import double_precision

    stride = min(STRIDE, max(1, -(-steps // (FRAMES - 1))))
    last = min(steps, stride * (FRAMES - 1))
    frames = [Frame(0, 0, np.zeros((problem.nodes, problem.dim)))]
    plan = Plan(rounds, stride)
    pilot = pilot_for(problem, network, type(method)) if found else None
    methods = [as_run(method, network, problem.dim) if pilot is None else pilot.method]
    with (
        double_precision(),
        Session(problem, network, methods, spec, dtype=dtype, observe=observe_iterate) as session,
        Progress(last, "network", progress, "steps") as bar,
    ):
        if pilot is not None:
            pilot.board(session)
        for chunk in chunks(pilot or session, plan):
            (iteration,), (clock,), _, _, (rows,) = chunk.observed
            if chunk.end > chunk.begin and (chunk.end % stride == 0 or chunk.end == last):
                frames.append(Frame(int(iteration), int(clock), np.asarray(rows, dtype=float)))
            bar.update(chunk.end)
            if chunk.end >= last:
                break
    return frames


def _check_same(frames: Sequence[Frame], result: Result, solution: np.ndarray) -> None:
    """Refuse a run whose errors are not the saved ones."""
    if "error" not in result.history:
        return
    start = float(result.provenance.get("start_error") or 0)
    saved = dict(zip(result.history["iteration"], result.history["error"], strict=True))
    for frame in frames[1:]:
        before, now = saved.get(frame.iteration, 0.0), float(((frame.rows - solution) ** 2).sum())
        if before > ROUNDING * start and not abs(now - before) <= ALIKE * before:
            raise InputError(
                f"the error after {frame.iteration} steps is now {now:.3g}, but was {before:.3g} in the saved run, so "
                f"the problem or the network is another one; {REMEDY}"
            )


def _motion(frames: Sequence[Frame], network: Network, solution: np.ndarray, title: str) -> Motion:
    used = [int(network.order[max(0, frame.clock - 1) % network.period]) for frame in frames]
    distinct = list(dict.fromkeys(used))
    with np.errstate(over="ignore", invalid="ignore"):
        distances = np.stack([np.sqrt(((frame.rows - solution) ** 2).sum(axis=1)) for frame in frames])
    return Motion(
        f"{title}; {network.nodes} nodes, {network.recipe.get('generator', 'network')}",
        np.array([frame.clock for frame in frames]),
        np.array([distinct.index(g) for g in used]),
        [network.edges(g) for g in distinct],
        _positions(network, distinct),
        distances,
    )


def _positions(network: Network, graphs: Sequence[int]) -> list[np.ndarray]:
    """Return the nodes' positions in each graph, or one array for all; lay the nodes out if positions are missing."""
    from ..plot.networks import common_layout

    known = [np.asarray(points) for g in graphs if (points := network.positions(g)) is not None]
    if len(known) < len(graphs):
        return [common_layout(network)]
    return known[:1] if all(np.array_equal(points, known[0]) for points in known) else known
