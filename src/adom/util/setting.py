"""Settings, each described once as a field of a class: type, default, limits and help; and files with tables of them.

Command-line options, the tables of a TOML file and the checks of both are made from these descriptions.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import Field, dataclass, field
from math import inf
from pathlib import Path
from typing import Any, get_args

from ..errors import Damaged, InputError, closest, nearest, shown
from . import files
from .checked_json import of_type
from .checks import is_number

Tables = dict[str, dict[str, Any]]
"""Settings by table and name, such as ``{"problem": {"nodes": 20}}``."""
Values = Sequence[str] | Callable[[], Sequence[str]]
"""Names to choose from, or a function that loads them when they are needed."""


def setting(text: str, default: Any = None, **more: Any) -> Any:
    """Describe a field: help, default, limits (`ge`, `gt`, `le`), and other attributes of `Setting`."""
    limits = {name: more.pop(name) for name in ("ge", "gt", "le") if name in more}
    return field(default=default, metadata={"help": text, "limits": limits, **more})


@dataclass(frozen=True)
class Setting:
    """Description of one setting."""

    table: str
    name: str
    kind: Any
    default: Any
    flag: str
    example: Any
    help: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    choices: Values = ()
    completions: Values = ()
    several: bool = False  # separated by commas

    def check(self, value: Any, called: str, example: str) -> None:
        """Refuse a value of the wrong type, outside its limits or not among its choices."""
        check_value(value, self.kind, called, example, **self.limits)
        choices = self.choices() if callable(self.choices) else self.choices
        if choices and value not in choices:
            raise InputError(f"unknown {self.name} {shown(value)}; {nearest(value, choices)}")


TYPES: dict[Any, tuple[str, Any]] = {
    int: ("a whole number", 100),
    float: ("a number", 0.5),
    bool: ("true or false", True),
    str: ("text in quotes", "..."),
    list[int]: ("a list of whole numbers", [0, 1, 2]),
    list[float]: ("a list of numbers", [0.5, 1, 2]),
    list[str]: ("a list of texts in quotes", ["...", "..."]),
    list[dict[str, float]]: ("a list of tables of numbers", [{"eta": 0.1}]),
    dict[str, Any]: ("a table of lists", {"eta": [0.5, 1, 2]}),
}
"""Types of settings in words, and an example of each."""


def check_value(value: Any, kind: Any, called: str, example: str, **limits: float) -> None:
    """Refuse a value that is not of a type or breaks a limit; `called` is its name as the user gave it.

    Examples
    --------
    >>> check_value(2.0, float, "--share", "--share 0.5", gt=0, le=1)
    Traceback (most recent call last):
    adom.errors.InputError: --share must be at most 1, got 2; e.g. --share 0.5
    """
    try:
        of_type(value, kind, called)
    except Damaged as wrong:
        rule, got = TYPES[kind][0], shown(wrong.value)
        if kind is float and is_number(wrong.value):
            rule = "a finite number" if isinstance(wrong.value, float) else "a number below 1e308"
    else:
        rule = next((words for words, kept in _bounds(value, **limits) if not kept), "") if limits else ""
        got = f"{value:.15g}" if isinstance(value, float) else shown(value)
    if rule:
        raise InputError(f"{called} must be {rule}, got {got}; e.g. {example}")


def _bounds(value: float, ge: float = -inf, gt: float = -inf, le: float = inf) -> list[tuple[str, bool]]:
    """Return limits in words, and whether a value keeps them."""
    return [(f"at least {ge:.10g}", value >= ge), (f"above {gt:.10g}", value > gt), (f"at most {le:.10g}", value <= le)]


def described(each: Field[Any], table: str) -> Setting:
    """Return the description of a field in a table."""
    default: Any = each.default
    kind = each.type if default is not None else next(iter(get_args(each.type)), each.type)  # of "type | None"
    own = {"flag": f"--{each.name.replace('_', '-')}"}
    own["example"] = TYPES.get(kind, ("", None))[1] if default is None else default
    return Setting(table, each.name, kind, default, **{**own, **each.metadata})


def read_tables(file: Path, remedy: str, known: Mapping[str, Collection[str]]) -> Tables:
    """Read the tables of a TOML file; `known` has the names in each.

    Unknown tables, and names outside of a table, are refused; `check_names` refuses unknown names.
    """
    text = files.text(file, remedy, files.SETTINGS)
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and lists within lists
        raise InputError(f"{file} is not a TOML file: {_mistake(file, error, remedy)}") from None
    for table, values in content.items():
        if table not in known:
            home = next((home for home, names in known.items() if table in names), None)
            if home and not isinstance(values, dict):
                raise InputError(f"{file}: {table} is not in a table; write [{home}] on a line above it")
            raise InputError(f"{file}: unknown table [{table[:80]}]; {nearest(table, known)}")
        if not isinstance(values, dict):
            raise InputError(
                f"{file}: {table} must be a table, got {shown(values)}; write [{table}] on a line of its own"
            )
    return content


def _mistake(file: Path, error: Exception, remedy: str) -> str:
    """Explain why a text is not TOML, with the remedy."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply; a file of settings has no lists within lists"
    if not isinstance(error, tomllib.TOMLDecodeError):  # Python reads no number of more than 4300 digits
        return "a number in it has thousands of digits; write 1e12 for a large one"
    if re.match("Cannot (overwrite|declare)", str(error)):
        return f"{error}; a name may appear once in its table, and a table once in the file"
    return f"{error}; {'a line reads `name = value`, text in quotes' if file.suffix == '.toml' else remedy}"


def check_names(file: Path | None, tables: Tables, known: Mapping[str, Collection[str]]) -> None:
    """Refuse names in tables of a file that the tables do not have."""
    for table, values in tables.items():
        for name in values:
            if name not in known[table]:
                home = next((other for other, names in known.items() if name in names), None)
                elsewhere = home is not None and not closest(name, known[table])
                remedy = f"it belongs to [{home}]" if elsewhere else nearest(name, known[table])
                raise InputError(f"{file}, [{table}]: unknown key {shown(name)}; {remedy}")
