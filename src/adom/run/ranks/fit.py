"""What `adom.solve` runs on ranks: one run, or a fit to data that stay on their nodes.

For a fit, ranks find out who holds which node, prepare the data, and fit a model. The intercepts have no penalty, so it
runs in stages (`adom.run.stages`). Their column is scaled so that the curvature along them is at least 100 r
(`adom.data.preparing`).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...data.node_data import NodeData
from ...data.preparing import Agreed, agree
from ...errors import InputError
from ...networks import DirectedNetwork, LossyNetwork, Network
from ...problems.base import Problem
from ...problems.shifted import Shifted
from ...util.columns import BY_LINKS
from ...util.compile_cache import double_precision
from ..constants import check_pair
from ..progress import Interrupt, Journal, Progress, following
from ..request import Request, method_type
from ..result import Result
from ..stages import Run, StageCosts, run_stages
from .agreement import GossipLinks
from .checkpoints import Checkpoints, generations
from .one_run import Part, rank_travel, run
from .peers import Ranks, at_rank_0, rank_errors, tell_bytes
from .rank_rounds import Partition, RankGossip

Array = np.ndarray
NEAR = 2e-8
"""Default distance of every node to the minimiser; for ridge, in units of the spread of its target."""
ROUGH = 1e-3
"""Accuracy of the runs before the last, as a fraction of the last movement of the intercepts."""


def solve_on_ranks(
    problem: Any,
    network: Network | DirectedNetwork,
    method: Any,
    parameters: Any,
    request: Request,
    kept: Checkpoints | None,
) -> Result:
    """Solve or fit as one of the ranks that mpirun has started; return the same result on each of them."""
    from .world import World

    solve = _solver(problem, network, method)
    with double_precision(), World(problem.nodes, request.patience) as world:
        return solve(world, problem, network, method, parameters, request, kept)


def on_one_rank(
    problem: Any,
    network: Network | DirectedNetwork,
    method: Any,
    parameters: Any,
    request: Request,
    kept: Checkpoints | None = None,
) -> Result:
    """Solve or fit as the only rank, without MPI: the arithmetic of engine "mpi" in one process."""
    solve = _solver(problem, network, method)
    with double_precision():
        return solve(Ranks(problem.nodes), problem, network, method, parameters, request, kept)


def _solver(problem: Any, network: Any, method: Any) -> Callable[..., Result]:
    """Return `fit` or `run`; refuse networks and methods with which the nodes of a fit cannot agree."""
    if not isinstance(problem, NodeData):
        return run
    cls = method_type(method)
    check_pair(problem, network, title=cls.title)
    if cls.directed:
        raise InputError(
            f"with {cls.title} the nodes cannot agree on the end of a fit; take another method, such as 'adom+'"
        )
    if isinstance(network, LossyNetwork):
        raise InputError(
            f"a fit to NodeData needs perfect links, got {network!r}; take the network that it was made from, or use "
            "agents"
        )
    return fit


def fit(
    world: Ranks,
    data: NodeData,
    network: Network | DirectedNetwork,
    method: Any,
    parameters: Any,
    request: Request,
    kept: Checkpoints | None,
) -> Result:
    """Fit as one of several ranks."""
    names = _own_names(world, data)
    first, _ = world.partition.of(world.rank)
    gossip = RankGossip(rank_travel(world, network, method_type(method), request))
    links = GossipLinks(gossip, first)
    with rank_errors(), world.busy(lambda: f"reading {data.reading}"):
        shards = data.open(names)
    agreed = agree(data, shards, links)
    with rank_errors():
        own = agreed.problem(shards)
    tol = request.tol or data.nodes * NEAR**2
    request = replace(request, tol=tol)
    shown = False if world.rank else request.progress
    progress = Progress(request.rounds, method_type(method).title, shown, plain=world.ranks > 1)
    with following(None if world.rank else request.follow) as journal, Interrupt() as interrupt:
        asked, request = (network, method, parameters), replace(request, follow=None)
        stages = _Stages(world, own, agreed, asked, request, links, kept, (journal, progress, interrupt))
        tilt = np.zeros((own.nodes, own.dim))
        scale = max(1.0, agreed.column)
        status, rows = run_stages(stages, np.zeros(own.dim), tilt, agreed.l2 * agreed.free, scale)
    return stages.result(agreed.model_rows(rows), status)


@dataclass
class _Stages:
    """Runs of a method on the nodes of all ranks.

    Each stage has its own folder of checkpoints. A resumed fit repeats all stages, each from its last checkpoint to its
    end, and so returns to where it was.
    """

    world: Ranks
    own: Problem
    agreed: Agreed
    asked: tuple[Any, Any, Any]  # network, method, parameters
    request: Request
    links: GossipLinks
    kept: Checkpoints | None
    shared: tuple[Journal | None, Progress, Interrupt]  # of all stages
    costs: StageCosts = field(default_factory=StageCosts)
    last: Any = None

    def level(self, centre: Array, tilt: Array) -> Array:
        """Let every node hear the gradients of all at the centre."""
        slope = np.asarray(self.own.gradient_rows(np.broadcast_to(centre, tilt.shape))) - tilt
        levelled: Array = tilt + slope - self.links.everyone(slope).mean(axis=0)
        return levelled

    def run(self, centre: Array, tilt: Array, held: Array, moved: float) -> Run:
        """Run a stage: roughly while the intercepts move far, and then to the tolerance."""
        nodes = len(self.agreed.names)
        assert self.request.tol is not None
        near = float(np.sqrt(self.request.tol / nodes))
        last = not self.agreed.free.any() or ROUGH * moved <= near
        wanted = near if last else ROUGH * min(moved, 1.0)
        rough = replace(self.request, tol=nodes * max(wanted, near) ** 2)
        if self.shared[0] is not None:
            self.shared[0].next_stage()
        part, kept = self._part(centre, tilt + held), self._checkpoints(len(self.costs.tables) + 1)
        result = run(self.world, part, *self.asked, rough, kept, self.links.gossip, *self.shared)
        spent = (int(result.last[name]) for name in BY_LINKS)
        self.links.gossip = RankGossip(self.links.gossip.travel, *spent)
        self.costs.add(result.columns, BY_LINKS)
        self.last = result
        return Run(result.status, result.x, near, last)

    def _part(self, centre: Array, tilt: Array) -> Part:
        """Return this rank's nodes relative to a common point, with linear terms, among them those of `held`."""
        shifted, l2, counts = Shifted(self.own, centre, tilt), self.agreed.l2, self.agreed.counts
        samples = {"fewest": int(counts.min()), "most": int(counts.max()), "alike": self.agreed.count}

        def settle(most: float) -> Shifted:
            for problem in (shifted, self.own):
                problem.mu, problem.L = l2, l2 + most
            return shifted

        names = self.agreed.names
        return Part(shifted, len(names), samples, lambda mu: self.agreed.about(), listed=names, settle=settle)

    def _checkpoints(self, number: int) -> Checkpoints | None:
        """Return the checkpoints of a stage, in a folder of its own; resumed if there are any."""
        if self.kept is None:
            return None
        of_stage = replace(self.kept, folder=self.kept.path / f"stage-{number:02d}")
        begun = at_rank_0(self.world, lambda: len(generations(of_stage.path))) > 0
        return replace(of_stage, resume=self.kept.resume and (begun or number == 1))

    def result(self, rows: Array, status: str) -> Result:
        """Return one result of all stages: one table, and the provenance of the last one."""
        about = {**self.last.provenance, "tol": self.request.tol, "stages": len(self.costs.tables)}
        if status == "stages":
            status, about["message"] = "stalled", f"the intercepts had not settled after {about['stages']} stages"
        about["problem"] = {**about["problem"], "type": self.agreed.kind}
        joined: Result = replace(self.last, x=rows, history=self.costs.history, status=status, provenance=about)
        return joined


