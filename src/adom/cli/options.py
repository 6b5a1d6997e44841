"""Command-line options: those made from settings, those that commands share, and their completion by the shell."""

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer.completion

from ..errors import InputError, nearest
from ..util.setting import Setting, Tables, Values, check_value
from .settings import SETTINGS

SHELLS = ("bash", "zsh", "fish")
INSTALL, SHOW = "--install-completion", "--show-completion"
VARIABLE = "_ADOM_COMPLETE"
"""Variable that a shell sets to ask for completions."""
TYPERS: Any = typer.completion
Completer = Callable[[str], list[str]]
Command = Callable[..., int]
OUTPUT = "Output"
"""Panel of the options that say where results go."""
METAVARS = {int: "N", float: "X", str: "TEXT", bool: ""}


ConfigFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="CONFIG.toml",
        help="Settings in tables problem, network, run, mpi, compare, sweep; options override it.",
        show_default=False,
    ),
]
OutFolder = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="DIR", help="Folder for the files; made if need be.", rich_help_panel=OUTPUT),
]


def switch(name: str, text: str, **more: Any) -> Any:
    """Describe an option without a value."""
    return typer.Option(name, metavar="", help=text, **more)


def number_option(name: str, text: str, kind: type, example: Any, **limits: float) -> Any:
    """Describe an option that is not a setting: a number, within limits where no library function has them."""

    def read(given: Any) -> Any:
        try:
            value = _convert(given, kind, name, example)
            check_value(value, kind, name, f"{name} {example}", **limits)
        except InputError as error:
            raise typer.BadParameter(str(error)) from None
        return value

    return typer.Option(name, metavar=METAVARS[kind], help=text, parser=read)


AsJson = Annotated[
    bool,
    switch("--json", "Print one JSON object instead of text; errors stay one line on stderr.", rich_help_panel=OUTPUT),
]


def with_settings(*chosen: str, usual: Tables, without: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Give a command the options of whole tables ("network") or of single settings ("problem.nodes").

    Those in `without` are left out. The command receives the given values as `flags`, by table and name.
    """
    settings = {
        f"{table}_{name}": setting
        for (table, name), setting in SETTINGS.items()
        if (table in chosen or f"{table}.{name}" in chosen) and f"{table}.{name}" not in without
    }

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapper(**given: Any) -> int:
            flags: Tables = {}
            for key, setting in settings.items():
                text = given.pop(key)
                if text is not None:
                    value = _convert(text, setting.kind, setting.flag, setting.example)
                    flags.setdefault(setting.table, {})[setting.name] = value
            return command(flags=flags, **given)

        own = [parameter for parameter in inspect.signature(command).parameters.values() if parameter.name != "flags"]
        at = next((index for index, parameter in enumerate(own) if parameter.name in ("out", "json")), len(own))
        keyword = inspect.Parameter.KEYWORD_ONLY
        added = [
            inspect.Parameter(key, keyword, default=None, annotation=_option(setting, usual))
            for key, setting in settings.items()
        ]
        parameters = [parameter.replace(kind=keyword) for parameter in (*own[:at], *added, *own[at:])]
        wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by typer
        wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return wrapper

    return decorate


def _option(setting: Setting, usual: Tables) -> Any:
    """Return the annotation from which typer makes the option of a setting."""
    default = usual.get(setting.table, {}).get(setting.name, setting.default)
    shown = f"{default:g}" if isinstance(default, float) else default
    values = setting.choices or setting.completions
    completer = (several_of if setting.several else one_of)(values) if values else None
    option = typer.Option(
        setting.flag,
        help=setting.help if default is None else f"{setting.help} Default: {shown}.",
        show_default=False,
        rich_help_panel="Engine mpi" if setting.table == "mpi" else setting.table.capitalize(),
        metavar=METAVARS.get(setting.kind),
        autocompletion=completer,
    )
    return Annotated[bool | None if setting.kind is bool else str | None, option]


def _convert(text: Any, kind: Any, flag: str, example: Any) -> Any:
    try:
        return kind(text)
    except ValueError:
        rule = "a whole number" if kind is int else "a number"
    try:
        meant = float(text)
    except ValueError:
        meant = 0.5
    if kind is int and meant.is_integer() and abs(meant) < 1e15:  # such as 1e3
        example = int(meant)
    raise InputError(f"{flag} must be {rule}, got {text!r}; e.g. {flag} {example}")


def one_of(values: Values) -> Completer:
    """Return a completer of one value."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in (values() if callable(values) else values) if value.startswith(incomplete)]

    return complete


def several_of(values: Values) -> Completer:
    """Return a completer of the last of several comma-separated values, each given at most once.

    Examples
    --------
    >>> several_of(["adom", "adom+", "apm"])("apm,ad")
    ['apm,adom', 'apm,adom+']
    """

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [f"{before}{comma}{value}" for value in one_of(values)(last) if value not in taken]

    return complete


def offer(option: str, shell: str) -> str:
    """Show or install the completion of a shell; return the text to print."""
    if shell not in SHELLS:
        raise InputError(
            f"cannot complete for the shell {shell or 'in use, which is not known'!r}; {nearest(shell, SHELLS)}: "
            f"e.g. adom {option} bash"
        )
    names = {"shell": shell, "prog_name": "adom", "complete_var": VARIABLE}
    if option == SHOW:
        return str(TYPERS.get_completion_script(**names))
    try:
        _, path = TYPERS.install(**names)
    except (OSError, RuntimeError) as error:  # the latter if there is no home folder
        raise InputError(f"cannot install completion for {shell}: {error}; `adom {SHOW} {shell}` prints it") from None
    return f"wrote\n  {path}\nnew shells complete `adom` with the Tab key"


def present_shell() -> str:
    """Return the name of the calling shell, "" if it is unknown."""
    import shellingham  # type: ignore[import-untyped]  # installed with typer

    try:
        return str(shellingham.detect_shell()[0])
    except (shellingham.ShellDetectionFailure, OSError, RuntimeError):
        return Path(os.environ.get("SHELL", "")).name
