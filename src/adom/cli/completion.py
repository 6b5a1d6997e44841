"""Completion by the shell: the script that it loads, and the values that an option may have.

Nothing here loads more than the command itself does: a shell asks at every press of the Tab key.
"""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InputError, nearest
from . import settings

SHELLS = ("bash", "zsh", "fish")
INSTALL, SHOW = "--install-completion", "--show-completion"
VARIABLE = "_ADOM_COMPLETE"
"""Set by the script where a shell asks for completions."""

Completer = Callable[[str], list[str]]
Values = Sequence[str] | Callable[[], Sequence[str]]
"""What there is to choose from, or what finds it out when it is asked for."""


def one_of(values: Values) -> Completer:
    """Complete one value."""

    def complete(incomplete: str) -> list[str]:
        return [value for value in (values() if callable(values) else values) if value.startswith(incomplete)]

    return complete


def several_of(values: Values) -> Completer:
    """Complete the last of several values that are separated by commas, each at most once.

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


def methods() -> list[str]:
    """Return the names of the methods."""
    from ..algorithms import METHODS

    return list(METHODS)


OF_SETTING: dict[tuple[str, str], Completer] = {
    ("problem", "data"): one_of(settings.DATA_SETS),
    ("network", "kind"): several_of(list(settings.KINDS)),
    ("run", "method"): one_of(methods),
    ("run", "parameters"): one_of(settings.PARAMETERS),
    ("run", "oracle"): one_of(settings.ORACLES),
    ("compare", "methods"): several_of(methods),
}
"""By table and name, for settings that are not simply one of their choices."""


def offer(flag: str, shell: str | None) -> str:
    """Show or install the completion of a shell, the present one where none is named; return what to print."""
    chosen = shell or _present()
    if chosen not in SHELLS:
        raise InputError(
            f"cannot complete for the shell {chosen or 'in use, which is not known'!r}; {nearest(chosen, SHELLS)}: "
            f"e.g. adom {flag} bash"
        )
    if flag == SHOW:
        return str(_typer().get_completion_script(prog_name="adom", complete_var=VARIABLE, shell=chosen))
    try:
        _, path = _typer().install(shell=chosen, prog_name="adom", complete_var=VARIABLE)
    except (OSError, RuntimeError) as error:  # the latter where there is no home
        raise InputError(f"cannot install completion for {chosen}: {error}; `adom {SHOW} {chosen}` prints it") from None
    return f"wrote\n  {path}\nnew shells complete `adom` by the Tab key"


def _present() -> str:
    """Return the name of the shell that called, "" where it cannot be told."""
    shellingham: Any = import_module("shellingham")  # which typer brings; it has no types
    try:
        return str(shellingham.detect_shell()[0])
    except (shellingham.ShellDetectionFailure, OSError, RuntimeError):
        return Path(os.environ.get("SHELL", "")).name


def prepare() -> None:
    """Make typer ready to answer a shell that asks for completions."""
    _typer().completion_init()


def _typer() -> Any:
    return import_module("typer.completion")  # loaded late, and without types for what is used here
