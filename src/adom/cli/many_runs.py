"""What a comparison or a sweep of the command line runs over, and the folder that keeps its runs.

A comparison has lists of methods, splits, networks and seeds, a sweep has lists of settings. Problems and networks are
functions of the seed if a seed draws them. A folder has one file for each run, so that a command can resume.
"""

import re
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..algorithms import COMPARED, METHODS
from ..errors import InputError, nearest, shown
from ..util.files import atomic
from ..util.setting import Tables
from ..util.text import format_count
from .config import kinds, settings_of, settle, toml_text, write_toml
from .own_code import name_of
from .settings import SETTINGS, USUAL, CompareTable, Config, SweepTable, splits

ALL = "all"
NAMES = ("splits", "networks")
"""Settings of a comparison that are comma-separated names."""
DRAWN = ("shuffled", "dirichlet")
"""Splits that depend on the seed."""
MEMBERS = "members"
"""Folder of the runs, beside the table and config.toml."""
FRESH = "take another --out, or --fresh to remove them"
EARLIER = ".earlier"
"""Folder inside `MEMBERS` for the runs that `--fresh` removes, once the command is sure not to be refused."""
NAMED = 4
"""The most differing settings to name."""


def parts(text: str | None) -> list[str]:
    """Return the names in a comma-separated text."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def once(flag: str, names: list[str]) -> list[str]:
    """Return names; refuse one that is given twice."""
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{flag} names {twice!r} twice; leave one out")
    return names


def methods(text: str | None) -> list[str]:
    """Return the names of a comparison's methods."""
    if text is None or text.strip().lower() == ALL:
        return [*(COMPARED if text is None else METHODS)]
    names = once("--methods", [name_of(part) for part in parts(text)])
    if not names:
        raise InputError(f"--methods {text!r} names no method; known: {', '.join(METHODS)}")
    return names


def ways_of(settings: Config) -> list[str]:
    """Return the splits to compare on."""
    ways = once("--splits", parts(settings.compare.splits))
    for way in ways:
        if way not in splits():
            raise InputError(f"--splits names {way!r}, which is no split; {nearest(way, splits())}")
    if settings.compare.splits is not None and not ways:
        raise InputError(f"--splits {settings.compare.splits!r} names no split; e.g. --splits shuffled,label")
    return ways


def networks_of(settings: Config, flags: Tables, config: Path | None) -> dict[str, Config]:
    """Return the settings for each network, without those that only other kinds take."""
    if settings.compare.networks is None:
        return {str(settings.network.kind): settings}
    found = {}
    for kind in once("--networks", kinds(settings.compare.networks)):
        takes = settings_of(kind, failing=settings.network.failing is not None)
        own = {name: value for name, value in flags.get("network", {}).items() if name in takes}
        found[kind] = settle(config, {**flags, "network": {**own, "kind": kind}}, USUAL)
    return found


def networks_by_seed(by_name: dict[str, Config], *, drawn: bool) -> dict[str, Any]:
    """Return the networks by name, with `drawn` as functions of the seed, which one with its own seed ignores."""
    from . import output

    with output.busy("building the networks"):
        return {name: _network(config, drawn=drawn) for name, config in by_name.items()}


def problem_by_seed(config: Config, network: Any, *, drawn: bool, ways: bool = False) -> Any:
    """Return the problem on a network, as a function of the seed if that draws it; with `ways`, of the split too."""
    from . import build, output

    given = config.problem
    with output.busy("building the problem"):
        nodes = (network(given.seed) if callable(network) else network).nodes

    def make(seed: int, split: str | None = given.split) -> Any:
        own = replace(given, seed=seed if drawn else given.seed, split=split)
        return build.problem(replace(config, problem=own), nodes)

    changing = given.own is not None or (given.data is None and given.shards is None) or given.split in DRAWN
    return make if ways or (drawn and changing) else make(given.seed)


def _network(config: Config, *, drawn: bool) -> Any:
    from . import build

    if drawn and config.network.seed is None:
        return lambda seed: build.network(replace(config, network=replace(config.network, seed=seed)))
    network = build.network(config)
    return (lambda _: network) if drawn else network  # a bare network would be drawn again with every seed


def kept(out: Path) -> list[Path]:
    """Return the files of runs that a folder holds."""
    return [path for path in (out / MEMBERS).glob("*.npz") if re.fullmatch("[0-9a-f]{32}", path.stem)]


