"""Content of a page, read from result files and folders of runs.

A folder comes from `adom reproduce` (it has a plan.json), from `adom sweep` or `adom compare --seeds` (it has a folder
members), or is any other with result files, such as those of `adom compare` and `adom solve`. Members of a comparison
or a sweep that differ only in the seed share a line.
"""

import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..algorithms import METHODS
from ..errors import InputError
from ..plot.curves import told_apart
from ..run.progress import Progress
from ..run.result import Result, load, protocol_text
from ..study.methods import title
from ..study.metrics import relative_errors
from ..study.saved import FILE, file_names
from ..util import files
from ..util.columns import METRICS, STATES
from ..util.text import format_count
from .content import Content, Figure, Line, Panel, Run

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 11
"""Curves visible at first where a panel has many: one for each colour."""
MOST = 300
"""The most curves of a panel; if there are more, only the best are drawn. The table has all runs."""
Place = tuple[str, str]


@dataclass(frozen=True)
class ResultFile:
    """A result, the file it was read from, and its label if there is one."""

    path: Path
    result: Result
    label: str


def kind(path: Path) -> str:
    """Return the kind of an input: "file", "reproduction", "sweep" or "folder"; refuse anything else."""
    what = files.kind(path)
    if what in ("nothing", "other"):
        fault = "there is no file or folder" if what == "nothing" else "no results can be read from the pipe or device"
        raise InputError(
            f"{fault} {files.named(path)}; give result files (.npz), or folders of solve, compare, sweep or reproduce"
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
    """Return the result files of a folder, none if there is no such folder; refuse one that cannot be read."""
    if files.kind(folder) != "folder":
        return []
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".npz")
    except OSError as error:
        fault = files.reason(error).lower()
        raise InputError(f"cannot read the folder {files.named(folder)}: {fault}; check its permissions") from None


def read(
    inputs: Sequence[Path],
    *,
    title: str = "",
    progress: bool | None = None,
    say: Callable[[str], None] | None = None,
    reproduction: Callable[[Path, str, bool | None, Callable[[str], None]], Content] | None = None,
) -> Content:
    """Read result files and folders; files given one by one are drawn together.

    A damaged file given itself is refused; one in a folder is left out and reported through `say`. The folder of a
    reproduction is read by `reproduction`, which takes its path, a prefix for its figures, `progress` and `say`.
    """
    if not inputs:
        raise InputError("got nothing to report; give result files or folders")
    say = say or (lambda text: None)
    kinds = {path: kind(path) for path in inputs}
    figures: list[Figure] = []
    runs: list[Run] = []
    ledgers: list[str] = []
    sources: list[str] = []

    def add(name: str, title: str, loaded: Sequence[ResultFile], source: str) -> None:
        called = _titles(file.result for file in loaded)
        loaded = [replace(file, label=called.get(_label_of(file.result) or "", file.label)) for file in loaded]
        figures.append(_figure(name, title, loaded))
        runs.extend(run_row(file, name, **_position(file.result)) for file in loaded)
        sources.append(source)

    single = [ResultFile(path, load(path), "") for path, what in kinds.items() if what == "file"]
    if single:
        add("results", "Results", single, format_count(len(single), "result file"))
    names = _short_names([path for path, what in kinds.items() if what != "file"])
    for path, name in names.items():
        if kinds[path] == "reproduction" and reproduction is not None:
            part = reproduction(path, f"{name}: " if len(names) > 1 else "", progress, say)
            figures += part.figures
            runs += part.runs
            ledgers += part.ledgers
            sources += part.inputs
        else:
            loaded = _folder(path, kinds[path], progress, say)
            swept = kinds[path] == "sweep" and place_of(loaded[0].result) is None
            title_of_folder = f"{'Sweep' if swept else 'Runs'} in {name}"
            add(name, title_of_folder, loaded, f"{format_count(len(loaded), 'result')} of the folder {name}")
    heading = title or ("Reproduction of the ADOM paper" if ledgers else f"Runs of {_methods(runs)}")
    return Content(heading, sources, figures, runs, ledgers)


