"""`adom compare`: run several methods on the same problem and network, side by side."""

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..algorithms import COMPARED, METHODS, method_class
from ..errors import InputError
from .exit_codes import Exit
from .options import AsJson, ConfigFile, OutFolder, with_settings
from .settings import USUAL, Config, Tables

if TYPE_CHECKING:
    from ..study.compare import Comparison

ALL = "all"


@with_settings("problem", "network", "run", "compare", usual=USUAL, without=("run.method", "run.engine"))
def compare(
    flags: Tables, config: ConfigFile = None, out: OutFolder = Path("out/compare"), json: AsJson = False
) -> int:
    """Run several methods on the same problem and network.

    Each gets the same budget of communication rounds. The table lists the
    final error of each method and its cost to reach a common target. Writes
    table.csv, comparison.png, config.toml and one .npz file per method.
    """
    from . import build, output
    from .config import settle, write_toml

    settings = settle(config, flags, USUAL)
    names = _check(settings)
    output.folder(out)
    network, problem = build.both(settings)

    from .. import compare as compare_methods
    from ..problems.weighting import weighting_text
    from ..study.compare import file_names

    parameters, budget = build.parameters(settings.run.parameters), build.budget(settings, problem)
    comparison = compare_methods(problem, network, names, parameters, settings.run.oracle, **budget)
    if comparison.table["rounds_to_target"].isna().all():
        comparison = replace(comparison, tol=None)  # compare by an error that one of them did reach
    comparison.save(out)
    write_toml(settings, out / "config.toml", "compare")
    results = {label: str(out / name) for label, name in file_names(comparison.results).items()}
    kinds = {"table": "table.csv", "figure": "comparison.png", "config": "config.toml"}
    files = {kind: str(out / name) for kind, name in kinds.items()}
    about = {"nodes": problem.nodes, "dim": problem.dim, "kappa": problem.kappa, "chi": network.chi}
    about["window"] = max((result.provenance["window"] for result in comparison.results.values()), default=1)
    if json:
        more = {"target": comparison.target, "rows": _rows(comparison), "skipped": comparison.skipped}
        all_files = {**files, "results": results}
        output.as_json({**about, **more, "interrupted": comparison.interrupted, "files": all_files})
    else:
        _print(comparison, settings, about)
        output.wrote(*files.values(), f"{len(results)} result files .npz")
    if weights := weighting_text(problem.weighting()):
        output.note(weights)
    for reason, labels in _grouped(comparison.skipped).items():
        output.note(f"{labels} did not run: {reason}")
    if comparison.outside:
        output.note(f"warning: this network changes; {comparison.outside}")
    if comparison.interrupted:
        output.note("interrupted; what was done so far is saved")
    return Exit.INTERRUPTED if comparison.interrupted else Exit.DONE


def _check(settings: Config) -> list[str] | str | None:
    """Refuse a wrong request before anything is built; return the names of the methods, None for the usual ones."""
    from . import build

    if settings.run.engine != "local":
        raise InputError(f"engine {settings.run.engine!r} cannot compare methods; take engine local")
    text = settings.compare.methods
    if text is None or text.strip().lower() == ALL:
        build.check_run(settings, [method_class(name) for name in (COMPARED if text is None else METHODS)])
        return None if text is None else ALL
    names = [part.strip().lower() for part in text.split(",") if part.strip()]
    if not names:
        raise InputError(f"--methods {text!r} names no method; known: {', '.join(METHODS)}")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"--methods names {twice!r} twice; leave one out")
    build.check_run(settings, [method_class(name) for name in names])
    return names


def _grouped(reasons: dict[str, str]) -> dict[str, str]:
    """Return each reason with the labels that it holds for."""
    found: dict[str, list[str]] = {}
    for label, reason in reasons.items():
        found.setdefault(reason, []).append(label)
    return {reason: ", ".join(labels) for reason, labels in found.items()}


def _rows(comparison: "Comparison") -> list[dict[str, Any]]:
    """Return the rows of the table, with parameters and message of each run."""
    rows = []
    for row, result in zip(comparison.table.to_dict("records"), comparison.results.values(), strict=True):
        method = result.provenance["method"]
        more = {"method": method["name"], "title": method["title"], "parameters": method["parameters"]}
        more |= {"oracle": result.provenance["oracle"], "message": result.message}
        rows.append({str(name): value for name, value in row.items()} | more)
    return rows


def _print(comparison: "Comparison", settings: Config, about: dict[str, Any]) -> None:
    from ..util.text import format_short
    from .output import number, steps_of, table

    target = "any lower error" if math.isnan(comparison.target) else f"{comparison.target:.3g}"
    used = {result.provenance["oracle"] for result in comparison.results.values()} - {None}
    oracle = ", ".join(sorted(used)) or settings.run.oracle
    ends = ("error", "rounds", "gradients", "floats", "seconds")
    rows = []
    for row in _rows(comparison):
        costs = [format_short(row[f"{cost}_to_target"]) for cost in ("rounds", "gradients", "floats_sent", "seconds")]
        rows.append((row["title"], row["status"], f"{row['relative_error']:.1e}", *costs))
    table(
        f"{about['nodes']} nodes, dim {about['dim']}, kappa {number(round(about['kappa'], 6))}, "
        f"chi {number(about['chi'])}{steps_of(about['window'])}; "
        f"parameters {settings.run.parameters}, dual oracle {oracle}\n"
        f"final relative error; cost to reach {target}",
        ("method", "status", *ends),
        rows,
        numbers=ends,
    )
