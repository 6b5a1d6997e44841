"""`adom compare`: run several methods on the same problem and network, side by side."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .exit_codes import Exit
from .options import AsJson, ConfigFile, OutFolder, with_settings
from .settings import USUAL, Config, Tables

if TYPE_CHECKING:
    from ..study.compare import Comparison


@with_settings("problem", "network", "run", "compare", usual=USUAL, without=("run.method", "run.engine"))
def compare(
    flags: Tables, config: ConfigFile = None, out: OutFolder = Path("out/compare"), json: AsJson = False
) -> int:
    """Run several methods on the same problem and network.

    Each gets the same budget of communication rounds. The table says what
    each has cost in all, and what it cost to reach the error they aim at.
    Writes table.csv, comparison.png, config.toml and one .npz file a method.
    """
    from . import build, output
    from .config import settle

    settings = settle(config, flags, USUAL)
    names = _check_early(settings)
    output.folder(out)
    network, problem = build.both(settings)

    from .. import compare as compare_methods
    from ..problems.weighting import told

    found = compare_methods(
        problem,
        network,
        names,
        build.parameters(settings.run.parameters),
        settings.run.oracle,
        **build.budget(settings, problem),
    )
    if found.table["rounds_to_target"].isna().all():
        found = replace(found, tol=None)  # compare by what one of them did reach
    files = _save(found, settings, out)
    about = {"nodes": problem.nodes, "dim": problem.dim, "kappa": problem.kappa, "chi": network.chi}
    if json:
        made = {"target": found.target, "rows": _rows(found), "skipped": found.skipped}
        output.as_json({**about, **made, "interrupted": found.interrupted, "files": files})
    else:
        _print(found, settings, about, files)
    if words := told(problem.weighting()):
        output.note(words)
    reasons: dict[str, list[str]] = {}
    for label, reason in found.skipped.items():
        reasons.setdefault(reason, []).append(label)
    for reason, labels in reasons.items():
        output.note(f"{', '.join(labels)} did not run: {reason}")
    if found.interrupted:
        output.note("interrupted; what was done so far is saved")
    return Exit.INTERRUPTED if found.interrupted else Exit.DONE


def _check_early(settings: Config) -> list[str] | None:
    """Refuse wrong methods, oracle or parameters before anything is built; return the names of the methods."""
    from ..algorithms import METHODS, method_class
    from . import build

    if settings.run.engine != "local":
        raise InputError(f"engine {settings.run.engine!r} cannot compare methods; take engine local")
    text = settings.compare.methods
    names = list(METHODS) if text is None else [part.strip().lower() for part in text.split(",") if part.strip()]
    if not names:
        raise InputError(f"--methods {text!r} names no method; known: {', '.join(METHODS)}")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"--methods names {twice!r} twice; leave one out")
    build.check_run(settings, [method_class(name) for name in names])
    return None if text is None else names


def _save(found: "Comparison", settings: Config, out: Path) -> dict[str, Any]:
    """Write everything that a comparison leaves; return the files by kind, those of the methods by label."""
    from ..study.compare import file_names
    from .config import write_toml

    found.save(out)
    write_toml(settings, out / "config.toml", "compare")
    return {
        "table": str(out / "table.csv"),
        "figure": str(out / "comparison.png"),
        "config": str(out / "config.toml"),
        "results": {label: str(out / name) for label, name in file_names(found.results).items()},
    }


def _rows(found: "Comparison") -> list[dict[str, Any]]:
    """Return the rows of the table, and what else there is to say about each method."""
    rows = []
    for row, one in zip(found.table.to_dict("records"), found.results.values(), strict=True):
        method = one.provenance["method"]
        more: dict[str, Any] = {
            "method": method["name"],
            "title": method["title"],
            "parameters": method["parameters"],
        }
        more |= {"oracle": one.provenance["oracle"], "message": one.message}
        rows.append({str(name): value for name, value in row.items()} | more)
    return rows


def _print(found: "Comparison", settings: Config, about: dict[str, Any], files: dict[str, Any]) -> None:
    from .output import lines, number, short, table

    aim = "any error below it" if found.target != found.target else f"{found.target:.3g} of it"
    used = {one.provenance["oracle"] for one in found.results.values()} - {None}
    oracle = ", ".join(sorted(used)) or settings.run.oracle
    ends = ("error", "rounds", "gradients", "floats", "seconds")
    rows = []
    for row in _rows(found):
        costs = [short(row[f"{cost}_to_target"]) for cost in ("rounds", "gradients", "floats_sent", "seconds")]
        rows.append((row["title"], row["status"], f"{row['relative_error']:.1e}", *costs))
    table(
        f"{about['nodes']} nodes, dim {about['dim']}, kappa {number(round(about['kappa'], 6))}, "
        f"chi {number(about['chi'])}; parameters {settings.run.parameters}, dual oracle {oracle}\n"
        f"error: the last one over the start; then what it took to reach {aim}",
        ("method", "status", *ends),
        rows,
        numbers=ends,
    )
    last = files["results"].values()
    lines(
        "wrote",
        *(f"  {files[kind]}" for kind in ("table", "figure", "config")),
        f"  {len(last)} result files .npz",
    )