def _short_names(folders: Sequence[Path]) -> dict[Path, str]:
    """Return a distinct name for each folder: as few of its last parts as suffice."""
    parts = {path: path.resolve().parts[1:] for path in folders}
    for depth in range(1, 1 + max(map(len, parts.values()), default=1)):
        names = {path: "/".join(each[-depth:]) for path, each in parts.items()}
        if len(set(names.values())) == len(folders):
            return names
    return {path: f"{path.name} #{number}" for number, path in enumerate(folders, 1)}


def run_files(path: Path, what: str) -> list[Path]:
    """Return the run files of a folder of kind "sweep" or "folder": those in its table, or all."""
    paths = _results(path / "members" if what == "sweep" else path)
    named = set(_table(path).get(FILE, ())) - {""}  # other files may belong to another comparison or sweep
    return [file for file in paths if file.name in named] or paths


def _folder(path: Path, what: str, progress: bool | None, say: Callable[[str], None]) -> list[ResultFile]:
    """Read the results of a folder, in the order and with the labels of its table if there is one."""
    table, paths = _table(path), run_files(path, what)
    labels = list(dict.fromkeys(table["label"])) if "label" in table else []
    named = {} if what == "sweep" else {path / name: label for label, name in file_names(labels).items()}
    listed = [*table[FILE]] if FILE in table else [file.name for file in named]
    order = {name: position for position, name in enumerate(listed)}
    paths.sort(key=lambda file: order.get(file.name, len(order)))
    loaded, damaged = [], []
    with Progress(len(paths), "reading", progress, "files") as bar:
        for number, file in enumerate(paths):
            try:
                loaded.append(ResultFile(file, load(file), named.get(file, "")))
            except InputError as error:
                damaged.append(error)
            bar.update(number + 1)
    if not loaded:
        raise damaged[0]
    judged = [file for file in loaded if not is_search(file.result)] or loaded
    if what == "sweep" and place_of(judged[0].result) is None:
        judged.sort(key=lambda file: (_place_in(labels, file.result), _place_in_sweep(file.result)))
    for fault in damaged:
        say(f"left out: {fault}")
    return judged


def _place_in(labels: Sequence[str], result: Result) -> int:
    """Return the place of a run's label among others, after all if it is not among them."""
    label = _label_of(result)
    return labels.index(label) if label in labels else len(labels)


def _table(path: Path) -> "pd.DataFrame":
    """Return the table in a folder, as texts; an empty one if there is none, or only another program's."""
    import pandas as pd

    try:
        text = files.text(path / "table.csv", "")
        return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    except (ValueError, OverflowError):
        return pd.DataFrame()


def _position(result: Result) -> dict[str, Any]:
    """Return problem, network and seed of a run of a comparison over seeds, as cells of the table of runs."""
    place = place_of(result)
    return {} if place is None else {"panel": " on ".join(place), "seed": result.seed}


def _methods(runs: Sequence[Run]) -> str:
    titles = list(dict.fromkeys(str(run.cells["method"]) for run in runs))
    return ", ".join(titles) if len(titles) <= 3 else f"{len(titles)} methods"


def _figure(name: str, title: str, files: Sequence[ResultFile]) -> Figure:
    """Return the runs of a folder as one panel, or as one for each problem and network of a comparison."""
    panels: dict[Place, Panel] = {}
    for place in dict.fromkeys(place_of(file.result) for file in files):
        some = [file for file in files if place_of(file.result) == place]
        heading = title if place is None else " on ".join(place)
        panels[place or ("", "")] = _panel(name if place is None else heading, heading, some)
    return Figure(name, title, "", {"": _arranged(panels)})


def _panel(name: str, title: str, files: Sequence[ResultFile]) -> Panel:
    """Return runs as one panel; runs of a sweep or comparison that differ only in the seed share a line."""
    monitored = [file for file in files if file.result.measure]
    lines = _lines(monitored)
    if len(lines) > 2 * SHOWN:  # the best come first, each in another colour
        lines = sorted(lines, key=lambda line: min(map(rank, line.runs)))[:MOST]
        lines = [replace(line, shown=number < SHOWN) for number, line in enumerate(lines)]
    missing = len(files) - len(monitored)
    reasons = [f"{missing} of {len(files)} runs have no curve: they ran without monitoring"] if missing else []
    if len(monitored) > MOST and len(lines) == MOST:
        reasons.append(f"the best {MOST} of {len(monitored)} runs are drawn; the table has all")
    about = _common([file.result for file in monitored or files])
    return Panel(name, title, lines, about, reason="; ".join(reasons))


