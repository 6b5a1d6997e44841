"""What to do about how a run ended: only what fits, and never what is set already."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..run.result import Result

FLOOR = "at the floor of rounding"
COMPARE = "`adom compare` shows which methods suit this problem and network"


def advice(result: "Result", tol_flag: str = "--rtol") -> str:
    """Return what to do next, in words; "" where there is nothing to do.

    Parameters
    ----------
    result : Result
    tol_flag : str
        The option that the tolerance was given by.
    """
    status = result.status
    if status in {"growing", "diverged"}:
        careful = _untried(result)
        return f"take {_listed(careful, 'and')}" if careful else f"no setting here is more careful; {COMPARE}"
    if status == "stalled":
        if FLOOR in result.message:
            finer = _untried(result, "--dtype float64")
            return " or ".join([*(f"take {one}" for one in finer), f"ask for less by a larger {tol_flag}"])
        careful = _untried(result)
        return "more rounds do not help; " + (f"take {_listed(careful, 'or')}" if careful else COMPARE)
    if status == "max_rounds":
        if not result.measure:
            return "leave out --no-monitor to see it"
        if FLOOR in result.message:
            return "more rounds do not help"
        return f"raise --rounds {'to see whether it falls again' if ' rose from ' in result.message else 'for more'}"
    return ""


def _untried(result: "Result", *among: str) -> list[str]:
    """Return the settings more careful than the run's own, those among some where any are named."""
    made = result.provenance
    careful = {
        "--parameters theory": result.protocol != "theory",
        "--oracle exact": made.get("oracle") not in (None, "exact"),
        "--dtype float64": made.get("dtype", "float64") != "float64",
    }
    return [option for option, differs in careful.items() if differs and (not among or option in among)]


def _listed(words: list[str], last: str) -> str:
    """Return words with commas, and one word before the last.

    Examples
    --------
    >>> _listed(["a", "b", "c"], "and"), _listed(["a"], "or")
    ('a, b and c', 'a')
    """
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))
