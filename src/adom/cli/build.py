"""Build a network, a problem and parameters from settings."""

import math
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.sets import SAMPLES
from ..errors import InputError, nearest
from ..run.request import Request, read_parameters
from ..util import files
from ..util.checks import check_real, check_whole
from .config import kinds, lie_apart
from .error_text import naming
from .output import busy
from .own_code import problem_of
from .settings import NAMED, SETTINGS, Config, kinds_of_network

if TYPE_CHECKING:
    from ..algorithms import Method
    from ..data.node_data import NodeData
    from ..data.shards import Shards
    from ..networks import Network
    from ..problems.base import Problem

SAMPLES_ALIKE = "samples"
"""What has equal weight by default: samples, not nodes."""


def both(config: Config) -> "tuple[Network, Problem]":
    """Build the network and the problem on it, with a spinner on a terminal."""
    _check_data(config, config.problem.nodes)  # before building a network, which may take long
    with busy("building the network and the problem"):
        on_network = network(config)
        to_solve = problem(config, on_network.nodes)

    from ..problems.samples import MOST_KAPPA

    if to_solve.kappa > MOST_KAPPA and config.problem.own is None:
        raise InputError(
            f"l2 = {getattr(to_solve, 'l2', None)!r} makes kappa = {to_solve.kappa:.3g}, more than the {MOST_KAPPA:g} "
            "that float64 allows; take a larger --l2, or give --kappa"
        )
    return on_network, to_solve


def _check_data(config: Config, nodes: int | None) -> None:
    """Refuse samples that are not there or cannot be made; nothing is read."""
    table = config.problem
    if table.samples is not None:
        check_whole("samples", table.samples)
    if table.data is not None:
        check_file(table.data)
    elif nodes is not None and table.shards is None and table.own is None:
        from ..data.synthetic import check_classification

        assert table.samples is not None
        assert table.dim is not None
        check_classification(nodes * table.samples, table.dim, table.seed)


def network(config: Config) -> "Network":
    """Build the network that the settings describe."""
    from .. import networks

    table = config.network
    chosen = kinds(str(table.kind))
    # Kinds that bring their own number of nodes come first: the others take it over.
    by_kind: dict[str, Network] = {}
    for kind in sorted(set(chosen), key=lambda kind: kind not in ("contacts", "infectious")):
        nodes = next(iter(by_kind.values())).nodes if by_kind else config.problem.nodes
        with naming(**NAMED):
            by_kind[kind] = _member(kind, config, nodes)
    members = [by_kind[kind] for kind in chosen]
    if len(members) > 1:
        whole = networks.alternate(members, **({} if table.every is None else {"every": table.every}))
    elif table.every is not None:
        slowed = networks.slowed(members[0], every=table.every)
        whole = slowed if members[0].period > 1 else members[0]  # one graph is the same however long it is kept
    else:
        whole = members[0]
    if table.failing is not None:
        graphs = max(int(table.graphs or 1), whole.period)
        with naming(probability="failing"):
            whole = networks.failing(whole, table.failing, graphs=graphs, seed=_seed(config), repair=bool(table.repair))
    return _with_links(whole, config)


def _with_links(network: "Network", config: Config) -> "Network":
    """Return the network with the imperfect links that the settings ask for."""
    from ..networks.imperfect import LINKS

    idle = {name: value for name, value in vars(config.network).items() if value and name.startswith("no_")}
    for link in LINKS.values():
        given = {name: value for name in link.options if (value := getattr(config.network, name)) is not None}
        if all(name.startswith("no_") for name in given):
            continue
        arguments = {}
        for name, value in given.items():
            idle.pop(name, None)
            read = _rounds_by_node(name, value) if isinstance(value, str) else value
            arguments[link.options[name]] = not read if name.startswith("no_") else read
        with naming(**{argument: name for name, argument in link.options.items()}):
            network = link.make(network, seed=_seed(config), **arguments)
    for name in idle:
        beside = [other for link in LINKS.values() if name in link.options for other in link.options if other != name]
        flags = [SETTINGS["network", each].flag for each in (name, *beside)]
        raise InputError(f"{flags[0]} has no effect on its own; give {' or '.join(flags[1:])} too, or leave it out")
    return network