def _lines(files: Sequence[ResultFile]) -> list[Line]:
    """Return the lines of runs."""
    results = [file.result for file in files]
    members = [number for number, run in enumerate(results) if {"sweep", "compare"} & run.provenance.keys()]
    parts = [[number] for number in range(len(files))]
    if len(members) == len(files):
        parts = runs_by_line(results, [_base_label(file) for file in files])
    traits = [_traits(run) for run in results]
    for number in (number for part in parts if len(part) > 1 for number in part):
        run = results[number]
        kind = str((run.provenance.get("network") or {}).get("generator", ""))
        traits[number] |= {"protocol": settings_of(run), "network": kind}
        if place_of(run) is not None:
            traits[number]["kappa"] = ""  # it may differ from seed to seed
    labels = told_apart([_base_label(files[part[0]]) for part in parts], [traits[part[0]] for part in parts])
    return [
        Line(label, _name(results[part[0]]), [results[number] for number in part])
        for label, part in zip(labels, parts, strict=True)
    ]


def rank(result: Result) -> tuple[bool, float, float]:
    """Return a key that sorts runs, best first: lost ones last, then by the last value and by rounds."""
    last = result.last
    value = float(last[result.measure]) if result.measure else np.inf
    return result.lost or not np.isfinite(value), value, float(last["round"])


def _name(result: Result) -> str:
    name = str(result.provenance.get("method", {}).get("name", ""))
    return name if name in METHODS else ""


def _traits(result: Result) -> dict[str, str]:
    """Return the settings in which runs of one method may differ, in words."""
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


def _base_label(file: ResultFile) -> str:
    name = file.result.provenance.get("method", {}).get("name")
    return file.label if file.label and file.label != name else file.result.label


def _common(results: Sequence[Result]) -> str:
    """Return the settings that all runs share, in words."""
    first, *others = [_traits(result) for result in results]
    shared = [name for name, value in first.items() if value and all(other[name] == value for other in others)]
    return ", ".join(f"parameters {first[name]}" if name == "protocol" else first[name] for name in shared)


def run_row(file: ResultFile, source: str, **more: Any) -> Run:
    """Return a run as a row of the table; `more` are further cells, such as its panel in a reproduction."""
    result, provenance = file.result, file.result.provenance
    last = result.last
    relative = float("nan")
    if result.measure == "error" and (provenance.get("start_error") or 0) > 0:
        relative = float(relative_errors(result)[-1])
    cells = {
        "source": source,
        "protocol": result.protocol,
        **more,
        "method": _base_label(file),
        "oracle": provenance.get("oracle") or "",
        "status": result.status,
        **{metric.words: metric.total(last) for metric in METRICS.values()},
        "relative error": relative,
        **{state.words: float(last.get(name, np.nan)) for name, state in STATES.items()},
    }
    return Run(cells, _details(file))


def _details(file: ResultFile) -> dict[str, str]:
    """Return the origin of a run, in words."""
    provenance = file.result.provenance
    machine = {**provenance.get("versions", {}), **{name: provenance.get(name) for name in ("device", "platform")}}
    settings = {name: provenance.get(name) for name in ("engine", "rounds", "record_every", "tol", "dtype")}
    texts = {
        "file": file.path.name,
        "message": file.result.message,
        "parameters": in_line(provenance.get("method", {}).get("parameters", {})),
        "problem": in_line(provenance.get("problem", {})),
        "network": in_line(provenance.get("network", {})),
        "settings": in_line(settings),
        "commit": str(provenance.get("commit") or ""),
        "created": str(provenance.get("created") or ""),
        "environment": in_line(machine),
    }
    return {name: text for name, text in texts.items() if text}


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


