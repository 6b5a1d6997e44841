"""Settings from options, a TOML file and defaults: merged, checked, completed, and written down again."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..algorithms import METHODS
from ..data.sets import SAMPLES
from ..errors import InputError, shown
from ..util import files
from ..util.settings import Tables, check_names, read_tables
from .defaults import UserSettings, belonging, common, complete
from .settings import SETTINGS, TABLES, Config, kinds_of_network

PATHS = (("problem", "data"), ("problem", "shards"), ("network", "contacts"), ("mpi", "checkpoints"))
"""Settings that name files, or a known data set; in a configuration file they are relative to that file."""

NAMES = {table: [name for home, name in SETTINGS if home == table] for table in TABLES}
"""The names in each table."""
MOST_SEEDS = 10**6

RIVALS = {
    ("problem", "kappa"): ("l2", "C", "alpha"),
    ("problem", "l2"): ("kappa", "C", "alpha"),
    ("problem", "C"): ("kappa", "l2", "alpha"),
    ("problem", "alpha"): ("kappa", "l2", "C"),
    ("problem", "data"): ("samples", "dim", "label"),
    ("problem", "split"): ("concentration",),
    ("network", "radius"): ("chi",),
    ("network", "chi"): ("radius",),
    ("network", "contacts"): ("kind",),
    ("run", "rtol"): ("tol",),
}
"""An option, and the settings of a file that it replaces."""


def settle(file: Path | None, flags: Tables, usual: Tables) -> Config:
    """Return the complete settings: options override the file, and the file overrides `usual`."""
    given = {} if file is None else read_toml(file)
    _check_file(file, given)
    for table, values in flags.items():
        for name, value in values.items():
            setting = SETTINGS[table, name]
            setting.check(value, setting.flag, f"{setting.flag} {setting.example}")
            if (table, name) in PATHS and any("\ud800" <= letter <= "\udfff" for letter in str(value)):
                raise InputError(
                    f"{setting.flag} {shown(value)} is not a name in UTF-8, which config.toml needs; rename it"
                )
    for (table, name), displaced in RIVALS.items():
        if name in flags.get(table, {}) and table in given:
            given[table] = {key: value for key, value in given[table].items() if key not in displaced}
    if {"kind", "contacts"} & flags.get("network", {}).keys() and "network" in given:
        kept = common() | belonging(flags["network"].get("kind") or "contacts")
        given["network"] = {key: value for key, value in given["network"].items() if key in kept}
    merged = {table: {**given.get(table, {}), **flags.get(table, {})} for table in TABLES}
    complete(UserSettings(merged, flags), usual)
    return Config(**{table: cls(**merged[table]) for table, cls in TABLES.items()})


def _check_file(file: Path | None, tables: Tables) -> None:
    check_names(file, tables, NAMES)
    for table, values in tables.items():
        for name, value in values.items():
            setting = SETTINGS[table, name]
            setting.check(value, f"{file}, [{table}]: {name}", f"{name} = {_toml(setting.example)}")


def read_toml(file: Path) -> Tables:
    """Read the tables of a configuration file; paths in it become relative to the working folder."""
    content = read_tables(file, _remedy(file), NAMES)
    _read_lists(file, content.get("compare", {}), content.get("sweep", {}))
    for table, name in PATHS:
        value = content.get(table, {}).get(name)
        if isinstance(value, str) and value not in SAMPLES:
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
            if type(value) is not int or not 1 <= value <= MOST_SEEDS:
                raise InputError(
                    f"{file}, [sweep]: seeds must be a whole number from 1 to {MOST_SEEDS}, or a list of them, got "
                    f"{shown(value)}; e.g. seeds = 3 or seeds = [0, 1, 2]"
                )
            sweep[name] = list(range(value))
        elif name in ("parameters", "kappas") and isinstance(value, str | int | float):
            sweep[name] = [value]


def _remedy(file: Path) -> str:
    """Suggest the option that was meant when a word was taken for a file of settings."""
    name = str(file)
    taken = "was taken for a file of settings: give"
    for option, known in (("--network", [*kinds_of_network()]), ("--method, or --methods to compare", [*METHODS])):
        if name.lower() in known:
            return f"{name!r} {taken} it with {option}, several with commas and no spaces"
    if name in SAMPLES:
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
            is_path = (table, name) in PATHS and value not in SAMPLES
            lines.append(f"{name} = {_toml(_path(value, None if absolute else file) if is_path else value)}")
    return "\n".join(lines) + "\n"


def _as_path(path: str) -> str:
    """Return a path that is not taken for the name of a data set.

    Examples
    --------
    >>> _as_path("a6a"), _as_path("six.svm")
    ('./a6a', 'six.svm')
    """
    return f"./{path}" if path in SAMPLES else path


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
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        plain = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in plain) + '"'
    return repr(value)
