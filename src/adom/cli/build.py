"""From settings to a network, a problem and parameters."""

import math
import re
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, nearest
from ..util import files
from .defaults import kinds
from .output import busy
from .settings import DATA_SETS, PARAMETERS, Config

if TYPE_CHECKING:
    from ..algorithms import Method
    from ..data.shards import Shards
    from ..networks import Network
    from ..problems.base import Problem
    from ..problems.logistic import LogisticRegression

MOST_NUMBERS = 2**31
"""The most numbers that synthetic data may hold (16 GB)."""
MOST_KAPPA = 1e15
"""Beyond, mu is lost beside L in rounding."""


def both(config: Config) -> "tuple[Network, LogisticRegression]":
    """Build the network and the problem on it, saying so on a terminal."""
    table = config.problem
    if table.nodes is not None and table.data is None and table.shards is None:
        _check_synthetic(config, table.nodes)  # before a network is built, which may take its time
    if table.data is not None:
        check_file(table.data)
    with busy("building the network and the problem"):
        built = network(config)
        made = problem(config, built.nodes)
    if made.kappa > MOST_KAPPA:
        raise InputError(
            f"l2 = {table.l2!r} makes kappa = {made.kappa:.3g}, beyond the {MOST_KAPPA:g} that float64 can tell apart; "
            "take a larger --l2, or give --kappa"
        )
    return built, made


def network(config: Config) -> "Network":
    """Build the network that the settings describe."""
    from .. import networks

    table = config.network
    chosen = kinds(str(table.kind))
    # Those that bring their own number of nodes come first: the others take it over.
    made: dict[str, Network] = {}
    for kind in sorted(set(chosen), key=lambda kind: kind not in ("contacts", "infectious")):
        nodes = next(iter(made.values())).nodes if made else config.problem.nodes
        made[kind] = _member(kind, config, nodes)
    members = [made[kind] for kind in chosen]
    if len(members) > 1:
        whole = networks.alternate(members, **({} if table.every is None else {"every": table.every}))
    elif table.every is not None and members[0].period > 1:
        whole = networks.slowed(members[0], every=table.every)
    else:
        whole = members[0]
    if table.failing is None:
        return whole
    graphs = max(int(table.graphs or 1), whole.period)
    return networks.failing(whole, table.failing, graphs=graphs, seed=_seed(config))


def _seed(config: Config) -> int:
    return config.problem.seed if config.network.seed is None else config.network.seed


def _member(kind: str, config: Config, nodes: int | None) -> "Network":
    from .. import networks

    table, seed = config.network, _seed(config)
    if kind == "contacts":
        return networks.from_contacts(table.contacts, window=table.window or 1, nodes=nodes, repair=bool(table.repair))
    if kind == "infectious":
        from ..data.infectious import infectious

        return infectious()
    assert nodes is not None, "only a contact list brings its own number"
    graphs = table.graphs or 1
    if kind == "geometric":
        radius = None if table.chi is not None and "waypoint" in str(table.kind) else table.radius
        return networks.geometric(nodes, radius, chi=table.chi, graphs=graphs, seed=seed)
    if kind == "waypoint":
        assert table.radius is not None
        assert table.speed is not None
        return networks.waypoint(nodes, table.radius, graphs=graphs, speed=table.speed, seed=seed)
    if kind == "erdos-renyi":
        assert table.probability is not None
        return networks.erdos_renyi(nodes, table.probability, graphs=graphs, seed=seed)
    if kind == "expander":
        assert table.degree is not None
        return networks.expander(nodes, table.degree, graphs=graphs, seed=seed)
    if kind == "torus":
        return networks.torus(*_grid(nodes))
    still = {"ring": networks.ring, "star": networks.star, "path": networks.path, "complete": networks.complete}
    return still[kind](nodes)


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


def problem(config: Config, nodes: int) -> "LogisticRegression":
    """Build the problem that the settings describe, on the network's number of nodes."""
    from ..problems.logistic import LogisticRegression

    table = config.problem
    if table.shards is not None:
        return shards(config).whole()
    features, labels = _given(config, nodes) if table.data is not None else _synthetic(config, nodes)
    if table.split in (None, "contiguous"):
        return LogisticRegression(features, labels, nodes, l2=table.l2, kappa=table.kappa)
    from ..data.splits import split

    more = {} if table.concentration is None else {"concentration": table.concentration}
    data = split(features, labels, nodes, str(table.split), seed=table.seed, **more)
    return LogisticRegression.from_nodes(data, l2=table.l2, kappa=table.kappa)


def shards(config: Config) -> "Shards":
    """Return the data that lie in one file a node, none of which is opened yet."""
    from ..data.shards import Shards

    table = config.problem
    return Shards(str(table.shards), l2=table.l2, kappa=table.kappa)


