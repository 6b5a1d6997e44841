"""Settings of a run, each described once: type, default and help.

Command-line options, the tables of a configuration file and the checks of both are made from the classes here.
``None`` means "not given"; the default is then in `USUAL` or `adom.cli.config`.
"""

from dataclasses import dataclass, field, fields
from functools import cache
from inspect import signature
from typing import Any

from ..algorithms import METHODS
from ..problems.losses import USUAL_MODEL, models
from ..run.request import AUTO, DTYPES, ENGINES, PROTOCOLS, TUNED, Stop
from ..util.setting import Tables, described, setting

PARAMETERS = (*PROTOCOLS, AUTO, TUNED)
DATA_SETS = ("a6a", "w6a", "ijcnn1")
"""Names of the data sets of samples; a copy of those in `adom.data.sets`, which takes long to load."""
ORACLES = ("auto", "exact", "gd:1", "gd:10", "agd:10")
"""Suggestions for completion."""
MODELS = ", ".join(f"{loss.name} (for {loss.words})" for loss in models(bounded=False).values())


GIVEN: dict[str, dict[str, str]] = {
    "torus": {},
    "contacts": {"contacts": "path_or_rows", "window": "window", "repair": "repair"},
    "infectious": {},
}
"""Kinds of network that are not made from a number of nodes, with their settings."""
NAMED = {"p": "probability"}
"""Settings that are not called like the argument of a generator."""


@cache
def kinds_of_network() -> dict[str, dict[str, str]]:
    """Return the kinds of network: for each, the settings besides those common to all, and which argument each is.

    Every generator of undirected graphs on a number of nodes is a kind. An option can only switch something on, so
    arguments that are true unless given are no settings.
    """
    from ..networks import Network
    from ..networks.recipes import GENERATORS

    found = {}
    for name, make in GENERATORS.items():
        called = signature(make)
        if "nodes" in called.parameters and called.return_annotation is Network:
            own = {NAMED.get(each, each): each for each, more in called.parameters.items() if more.default is not True}
            found[name.replace("_", "-")] = {
                setting: argument
                for setting, argument in own.items()
                if ("network", setting) in SETTINGS and setting != "seed"
            }
    return found | GIVEN


def splits() -> tuple[str, ...]:
    """Return the ways to split samples among nodes."""
    from ..data.splits import SPLITS

    return SPLITS


@dataclass(frozen=True, kw_only=True)
class ProblemTable:
    """``[problem]``: a problem on a file, shards or synthetic data, or the user's own."""

    data: str | None = setting(
        "a6a, w6a or ijcnn1 (`adom data`), or a LIBSVM (also .bz2, .gz, .xz), CSV or NPZ file of labelled samples; "
        "left out: synthetic data.",
        completions=DATA_SETS,
    )
    own: str | None = setting(
        "A problem of your own: module:name of a function or class that makes one, called with whichever of nodes, "
        "samples, dim, kappa, l2, split, concentration and seed it takes; the module may be in the current folder.",
        flag="--problem",
        example="mymodule:make",
    )
    shards: str | None = setting(
        "Folder that `adom shard` or `adom split` wrote: with engine mpi every rank opens its own nodes' files only."
    )
    model: str | None = setting(
        f"On shards of `adom shard`: {MODELS}; left out: {USUAL_MODEL}.",
        choices=lambda: tuple(models(bounded=False)),
    )
    scale: bool | None = setting(
        "On shards of `adom shard`: first scale all features to mean 0 and standard deviation 1."
    )
    memory: float | None = setting(
        "On shards of `adom shard`: MB that the samples of a node may take; larger shards stay on the disk and are "
        "read in blocks; left out: 268.",
        example=1000,
    )
    bare: bool | None = setting("On shards of `adom shard`: fit no intercept.", flag="--no-intercept")
    label: str | None = setting("Label column of a CSV file, name or number; left out: the last.")
    nodes: int | None = setting("Number of nodes; contact lists and infectious bring their own.", example=100)
    samples: int | None = setting("Samples per node; left out, a file is split to its end.", example=100)
    split: str | None = setting(
        "How samples are split among nodes: contiguous, shuffled, label or dirichlet; left out: contiguous.",
        choices=splits,
    )
    concentration: float | None = setting(
        "How alike the nodes of a dirichlet split are; left out: 0.5, fairly unlike.", example=0.5
    )
    dim: int | None = setting("Number of features; a file has its own.", example=40)
    kappa: float | None = setting("Condition number L/mu, reached by choosing l2.", example=100)
    l2: float | None = setting(
        "The regulariser itself, instead of kappa; on shards of `adom shard` it may be 0 for the method newton.",
        example=0.1,
    )
    C: float | None = setting(
        "scikit-learn's C, instead of kappa: l2 = 1 / (C N) for N samples; inf is for no penalty.",
        flag="--C",
        example=1,
        infinite=True,
    )
    alpha: float | None = setting(
        "scikit-learn's alpha of a model of numbers: l2 = alpha / N for ridge and huber, alpha for poisson and gamma.",
        example=1,
    )
    count: str | None = setting(
        "What counts alike if nodes have different numbers of samples: samples, as if pooled, or nodes; left out: "
        "samples.",
        choices=("samples", "nodes"),
    )
    seed: int = setting("Seed of synthetic data, the split and the network.", 0)


