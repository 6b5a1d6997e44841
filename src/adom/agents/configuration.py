"""The settings of an agent, in tables agent, neighbours, problem, run and files of a file: read, checked, complete."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from ..data.node_data import ModelSettings
from ..data.node_shards import NAME as SHARD
from ..data.node_shards import shard_names
from ..errors import InputError, shown
from ..problems.losses import USUAL_MODEL, models
from ..problems.samples import COUNTS
from ..util import files
from ..util.checks import is_number
from ..util.setting import Tables, check_names, described, read_tables, setting
from .wire import MOST_MEMBERS, check_name
from .zenoh_links import KeyFiles

USUAL_L2 = 0.01


@dataclass(frozen=True)
class Quorum:
    """Who must be in before agents end as agreed or publish a model: so many agents, or those named."""

    number: int
    names: tuple[str, ...] = ()

    def missing(self, present: Mapping[str, Any]) -> str:
        """Return who is missing, in words; "" if nobody is.

        Examples
        --------
        >>> Quorum(2).missing({"a": 1}), Quorum(2, ("a", "b")).missing({"a": 1, "c": 2}), Quorum(1).missing({"a": 1})
        ('1 of 2 agents', 'b', '')
        """
        if self.names:
            return ", ".join(name for name in self.names if name not in present)
        return "" if len(present) >= self.number else f"{self.number - len(present)} of {self.number} agents"

    def lacking(self, present: Collection[str]) -> int:
        """Return how many are missing."""
        return len([n for n in self.names if n not in present]) or max(0, self.number - len(present))


@dataclass(frozen=True, kw_only=True)
class AgentTable:
    """``[agent]``: its name, its links and its clock."""

    name: str = setting("Its name.", example="node-a")
    listen: str = setting("Where it listens.", "tcp/127.0.0.1:7447")
    keys: KeyFiles | None = setting("Its key files; in a file of settings, the folder with them.")
    plain: bool = setting("Whether plain text may leave this machine.", False)
    patience: float = setting("Seconds that a round waits for a neighbour.", 1.0, ge=1e-3, le=3600)
    gone: float = setting("Seconds without a heartbeat after which an agent is gone.", 10.0, ge=1e-2, le=1e6)
    gather: float = setting("Seconds to wait for neighbours before the first round.", 5.0, ge=0, le=1e6)
    pace: float = setting("The least seconds of a round.", 0.0, ge=0, le=3600)
    loss: float = setting("Share of heard messages to drop, for experiments.", 0.0, ge=0, le=0.99)
    control: bool = setting("Whether to obey commands on standard input, as of `adom swarm`.", False)


@dataclass(frozen=True, kw_only=True)
class AgentProblemTable:
    """``[problem]``: its data, and the model to fit."""

    kind: str = setting("The kind of model.", USUAL_MODEL, choices=lambda: tuple(models()))
    data: Path = setting("A file of samples, or a shard.", example="samples.svm")
    l2: float | None = setting("The regulariser.", ge=1e-100, le=1e100)
    count: str = setting("What counts alike: samples or nodes.", "samples", choices=COUNTS)
    classes: tuple[float, float] = setting("The two labels.", (-1.0, 1.0))
    dim: int | None = setting("The number of features.", ge=1, le=10**7)
    C: float | None = setting("scikit-learn's C, in place of l2.", ge=1e-100, le=1e100)
    alpha: float | None = setting("scikit-learn's alpha, in place of l2.", ge=1e-100, le=1e100)
    kappa: float | None = setting("The condition number, in place of l2.", ge=1, le=1e100)
    scale: bool = setting("Whether to scale all features.", False)
    intercept: bool = setting("Whether to fit an intercept.", True)
    nodes: int | None = setting("How many agents prepare the data together.", ge=1, le=4096)


@dataclass(frozen=True, kw_only=True)
class AgentRunTable:
    """``[run]``: the method, and when to stop and publish."""

    method: str = setting("The method.", "adom")
    chi: float | None = setting("The condition number of the network, if it is known.", ge=1, le=1e12)
    mu: float | None = setting("A constant in place of that of the agents present.", ge=1e-100, le=1e100)
    L: float | None = setting("A constant in place of that of the agents present.", ge=1e-100, le=1e100)
    exact: bool = setting("Whether to solve inner problems down to rounding.", False)
    tol: float | None = setting("Stop at this squared error.", ge=1e-300, le=1e300)
    require: int | tuple[str, ...] | None = setting("Who must be in before agents end as agreed or publish.")
    publish: float = setting("How far a published model may be off.", 1e-3, ge=1e-15, le=1e300)
    rounds: int | None = setting("Stop after this many rounds.", ge=1, le=2**53)
    seconds: float | None = setting("Stop after this many seconds.", ge=0, le=1e9)


@dataclass(frozen=True, kw_only=True)
class AgentFilesTable:
    """``[files]``: what it writes, and how often."""

    out: Path = setting("Folder for model and checkpoint.", Path("out"))
    every: float = setting("Seconds between two looks for a better model.", 60.0, ge=0.01, le=1e9)
    report: float = setting("Seconds from one line of status to the next.", 1.0, ge=0.01, le=1e9)
    watch: float = setting("Seconds from one look at the data to the next.", 5.0, ge=0.01, le=1e9)
    page: int | None = setting("Port of its page.", ge=1, le=65535)


@dataclass(frozen=True, kw_only=True)
class AgentConfig(AgentTable, AgentProblemTable, AgentRunTable, AgentFilesTable):
    """Settings of one agent; `docs/agents.md` says more about each."""

    neighbours: Mapping[str, str] = field(default_factory=dict)

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
    def wanted(self) -> ModelSettings:
        """The model that agents fit to their shards."""
        given = ("C", "alpha", "l2", "kappa", "scale", "intercept", "count")
        more = {name: getattr(self, name) for name in given}
        return ModelSettings(model=self.kind, memory=2.0**60, **more)  # agents keep all samples in memory

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
CLASSES: dict[str, type[Any]] = {
    "agent": AgentTable,
    "problem": AgentProblemTable,
    "run": AgentRunTable,
    "files": AgentFilesTable,
}
TABLES = {table: [each.name for each in fields(cls)] for table, cls in CLASSES.items()}
"""The tables of the file and their keys, without [neighbours]."""
SETTINGS = {each.name: described(each, table) for table, cls in CLASSES.items() for each in fields(cls)}
"""The settings in these tables, by key."""


def read_config(file: Path, overrides: Mapping[str, Any]) -> AgentConfig:
    """Read a file of settings; `overrides` are values by key, such as {"tol": 1e-8}."""
    tables = read_tables(file, "expected the settings of an agent, in TOML", {**TABLES, "neighbours": ()})
    neighbours = tables.pop("neighbours", {})
    check_names(file, tables, TABLES)
    given = {key: value for values in tables.values() for key, value in values.items()}
    for key in ("data", "keys", "out"):
        if isinstance(given.get(key), str):
            given[key] = str(file.parent / given[key])
    others = {name: where for name, where in neighbours.items() if name != overrides.get("name")}
    return make_config({**given, **overrides}, others)


def as_toml(tables: Tables) -> str:
    """Return settings as the text of a file; their values must be numbers, texts, or lists of these."""
    tables_as_text = (
        f"[{table}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        for table, values in tables.items()
    )
    return "".join(tables_as_text)


def make_config(given: Mapping[str, Any], neighbours: Mapping[str, Any]) -> AgentConfig:
    """Check the values of all keys; return the configuration."""
    values = {key: _checked(key, value) for key, value in given.items()}
    for key in ("name", "data"):
        if key not in values:
            missing = SETTINGS[key]
            raise InputError(f'the agent has no {key}; add {key} = "{missing.example}" to the table [{missing.table}]')
    for name, where in neighbours.items():
        check_name(name)
        if where:
            _endpoint(where, f"neighbour {name}")
    folder = values.pop("keys", None)
    config = AgentConfig(**values, neighbours=dict(neighbours))
    _check_problem(config, values)
    return replace(config, keys=_key_files(config, folder))


def _check_problem(config: AgentConfig, given: Mapping[str, Any]) -> None:
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
    if key in READERS:
        return READERS[key](value)
    setting = SETTINGS[key]
    if setting.kind is int and isinstance(value, float) and value.is_integer():  # such as 1e6
        value = int(value)
    setting.check(value, key, f"{key} = {setting.example}")
    return float(value) if setting.kind is float else value


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


def _classes(value: Any) -> tuple[float, ...]:
    """Return the two labels."""
    if not (isinstance(value, list | tuple) and len(value) == 2 and all(is_number(v) for v in value)):
        raise InputError(f"classes must be two numbers, the smaller first, got {shown(value)}; e.g. classes = [0, 1]")
    return tuple(float(v) for v in value)


def _endpoint(where: Any, what: str = "listen") -> str:
    """Return an address in Zenoh's form; refuse anything else."""
    protocol, _, rest = str(where).partition("/")
    host, _, port = rest.rpartition(":")
    if protocol not in ("tcp", "tls") or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(
            f'{what} must be tcp/HOST:PORT or tls/HOST:PORT, got {shown(where)}; e.g. listen = "tls/0.0.0.0:7447"'
        )
    return str(where)