def _own_names(world: Ranks, data: NodeData) -> list[str]:
    """Return this rank's nodes, dealt out from the shards that all ranks see; set the partition."""
    first, end = world.partition.of(world.rank)
    text = json.dumps(data.seen()).encode()
    sizes = world.collect(np.full((1, end - first, 1), float(len(text))))
    longest = np.zeros(1)
    if sizes is not None:
        longest[0] = max(part.max() for part in sizes)
    world.tell(longest)
    said = np.zeros((1, end - first, int(longest[0])), dtype=np.uint8)
    said[0, 0, : len(text)] = np.frombuffer(text, dtype=np.uint8)
    parts = world.collect(said)
    plan = b""
    if parts is not None:
        seen = [json.loads(bytes(part[0, 0]).rstrip(b"\0")) for part in parts]
        plan = json.dumps(deal(seen, data.nodes)).encode()
    dealt = json.loads(tell_bytes(world, plan))
    if isinstance(dealt, str):
        raise InputError(dealt)
    counts = [len(names) for names in dealt]
    world.partition = Partition(data.nodes, world.ranks, np.concatenate([[0], np.cumsum(counts)]))
    own: list[str] = dealt[world.rank]
    return own


def deal(seen: list[dict[str, str]], nodes: int) -> list[list[str]] | str:
    """Return the nodes of each rank, given the names and checksums of the shards that it sees, or an error message.

    Ranks that share a folder, and so see the same shards, divide them among themselves.

    Examples
    --------
    >>> shared, other = {"a": "1", "b": "2", "c": "3"}, {"d": "4"}
    >>> deal([shared, shared, other], 4)
    [['a'], ['b', 'c'], ['d']]
    >>> deal([{"a": "1"}, {"a": "2"}], 2)
    'ranks 0 and 1 have different shards of the same name, a; recreate one with another --node'
    """
    for rank, names in enumerate(seen):
        for other in range(rank):
            both = min(names.keys() & seen[other].keys(), default=None)
            if both is not None and names != seen[other]:
                if names[both] != seen[other][both]:
                    return (
                        f"ranks {other} and {rank} have different shards of the same name, {both}; recreate one with "
                        "another --node"
                    )
                return (
                    f"ranks {other} and {rank} both see the shard {both}, but not the same folder; let them see the "
                    "same shards, or none in common"
                )
    found = len({name for names in seen for name in names})
    if found != nodes:
        return (
            f"the ranks see {found} shards, but there should be {nodes} nodes; give --nodes {found}, or start all ranks"
        )
    dealt = []
    for rank, names in enumerate(seen):
        sharing = [other for other, theirs in enumerate(seen) if theirs == names]
        if len(sharing) > len(names):
            some = ", ".join(sorted(names)[:5])
            return f"{len(sharing)} ranks cannot share the shards {some}; start {len(names)} or fewer there"
        dealt.append(sorted(names)[slice(*Partition(len(names), len(sharing)).of(sharing.index(rank)))])
    return dealt
