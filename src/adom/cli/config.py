"""Settings from options, a TOML file and defaults: merged, checked, completed, and written down again."""

import json
import os
from collections.abc import Collection
from dataclasses import asdict
from itertools import combinations
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from ..algorithms import METHODS
from ..errors import InputError, nearest, shown
from ..util import files
from ..util.checks import check_whole
from ..util.setting import Tables, check_names, read_tables
from .settings import DATA_SETS, DISPLACED, EXCLUSIVE, NAMED, SETTINGS, TABLES, Config, kinds_of_network

PATHS = (("problem", "data"), ("problem", "shards"), ("network", "contacts"), ("mpi", "checkpoints"))
"""Settings that name files, or a known data set; in a configuration file they are relative to that file."""
NAMES = {table: [name for home, name in SETTINGS if home == table] for table in TABLES}
"""The names in each table."""
NOT_OWN = ("data", "shards", "label", "C", "count", "model", "scale", "memory", "bare", "alpha")
"""Settings that the user's own problems do not take."""
APART = ("model", "scale", "memory", "bare", "alpha")
"""Settings that only shards of `adom shard` take."""
LONG: dict[str, Any] = {"rounds": 200_000, "record_every": 10}
"""Defaults for runs on such shards, which end when the nodes agree."""


class UserSettings(NamedTuple):
    """The user's settings: those from options and a file together, and those from options."""

    tables: Tables
    flags: Tables

    def describe(self, table: str, name: str) -> str:
        """Return a setting as it was given: "--chi 30" on the command line, "chi = 30.0" in a file."""
        value, flag = self.tables[table][name], SETTINGS[table, name].flag
        if name not in self.flags.get(table, {}):
            return f"{name} = {value!r}"
        return flag if value is True else f"{flag} {value:.15g}" if isinstance(value, float) else f"{flag} {value}"

    def refuse(self, table: str, names: Collection[str], why: str) -> None:
        """Refuse the first of these settings that was given."""
        for name in names:
            if name in self.tables[table]:
                raise InputError(f"{self.describe(table, name)} {why}")


def settle(file: Path | None, flags: Tables, usual: Tables) -> Config:
    """Return the complete settings: options override the file, and the file overrides `usual`."""
    given = {} if file is None else read_toml(file)
    check_names(file, given, NAMES)
    for table, values in given.items():
        for name, value in values.items():
            setting = SETTINGS[table, name]
            setting.check(value, f"{file}, [{table}]: {name}", f"{name} = {_toml(setting.example)}")
    for table, values in flags.items():
        for name, value in values.items():
            setting = SETTINGS[table, name]
            setting.check(value, setting.flag, f"{setting.flag} {setting.example}")
            if (table, name) in PATHS and any("\ud800" <= letter <= "\udfff" for letter in str(value)):
                raise InputError(
                    f"{setting.flag} {shown(value)} is not a name in UTF-8, which config.toml needs; rename it"
                )
            for displaced in (*_rivals(table, name), *DISPLACED.get((table, name), ())):
                given.get(table, {}).pop(displaced, None)
    if {"kind", "contacts"} & flags.get("network", {}).keys() and "network" in given:
        kept = settings_of(flags["network"].get("kind") or "contacts")
        given["network"] = {name: value for name, value in given["network"].items() if name in kept}
    merged = {table: {**given.get(table, {}), **flags.get(table, {})} for table in TABLES}
    _complete(UserSettings(merged, flags), usual)
    return Config(**{table: cls(**merged[table]) for table, cls in TABLES.items()})


def _rivals(table: str, name: str) -> set[str]:
    """Return the settings that exclude this one."""
    return {rival for home, names in EXCLUSIVE if home == table and name in names for rival in names} - {name}


def read_toml(file: Path) -> Tables:
    """Read the tables of a configuration file; paths in it become relative to the working folder."""
    content = read_tables(file, _remedy(file), NAMES)
    _read_lists(file, content.get("compare", {}), content.get("sweep", {}))
    for table, name in PATHS:
        value = content.get(table, {}).get(name)
        if isinstance(value, str) and value not in DATA_SETS:
            content[table][name] = _as_path(str(file.parent / value))
    return content


