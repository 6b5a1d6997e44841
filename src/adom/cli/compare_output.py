"""Output shared by all comparisons: a table in LaTeX, and which methods did not run."""

from pathlib import Path

from ..util.files import atomic
from . import output
from .exit_codes import Exit


def print_latex(text: str, out: Path) -> None:
    """Print a table in LaTeX, and write it to a file."""
    with atomic(out / "table.tex") as partial:
        partial.write_text(f"{text}\n", encoding="utf-8")
    output.lines(text)


def end(skipped: dict[str, str], outside: str, interrupted: str) -> int:
    """Report methods that did not run or ran outside of their proofs, and Ctrl-C; return the exit code."""
    reasons: dict[str, list[str]] = {}
    for label, reason in skipped.items():
        reasons.setdefault(reason, []).append(label)
    for reason, labels in reasons.items():
        output.note(f"{', '.join(labels)} did not run: {reason}")
    if outside:
        output.note(f"warning: outside of their proofs: {outside}")
    if interrupted:
        output.note(interrupted)
    return Exit.INTERRUPTED if interrupted else Exit.DONE
