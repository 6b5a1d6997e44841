"""Settings from flags, a TOML file and defaults: merged, checked, completed, and written down again."""

import os
import re
import tomllib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from ..data.sets import SAMPLES
from ..errors import InputError, nearest
from ..errors import shown as in_python
from ..util import files
from ..util.files import atomic
from .defaults import Given, belonging, common, complete, shown
from .options import describe, example, flag
from .settings import KINDS, TABLES, Config, Tables

PATHS = (("problem", "data"), ("problem", "shards"), ("network", "contacts"), ("mpi", "checkpoints"))
"""Settings that name files, or a known data set; in a configuration file they are relative to that file."""

RIVALS = {
    ("problem", "kappa"): ("l2",),
    ("problem", "l2"): ("kappa",),
    ("problem", "data"): ("samples", "dim", "label"),
    ("problem", "split"): ("concentration",),
    ("network", "radius"): ("chi",),
    ("network", "chi"): ("radius",),
    ("network", "contacts"): ("kind",),
    ("run", "rtol"): ("tol",),
}
"""A flag, and the settings of a file that it does away with."""

RULES: dict[Any, tuple[str, str]] = {
    int: ("a whole number", "100"),
    float: ("a number", "0.5"),
    bool: ("true or false", "true"),
    str: ("text in quotes", '"..."'),
    list[int]: ("a list of whole numbers", "[0, 1, 2]"),
    list[float]: ("a list of numbers", "[0.5, 1, 2]"),
    list[str]: ("a list of texts in quotes", '["...", "..."]'),
    list[dict[str, float]]: ("a list of tables of numbers", "[{eta = 0.1}]"),
    dict[str, Any]: ("a table of lists", "{eta = [0.5, 1, 2]}"),
}
"""What a setting of each type must be, and an example."""


def settle(file: Path | None, flags: Tables, usual: Tables) -> Config:
    """Return the complete settings: flags before the file before what is usual."""
    given = {} if file is None else read_toml(file)
    for table, values in given.items():
        where = f"{file}, [{table}]"
        _check_types(table, values, where)
        for name, value in values.items():
            _check_value(table, name, value, f"{where}: {name}", f"{name} = {_toml(example(table, name))}")
    for table, values in flags.items():
        for name, value in values.items():
            _check_value(table, name, value, flag(table, name), f"{flag(table, name)} {example(table, name)}")
            if (table, name) in PATHS and any("\ud800" <= letter <= "\udfff" for letter in str(value)):
                raise InputError(
                    f"{flag(table, name)} {in_python(value)} is no name in UTF-8, as config.toml needs one; rename it"
                )
    for (table, name), displaced in RIVALS.items():
        if name in flags.get(table, {}) and table in given:
            given[table] = {key: value for key, value in given[table].items() if key not in displaced}
    if {"kind", "contacts"} & flags.get("network", {}).keys() and "network" in given:
        kind = flags["network"].get("kind") or "contacts"
        given["network"] = {k: v for k, v in given["network"].items() if k in common() or k in belonging(kind)}
    merged = {table: {**given.get(table, {}), **flags.get(table, {})} for table in TABLES}
    complete(Given(merged, flags), usual)
    return Config(**{table: cls(**merged[table]) for table, cls in TABLES.items()})


def read_toml(file: Path) -> Tables:
    """Read the tables of a configuration file; paths in it become relative to the working folder."""
    text = files.text(file, _meant(file), files.SETTINGS)
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and lists within lists
        raise InputError(f"{file} is no TOML: {_mistake(file, error)}") from None
    for table, values in content.items():
        if table not in TABLES:
            home = next((one for one, cls in TABLES.items() if table in {field.name for field in fields(cls)}), None)
            if home and not isinstance(values, dict):
                raise InputError(f"{file}: {table} stands in no table; write [{home}] on a line above it")
            raise InputError(f"{file}: unknown table [{table[:80]}]; {nearest(table, TABLES)}")
        if not isinstance(values, dict):
            raise InputError(
                f"{file}: {table} must be a table, got {in_python(values)}; write [{table}] on a line of its own"
            )
    _read_lists(content.get("compare", {}), content.get("sweep", {}))
    for table, name in PATHS:
        value = content.get(table, {}).get(name)
        if isinstance(value, str) and value not in SAMPLES:
            content[table][name] = _no_name(str(file.parent / value))
    return content