def _rounds_by_node(name: str, text: str) -> dict[int, list[int]]:
    """Read "5:800,7:1200": each node and its rounds.

    Examples
    --------
    >>> _rounds_by_node("leaving", "5:800, 7:1200,5:2000")
    {5: [800, 2000], 7: [1200]}
    """
    rounds: dict[int, list[int]] = {}
    for part in filter(None, text.split(",")):
        node, _, k = (piece.strip() for piece in part.partition(":"))
        if not (node.isdecimal() and k.isdecimal()):
            raise InputError(f"--{name} must read node:round,..., got {part.strip()!r}; e.g. --{name} 5:800,7:1200")
        rounds.setdefault(int(node), []).append(int(k))
    return rounds


def _seed(config: Config) -> int:
    seed = config.problem.seed if config.network.seed is None else config.network.seed
    return check_whole("seed", seed, 0, "e.g. seed=0")


def _member(kind: str, config: Config, nodes: int | None) -> "Network":
    from ..networks import from_contacts, torus
    from ..networks.recipes import GENERATORS

    table = config.network
    given = {argument: getattr(table, name) for name, argument in kinds_of_network()[kind].items()}
    arguments = {argument: value for argument, value in given.items() if value is not None}
    if kind == "contacts":
        return from_contacts(nodes=nodes, **arguments)
    if kind == "infectious":
        from ..data.paper_data import infectious

        return infectious()
    assert nodes is not None, "only a contact list brings its own number"
    if kind == "torus":
        return torus(*_grid(nodes))
    if kind == "geometric" and "chi" in arguments:
        arguments.pop("radius", None)  # that of waypoint
    make = GENERATORS[kind.replace("-", "_")]
    seed = _seed(config)
    seeded = {"seed": seed} if "seed" in signature(make).parameters else {}
    member: Network = make(nodes, **arguments, **seeded)
    return member


def _grid(nodes: int) -> tuple[int, int]:
    """Return rows and columns, as nearly a square as `nodes` allows.

    Examples
    --------
    >>> _grid(100), _grid(12)
    ((10, 10), (3, 4))
    """
    for rows in range(math.isqrt(max(nodes, 0)), 2, -1):
        if nodes % rows == 0:
            return rows, nodes // rows
    side = max(3, round(math.sqrt(max(nodes, 0))))
    raise InputError(
        f"nodes = {nodes} makes no torus: it must be rows x columns with 3 or more of each; "
        f"the nearest square is nodes = {side * side}"
    )


def problem(config: Config, nodes: int) -> "Problem":
    """Build the problem that the settings describe, on the network's number of nodes."""
    from ..problems.linear_model import LogisticRegression
    from ..problems.samples import l2_of

    table = config.problem
    _check_data(config, nodes)
    if table.own is not None:
        return problem_of(table, nodes)
    if table.shards is not None:
        found: Any = shards(config)
        if not hasattr(found, "whole"):
            raise InputError(f"{table.shards} holds shards of `adom shard`, which `adom solve` alone takes; use that")
        whole: LogisticRegression = found.whole()
        return whole
    features, labels = _samples(config, nodes)
    l2 = table.l2 if table.C is None else l2_of(table.C, len(labels))
    if table.split in (None, "contiguous"):
        return LogisticRegression(features, labels, nodes, l2=l2, kappa=table.kappa, count=table.count or SAMPLES_ALIKE)
    from ..data.splits import split

    more = {} if table.concentration is None else {"concentration": table.concentration}
    data = split(features, labels, nodes, str(table.split), seed=table.seed, **more)
    return LogisticRegression.from_nodes(data, l2=l2, kappa=table.kappa, count=table.count or SAMPLES_ALIKE)


def shards(config: Config) -> "Shards | NodeData":
    """Return data in one file per node, without reading them."""
    from ..data.node_data import NodeData
    from ..data.shards import Shards

    table = config.problem
    if lie_apart(str(table.shards)):
        more: dict[str, Any] = {"C": table.C, "alpha": table.alpha, "l2": table.l2, "kappa": table.kappa}
        if table.model is not None:
            more["model"] = table.model
        if table.memory is not None:
            more["memory"] = 1e6 * check_real("memory", table.memory, 0.0, math.inf, "it is in MB, e.g. memory=1000")
        return NodeData(
            str(table.shards),
            nodes=table.nodes,
            scale=bool(table.scale),
            intercept=not table.bare,
            count=table.count or SAMPLES_ALIKE,
            **more,
        )
    return Shards(str(table.shards), l2=table.l2, kappa=table.kappa, C=table.C, count=table.count or SAMPLES_ALIKE)