def _read_lists(file: Path, compare: dict[str, Any], sweep: dict[str, Any]) -> None:
    """Accept methods as a list or as comma-separated text in both tables, and a single value for a sweep's list.

    A number n of seeds means seeds 0 to n - 1.
    """
    methods = compare.get("methods")
    if isinstance(methods, list) and all(isinstance(name, str) for name in methods):
        compare["methods"] = ",".join(methods)
    for name, value in sweep.items():
        if name in ("methods", "oracles") and isinstance(value, str):
            sweep[name] = [part.strip() for part in value.split(",") if part.strip()]
        elif name == "seeds" and not isinstance(value, list):
            sweep[name] = list(range(check_whole("seeds", value, 1, "e.g. seeds=3, or a list: [0, 1, 2]", 10**6)))
        elif name in ("parameters", "kappas") and isinstance(value, str | int | float):
            sweep[name] = [value]


def kinds(text: str) -> list[str]:
    """Return the kinds of network that `--network` names.

    Examples
    --------
    >>> kinds("ring, star")
    ['ring', 'star']
    """
    names = [part.strip().lower().replace("_", "-") for part in text.split(",")]
    for name in names:
        if name not in kinds_of_network():
            raise InputError(f"unknown network {name!r}; {nearest(name, kinds_of_network())}")
    return names


def settings_of(text: str, *, failing: bool = False) -> set[str]:
    """Return the settings that networks of these kinds take; `failing` says whether links may fail."""
    known = kinds_of_network()
    common = {name for table, name in SETTINGS if table == "network"}.difference(*known.values())
    return common.union(*(known[kind] for kind in kinds(text)), ("graphs", "repair") if failing else ())


def _check_network(given: UserSettings, text: str, names: Collection[str]) -> None:
    """Refuse settings that none of the kinds of network takes."""
    takes = settings_of(text, failing="failing" in given.tables["network"])
    for name in names:
        if name not in takes:
            owners = ", ".join(owner for owner, own in kinds_of_network().items() if name in own)
            flag = "--networks" if given.tables["compare"].get("networks") == text else "--network"
            given.refuse(
                "network",
                [name],
                f"has no effect on network {text}; it belongs to {owners}: leave it out, or change {flag}",
            )


def check_lists(settings: Config, flags: Tables) -> None:
    """Refuse options that have no effect beside the lists of a comparison."""
    tables = {table: {name: v for name, v in each.items() if v is not None} for table, each in asdict(settings).items()}
    given, lists = UserSettings(tables, flags), tables["compare"]
    for listed, table, name in (("networks", "network", "kind"), ("splits", "problem", "split")):
        if name in flags.get(table, {}) and listed in lists:
            beside, flag = given.describe("compare", listed), SETTINGS["compare", listed].flag
            given.refuse(table, [name], f"has no effect beside {beside}; leave it out, or name it in {flag}")
    if "networks" in lists:
        _check_network(given, lists["networks"], flags.get("network", {}))


def _complete(given: UserSettings, usual: Tables) -> None:
    """Fill in defaults in place; refuse settings that would have no effect."""
    _check_rivals(given)
    _check_problem(given)
    _check_engine(given)
    problem, network, run = (given.tables[table] for table in ("problem", "network", "run"))
    for name, value in usual.get("run", {}).items():
        if not _rivals("run", name) & run.keys():
            run.setdefault(name, value)
    defaults = _defaults(given, usual.get("problem", {}))
    kind = network.setdefault("kind", "contacts" if "contacts" in network else "geometric")
    chosen = kinds(kind)
    network["kind"] = ",".join(chosen)
    if "contacts" in chosen:
        defaults.pop("nodes", None)
        if "contacts" not in network:
            raise InputError("network contacts needs a contact list; give one with --contacts FILE")
    if "infectious" in chosen:
        from ..data.paper_data import NODES

        if problem.setdefault("nodes", NODES) != NODES:
            why = f"does not fit network infectious, which has {NODES} nodes; leave it out"
            given.refuse("problem", ["nodes"], why)
    listed, takes = given.tables["compare"].get("networks"), settings_of(kind, failing="failing" in network)
    _check_network(given, listed or kind, network.keys() - takes)
    for name, value in defaults.items():
        problem.setdefault(name, value)
    if "graphs" in takes:
        network.setdefault("graphs", _affordable(usual["network"]["graphs"], problem.get("nodes")))
    if "contacts" in chosen:
        network.setdefault("window", 1)
    _fill_by_size(network, chosen, min(problem.get("nodes") or 0, 10**9))  # larger numbers will be refused
    ranks, nodes = given.tables["mpi"].get("ranks"), problem.get("nodes")
    if ranks and nodes and ranks > nodes:
        why = f"cannot share {nodes} nodes: each rank needs one at least; take --ranks {nodes} or fewer"
        given.refuse("mpi", ["ranks"], why)