def _path(value: Any) -> Path:
    """Return a path."""
    if not isinstance(value, str | Path):
        raise InputError(f"data, keys and out must be text in quotes, got {shown(value)}; e.g. out = 'folder'")
    return Path(value)


READERS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("data", "keys", "out"), _path),
    **{"name": check_name, "listen": _endpoint, "require": _required, "classes": _classes},
}
"""Functions that check values of other types, and return them as they are in `AgentConfig`."""


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


def _key_files(config: AgentConfig, folder: Path | None) -> KeyFiles | None:
    """Return the key files, None without TLS; refuse plain text beyond this machine unless `plain` is true."""
    addresses = [config.listen, *(where for where in config.neighbours.values() if where)]
    open_ones = [where for where in addresses if where.startswith("tcp/")]
    far = [where for where in open_ones if not is_loopback(where)]
    if far and not config.plain:
        raise InputError(
            f'{far[0]} would carry plain text to other machines; write tls/... and keys = "FOLDER" (adom agent keys '
            "makes them), or plain = true in [agent] if anyone may read it"
        )
    if len(open_ones) == len(addresses):
        return None
    if open_ones:
        raise InputError(f"{open_ones[0]} is plain text, but other addresses use TLS; write tls/... for all of them")
    if folder is None:
        raise InputError('tls/... needs keys; write keys = "FOLDER" in [agent], where adom agent keys put them')
    name = config.name
    keys = KeyFiles(folder / "ca.pem", folder / f"{name}.pem", folder / f"{name}.key")
    for path in (keys.authority, keys.certificate, keys.private):
        if files.kind(path) != "file":
            raise InputError(
                f"{path} is missing; copy ca.pem, {name}.pem and {name}.key of adom agent keys to {folder}"
            )
    return keys
