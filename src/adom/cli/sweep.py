"""`adom sweep`: every combination of the lists in a file's [sweep] table, resumed where it ended."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import InputError
from ..util.setting import Tables
from .exit_codes import Exit
from .many_runs import MEMBERS, networks_by_seed, problem_by_seed, runs_kept
from .options import AsJson, ConfigFile, OutFolder, number_option, switch, with_settings
from .own_code import method_of
from .settings import USUAL, Config

if TYPE_CHECKING:
    from ..study.sweep import Sweep

SHOWN = 20
"""Rows of the table that are printed; the file has all."""

BASE: Tables = {**USUAL, "run": {**USUAL["run"], "parameters": "unit"}}
"""The usual experiment, with parameters that a sweep can start from."""

Fresh = Annotated[bool, switch("--fresh", "Do not resume: remove the sweep that the folder holds.")]
Batch = Annotated[int, number_option("--batch", "The most members to run at the same time.", int, 64)]


@with_settings("problem", "network", "run", usual=BASE, without=("run.engine",))
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
    sweep.png, config.toml and one file per member in members/.
    """
    from ..problems.samples import weighting_text
    from . import output
    from .config import settle

    settings = settle(config, flags, BASE)
    _check(settings, config)
    output.folder(out)
    with runs_kept(settings, out, "sweep", fresh=fresh), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = _run(settings, *_sources(settings), batch, out)
    if result.results:
        result = result.reached()
        result.save(out)
    kinds = {"table": "table.csv", "figure": "sweep.png"} if result.results else {}
    files = {kind: str(out / name) for kind, name in {**kinds, "config": "config.toml", "members": "members"}.items()}
    first = result.members[0].problem
    about = {"nodes": first.nodes, "dim": first.dim, "members": len(result.members), "done": len(result.results)}
    if json:
        rows = result.ranking().to_dict("records") if result.results else []
        table = result.table
        refused = table[table["status"] == "refused"].assign(reason=list(result.refused.values())).to_dict("records")
        output.as_json({**about, "interrupted": result.interrupted, "rows": rows, "refused": refused, "files": files})
    else:
        if result.results:
            _print(result, about, files["table"])
        output.wrote(*files.values())
    for text in (weighting_text(first.weighting()), *(str(warning.message) for warning in caught)):
        if text:
            output.note(text)
    if result.refused:
        number, reason = next(iter(result.refused.items()))
        output.note(f"{len(result.refused)} members did not run, the first ({result.members[number].text}): {reason}")
    if result.interrupted:
        output.note(output.INTERRUPTED)
    return Exit.INTERRUPTED if result.interrupted else Exit.DONE


def _check(settings: Config, config: Path | None) -> None:
    """Refuse a wrong request before anything is built."""
    from ..run.request import parse_oracle
    from . import build

    if all(value is None for value in vars(settings.sweep).values()):
        where = "no file of settings was given" if config is None else f"{config} has none"
        raise InputError(
            f"a sweep needs a table [sweep] with lists, but {where}; e.g. [sweep.factors] eta = [0.5, 1, 2]"
        )
    if settings.run.engine != "local":
        raise InputError(f"sweeps run on engine local only, got {settings.run.engine!r}; use --engine local")
    flag = "--method" if settings.sweep.methods is None else "[sweep] methods"
    methods = [method_of(name, flag) for name in _methods(settings)]
    texts = settings.sweep.parameters or [settings.run.parameters]
    build.check_run(settings, methods, texts, every=len(methods) == 1)  # members without a parameter are refused later
    for oracle in settings.sweep.oracles or []:
        parse_oracle(oracle)


def _methods(settings: Config) -> list[str]:
    return [settings.run.method] if settings.sweep.methods is None else settings.sweep.methods


def _sources(settings: Config) -> tuple[Any, Any]:
    """Return the problem and the network, as functions of the seed if the sweep has seeds."""
    from . import build

    if settings.sweep.seeds is None:
        network, problem = build.both(settings)
        return problem, network
    networks = networks_by_seed({"network": settings}, drawn=True)
    return problem_by_seed(settings, networks["network"], drawn=True), networks["network"]


def _run(settings: Config, problem: Any, network: Any, batch: int, out: Path) -> "Sweep":
    from .. import sweep as sweep_settings
    from . import build

    run, table = settings.run, settings.sweep
    return sweep_settings(
        problem,
        network,
        [method_of(name) for name in _methods(settings)],
        [build.parameters(text) for text in ([run.parameters] if table.parameters is None else table.parameters)],
        grid=table.grid,
        factors=table.factors,
        assume=table.assume,
        settings=table.settings,
        oracles=run.oracle if table.oracles is None else table.oracles,
        kappas=table.kappas,
        seeds=table.seeds,
        rounds=run.rounds,
        **vars(run.stop),
        record_every=run.record_every,
        dtype=run.dtype,
        batch=batch,
        folder=out / MEMBERS,
    )


def _print(result: "Sweep", about: dict[str, Any], file: str) -> None:
    from ..study.metrics import aim
    from ..util.table import spread
    from ..util.text import format_short
    from .output import lines, table

    ranked = result.ranking()
    target, reached = float(ranked["target"].iloc[0]), bool(ranked["reached"].any())
    words = [name.replace("_", " ") for name in result.axes]  # with spaces, so that headers can wrap
    seeds = int(ranked["seeds"].max())
    ends = ("error", "rounds", "gradients")
    over = "" if seeds == 1 else f"medians, and [least, greatest] rounds, over {seeds} seeds\n"
    rows = []
    for row in ranked.head(SHOWN).to_dict("records"):
        rounds = spread(*(row[f"rounds_to_target{end}"] for end in ("", "_low", "_high")))
        costs = [format_short(row["relative_error"]), rounds, format_short(row["gradients_to_target"])]
        state = row["status"] if seeds == 1 else f"{row['reached']}/{row['seeds']}"
        cells = [
            format_short(row[name]) if isinstance(row[name], float | int) else row[name] or "-" for name in result.axes
        ]
        rows.append((row["label"], *cells, state, *costs))
    table(
        f"{about['nodes']} nodes, dim {about['dim']}; "
        f"{about['done']} of {about['members']} members done, best first\n"
        f"{over}final relative error; cost to reach {aim(target, reached)}",
        ("method", *words, "status" if seeds == 1 else "reached", *ends),
        rows,
        numbers=(*words, *ends),
        spare=("gradients",),
    )
    if len(ranked) > SHOWN:
        lines(f"  and {len(ranked) - SHOWN} more; {file} has every member")
