"""Shell completion: values of options, and the script that a shell loads."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import InputError, nearest
from ..util.settings import Values

SHELLS = ("bash", "zsh", "fish")
INSTALL, SHOW = "--install-completion", "--show-completion"
VARIABLE = "_ADOM_COMPLETE"
"""Variable that a shell sets to ask for completions."""
Completer = Callable[[str], list[str]]


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
        return str(_typer().get_completion_script(**names))
    try:
        _, path = _typer().install(**names)
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


def prepare() -> None:
    """Make typer ready to answer a shell that asks for completions."""
    _typer().completion_init()


def _typer() -> Any:
    from typer import completion  # slow to load

    return completion
