"""Every setting of a run, once: its type, its default, its rule and its help.

The flags of the commands, the tables of a configuration file and its validation are all made from the
classes here. ``None`` means "not given"; what is then taken stands in `USUAL` and in `adom.cli.defaults`.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

Tables = dict[str, dict[str, Any]]
"""Settings by table and name, such as ``{"problem": {"nodes": 20}}``."""


KINDS: dict[str, tuple[str, ...]] = {
    "geometric": ("radius", "chi", "graphs"),
    "waypoint": ("radius", "graphs", "speed"),
    "erdos-renyi": ("graphs", "probability"),
    "expander": ("graphs", "degree"),
    "ring": (),
    "star": (),
    "path": (),
    "complete": (),
    "torus": (),
    "contacts": ("contacts", "window", "repair"),
    "infectious": (),
}
"""The kinds of network, and the settings that belong to each alone."""

# The library has these too, but loads NumPy or JAX with them; a test holds the two together.
DATA_SETS = ("a6a", "w6a", "ijcnn1")
SPLITS = ("contiguous", "shuffled", "label", "dirichlet")
PARAMETERS = ("theory", "unit", "tuned")
ORACLES = ("auto", "exact", "gd:1", "gd:10", "agd:10")  # the last three are examples
DTYPES = ("float64", "float32")
ENGINES = ("local", "mpi")


@dataclass(frozen=True)
class Setting:
    """What there is to say about a setting beside its type and default."""

    help: str
    flag: str = ""  # by default --name, with - for _
    least: float | None = None
    above: float | None = None  # as `least`, but itself not allowed
    most: float | None = None
    choices: tuple[str, ...] = ()  # what it must be one of
    example: Any = None  # where there is no default that would be one

    def broken(self, value: float) -> str:
        """Return the rule that a number breaks, in words; "" where it breaks none.

        Examples
        --------
        >>> rule = Setting("", above=0, most=1)
        >>> rule.broken(0.5), rule.broken(0), rule.broken(2), rule.broken(float("nan"))
        ('', 'above 0', 'at most 1', 'a finite number')
        """
        if value - value != 0:
            return "a finite number"
        if self.least is not None and value < self.least:
            return f"at least {self.least:.10g}"
        if self.above is not None and value <= self.above:
            return f"above {self.above:.10g}"
        return "" if self.most is None or value <= self.most else f"at most {self.most:.10g}"


@dataclass(frozen=True, kw_only=True)
class ProblemTable:
    """``[problem]``: logistic regression on a file or on synthetic data."""

    data: Annotated[
        str | None,
        Setting(
            "a6a, w6a or ijcnn1 (`adom data`), or a LIBSVM (also .bz2, .gz, .xz), CSV or NPZ file of labelled samples; "
            "left out: synthetic data."
        ),
    ] = None
    shards: Annotated[
        str | None,
        Setting("Folder that `adom split` wrote: with engine mpi every rank opens its own nodes' files only."),
    ] = None
    label: Annotated[str | None, Setting("Label column of a CSV file, name or number; left out: the last.")] = None
    nodes: Annotated[
        int | None, Setting("Number of nodes; contact lists and infectious bring their own.", least=2, example=100)
    ] = None
    samples: Annotated[
        int | None, Setting("Samples per node; left out, a file is shared out to its end.", least=1, example=100)
    ] = None
    split: Annotated[
        str | None,
        Setting(
            "How samples are dealt out to nodes: contiguous, shuffled, label or dirichlet; left out: contiguous.",
            choices=SPLITS,
        ),
    ] = None
    concentration: Annotated[
        float | None,
        Setting(
            "How alike the nodes of a dirichlet split are; left out: 0.5, fairly unlike.",
            above=0,
            most=1e6,
            example=0.5,
        ),
    ] = None
    dim: Annotated[int | None, Setting("Number of features; a file has its own.", least=1, example=40)] = None
    kappa: Annotated[
        float | None, Setting("Condition number L/mu, reached by choosing l2.", above=1, most=1e15, example=100)
    ] = None
    l2: Annotated[
        float | None, Setting("The regulariser itself, instead of kappa.", above=0, most=1e12, example=0.1)
    ] = None
    seed: Annotated[int, Setting("Seed of synthetic data, the split and the network.", least=0, most=2**32 - 1)] = 0


@dataclass(frozen=True, kw_only=True)
class NetworkTable:
    """``[network]``: one kind of graph, or several in turn."""

    kind: Annotated[
        str | None,
        Setting(
            "geometric, waypoint, erdos-renyi, expander, ring, star, path, complete, torus, contacts or "
            "infectious; several, separated by commas, take turns.",
            flag="--network",
        ),
    ] = None
    radius: Annotated[
        float | None,
        Setting(
            "Link points of the unit square closer than this (geometric, waypoint).", above=0, most=10, example=0.3
        ),
    ] = None
    chi: Annotated[
        float | None, Setting("Choose the radius for this condition number (geometric).", least=1, example=30)
    ] = None
    graphs: Annotated[
        int | None,
        Setting("Graphs drawn before they repeat; fewer beyond 150 nodes.", least=1, most=10**7, example=1000),
    ] = None
    probability: Annotated[
        float | None, Setting("Probability of each link (erdos-renyi).", least=0, most=1, example=0.1)
    ] = None
    degree: Annotated[int | None, Setting("Links of each node, an even number (expander).", least=2, example=4)] = None
    speed: Annotated[
        float | None, Setting("Distance that a node walks in a round (waypoint).", above=0, example=0.02)
    ] = None
    contacts: Annotated[str | None, Setting("File with one contact `t u v` a line.")] = None
    window: Annotated[
        int | None, Setting("Time that makes up one round of a contact list.", least=1, most=2**62, example=20)
    ] = None
    repair: Annotated[bool | None, Setting("Join the components of contact graphs that fall apart.")] = None
    failing: Annotated[
        float | None,
        Setting("Probability that a link fails in a round, on any network.", least=0, most=1, example=0.1),
    ] = None
    every: Annotated[
        int | None, Setting("Rounds to stay with each graph, or each kind, before the next.", least=1, example=20)
    ] = None
    seed: Annotated[
        int | None, Setting("Seed of the network, where it should differ.", flag="--network-seed", least=0, example=1)
    ] = None


@dataclass(frozen=True, kw_only=True)
class RunTable:
    """``[run]``: the method and how long it runs."""

    method: Annotated[str, Setting("Name of the method; `adom methods` lists them.")] = "adom"
    parameters: Annotated[
        str,
        Setting("theory, unit, tuned, or name=value,... in place of some of theory's (unit,name=value: of unit's)."),
    ] = "unit"
    oracle: Annotated[str, Setting("How a dual method gets its gradient: auto, exact, gd:T or agd:T.")] = "auto"
    rounds: Annotated[int, Setting("Budget of communication rounds.", least=1, most=10**12)] = 5000
    rtol: Annotated[float, Setting("Stop at this error relative to the start; 0: do not.", least=0, most=1)] = 1e-10
    tol: Annotated[float | None, Setting("Stop at this squared error instead.", above=0, example=1e-8)] = None
    record_every: Annotated[int, Setting("Iterations from one record to the next.", least=1, most=10**12)] = 1
    dtype: Annotated[str, Setting("Precision of the numbers: float64 or float32.", choices=DTYPES)] = "float64"
    engine: Annotated[
        str, Setting("What runs it: local, or mpi: several processes, by mpirun or by --ranks.", choices=ENGINES)
    ] = "local"


@dataclass(frozen=True, kw_only=True)
class MpiTable:
    """``[mpi]``: what engine mpi takes beside the run."""

    ranks: Annotated[int | None, Setting("Start this many processes here, by mpirun.", least=1, example=4)] = None
    checkpoints: Annotated[str | None, Setting("Folder for checkpoints; left out: none are written.")] = None
    every_rounds: Annotated[
        int | None,
        Setting("Rounds from one checkpoint to the next.", flag="--checkpoint-rounds", least=1, example=1000),
    ] = None
    every_seconds: Annotated[
        float | None,
        Setting(
            "Seconds from one checkpoint to the next; left out: 60.",
            flag="--checkpoint-seconds",
            least=0.001,
            example=60,
        ),
    ] = None
    resume: Annotated[
        bool | None, Setting("Go on from the latest whole checkpoint; the number of ranks may differ.")
    ] = None
    patience: Annotated[
        float | None,
        Setting("Seconds without an answer after which a rank counts as hanging; left out: 10.", least=0.1, example=10),
    ] = None
    unwatched: Annotated[
        bool | None,
        Setting(
            "With --shards: no records of consensus and gradient, for which rows travel to rank 0.", flag="--no-monitor"
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CompareTable:
    """``[compare]``: the methods of a comparison, in place of ``[run]``'s one."""

    methods: Annotated[
        str | None, Setting("Names of the methods, separated by commas; left out: all of `adom methods`.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class SweepTable:
    """``[sweep]``: lists of what a sweep varies, in place of ``[run]``'s one of each; they stand in a file only."""

    methods: Annotated[list[str] | None, Setting("Names of the methods.")] = None
    parameters: Annotated[list[str] | None, Setting("Bases: theory, unit, or as [run] parameters.")] = None
    oracles: Annotated[list[str] | None, Setting("Ways to get a dual method's gradient.")] = None
    kappas: Annotated[list[float] | None, Setting("Condition numbers of the same data.")] = None
    seeds: Annotated[list[int] | None, Setting("Seeds to draw the network with.")] = None
    grid: Annotated[dict[str, Any] | None, Setting("Lists of values, by parameter.")] = None
    factors: Annotated[dict[str, Any] | None, Setting("Lists of multiples of the base's values, by parameter.")] = None
    assume: Annotated[dict[str, Any] | None, Setting("Lists of multiples of mu, L and chi.")] = None
    settings: Annotated[list[dict[str, float]] | None, Setting("Combinations of values, by parameter.")] = None


TABLES: dict[str, type[Any]] = {
    "problem": ProblemTable,
    "network": NetworkTable,
    "run": RunTable,
    "mpi": MpiTable,
    "compare": CompareTable,
    "sweep": SweepTable,
}

USUAL: Tables = {
    "problem": {"nodes": 100, "samples": 100, "dim": 40, "kappa": 100.0},
    "network": {"graphs": 1000},
}
"""The paper's default experiment: what is taken where neither a flag nor a file says otherwise."""

SMALL: Tables = {
    "problem": {"nodes": 20, "samples": 20, "dim": 10, "kappa": 10.0},
    "network": {"graphs": 50},
    "run": {"rounds": 500},
}
"""A smaller experiment, for checks that look into every round."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run."""

    problem: ProblemTable = field(default_factory=ProblemTable)
    network: NetworkTable = field(default_factory=NetworkTable)
    run: RunTable = field(default_factory=RunTable)
    mpi: MpiTable = field(default_factory=MpiTable)
    compare: CompareTable = field(default_factory=CompareTable)
    sweep: SweepTable = field(default_factory=SweepTable)
