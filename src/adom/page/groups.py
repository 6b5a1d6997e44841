"""Groups of runs that differ only in the seed: members of a comparison or a sweep as lines over seeds."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..run.result import Result, protocol_text
from ..study.methods import title
from .content import Panel

Place = tuple[str, str]
ROW = ["problem", "network", "seed", "method"]
"""Columns that identify a row of a comparison's table."""


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


def same_but_seed(result: Result, label: str) -> str:
    """Return a key shared by runs that differ only in the seed."""
    provenance = result.provenance
    about: list[Any] = [label, settings_of(result), provenance.get("oracle")]
    if (place := place_of(result)) is not None:
        about += place
    else:
        recipe, swept = provenance.get("network") or {}, provenance.get("sweep") or {}
        given = swept.get("network")  # the network's number in the sweep
        about.append(_seedless({**recipe, "chi": None}) if given is None else given)
        kappa = swept.get("kappa")  # the requested one: each seed may draw a problem with its own
        if kappa is None and swept.get("seed") is None:
            kappa = (provenance.get("problem") or {}).get("kappa")
        about.append(f"{kappa or 0:.6g}")
    return json.dumps(about, sort_keys=True, default=str)


def _seedless(recipe: Any) -> Any:
    """Return a network's recipe without seeds."""
    if isinstance(recipe, dict):
        return {name: _seedless(value) for name, value in recipe.items() if name != "seed"}
    return [_seedless(value) for value in recipe] if isinstance(recipe, list) else recipe


def arranged(panels: dict[Place, Panel]) -> list[Panel]:
    """Return panels with a row for each problem and a column for each network."""
    rows, columns = (list(dict.fromkeys(place[side] for place in panels)) for side in (0, 1))
    return [replace(panel, row=rows.index(at[0]), column=columns.index(at[1])) for at, panel in panels.items()]


def place_in_sweep(result: Result) -> tuple[Any, ...]:
    """Return a key that sorts the runs of one method of a sweep by their settings."""
    swept = result.provenance.get("sweep") or {}
    numbers = [sorted((swept.get(kind) or {}).items()) for kind in ("assume", "values", "factors")]
    at = [float(swept.get(name) or 0) for name in ("network", "kappa", "seed")]
    return (protocol_text(swept.get("base")), str(result.provenance.get("oracle")), *at, *numbers)


def row_of(result: Result) -> tuple[str, ...]:
    """Return the cells that identify a run's row in the table of its comparison; see `ROW`."""
    at = result.provenance.get("compare") or {}
    seed = at.get("seed")
    return (str(at.get("problem")), str(at.get("network")), "" if seed is None else str(seed), str(at.get("label")))


def label_of(result: Result) -> str | None:
    """Return the label of a run's method in its comparison or sweep; None if it belongs to neither."""
    provenance = result.provenance
    label = (provenance.get("compare") or provenance.get("sweep") or {}).get("label")
    return None if label is None else str(label)


def titles(results: Iterable[Result]) -> dict[str, str]:
    """Return the titles of the methods of comparisons and sweeps by label, from the newest run of each."""
    newest: dict[str, Result] = {}
    for result in sorted(results, key=lambda each: str(each.provenance.get("created") or "")):
        if (label := label_of(result)) is not None:
            newest[label] = result
    return {label: title(label, result) for label, result in newest.items()}


def runs_by_line(results: Sequence[Result], labels: Sequence[str]) -> list[list[int]]:
    """Return the numbers of each line's runs; runs share a line if they have a seed and differ only in it."""
    groups: dict[str, list[int]] = {}
    for number, (result, label) in enumerate(zip(results, labels, strict=True)):
        key = same_but_seed(result, label) if result.seed is not None else f"run {number}"
        groups.setdefault(key, []).append(number)
    parts = []
    for group in groups.values():
        seeds = {results[number].seed for number in group}
        parts += [group] if len(seeds) == len(group) else [[number] for number in group]
    return parts
