"""Turns settings into command-line options, so that no command lists them itself."""

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from ..errors import InputError
from .settings import TABLES, Setting, Tables

ConfigFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="CONFIG.toml",
        help="Settings in tables problem, network, run, compare, sweep; flags win over it.",
        show_default=False,
    ),
]
OutFolder = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]

Command = Callable[..., int]
PANELS = {"mpi": "Engine mpi"}
METAVARS = {int: "N", float: "X", str: "TEXT"}


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


def _all() -> list[tuple[str, str]]:
    return [(table, field.name) for table, cls in TABLES.items() for field in fields(cls)]


def _option(table: str, name: str, usual: Tables) -> Any:
    """Return the annotation from which typer makes the option."""
    kind, setting = describe(table, name)
    default = usual.get(table, {}).get(name)
    if default is None:
        default = next(f.default for f in fields(TABLES[table]) if f.name == name)
    shown = f"{default:g}" if isinstance(default, float) else default
    text = setting.help if default is None else f"{setting.help} Default: {shown}."
    option = typer.Option(
        flag(table, name),
        help=text,
        show_default=False,
        rich_help_panel=PANELS.get(table, table.capitalize()),
        metavar=METAVARS.get(kind),
    )
    return Annotated[bool | None if kind is bool else str | None, option]


def _parse(table: str, name: str, value: Any) -> Any:
    """Return what was given on the command line as the setting's own type."""
    kind = describe(table, name)[0]
    try:
        return kind(value)
    except ValueError:
        rule = "a whole number, got {!r}; e.g. 100" if kind is int else "a number, got {!r}; e.g. 100 or 1e-3"
        raise InputError(f"{flag(table, name)} must be {rule.format(value)}") from None
