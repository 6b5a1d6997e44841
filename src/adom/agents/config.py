"""Read, check and complete the settings file of an agent: tables agent, neighbours, problem, run and files."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from ..data.node_data import Wanted
from ..data.node_shards import NAME as SHARD
from ..data.node_shards import shard_names
from ..errors import InputError, nearest, shown
from ..problems.losses import USUAL_MODEL, models
from ..problems.samples import COUNTS
from ..util import files
from ..util.checks import is_number
from .links import Keys
from .publishing import Quorum
from .wire import MOST_MEMBERS, check_name

Tables = dict[str, dict[str, Any]]
USUAL_L2 = 0.01
EXAMPLE = 'e.g. listen = "tls/0.0.0.0:7447"'


@dataclass(frozen=True)
class Config:
    """Settings of one agent; `TABLES` has the table that each belongs to."""

    name: str
    data: Path
    neighbours: Mapping[str, str]
    listen: str = "tcp/127.0.0.1:7447"
    keys: Keys | None = None
    patience: float = 1.0
    gone: float = 10.0
    gather: float = 5.0
    pace: float = 0.0
    kind: str = USUAL_MODEL
    l2: float | None = None
    C: float | None = None
    alpha: float | None = None
    kappa: float | None = None
    scale: bool = False
    intercept: bool = True
    nodes: int | None = None
    count: str = "samples"
    classes: tuple[float, float] = (-1.0, 1.0)
    dim: int | None = None
    method: str = "adom"
    chi: float | None = None
    mu: float | None = None
    L: float | None = None
    exact: bool = False
    tol: float | None = None
    require: int | tuple[str, ...] | None = None
    publish: float = 1e-3
    rounds: int | None = None
    seconds: float | None = None
    out: Path = Path("out")
    every: float = 60.0
    report: float = 1.0
    watch: float = 5.0
    page: int | None = None
    loss: float = 0.0
    control: bool = False

    @property
    def l2_of_file(self) -> float:
        """The regulariser for a file of samples."""
        return USUAL_L2 if self.l2 is None else self.l2

    @property
    def shard(self) -> Path | None:
        """The folder of the shard; None if the data are a file of samples."""
        if self.nodes is not None and not self.data.exists():
            raise InputError(f"{self.data} is not there; make the shard with `adom shard DATA --node NAME`")
        if (self.data / SHARD).exists():
            return self.data
        names = shard_names(self.data)
        if len(names) > 1:
            raise InputError(
                f"{self.data} holds {len(names)} shards, but an agent takes one; "
                f"e.g. data = {str(self.data / names[0])!r}"
            )
        return self.data / names[0] if names else None

    @property
    def wanted(self) -> Wanted:
        """The model that agents fit to their shards."""
        return Wanted(
            model=self.kind,
            C=self.C,
            alpha=self.alpha,
            l2=self.l2,
            kappa=self.kappa,
            scale=self.scale,
            intercept=self.intercept,
            count=self.count,
            memory=2.0**60,  # agents keep all samples in memory
        )

    @property
    def quorum(self) -> Quorum:
        """Who must be in before agents end as agreed or publish a model."""
        if isinstance(self.require, int):
            return Quorum(self.require)
        if self.require is None and self.nodes is not None:
            return Quorum(self.nodes)
        named = sorted({self.name, *(self.neighbours if self.require is None else self.require)})
        return Quorum(len(named), tuple(named))

    @property
    def problem(self) -> str:
        """The settings of the problem that all agents must share, as text."""
        if self.shard is None:
            return f"{self.kind} l2={self.l2_of_file!r} count={self.count} classes={self.classes}"
        name, value = self.wanted.penalty
        more = f"scale={self.scale} intercept={self.intercept} nodes={self.nodes}"
        return f"{self.kind} {name}={value!r} count={self.count} {more}"


OF_SHARDS = ("C", "alpha", "kappa", "scale", "intercept", "nodes")
OF_FILES = ("classes", "dim")
"""Keys for shards only, and for files of samples only."""
TABLES = {
    "agent": ("name", "listen", "keys", "plain", "patience", "gone", "gather", "pace", "loss", "control"),
    "problem": ("kind", "data", "l2", "count", *OF_SHARDS, *OF_FILES),
    "run": ("method", "chi", "mu", "L", "exact", "tol", "require", "publish", "rounds", "seconds"),
    "files": ("out", "every", "report", "watch", "page"),
}
"""The tables of the file and their keys, without [neighbours]."""
LIMITS: dict[str, tuple[float, float]] = {
    "patience": (1e-3, 3600),
    "gone": (1e-2, 1e6),
    "gather": (0, 1e6),
    "pace": (0, 3600),
    "loss": (0, 0.99),
    "l2": (1e-100, 1e100),
    "C": (1e-100, 1e100),
    "alpha": (1e-100, 1e100),
    "kappa": (1, 1e100),
    "nodes": (1, 4096),
    "dim": (1, 10**7),
    "chi": (1, 1e12),
    "mu": (1e-100, 1e100),
    "L": (1e-100, 1e100),
    "tol": (1e-300, 1e300),
    "publish": (1e-15, 1e300),
    "rounds": (1, 2**53),
    "seconds": (0, 1e9),
    "every": (0.01, 1e9),
    "report": (0.01, 1e9),
    "watch": (0.01, 1e9),
    "page": (1, 65535),
}
CHOICES = {"kind": tuple(models()), "count": COUNTS}


def read_config(file: Path, overrides: Mapping[str, Any]) -> Config:
    """Read a file of settings; `overrides` are values by key, such as {"tol": 1e-8}."""
    text = files.text(file, "expected the settings of an agent, in TOML", files.SETTINGS)
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not a TOML file: {error}; a line reads `name = value`, text in quotes") from None
    known = [*TABLES, "neighbours"]
    given: dict[str, Any] = {}
    for table, values in tables.items():
        if table not in known or not isinstance(values, dict):
            raise InputError(f"{file}: unknown table [{table[:80]}]; {nearest(table, known)}")
        if table == "neighbours":
            continue
        for key, value in values.items():
            if key not in TABLES[table]:
                home = next((name for name, keys in TABLES.items() if key in keys), None)
                remedy = nearest(key, TABLES[table]) if home is None else f"it belongs to [{home}]"
                raise InputError(f"{file}, [{table}]: unknown key {shown(key)}; {remedy}")
            given[key] = _path(file, value) if key in ("data", "keys", "out") else value
    neighbours = {name: where for name, where in tables.get("neighbours", {}).items() if name != overrides.get("name")}
    return make_config({**given, **overrides}, neighbours)


def _path(file: Path, value: Any) -> Any:
    return str(file.parent / value) if isinstance(value, str) else value


def make_config(given: Mapping[str, Any], neighbours: Mapping[str, Any]) -> Config:
    """Check the values of all keys; return the configuration."""
    values = dict(given)
    plain, folder = values.pop("plain", False), values.pop("keys", None)
    for key, value in values.items():
        values[key] = _checked(key, value)
    for key, example in (("name", '"node-a"'), ("data", '"samples.svm"')):
        if key not in values:
            table = next(table for table, keys in TABLES.items() if key in keys)
            raise InputError(f"the agent has no {key}; add {key} = {example} to the table [{table}]")
    listen = values.get("listen", Config.listen)
    for name, where in neighbours.items():
        check_name(name)
        if where:
            _endpoint(f"neighbour {name}", where)
    keys = _keys(values["name"], listen, neighbours, plain, folder)
    config = Config(**values, neighbours=dict(neighbours), keys=keys)
    _check_problem(config, values)
    return config


def _check_problem(config: Config, given: Mapping[str, Any]) -> None:
    """Refuse settings for the other kind of data, and shards without `nodes`."""
    if not config.data.exists():
        return  # reading it will be refused
    sharded = config.shard is not None
    odd = next((key for key in (OF_FILES if sharded else OF_SHARDS) if key in given), None)
    if odd is not None:
        words = (
            "a shard already defines its columns and classes"
            if sharded
            else "it is only for shards made by `adom shard`"
        )
        raise InputError(f"{odd} has no effect on {config.data}: {words}; leave it out")
    if sharded and config.nodes is None:
        raise InputError("agents prepare shards together and must know how many start; add e.g. nodes = 4 to [problem]")
    if sharded:
        _ = config.wanted  # refuses penalties that do not fit


def _checked(key: str, value: Any) -> Any:
    """Return a value in the type of its key; refuse a wrong one."""
    if key == "name":
        return check_name(value)
    if key == "listen":
        return _endpoint("listen", value)
    if key in ("data", "out"):
        return Path(value)
    if key in CHOICES and value not in CHOICES[key]:
        raise InputError(
            f"{key} must be one of {', '.join(CHOICES[key])}, got {shown(value)}; e.g. {key} = {CHOICES[key][0]!r}"
        )
    if key in ("scale", "intercept", "exact", "control") and not isinstance(value, bool):
        raise InputError(f"{key} must be true or false, got {shown(value)}; e.g. {key} = true")
    if key == "require":
        return _required(value)
    if key == "classes":
        if not (isinstance(value, list | tuple) and len(value) == 2 and all(is_number(v) for v in value)):
            raise InputError(
                f"classes must be two numbers, the smaller first, got {shown(value)}; e.g. classes = [0, 1]"
            )
        return tuple(float(v) for v in value)
    if key in LIMITS:
        low, high = LIMITS[key]
        whole = next(f.type for f in fields(Config) if f.name == key) in (int, int | None)
        if not is_number(value) or not low <= value <= high or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            raise InputError(f"{key} must be {kind} from {low:g} to {high:g}, got {shown(value)}; correct it")
        return int(value) if whole else float(value)
    return value


def _required(value: Any) -> int | tuple[str, ...]:
    """Return how many agents must be in, or which."""
    if isinstance(value, list | tuple) and value:
        return tuple(check_name(name) for name in value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_MEMBERS:
        raise InputError(
            f"require must be how many agents must be in, from 1 to {MOST_MEMBERS}, or a list of their names, got "
            f'{shown(value)}; e.g. require = 4 or require = ["north", "south"]'
        )
    return value


def _endpoint(what: str, where: Any) -> str:
    """Return an address in Zenoh's form; refuse anything else."""
    protocol, _, rest = str(where).partition("/")
    host, _, port = rest.rpartition(":")
    if protocol not in ("tcp", "tls") or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(f"{what} must be tcp/HOST:PORT or tls/HOST:PORT, got {shown(where)}; {EXAMPLE}")
    return str(where)