def _check_rivals(given: UserSettings) -> None:
    """Refuse settings that exclude each other."""
    for table, names in EXCLUSIVE:
        values = given.tables[table]
        if table == "network" and "waypoint" in str(values.get("kind", "")):
            continue  # waypoint takes a radius beside geometric's chi
        for name, rival in combinations([name for name in names if name in values], 2):
            given.refuse(table, [name], f"and {given.describe(table, rival)} exclude each other; give one")


def _check_problem(given: UserSettings) -> None:
    """Refuse settings of the problem that have no effect without another, or on what it is made from."""
    problem = given.tables["problem"]
    if "own" in problem:
        given.refuse("problem", NOT_OWN, f"has no effect on {given.describe('problem', 'own')}; leave it out")
    if problem.get("count") == "nodes":
        why = "weighs single samples, but here nodes count equally; give --l2, or leave --count out"
        given.refuse("problem", ["C"], why)
    listed = given.tables["compare"].get("splits")
    split = listed or problem.get("split", "contiguous")
    if "dirichlet" not in split:
        why = f"has no effect on split {split}; it belongs to dirichlet: leave it out, or give "
        given.refuse("problem", ["concentration"], why + f"{'--splits' if listed else '--split'} dirichlet")
    if not {"data", "shards"} & problem.keys():
        given.refuse("problem", ["label"], "names a column of a file; give the file with --data")


def _check_engine(given: UserSettings) -> None:
    """Refuse settings of engine mpi with another engine, and settings that need a missing one."""
    mpi, run = given.tables["mpi"], given.tables["run"]
    engine = run.get("engine", "local")
    if mpi and engine != "mpi":
        raise InputError(f"{SETTINGS['mpi', next(iter(mpi))].flag} has no effect on engine {engine}; give --engine mpi")
    for name in ("every_rounds", "every_seconds", "resume"):
        if name in mpi and "checkpoints" not in mpi:
            raise InputError(f"{SETTINGS['mpi', name].flag} needs a folder; give one with --checkpoints DIR")
    if mpi.get("unwatched") and "shards" not in given.tables["problem"]:
        raise InputError("--no-monitor has no effect without --shards; leave it out")
    if engine == "mpi" and run.get("parameters") == "tuned":
        raise InputError("--parameters tuned runs many settings, which engine mpi does not; tune with --engine local")


def lie_apart(folder: str) -> bool:
    """Return whether a folder holds shards that `adom shard` made, and no manifest of `adom split`."""
    from ..data.node_shards import shard_names
    from ..data.shards import MANIFEST

    return not (Path(folder) / MANIFEST).exists() and bool(shard_names(Path(folder)))