@dataclass(frozen=True, kw_only=True)
class NetworkTable:
    """``[network]``: one kind of graph, or several in turn."""

    kind: str | None = setting(
        "geometric, waypoint, erdos-renyi, expander, ring, star, path, complete, torus, contacts or "
        "infectious; several, separated by commas, take turns.",
        flag="--network",
        completions=lambda: tuple(kinds_of_network()),
        several=True,
    )
    radius: float | None = setting(
        "Link points of the unit square closer than this (geometric, waypoint).", example=0.3
    )
    chi: float | None = setting("Choose the radius for this condition number (geometric).", example=30)
    graphs: int | None = setting("Graphs drawn before they repeat; fewer beyond 150 nodes.", example=1000)
    probability: float | None = setting("Probability of each link (erdos-renyi).", example=0.1)
    degree: int | None = setting("Links of each node, an even number (expander).", example=4)
    speed: float | None = setting("Distance that a node walks in a round (waypoint).", example=0.02)
    contacts: str | None = setting("File with one contact `t u v` a line.")
    window: int | None = setting("Length of time that makes up one round of a contact list.", example=20)
    repair: bool | None = setting("Connect the components of disconnected graphs (contacts, waypoint, failing).")
    failing: float | None = setting("Probability that a link fails in a round, on any network.", example=0.1)
    one_way: float | None = setting(
        "Share of messages that are lost, independently in each direction of a link.", example=0.1
    )
    no_healing: bool | None = setting("Run methods as published, without repair after lost messages and nodes.")
    leaving: str | None = setting("Nodes that leave, and in which rounds: 5:800,7:1200.", example="5:800")
    joining: str | None = setting(
        "Nodes that join, likewise; one that did not leave before is absent until then.", example="5:900"
    )
    delay: int | None = setting("Rounds by which messages are late.", example=2)
    bits: int | None = setting("Bits of each number of a message.", example=8)
    keep: float | None = setting("Share of a message's numbers that are sent: the largest ones.", example=0.1)
    no_feedback: bool | None = setting(
        "Send coarse or partial rows themselves, not differences from what was sent before."
    )
    noise: float | None = setting("Standard deviation of noise on every number that arrives.", example=0.001)
    every: int | None = setting("Rounds to keep each graph, or each kind of network, before the next.", example=20)
    seed: int | None = setting(
        "Seed of the network, if it should differ from --seed.", flag="--network-seed", example=1
    )


@dataclass(frozen=True, kw_only=True)
class RunTable:
    """``[run]``: the method and how long it runs."""

    method: str = setting(
        "Name of the method, which `adom methods` lists, or module:Class of your own.",
        "adom",
        completions=tuple(METHODS),
    )
    parameters: str = setting(
        "auto, theory, unit, tuned, or name=value,... in place of some of theory's (unit,name=value: of unit's).",
        AUTO,
        completions=PARAMETERS,
    )
    oracle: str = setting(
        "How a dual method gets its gradient: auto, exact, gd:T or agd:T.", "auto", completions=ORACLES
    )
    rounds: int = setting("Budget of communication rounds.", 5000)
    rtol: float | None = setting("Stop at this error relative to the start; 0: never.", example=1e-6)
    tol: float | None = setting("Stop at this squared error instead.", example=1e-8)
    record_every: int = setting("Iterations from one record to the next.", 1)
    dtype: str = setting("Precision of the numbers: float64 or float32.", "float64", choices=DTYPES)
    engine: str = setting(
        "Where it runs: local, or mpi: several processes, by mpirun or by --ranks.", "local", choices=ENGINES
    )

    @property
    def stop(self) -> Stop:
        """Where a run stops."""
        return Stop(self.tol, self.rtol or None)

    @property
    def stop_flag(self) -> str:
        """The option that says where a run stops."""
        return "--rtol" if self.tol is None else "--tol"