def is_loopback(where: str) -> bool:
    """Return whether an address stays on this machine.

    Examples
    --------
    >>> [is_loopback(where) for where in ("tcp/127.0.0.1:7447", "tls/[::1]:7447", "tls/0.0.0.0:7447")]
    [True, True, False]
    """
    host = where.partition("/")[2].rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _keys(name: str, listen: str, neighbours: Mapping[str, str], plain: Any, folder: Any) -> Keys | None:
    """Return the key files, None without TLS; refuse plain text beyond this machine unless `plain` is true."""
    addresses = [listen, *(where for where in neighbours.values() if where)]
    open_ones = [where for where in addresses if where.startswith("tcp/")]
    far = [where for where in open_ones if not is_loopback(where)]
    if far and plain is not True:
        raise InputError(
            f'{far[0]} would carry plain text to other machines; write tls/... and keys = "FOLDER" (adom agent keys '
            "makes them), or plain = true in [agent] if anyone may read it"
        )
    if len(open_ones) == len(addresses):
        return None
    if open_ones:
        raise InputError(f"{open_ones[0]} is plain text, but other addresses use TLS; write tls/... for all of them")
    if not isinstance(folder, str):
        raise InputError('tls/... needs keys; write keys = "FOLDER" in [agent], where adom agent keys put them')
    home = Path(folder)
    keys = Keys(home / "ca.pem", home / f"{name}.pem", home / f"{name}.key")
    for path in (keys.authority, keys.certificate, keys.private):
        if files.kind(path) != "file":
            raise InputError(f"{path} is missing; copy ca.pem, {name}.pem and {name}.key of adom agent keys to {home}")
    return keys