def _defaults(given: UserSettings, usual: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults that the problem takes; fill in what shards say themselves."""
    problem = given.tables["problem"]
    apart = "shards" in problem and lie_apart(problem["shards"])
    if not apart:
        given.refuse("problem", APART, "is for shards that `adom shard` made; make them, or leave it out")
    fitting = [*usual]
    if "shards" in problem:
        _fill_from_shards(given, apart=apart)
        fitting = [] if apart else ["kappa"]
    elif "own" in problem:
        from .own_code import required

        usual = {**usual, "split": "contiguous"}
        fitting = ["nodes", *required(problem["own"])]
    elif "data" in problem:
        fitting = ["nodes", "kappa"]
    return {name: usual[name] for name in fitting if name in usual and not _rivals("problem", name) & problem.keys()}


def _fill_from_shards(given: UserSettings, *, apart: bool) -> None:
    """Set the number of nodes from the shards, and `LONG` if they lie apart; refuse settings that shards fix."""
    from ..data.node_data import NodeData
    from ..data.shards import Shards

    problem, run = given.tables["problem"], given.tables["run"]
    fixed = ("data", "label", "samples", "split", "concentration", "dim")
    given.refuse("problem", fixed, "has no effect on shards, which have their own; leave it out")
    folder = problem["shards"]
    if not apart:
        nodes = Shards(folder, l2=1.0).nodes
        if problem.setdefault("nodes", nodes) != nodes:
            given.refuse("problem", ["nodes"], f"does not fit {folder}, which has {nodes}; leave it out")
        return
    problem["nodes"] = NodeData(folder, nodes=problem.get("nodes")).nodes
    if problem["nodes"] < 2:
        raise InputError(f"{folder} holds one shard; say how many nodes there are on all machines, e.g. --nodes 4")
    for name, value in LONG.items():
        run.setdefault(name, value)


def _affordable(graphs: int, nodes: int | None) -> int:
    """Return fewer graphs than usual for large networks, whose spectra take seconds each."""
    return graphs if not nodes else min(graphs, max(10, int(graphs * (150 / nodes) ** 3)))


def _fill_by_size(network: dict[str, Any], chosen: list[str], nodes: int) -> None:
    """Fill in arguments of generators that suit the number of nodes; a given radius stands for geometric's chi."""
    from ..networks.recipes import SUITED

    given = set(network)
    for usual in (SUITED[name] for name in (kind.replace("-", "_") for kind in chosen) if name in SUITED):
        for argument, value in usual(nodes).items():
            if argument != "chi" or "radius" not in given:
                network.setdefault(NAMED.get(argument, argument), value)


def _remedy(file: Path) -> str:
    """Suggest the option that was meant when a word was taken for a file of settings."""
    name = str(file)
    taken = "was taken for a file of settings: give"
    for option, known in (("--network", [*kinds_of_network()]), ("--method, or --methods to compare", [*METHODS])):
        if name.lower() in known:
            return f"{name!r} {taken} it with {option}, several with commas and no spaces"
    if name in DATA_SETS:
        return f"{name!r} {taken} it with --data {name}"
    if file.suffix.lower() in (".csv", ".svm", ".libsvm", ".npz", ".bz2", ".gz", ".xz", ".txt"):
        return f"it {taken} samples with --data {name}"
    return "expected a file of settings, such as the config.toml that every run writes"


def write_toml(config: Config, file: Path, command: str = "solve", *, absolute: bool = False) -> None:
    """Write all settings to a file that a command can start from; paths become relative to it, or absolute.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "config.toml")
    ...     write_toml(Config(), file)
    ...     read_toml(file)["run"]["method"]
    'adom'
    """
    with files.atomic(file) as partial:
        partial.write_text(toml_text(config, file, command, absolute=absolute), encoding="utf-8")


def toml_text(config: Config, file: Path, command: str = "solve", *, absolute: bool = False) -> str:
    """Return the text that `write_toml` writes."""
    lines = [f"# Run this again with: adom {command} {file.name}"]
    for table, values in asdict(config).items():
        given = {name: value for name, value in values.items() if value is not None}
        lines += ["", f"[{table}]"] if given else []
        for name, value in given.items():
            is_path = (table, name) in PATHS and value not in DATA_SETS
            lines.append(f"{name} = {_toml(_path(value, None if absolute else file) if is_path else value)}")
    return "\n".join(lines) + "\n"


def _as_path(path: str) -> str:
    """Return a path that is not taken for the name of a data set.

    Examples
    --------
    >>> _as_path("a6a"), _as_path("six.svm")
    ('./a6a', 'six.svm')
    """
    return f"./{path}" if path in DATA_SETS else path


def _path(path: str, file: Path | None) -> str:
    """Return a path relative to a file's folder; absolute without a file, or where it is on another drive."""
    try:
        if file is not None:
            return _as_path(Path(os.path.relpath(path, file.parent)).as_posix())
    except ValueError:
        pass
    return Path(path).absolute().as_posix()


def _toml(value: Any) -> str:
    """Return a value as text in TOML.

    Examples
    --------
    >>> print(_toml(True), _toml(3), _toml(1e-10), _toml(1e22), _toml('say "hi"'))
    true 3 1e-10 1e+22 "say \\"hi\\""
    >>> print(_toml({"eta": [0.5, 1], "adom+": {}}))
    {"eta" = [0.5, 1], "adom+" = {}}
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(str(name))} = {_toml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if value == inf:
        return "inf"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # numbers and texts are written alike