def _given(config: Config, nodes: int) -> tuple[Any, Any]:
    """Return the samples of a known data set or of a file, as many as are asked for."""
    from ..data.sample_files import read
    from ..data.samples import load
    from ..data.sets import SAMPLES

    table = config.problem
    if table.data in SAMPLES:
        features, labels = load(table.data)
        if table.label is not None or table.dim not in (None, features.shape[1]):
            raise InputError(
                f"{table.data} is a data set with its own labels and {features.shape[1]} features; "
                f"leave --label and --dim out, or give ./{table.data} if a file of yours is meant"
            )
    else:
        features, labels = read(str(table.data), label=table.label, features=table.dim)
    if nodes > len(labels):
        raise InputError(
            f"{table.data} has {len(labels)} samples, too few for {nodes} nodes: every node needs one at least; "
            f"take --nodes {max(2, len(labels))} or fewer"
        )
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
    """Refuse data that are neither a file nor a known set, before a network is built."""
    if data in DATA_SETS or files.kind(data) in ("file", "folder"):
        return
    if files.kind(data) == "other":
        raise InputError(f"cannot read {data}: it is a pipe or a device; write its content to a file first")
    if data.startswith("infectious"):
        raise InputError(f"{data} is a network, not samples; give --network infectious")
    remedy = "check the path and its permissions"
    if not Path(data).suffix:  # then a data set may have been meant
        remedy = f"as a data set: {nearest(data, DATA_SETS)}"
    try:
        Path(data).stat()
        why = "No such file or directory"
    except (OSError, ValueError) as error:
        why = files.reason(error)
    raise InputError(f"cannot read {files.named(data)}: {why}; {remedy}")


def _check_synthetic(config: Config, nodes: int) -> tuple[int, int]:
    """Return samples and dim of synthetic data, or refuse them."""
    samples, dim = config.problem.samples, config.problem.dim
    assert samples is not None
    assert dim is not None
    if dim < 4:
        raise InputError(f"dim must be at least 4 for synthetic data, got {dim}; e.g. --dim 40")
    if nodes * samples * dim > MOST_NUMBERS:
        size = nodes * samples * dim * 8 / 1e9
        raise InputError(
            f"{nodes} nodes x {samples} samples x {dim} features take {size:.0f} GB; "
            "take fewer by --nodes, --samples or --dim"
        )
    return samples, dim


def _synthetic(config: Config, nodes: int) -> tuple[Any, Any]:
    table = config.problem
    samples, dim = _check_synthetic(config, nodes)

    from sklearn.datasets import make_classification

    features, labels = make_classification(n_samples=nodes * samples, n_features=dim, random_state=table.seed)
    return features, labels


def check_run(config: Config, methods: "Sequence[type[Method]]") -> None:
    """Refuse a wrong oracle or wrong parameters of these methods before anything is built, and before JAX is loaded."""
    check_oracle(config.run.oracle)
    check_parameters(config.run.parameters, methods)


def check_oracle(text: str) -> None:
    """Refuse what is no oracle."""
    if not re.fullmatch("auto|exact|a?gd:0*[1-9][0-9]{0,8}", text):
        close = nearest(text, ("auto", "exact", "gd:1", "agd:1")).partition("known")[0]
        raise InputError(
            f"unknown oracle {text!r}; {close}known: auto, exact, gd:T and agd:T with T inner steps, such as gd:1"
        )


def check_parameters(text: str, methods: "Sequence[type[Method]]") -> None:
    """Refuse parameters that are neither a protocol's nor the methods' own."""
    given = parameters(text)
    values = dict(given) if isinstance(given, dict) else {}
    protocol = values.pop("protocol", "theory") if values else given
    if protocol not in PARAMETERS:
        raise InputError(f"unknown parameters {protocol!r}; {nearest(protocol, PARAMETERS)}, or values as in eta=0.1")
    if values and protocol == "tuned":
        raise InputError(f"parameters {text!r}: tuned ones take no values beside them; give tuned alone")
    for method in methods:
        known = [field.name for field in fields(method)]  # type: ignore[arg-type]  # every method is a dataclass
        odd = next((name for name in values if name not in known), None)
        if odd is not None and len(methods) > 1:
            raise InputError(
                f"parameters {text!r} do not suit {method.title}, which has {', '.join(known)}; "
                "name the methods that they suit with --methods"
            )
        if odd is not None:
            raise InputError(f"{method.title} has no parameter {odd!r}; {nearest(odd, known, 'it has')}")


def budget(config: Config, problem: "Problem | Shards") -> dict[str, Any]:
    """Return how long to run, when to stop and what to record, as `adom.solve` and `adom.compare` take it."""
    run, tol = config.run, config.run.tol
    if tol is None and hasattr(problem, "solution"):  # where data stay home, nobody knows the error at the start
        tol = run.rtol * problem.nodes * float((problem.solution() ** 2).sum()) or None
    return {
        "rounds": run.rounds,
        "tol": tol,
        "record_every": run.record_every,
        "dtype": run.dtype,
    }


def parameters(text: str) -> str | dict[str, Any]:
    """Read "unit", "theory", "eta=0.1,tau=0.2" or "unit,eta=0.1" in the form that `adom.solve` takes.

    Examples
    --------
    >>> parameters("unit"), parameters("eta=0.1, tau=2e-3"), parameters("unit,eta=1")
    ('unit', {'eta': 0.1, 'tau': 0.002}, {'protocol': 'unit', 'eta': 1.0})
    """
    if "=" not in text:
        return text.strip()
    found: dict[str, Any] = {}
    for number, part in enumerate(text.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals and number == 0:
            found["protocol"] = name
            continue
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = math.nan
        if not name or not math.isfinite(found[name]):
            raise InputError(
                f"parameters must read name=value,... with finite numbers, got {part.strip()!r}; e.g. unit,eta=0.1"
            )
    return found