def _mistake(file: Path, error: Exception) -> str:
    """Say what is wrong with a text that is no TOML, and the remedy."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply; lists within lists end soon in a file of settings"
    if not isinstance(error, tomllib.TOMLDecodeError):  # Python reads no number of more than 4300 digits
        return "a number in it has thousands of digits; write 1e12 for a large one"
    if re.match("Cannot (overwrite|declare)", str(error)):
        return f"{error}; a name may stand in its table once, and a table in the file once"
    return f"{error}; {'a line reads `name = value`, text in quotes' if file.suffix == '.toml' else _meant(file)}"


def _read_lists(compare: dict[str, Any], sweep: dict[str, Any]) -> None:
    """Take methods as a list or as text with commas in both tables, and one value where a sweep has a list."""
    methods = compare.get("methods")
    if isinstance(methods, list) and all(isinstance(one, str) for one in methods):
        compare["methods"] = ",".join(methods)
    for name, value in sweep.items():
        if name in ("methods", "oracles") and isinstance(value, str):
            sweep[name] = [part.strip() for part in value.split(",") if part.strip()]
        elif name in ("parameters", "kappas", "seeds") and isinstance(value, str | int | float):
            sweep[name] = [value]


def _meant(file: Path) -> str:
    """Say what a word may stand for that was taken for a file of settings."""
    from ..algorithms import METHODS

    name = str(file)
    flags = {
        "--network": list(KINDS),
        "--method, or --methods to compare": list(METHODS),
    }
    if name in SAMPLES:
        return f"{name!r} was taken for a file of settings: give it with --data {name}"
    for found, known in flags.items():
        if name.lower() in known:
            return f"{name!r} was taken for a file of settings: give it with {found}, several with commas and no spaces"
    if file.suffix.lower() in (".csv", ".svm", ".libsvm", ".npz", ".bz2", ".gz", ".xz", ".txt"):
        return f"it was taken for a file of settings: give samples with --data {name}"
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
    with atomic(file) as partial:
        partial.write_text(toml_text(config, file, command, absolute=absolute), encoding="utf-8")


def toml_text(config: Config, file: Path, command: str = "solve", *, absolute: bool = False) -> str:
    """Return what `write_toml` writes."""
    lines = [f"# Run this again with: adom {command} {file.name}"]
    for table, values in asdict(config).items():
        given = {name: value for name, value in values.items() if value is not None}
        lines += ["", f"[{table}]"] if given else []
        for name, value in given.items():
            if (table, name) in PATHS:
                value = _absolute(value) if absolute else _relative(value, file)  # noqa: PLW2901  # as it is written
            lines.append(f"{name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _no_name(path: str) -> str:
    """Return a path that is not taken for the name of a data set.

    Examples
    --------
    >>> _no_name("a6a"), _no_name("six.svm")
    ('./a6a', 'six.svm')
    """
    return f"./{path}" if path in SAMPLES else path


def _absolute(path: str) -> str:
    return path if path in SAMPLES else Path(path).absolute().as_posix()


def _relative(path: str, file: Path) -> str:
    if path in SAMPLES:
        return path
    try:
        return _no_name(Path(os.path.relpath(path, file.parent)).as_posix())
    except ValueError:  # another drive
        return _absolute(path)


def _toml(value: Any) -> str:
    """Return a value as TOML writes it.

    Examples
    --------
    >>> print(_toml(True), _toml(3), _toml(1e-10), _toml(1e22), _toml('say "hi"'))
    true 3 1e-10 1e+22 "say \\"hi\\""
    >>> print(_toml({"eta": [0.5, 1], "adom+": {}}))
    {"eta" = [0.5, 1], "adom+" = {}}
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(str(name))} = {_toml(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        plain = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in plain) + '"'
    return repr(value)


def _check_types(table: str, values: dict[str, Any], where: str) -> None:
    """Check names and types with pydantic; its first complaint becomes one line of ours."""
    from pydantic import ConfigDict, ValidationError, create_model

    known = {field.name: field.type for field in fields(TABLES[table])}
    model: Any = create_model(
        table,
        __config__=ConfigDict(extra="forbid", strict=True),
        **{name: (kind, None) for name, kind in known.items()},  # type: ignore[call-overload]  # names are data
    )
    try:
        model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        if first["type"] == "extra_forbidden":
            raise InputError(f"{where}: unknown key {in_python(name)}; {nearest(name, known)}") from None
        rule, example = RULES[describe(table, name)[0]]
        if first["type"] == "finite_number" or (rule == "a number" and isinstance(first["input"], int)):
            rule += " below 1e308"
        raise InputError(
            f"{where}: {name} must be {rule}, got {in_python(first['input'])}; e.g. {name} = {example}"
        ) from None


def _check_value(table: str, name: str, value: Any, called: str, remedy: str) -> None:
    """Refuse a value that breaks its setting's rule; `called` is the setting as it was given."""
    kind, setting = describe(table, name)
    if kind in (int, float) and setting.broken(value):
        raise InputError(f"{called} must be {setting.broken(value)}, got {shown(value)}; e.g. {remedy}")
    if setting.choices and value not in setting.choices:
        raise InputError(f"unknown {name} {in_python(value)}; {nearest(value, setting.choices)}")