@contextmanager
def runs_kept(settings: Config, out: Path, command: str, *, fresh: bool) -> Iterator[None]:
    """Write the settings to the folder's config.toml; refuse a folder with runs that they do not cover.

    With `fresh`, the folder's runs are removed instead. A refused command changes neither runs nor settings.
    """
    file, members, earlier = out / "config.toml", kept(out), out / MEMBERS / EARLIER
    before = file.read_bytes() if file.is_file() else None
    shutil.rmtree(earlier, ignore_errors=True)
    if members and fresh:
        earlier.mkdir()
        for path in members:
            path.rename(earlier / path.name)
    elif members and (others := _others(settings, file, command)):
        refuse_runs(out, others, FRESH)
    write_toml(settings, file, command)
    try:
        yield
    except InputError:
        for path in earlier.glob("*.npz"):
            path.rename(out / MEMBERS / path.name)
        if before is not None:
            with atomic(file) as partial:
                partial.write_bytes(before)
        elif not kept(out):
            file.unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(earlier, ignore_errors=True)


def refuse_runs(out: Path, which: str, remedy: str) -> None:
    """Refuse a folder that holds runs, since the command would overwrite their settings."""
    if members := kept(out):
        raise InputError(f"{out} holds {format_count(len(members), 'run')} {which}; {remedy}")


def _others(settings: Config, file: Path, command: str) -> str:
    """Return in words how the settings of a file differ from these; "" if they are the same, or have shorter lists."""
    try:
        earlier = settle(file, {}, USUAL)
    except InputError:  # not a file of settings
        return "of another comparison" if command == "compare" else "of another sweep"
    old, new = (_by_name(tomllib.loads(toml_text(each, file, command))) for each in (earlier, settings))
    lists = uncovered(getattr(settings, command), getattr(earlier, command))
    names = [
        (table, name)
        for table, name in SETTINGS
        if (name in lists if table == command else old.get((table, name)) != new.get((table, name)))
    ]
    parts = [f"{_called(*at)} {_text(old.get(at))} (now {_text(new.get(at))})" for at in names[:NAMED]]
    parts += [f"{len(names) - NAMED} more settings"] if len(names) > NAMED else []
    return f"with {', '.join(parts)}" if parts else ""


def uncovered(table: CompareTable | SweepTable, earlier: CompareTable | SweepTable) -> list[str]:
    """Return the names of the lists in which an earlier table has values that this one lacks.

    Examples
    --------
    >>> few, many = CompareTable(methods="adom", seeds=2), CompareTable(methods="adom,apm", seeds=3)
    >>> uncovered(many, few), uncovered(few, many), uncovered(few, few)
    ([], ['methods', 'seeds'], [])
    >>> half, two = SweepTable(factors={"eta": 0.5}), SweepTable(factors={"eta": [0.5, 1]})
    >>> uncovered(two, half), uncovered(SweepTable(factors={"eta": 0.5, "tau": 1}), half)
    ([], ['factors'])
    """
    axes, old = _axes(table), _axes(earlier)
    return [name for name in axes if not _covers(axes[name], old[name])]


def _axes(table: CompareTable | SweepTable) -> dict[str, Any]:
    """Return the lists of a table; None for those that were not given."""
    if isinstance(table, SweepTable):
        return vars(table)
    given = {name: None if text is None else parts(text) for name, text in vars(table).items() if name in NAMES}
    return {"methods": methods(table.methods), "seeds": list(range(table.seeds or 1)), **given}


def _covers(axes: Any, earlier: Any) -> bool:
    if isinstance(axes, dict) and isinstance(earlier, dict):
        return axes.keys() == earlier.keys() and all(_covers(axes[name], earlier[name]) for name in axes)
    if axes is None or earlier is None:
        return axes is earlier
    return all(value in _list(axes) for value in _list(earlier))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _by_name(tables: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {(table, name): value for table, values in tables.items() for name, value in values.items()}


def _called(table: str, name: str) -> str:
    """Return the name of a setting's option, without dashes.

    Examples
    --------
    >>> _called("network", "kind"), _called("run", "rounds")
    ('network', 'rounds')
    """
    return SETTINGS[table, name].flag.removeprefix("--")


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else f"{value:.15g}" if isinstance(value, float) else shown(value)
