"""Turns settings into command-line options, so that no command lists them itself."""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from ..errors import InputError
from .completion import OF_SETTING, one_of
from .settings import TABLES, Setting, Tables

OUTPUT = "Output"
"""The panel of options that say where results go."""

ConfigFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="CONFIG.toml",
        help="Settings in tables problem, network, run, mpi, compare, sweep; flags win over it.",
        show_default=False,
    ),
]
OutFolder = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Folder for the files; made if need be.", rich_help_panel=OUTPUT)
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        metavar="",
        help="Print one JSON object instead of text; errors stay one line on stderr.",
        rich_help_panel=OUTPUT,
    ),
]

Command = Callable[..., int]
PANELS = {"mpi": "Engine mpi"}
METAVARS = {int: "N", float: "X", str: "TEXT", bool: ""}


def with_settings(*chosen: str, usual: Tables, without: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Give a command the flags of whole tables ("network") or of single settings ("problem.nodes").

    Those in `without` are left out. The command receives what was given as `flags`, by table and name.
    """
    names = [
        (table, name)
        for table, name in _all()
        if (table in chosen or f"{table}.{name}" in chosen) and f"{table}.{name}" not in without
    ]

    def decorate(command: Command) -> Command:
        own = [p for p in inspect.signature(command).parameters.values() if p.name != "flags"]
        added = {f"{table}_{name}": _option(table, name, usual) for table, name in names}

        @functools.wraps(command)
        def wrapper(**given: Any) -> int:
            flags: Tables = {}
            for table, name in names:
                value = given.pop(f"{table}_{name}")
                if value is not None:
                    flags.setdefault(table, {})[name] = _parse(table, name, value)
            return command(flags=flags, **given)

        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        at = next((i for i, p in enumerate(parameters) if p.name in ("out", "json")), len(parameters))
        parameters[at:at] = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for key, annotation in added.items()
        ]
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by typer
        wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
        return wrapper

    return decorate


def flag(table: str, name: str) -> str:
    """Return the flag of a setting."""
    return describe(table, name)[1].flag or f"--{name.replace('_', '-')}"


def describe(table: str, name: str) -> tuple[type, Setting]:
    """Return the plain type of a setting and what is said about it."""
    annotation, setting = get_args(get_type_hints(TABLES[table], include_extras=True)[name])
    plain = next(kind for kind in (get_args(annotation) or (annotation,)) if kind is not type(None))
    return plain, setting


def example(table: str, name: str) -> Any:
    """Return a value that a setting may have."""
    given = describe(table, name)[1].example
    return _default(table, name) if given is None else given


def number(kind: type, name: str, rule: Setting) -> Callable[[Any], Any]:
    """Return what reads an option that is no setting: a number that keeps to a rule."""

    def read(value: Any) -> Any:
        try:
            found = kind(value)
        except ValueError:
            raise typer.BadParameter(_no_number(name, kind, value, rule.example)) from None
        if rule.broken(found):
            raise typer.BadParameter(f"{name} must be {rule.broken(found)}, got {found}; e.g. {name} {rule.example}")
        return found

    return read


def _all() -> list[tuple[str, str]]:
    return [(table, field.name) for table, cls in TABLES.items() for field in fields(cls)]


def _default(table: str, name: str) -> Any:
    return next(field.default for field in fields(TABLES[table]) if field.name == name)


def _option(table: str, name: str, usual: Tables) -> Any:
    """Return the annotation from which typer makes the option."""
    kind, setting = describe(table, name)
    default = usual.get(table, {}).get(name)
    if default is None:
        default = _default(table, name)
    shown = f"{default:g}" if isinstance(default, float) else default
    text = setting.help if default is None else f"{setting.help} Default: {shown}."
    option = typer.Option(
        flag(table, name),
        help=text,
        show_default=False,
        rich_help_panel=PANELS.get(table, table.capitalize()),
        metavar=METAVARS.get(kind),
        autocompletion=OF_SETTING.get((table, name)) or (one_of(setting.choices) if setting.choices else None),
    )
    return Annotated[bool | None if kind is bool else str | None, option]


def _parse(table: str, name: str, value: Any) -> Any:
    """Return what was given on the command line as the setting's own type."""
    kind = describe(table, name)[0]
    try:
        return kind(value)
    except ValueError:
        raise InputError(_no_number(flag(table, name), kind, value, example(table, name))) from None


def _no_number(name: str, kind: type, value: Any, usual: Any) -> str:
    """Say that a text is no number, with one that would do: the same in digits, where that is meant."""
    try:
        meant = float(value)
    except ValueError:
        meant = 0.5
    if kind is int and meant == meant // 1 and abs(meant) < 1e15:  # such as 1e3
        usual = int(meant)
    return f"{name} must be a {'whole ' if kind is int else ''}number, got {value!r}; e.g. {name} {usual}"