@dataclass(frozen=True, kw_only=True)
class MpiTable:
    """``[mpi]``: settings of engine mpi."""

    ranks: int | None = setting("Start this many processes here, by mpirun.", example=4)
    checkpoints: str | None = setting("Folder for checkpoints; left out: none are written.")
    every_rounds: int | None = setting(
        "Rounds from one checkpoint to the next.", flag="--checkpoint-rounds", example=1000
    )
    every_seconds: float | None = setting(
        "Seconds from one checkpoint to the next; left out: 60.", flag="--checkpoint-seconds", example=60
    )
    resume: bool | None = setting("Go on from the latest whole checkpoint; the number of ranks may differ.")
    patience: float | None = setting(
        "Seconds without an answer after which a rank counts as hanging; left out: 10.", example=10
    )
    unwatched: bool | None = setting(
        "With --shards: no records of consensus and gradient, which send all rows to rank 0.", flag="--no-monitor"
    )


@dataclass(frozen=True, kw_only=True)
class CompareTable:
    """``[compare]``: lists that a comparison runs over, in place of single values."""

    methods: str | None = setting(
        "Names of the methods, separated by commas, also module:Class of your own; left out: eleven for changing "
        "networks; `all`: every one.",
        completions=tuple(METHODS),
        several=True,
    )
    seeds: int | None = setting(
        "Number of seeds, counted from --seed: each draws synthetic data, a shuffled or dirichlet split, and the "
        "network, unless --network-seed holds it. The table has medians over them; tuned parameters are searched on "
        "a seed of their own and judged on these.",
        example=5,
    )
    splits: str | None = setting(
        "Ways to split the samples, separated by commas, each compared: contiguous, shuffled, label, dirichlet.",
        completions=splits,
        several=True,
        example="shuffled,label",
    )
    networks: str | None = setting(
        "Kinds of network, separated by commas, each compared, in place of --network.",
        completions=lambda: tuple(kinds_of_network()),
        several=True,
        example="ring,geometric",
    )


@dataclass(frozen=True, kw_only=True)
class SweepTable:
    """``[sweep]``: lists that a sweep varies, in place of ``[run]``'s single values; only in a file."""

    methods: list[str] | None = None
    parameters: list[str] | None = None
    oracles: list[str] | None = None
    kappas: list[float] | None = None
    seeds: list[int] | None = None  # they draw what `adom compare --seeds` draws
    grid: dict[str, Any] | None = None  # lists of values, by parameter
    factors: dict[str, Any] | None = None  # lists of multiples of the base's values, by parameter
    assume: dict[str, Any] | None = None  # lists of multiples of mu, L and chi
    settings: list[dict[str, float]] | None = None  # combinations of values, by parameter


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run."""

    problem: ProblemTable = field(default_factory=ProblemTable)
    network: NetworkTable = field(default_factory=NetworkTable)
    run: RunTable = field(default_factory=RunTable)
    mpi: MpiTable = field(default_factory=MpiTable)
    compare: CompareTable = field(default_factory=CompareTable)
    sweep: SweepTable = field(default_factory=SweepTable)


TABLES: dict[str, type[Any]] = {table.name: table.type for table in fields(Config)}  # type: ignore[misc]  # no strings
SETTINGS = {(table, each.name): described(each, table) for table, cls in TABLES.items() for each in fields(cls)}
"""All settings by table and name."""

EXCLUSIVE: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("problem", ("kappa", "l2", "C", "alpha")),
    ("network", ("radius", "chi")),
    ("run", ("tol", "rtol")),
)
"""Settings of a table of which only one is given; an option takes the place of the others in a file."""
DISPLACED = {
    ("problem", "data"): ("samples", "dim", "label"),
    ("problem", "split"): ("concentration",),
    ("network", "contacts"): ("kind",),
}
"""An option, and the settings of a file that say nothing beside it."""

USUAL: Tables = {
    "problem": {"nodes": 100, "samples": 100, "dim": 40, "kappa": 100.0},
    "network": {"graphs": 1000},
    "run": {"rtol": 1e-10},
}
"""The paper's default experiment, for settings given neither by option nor by file."""

SMALL: Tables = {
    "problem": {"nodes": 20, "samples": 20, "dim": 10, "kappa": 10.0},
    "network": {"graphs": 50},
    "run": {"rounds": 500},
}
"""A smaller experiment, for checks of every round."""
