"""What a report is made of: result files and folders of runs, read and put in order.

A folder is one of `adom reproduce` (it has a plan.json), of `adom sweep` (it has a folder members), or any other with
result files, such as those of `adom compare` and `adom solve`.
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..algorithms import METHODS
from ..errors import InputError
from ..plot.curves import numbered
from ..run.progress import Progress
from ..run.result import Result, load
from ..study.compare import file_names
from ..study.metrics import relative_errors
from ..util import files
from .content import Content, Figure, Line, Panel, Run

SHOWN = 11
"""Curves that are switched on at first where a panel has many: as many as there are colours."""
MOST = 300
"""Curves that a panel takes; of more runs the best are drawn, and all are in the table."""


@dataclass(frozen=True)
class Found:
    """A result file that was read.

    Attributes
    ----------
    path : Path
    result : Result
    label : str
    """

    path: Path
    result: Result
    label: str


def kind(path: Path) -> str:
    """Return what an input is: "file", "reproduction", "sweep" or "folder"; refuse what is nothing of the kind."""
    what = files.kind(path)
    if what in ("nothing", "other"):
        found = "there is no file or folder" if what == "nothing" else "no results can be read from the pipe or device"
        raise InputError(
            f"{found} {files.named(path)}; give result files (.npz), or folders of solve, compare, sweep or reproduce"
        )
    if what == "file":
        return "file"
    if files.kind(path / "plan.json") != "nothing":
        return "reproduction"
    if any(_results(path / "members")):
        return "sweep"
    if any(_results(path)):
        return "folder"
    raise InputError(
        f"the folder {path} has no results; give one that `adom solve`, `compare`, `sweep` or `reproduce` filled"
    )


def _results(folder: Path) -> list[Path]:
    """Return the result files of a folder; none if it cannot be looked into."""
    try:
        return sorted(folder.glob("*.npz"))
    except OSError:
        return []


def read(
    inputs: Sequence[Path],
    *,
    title: str = "",
    progress: bool | None = None,
    say: Callable[[str], None] | None = None,
    reproduction: Callable[[Path, str, bool | None, Callable[[str], None]], Content] | None = None,
) -> Content:
    """Read results and folders; files that are named one by one are drawn together.

    A damaged file that is named itself is refused; one in a folder is left out, which `say` is told. The folder of a
    reproduction is read by `reproduction`, from its path, a prefix for its figures, `progress` and `say`.
    """
    told = say or (lambda text: None)
    if not inputs:
        raise InputError("got nothing to report; give result files or folders")
    kinds = {path: kind(path) for path in inputs}
    figures: list[Figure] = []
    runs: list[Run] = []
    ledgers: list[str] = []
    said: list[str] = []
    single = [path for path, what in kinds.items() if what == "file"]
    if single:
        found = [Found(path, load(path), "") for path in single]
        figures.append(_figure("results", "Results", found))
        runs += [run_row(one, "results") for one in found]
        said.append(_counted(len(found), "result file"))
    names = _short_names([path for path, what in kinds.items() if what != "file"])
    for path, name in names.items():
        if kinds[path] == "reproduction" and reproduction is not None:
            part = reproduction(path, f"{name}: " if len(names) > 1 else "", progress, told)
            figures += part.figures
            runs += part.runs
            ledgers += part.ledgers
            said += part.inputs
            continue
        found = _folder(path, kinds[path], progress, told)
        figures.append(_figure(name, f"{'Sweep' if kinds[path] == 'sweep' else 'Runs'} in {name}", found))
        runs += [run_row(one, name) for one in found]
        said.append(f"{_counted(len(found), 'result')} of the folder {name}")
    heading = title or ("Reproduction of the ADOM paper" if ledgers else f"Runs of {_methods(runs)}")
    return Content(heading, said, figures, runs, ledgers)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _short_names(folders: Sequence[Path]) -> dict[Path, str]:
    """Return a name for each folder that tells it from the others: as many of its last parts as that takes."""
    parts = {path: [part for part in path.resolve().parts if part != path.resolve().anchor] for path in folders}
    for depth in range(1, 1 + max((len(one) for one in parts.values()), default=1)):
        names = {path: "/".join(one[-depth:]) for path, one in parts.items()}
        if len(set(names.values())) == len(folders):
            return names
    return {path: f"{path.name} #{number}" for number, path in enumerate(folders, 1)}


def _folder(path: Path, what: str, progress: bool | None, say: Callable[[str], None]) -> list[Found]:
    """Read the results of a folder, in the order and with the labels of its table where there is one."""
    labels = {} if what == "sweep" else _labels(path)
    there = _results(path / "members" if what == "sweep" else path)
    listed = {path / name: label for label, name in file_names(labels).items()}
    there.sort(key=lambda file: (file not in listed, list(listed).index(file) if file in listed else 0))
    found, damaged = [], []
    with Progress(len(there), "reading", progress, "files") as bar:
        for number, file in enumerate(there):
            try:
                found.append(Found(file, load(file), listed.get(file, "")))
            except InputError as error:
                damaged.append(error)
            bar.update(number + 1)
    if not found:
        raise damaged[0]
    for one in damaged:
        say(f"left out: {one}")
    return found


def _labels(path: Path) -> list[str]:
    """Return the labels of a comparison, as its table has them."""
    import pandas as pd

    try:
        text = files.text(path / "table.csv", "")
        table = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    except (ValueError, OverflowError):  # it has other names than a comparison's, or is damaged
        return []
    return list(dict.fromkeys(table["label"])) if "label" in table else []


def _methods(runs: Sequence[Run]) -> str:
    titles = list(dict.fromkeys(str(one.cells["method"]) for one in runs))
    return ", ".join(titles) if len(titles) <= 3 else f"{len(titles)} methods"


def _figure(name: str, title: str, found: Sequence[Found]) -> Figure:
    """Return all runs of a folder as one panel."""
    drawn = [one for one in found if one.result.measure]
    labels = tell_apart(drawn)
    kept, shown = list(range(len(drawn))), len(drawn)
    if len(drawn) > 2 * SHOWN:  # the best come first, and have the colours for themselves
        kept, shown = sorted(kept, key=lambda place: rank(drawn[place].result))[:MOST], SHOWN
    lines = [
        Line(labels[place], _name(drawn[place].result), [drawn[place].result], shown=number < shown)
        for number, place in enumerate(kept)
    ]
    missing = len(found) - len(drawn)
    reasons = [f"{missing} of {len(found)} runs have no curve: they ran without monitoring"] if missing else []
    if len(drawn) > MOST:
        reasons.append(f"the best {MOST} of {len(drawn)} runs are drawn; the table has all")
    panel = Panel(name, title, lines, _common([one.result for one in drawn or found]), reason="; ".join(reasons))
    return Figure(name, title, "", {"": [panel]})


def rank(result: Result) -> tuple[bool, float, float]:
    """Return a key that sorts runs, best first: lost ones last, then by the last value and by rounds."""
    last = result.history.iloc[-1]
    value = float(last[result.measure]) if result.measure else np.inf
    return result.lost or not np.isfinite(value), value, float(last["round"])


def _name(result: Result) -> str:
    name = str(result.provenance.get("method", {}).get("name", ""))
    return name if name in METHODS else ""


def _traits(result: Result) -> dict[str, str]:
    """Return settings in which runs of one method may differ, in words."""
    provenance = result.provenance
    problem, network = provenance.get("problem", {}), provenance.get("network", {})
    kappa, chi, seed = problem.get("kappa"), network.get("chi"), network.get("seed")
    parts = [
        str(network.get("generator", "")),
        f"chi {chi:.4g}" if isinstance(chi, int | float) else "",
        "" if seed is None else f"seed {seed}",
    ]
    return {
        "protocol": result.protocol,
        "oracle": f"oracle {provenance['oracle']}" if provenance.get("oracle") else "",
        "kappa": f"kappa {kappa:.4g}" if isinstance(kappa, int | float) else "",
        "nodes": f"{problem.get('nodes')} nodes" if problem.get("nodes") else "",
        "network": ", ".join(filter(None, parts)),
        "engine": f"engine {provenance['engine']}" if provenance.get("engine") else "",
    }


def tell_apart(found: Sequence[Found]) -> list[str]:
    """Return a distinct label for each run: its own or its method, and the traits in which runs of one label differ."""
    labels = [_base_label(one) for one in found]
    traits = [_traits(one.result) for one in found]
    for trait in traits[0] if traits else ():
        values: dict[str, set[str]] = {}
        for label, own in zip(labels, traits, strict=True):
            values.setdefault(label, set()).add(own[trait])
        labels = [
            f"{label}, {own[trait]}" if len(values[label]) > 1 and own[trait] else label
            for label, own in zip(labels, traits, strict=True)
        ]
    return numbered(labels)


def _base_label(one: Found) -> str:
    name = one.result.provenance.get("method", {}).get("name")
    return one.label if one.label and one.label != name else one.result.label


def _common(results: Sequence[Result]) -> str:
    """Return the settings that all runs share, in words."""
    traits = [_traits(one) for one in results]
    shared = [value for name, value in traits[0].items() if value and all(one[name] == value for one in traits)]
    return ", ".join(f"parameters {part}" if part == traits[0]["protocol"] else part for part in shared)


def run_row(one: Found, source: str, **place: Any) -> Run:
    """Return a run as a row of the table; `place` is where it belongs in a reproduction."""
    result, made = one.result, one.result.provenance
    last = result.history.iloc[-1]
    relative = float("nan")
    if result.measure == "error" and (made.get("start_error") or 0) > 0:
        relative = float(relative_errors(result)[-1])
    cells = {
        "source": source,
        **place,
        "method": _base_label(one),
        "oracle": made.get("oracle") or "",
        "status": result.status,
        "rounds": int(last["round"]),
        "gradients": float(last["gradients"]),
        "floats sent": int(last["floats_sent"]),
        "seconds": float(last["seconds"]),
        "relative error": relative,
        "error": float(last.get("error", np.nan)),
        "gradient norm": float(last.get("gradient_norm", np.nan)),
        "consensus": float(last.get("consensus", np.nan)),
    }
    if "protocol" not in place:
        cells["protocol"] = result.protocol
    return Run(cells, details(one))


def details(one: Found) -> dict[str, str]:
    """Return the origin of a run, in words."""
    made = one.result.provenance
    method, problem = made.get("method", {}), made.get("problem", {})
    environment = {**made.get("versions", {}), "device": made.get("device"), "platform": made.get("platform")}
    found = {
        "file": one.path.name,
        "message": one.result.message,
        "parameters": in_line(method.get("parameters", {})),
        "problem": in_line(problem),
        "network": in_line(made.get("network", {})),
        "settings": in_line({name: made.get(name) for name in ("engine", "rounds", "record_every", "tol", "dtype")}),
        "commit": str(made.get("commit") or ""),
        "created": str(made.get("created") or ""),
        "environment": in_line(environment),
    }
    return {name: text for name, text in found.items() if text}


def in_line(values: dict[str, Any]) -> str:
    """Return names and values as a line of text.

    Examples
    --------
    >>> in_line({"eta": 0.123456789, "K": 12.0, "generator": "ring", "none": None})
    'eta 0.12346, K 12, generator ring'
    >>> in_line({"of": [{"generator": "ring"}, {"generator": "star"}], "every": 5})
    'of [(generator ring), (generator star)], every 5'
    """
    return ", ".join(f"{name} {_text(value)}" for name, value in values.items() if value is not None)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return f"({in_line(value)})"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
