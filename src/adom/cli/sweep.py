"""`adom sweep`: every combination of the lists in a file's [sweep] table, resumed where it was left."""

import math
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .exit_codes import Exit
from .options import AsJson, ConfigFile, OutFolder, number, with_settings
from .settings import USUAL, Config, Setting, Tables

if TYPE_CHECKING:
    from ..study.sweep_result import Sweep

SHOWN = 20
"""Rows of the table that are printed; the file has all."""

Fresh = Annotated[
    bool, typer.Option("--fresh", metavar="", help="Do not resume: remove what the folder holds of a sweep.")
]
Batch = Annotated[
    int,
    typer.Option(
        "--batch",
        metavar="N",
        help="The most members to run at the same time.",
        parser=number(int, "--batch", Setting("", least=1, most=10**6, example=64)),
    ),
]


@with_settings("problem", "network", "run", usual=USUAL, without=("run.engine",))
def sweep(
    flags: Tables,
    config: ConfigFile = None,
    batch: Batch = 64,
    fresh: Fresh = False,
    out: OutFolder = Path("out/sweep"),
    json: AsJson = False,
) -> int:
    """Run every combination of settings that a file's table `sweep` lists.

    Members run many at a time; each is saved as soon as it has finished, and
    the same command goes on where it was ended or killed. Writes table.csv,
    sweep.png, config.toml and one file a member in members/.
    """
    from ..problems.weighting import told
    from . import build, output
    from .config import settle

    settings = settle(config, flags, USUAL)
    _check_early(settings, config)
    output.folder(out)
    kept = _kept(settings, out, fresh)
    network, problem = build.both(settings)
    _claim(settings, out, kept)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        found = _run(settings, problem, network, batch, out)
    if found.results and found.table["rounds_to_target"].isna().all():
        found = replace(found, tols=dict.fromkeys(found.tols))  # compare by what one of them did reach
    files = _save(found, out)
    about = {"nodes": problem.nodes, "dim": problem.dim, "members": len(found.members), "done": len(found.results)}
    if json:
        rows = found.ranking().to_dict("records") if found.results else []
        table = found.table
        refused = table[table["status"] == "refused"].assign(reason=list(found.refused.values())).to_dict("records")
        output.as_json({**about, "interrupted": found.interrupted, "rows": rows, "refused": refused, "files": files})
    else:
        _print(found, about, files)
    for text in (told(problem.weighting()), *(str(one.message) for one in said)):
        if text:
            output.note(text)
    if found.refused:
        first, reason = next(iter(found.refused.items()))
        output.note(f"{len(found.refused)} members did not run, the first ({found.members[first].text}): {reason}")
    if found.interrupted:
        output.note("interrupted; what was done is saved, and the same command goes on from there")
    return Exit.INTERRUPTED if found.interrupted else Exit.DONE


def _check_early(settings: Config, config: Path | None) -> None:
    """Refuse what is wrong whatever the problem, before anything is built."""
    from ..algorithms import method_class
    from . import build

    if all(value is None for value in vars(settings.sweep).values()):
        where = "no file of settings was given" if config is None else f"{config} has none"
        raise InputError(
            f"a sweep needs a table [sweep] with lists, and {where}; e.g. [sweep.factors] eta = [0.5, 1, 2]"
        )
    if settings.run.engine != "local":
        raise InputError(f"engine {settings.run.engine!r} cannot sweep; take engine local")
    methods = [method_class(name) for name in _methods(settings)]
    methods = methods if len(methods) == 1 else []  # of several, some may lack a parameter: those members are refused
    build.check_run(settings, methods)
    for text in settings.sweep.oracles or []:
        build.check_oracle(text)
    for text in settings.sweep.parameters or []:
        build.check_parameters(text, methods)


def _methods(settings: Config) -> list[str]:
    return [settings.run.method] if settings.sweep.methods is None else settings.sweep.methods


def _kept(settings: Config, out: Path, fresh: bool) -> list[Path]:
    """Return the members in the folder that have to go; refuse a folder that holds another sweep's."""
    from .config import toml_text

    file = out / "config.toml"
    kept = [path for path in _members(out).glob("*.npz") if re.fullmatch("[0-9a-f]{32}", path.stem)]
    if kept and not fresh and not (file.is_file() and _same(file, toml_text(settings, file, "sweep"))):
        raise InputError(
            f"{out} holds {len(kept)} members of another sweep; take another --out, or --fresh to remove them"
        )
    return kept if fresh else []


def _claim(settings: Config, out: Path, kept: list[Path]) -> None:
    """Remove what has to go, and write down which sweep the folder belongs to."""
    from .config import write_toml

    for path in kept:
        path.unlink(missing_ok=True)
    write_toml(settings, out / "config.toml", "sweep")


def _same(file: Path, text: str) -> bool:
    try:
        return file.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False


def _members(out: Path) -> Path:
    return out / "members"


def _run(settings: Config, problem: Any, network: Any, batch: int, out: Path) -> "Sweep":
    from .. import sweep as sweep_settings
    from . import build

    run, table = settings.run, settings.sweep
    return sweep_settings(
        problem,
        network,
        _methods(settings),
        [build.parameters(text) for text in ([run.parameters] if table.parameters is None else table.parameters)],
        grid=table.grid,
        factors=table.factors,
        assume=table.assume,
        settings=table.settings,
        oracles=run.oracle if table.oracles is None else table.oracles,
        kappas=table.kappas,
        seeds=table.seeds,
        rounds=run.rounds,
        tol=run.tol,
        rtol=run.rtol or None if run.tol is None else None,
        record_every=run.record_every,
        dtype=run.dtype,
        batch=batch,
        folder=_members(out),
    )


def _save(found: "Sweep", out: Path) -> dict[str, str]:
    """Write what a sweep leaves beside its members; return the files by kind."""
    if found.results:
        found.save(out)
    names = {"table": "table.csv", "figure": "sweep.png"} if found.results else {}
    return {kind: str(out / name) for kind, name in {**names, "config": "config.toml", "members": "members"}.items()}


def _print(found: "Sweep", about: dict[str, Any], files: dict[str, str]) -> None:
    from .output import lines, number, short, table

    if found.results:
        ranked = found.ranking()
        target = float(ranked["target"].iloc[0])
        aim = "any error below it" if math.isnan(target) else f"{target:.3g} of it"
        ends = ("error", "rounds", "gradients")
        varied = [name for name in found.varied if name != "label"]
        rows = []
        for row in ranked.head(SHOWN).to_dict("records"):
            costs = [short(row[f"{cost}_to_target"]) for cost in ("rounds", "gradients")]
            cells = [number(row[name]) if isinstance(row[name], float | int) else row[name] or "-" for name in varied]
            rows.append((row["label"], *cells, row["status"], f"{row['relative_error']:.1e}", *costs))
        table(
            f"{about['nodes']} nodes, dim {about['dim']}; "
            f"{about['done']} of {about['members']} members done, best first\n"
            f"error: the last one over the start; then what it took to reach {aim}",
            ("method", *varied, "status", *ends),
            rows,
            numbers=(*varied, *ends),
        )
        if len(ranked) > SHOWN:
            lines(f"  and {len(ranked) - SHOWN} more in {files['table']}")
    lines("wrote", *(f"  {path}" for path in files.values()))
