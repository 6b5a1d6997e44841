"""`adom compare`: run several methods on the same problem and network, side by side."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .options import AsJson, ConfigFile, OutFolder, with_settings
from .settings import USUAL, Config, Tables

if TYPE_CHECKING:
    from ..engine.compare import Comparison


@with_settings("problem", "network", "run", "compare", usual=USUAL, without=("run.method", "run.engine"))
def compare(
    flags: Tables, config: ConfigFile = None, out: OutFolder = Path("out/compare"), json: AsJson = False
) -> int:
    """Run several methods on the same problem and network.

    Each gets the same budget of communication rounds. The table says what
    each has cost in all, and what it cost to reach the error they aim at.
    """
    from .. import compare as compare_methods
    from . import build, output
    from .config import settle

    settings = settle(config, flags, USUAL)
    names = _check_early(settings)
    output.folder(out)
    network, problem = build.both(settings)
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
        output.as_json(
            {**about, "target": found.target, "rows": _rows(found), "skipped": found.skipped, "files": files}
        )
    else:
        _print(found, settings, about, files)
    for label, reason in found.skipped.items():
        output.note(f"{label} did not run: {reason}")
    if found.interrupted:
        output.note("interrupted; what was done so far is saved")
    return 130 if found.interrupted else 0


def _check_early(settings: Config) -> list[str] | None:
    """Refuse wrong methods, oracle or parameters before anything is built; return the names of the methods."""
    from . import build

    if settings.run.engine != "local":
        raise InputError(f"engine {settings.run.engine!r} cannot compare methods; take engine local")
    build.check_run(settings)
    text = settings.compare.methods
    if text is None:
        return None
    from ..engine.compare import read_members

    names = [part.strip() for part in text.split(",") if part.strip()]
    read_members(names)
    return names


def _save(found: "Comparison", settings: Config, out: Path) -> dict[str, Any]:
    """Write everything that a comparison leaves; return the files by kind, those of the methods by label."""
    from ..engine.compare import file_names
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