def place_of(result: Result) -> Place | None:
    """Return the names of problem and network of a run of a comparison over seeds; None for other runs."""
    at = result.provenance.get("compare")
    return None if at is None else (str(at["problem"]), str(at["network"]))


def is_search(result: Result) -> bool:
    """Return whether a run only tuned parameters, on a seed that is not judged."""
    return bool((result.provenance.get("compare") or {}).get("search"))


def settings_of(result: Result) -> str:
    """Return the requested parameters of a run; those of a sweep do not depend on the seed's constants."""
    swept = result.provenance.get("sweep")
    if not swept:
        return result.protocol
    parts = [protocol_text(swept.get("base"))]
    parts += [f"{name} = {value:.4g}" for name, value in (swept.get("values") or {}).items()]
    scaled = {**(swept.get("assume") or {}), **(swept.get("factors") or {})}
    return ", ".join([*parts, *(f"{name} x {value:.4g}" for name, value in scaled.items())])


def _same_but_seed(result: Result, label: str) -> str:
    """Return a key shared by runs that differ only in the seed."""
    provenance = result.provenance
    about: list[Any] = [label, settings_of(result), provenance.get("oracle")]
    if (place := place_of(result)) is not None:
        about += place
    else:
        recipe, swept = provenance.get("network") or {}, provenance.get("sweep") or {}
        given = swept.get("network")  # the network's number in the sweep
        about.append(_seedless({**recipe, "chi": None}) if given is None else given)
        kappa = swept.get("kappa")  # the requested one: each seed may draw a problem with another
        if kappa is None and swept.get("seed") is None:
            kappa = (provenance.get("problem") or {}).get("kappa")
        about.append(f"{kappa or 0:.6g}")
    return json.dumps(about, sort_keys=True, default=str)


def _seedless(recipe: Any) -> Any:
    """Return a network's recipe without seeds."""
    if isinstance(recipe, dict):
        return {name: _seedless(value) for name, value in recipe.items() if name != "seed"}
    return [_seedless(value) for value in recipe] if isinstance(recipe, list) else recipe


def _arranged(panels: dict[Place, Panel]) -> list[Panel]:
    """Return panels with a row for each problem and a column for each network."""
    rows, columns = (list(dict.fromkeys(place[side] for place in panels)) for side in (0, 1))
    return [replace(panel, row=rows.index(at[0]), column=columns.index(at[1])) for at, panel in panels.items()]


def _place_in_sweep(result: Result) -> tuple[Any, ...]:
    """Return a key that sorts the runs of one method of a sweep by their settings."""
    swept = result.provenance.get("sweep") or {}
    numbers = [sorted((swept.get(kind) or {}).items()) for kind in ("assume", "values", "factors")]
    at = [float(swept.get(name) or 0) for name in ("network", "kappa", "seed")]
    return (protocol_text(swept.get("base")), str(result.provenance.get("oracle")), *at, *numbers)


def _label_of(result: Result) -> str | None:
    """Return the label of a run's method in its comparison or sweep; None if it belongs to neither."""
    provenance = result.provenance
    label = (provenance.get("compare") or provenance.get("sweep") or {}).get("label")
    return None if label is None else str(label)


def _titles(results: Iterable[Result]) -> dict[str, str]:
    """Return the titles of the methods of comparisons and sweeps by label, from the newest run of each."""
    newest: dict[str, Result] = {}
    for result in sorted(results, key=lambda each: str(each.provenance.get("created") or "")):
        if (label := _label_of(result)) is not None:
            newest[label] = result
    return {label: title(label, result) for label, result in newest.items()}


def runs_by_line(results: Sequence[Result], labels: Sequence[str]) -> list[list[int]]:
    """Return the numbers of each line's runs; runs share a line if they have a seed and differ only in it."""
    groups: dict[str, list[int]] = {}
    for number, (result, label) in enumerate(zip(results, labels, strict=True)):
        key = _same_but_seed(result, label) if result.seed is not None else f"run {number}"
        groups.setdefault(key, []).append(number)
    parts = []
    for group in groups.values():
        seeds = {results[number].seed for number in group}
        parts += [group] if len(seeds) == len(group) else [[number] for number in group]
    return parts