def _samples(config: Config, nodes: int) -> tuple[Any, Any]:
    """Draw samples, or read as many of a known data set or of a file as the nodes need."""
    from ..data.paper_data import load
    from ..data.sample_files import read
    from ..data.synthetic import classification

    table = config.problem
    if table.data is None:
        assert table.samples is not None
        assert table.dim is not None
        return classification(nodes * table.samples, table.dim, table.seed)
    if table.data in SAMPLES:
        features, labels = load(table.data)
        if table.label is not None or table.dim not in (None, features.shape[1]):
            raise InputError(
                f"{table.data} is a data set with its own labels and {features.shape[1]} features; "
                f"leave --label and --dim out, or give ./{table.data} if a file of yours is meant"
            )
    else:
        features, labels = read(str(table.data), label=table.label, features=table.dim)
    if table.samples is None:
        return features, labels
    wanted = nodes * table.samples
    if wanted > len(labels):
        raise InputError(
            f"{table.data} has {len(labels)} samples, too few for {nodes} nodes with samples = {table.samples} "
            f"each; take --samples {len(labels) // nodes}, or fewer nodes"
        )
    return features[:wanted], labels[:wanted]


def check_file(data: str) -> None:
    """Refuse data that are neither a file nor a known data set."""
    if data in SAMPLES or files.kind(data) in ("file", "folder"):
        return
    if files.kind(data) == "other":
        raise InputError(f"cannot read {data}: it is a pipe or a device; write its content to a file first")
    if data.startswith("infectious"):
        raise InputError(f"{data} is a network, not samples; give --network infectious")
    remedy = "check the path and its permissions"
    if not Path(data).suffix:  # then a data set may have been meant
        remedy = f"as a data set: {nearest(data, SAMPLES)}"
    try:
        Path(data).stat()
        why = "No such file or directory"
    except (OSError, ValueError) as error:
        why = files.reason(error)
    raise InputError(f"cannot read {files.named(data)}: {why}; {remedy}")


def check_run(
    config: Config, methods: "Sequence[type[Method]]", texts: Sequence[str] = (), *, every: bool = True
) -> Request:
    """Refuse a wrong request or wrong parameters before anything is built.

    `texts` are parameters to check in place of the run's; unless `every` method must have them, names go unchecked.
    """
    run, patience = config.run, config.mpi.patience
    for text in texts or (run.parameters,):
        chosen = parameters(text)
        if isinstance(chosen, dict) and not every:
            chosen = {"protocol": chosen.get("protocol", "theory")}
        for method in methods:
            try:
                read_parameters(method, chosen)
            except InputError as error:
                if len(methods) == 1 or "has no parameter" not in str(error):
                    raise
                raise InputError(f"{error}; name the methods that have it with --methods") from None
    return Request(
        run.oracle,
        run.rounds,
        run.stop,
        run.record_every,
        run.engine,
        run.dtype,
        patience=Request.patience if patience is None else patience,
    )


def budget(config: Config, problem: "Problem | Shards | NodeData") -> dict[str, Any]:
    """Return rounds, tolerance, records and precision as arguments of `adom.solve` and `adom.compare`."""
    run, stop = config.run, config.run.stop
    tol = stop.error(problem) if hasattr(problem, "solution") else stop.tol  # shards do not know it
    return {"rounds": run.rounds, "tol": tol, "record_every": run.record_every, "dtype": run.dtype}


def parameters(text: str) -> str | dict[str, Any]:
    """Read "unit", "eta=0.1,tau=0.2" or "unit,eta=0.1" in the form that `adom.solve` takes.

    Examples
    --------
    >>> parameters("unit"), parameters("eta=0.1, tau=2e-3"), parameters("unit,eta=1")
    ('unit', {'eta': 0.1, 'tau': 0.002}, {'protocol': 'unit', 'eta': 1.0})
    """
    if "=" not in text:
        return text.strip()
    values: dict[str, Any] = {}
    for position, part in enumerate(text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals and position == 0:
            values["protocol"] = name
            continue
        try:
            values[name] = float(value)
        except ValueError:
            values[name] = math.nan
        if not name or not math.isfinite(values[name]):
            raise InputError(
                f"parameters must read name=value,... with finite numbers, got {part.strip()!r}; e.g. unit,eta=0.1"
            )
    return values
