"""`adom compare`: run several methods on the same problem and network, or on many, side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import InputError
from ..util.checks import check_whole
from ..util.columns import HEADS, TO_TARGET
from ..util.files import atomic
from ..util.setting import Tables
from . import many_runs
from .exit_codes import Exit
from .many_runs import FRESH, MEMBERS
from .options import OUTPUT, AsJson, ConfigFile, OutFolder, switch, with_settings
from .own_code import method_of
from .settings import USUAL, Config

if TYPE_CHECKING:
    from ..study.compare import Comparison


Latex = Annotated[
    bool, switch("--latex", "Print the table as LaTeX, and write it to table.tex.", rich_help_panel=OUTPUT)
]
Fresh = Annotated[bool, switch("--fresh", "With --seeds: do not resume, but remove the runs that the folder holds.")]


@with_settings("problem", "network", "run", "compare", usual=USUAL, without=("run.method", "run.engine"))
def compare(
    flags: Tables,
    config: ConfigFile = None,
    fresh: Fresh = False,
    out: OutFolder = Path("out/compare"),
    latex: Latex = False,
    json: AsJson = False,
) -> int:
    """Run several methods on the same problem and network.

    Each gets the same budget of communication rounds. The table lists the
    final error of each method and its cost to reach a common target. Writes
    table.csv, comparison.png, config.toml and one .npz file per method.
    With --seeds, --splits or --networks it runs them on every draw, split
    and network: medians, ranks and a performance profile, saved run by run,
    and the same command goes on where it was ended.
    """
    from . import output
    from .config import check_lists, settle, write_toml

    settings = settle(config, flags, USUAL)
    check_lists(settings, flags)
    methods = _check(settings)
    if latex and json:
        raise InputError("--latex and --json exclude each other; give one of them")
    output.folder(out)
    table = settings.compare
    if (table.seeds, table.splits, table.networks) != (None, None, None):
        ways, networks = many_runs.ways_of(settings), many_runs.networks_of(settings, flags, config)
        with many_runs.runs_kept(settings, out, "compare", fresh=fresh):
            found = _saved(_compare(settings, methods, *_drawn(settings, ways, networks), ways, out / MEMBERS), out)
        about, names = _many(found), {"summary": "summary.csv", "latex": "table.tex"}
        names |= {"profile": "profile.png"} if len(found.parts) > 1 else {}
        files = {**_files(out, **names), "members": str(out / MEMBERS)}
        said = output.INTERRUPTED
    else:
        from . import build

        if not fresh:
            many_runs.refuse_runs(out, "of several seeds, splits or networks", FRESH)
        network, problem = build.both(settings)
        found = _saved(_compare(settings, methods, problem, network), out)
        for path in many_runs.kept(out):  # with --fresh
            path.unlink(missing_ok=True)
        write_toml(settings, out / "config.toml", "compare")
        about, files, said = _alone(found, problem, network), _files(out), "interrupted; what was done so far is saved"
    if latex:
        text = found.to_latex()
        with atomic(out / "table.tex") as partial:
            partial.write_text(f"{text}\n", encoding="utf-8")
        output.lines(text)
    elif json:
        more = {"results": _result_files(found, out)} if found.single else {}
        output.as_json({**about, "interrupted": found.interrupted, "files": {**files, **more}})
    elif found.single:
        _print(found, settings, about)
        output.wrote(*files.values(), f"{len(found.results)} result files .npz")
    else:
        output.lines(found, "")
        output.wrote(*files.values())
    if found.single and found.weighting:
        output.note(found.weighting)
    printed = not (json or latex or found.single)  # the printed text has the rest
    return _end({} if printed else found.skipped, "" if printed else found.outside, said if found.interrupted else "")


def _check(settings: Config) -> list[Any] | str | None:
    """Refuse a wrong request before anything is built; return the methods, None for the usual ones."""
    from . import build

    if settings.run.engine != "local":
        raise InputError(f"comparisons run on engine local only, got {settings.run.engine!r}; use --engine local")
    if settings.compare.seeds is not None:
        check_whole("seeds", settings.compare.seeds, remedy="e.g. seeds=5", most=10**6)
    text = settings.compare.methods
    methods = [method_of(name, "--methods") for name in many_runs.methods(text)]
    build.check_run(settings, methods)
    if text is None or text.strip().lower() == many_runs.ALL:
        return None if text is None else many_runs.ALL
    return methods


def _drawn(settings: Config, ways: list[str], networks: dict[str, Config]) -> tuple[Any, Any]:
    """Return the problem and the networks by name, as functions of the seed if that draws them."""
    given, drawn = settings.problem, bool(settings.compare.seeds)
    by_name = many_runs.networks_by_seed(networks, drawn=drawn)
    problem = many_runs.problem_by_seed(settings, next(iter(by_name.values())), drawn=drawn, ways=bool(ways))
    return {given.own or Path(given.data or given.shards or "synthetic").stem: problem}, by_name


def _compare(
    settings: Config,
    methods: list[Any] | str | None,
    problem: Any,
    network: Any,
    ways: list[str] | None = None,
    folder: Path | None = None,
) -> "Comparison":
    from .. import compare as compare_methods
    from . import build

    run, first, count = settings.run, settings.problem.seed, settings.compare.seeds
    return compare_methods(
        problem,
        network,
        methods,
        build.parameters(run.parameters),
        run.oracle,
        run.rounds,
        record_every=run.record_every,
        **vars(run.stop),
        seeds=range(first, first + count) if count else None,
        splits=ways or None,
        dtype=run.dtype,
        folder=folder,
    )


def _saved(found: "Comparison", out: Path) -> "Comparison":
    """Save a comparison; if no run reached the error asked for, compare at one that some reached."""
    found = found.reached()
    found.save(out)
    return found


def _files(out: Path, **more: str) -> dict[str, str]:
    """Return the files that a comparison writes, by what they are."""
    names = {"table": "table.csv", **more, "figure": "comparison.png", "config": "config.toml"}
    return {kind: str(out / name) for kind, name in names.items()}


def _result_files(found: "Comparison", out: Path) -> dict[str, str]:
    from ..study.saved import file_names

    return {label: str(out / name) for label, name in file_names(found.results).items()}


def _alone(found: "Comparison", problem: Any, network: Any) -> dict[str, Any]:
    """Return what is said of a comparison on one problem and network."""
    about = {"nodes": problem.nodes, "dim": problem.dim, "kappa": problem.kappa, "chi": network.chi}
    about["window"] = max((result.provenance["window"] for result in found.results.values()), default=1)
    return {**about, "target": found.target, "rows": _rows(found), "skipped": found.skipped}


def _many(found: "Comparison") -> dict[str, Any]:
    """Return what is said of a comparison over seeds, splits and networks."""
    tables = {"rows": found.table, "summary": found.summary, "ranks": found.ranks()}
    rows = {name: table.to_dict("records") for name, table in tables.items()}
    seeds = sorted({at.seed for at in found.parts if at.seed is not None})
    return {"seeds": seeds, "skipped": found.skipped, **rows, "tuning_seed": found.tuning_seed}


def _rows(found: "Comparison") -> list[dict[str, Any]]:
    """Return the rows of the table, with parameters and message of each run."""
    rows = []
    for row, result in zip(found.table.to_dict("records"), found.results.values(), strict=True):
        method = result.provenance["method"]
        more = {"method": method["name"], "title": method["title"], "parameters": method["parameters"]}
        more |= {"oracle": result.provenance["oracle"], "message": result.message}
        rows.append({str(name): value for name, value in row.items()} | more)
    return rows


def _print(found: "Comparison", settings: Config, about: dict[str, Any]) -> None:
    from ..util.table import SPARE, error_text
    from ..util.text import format_short
    from .output import number, steps_of, table

    used = {result.provenance["oracle"] for result in found.results.values()} - {None}
    oracle = ", ".join(sorted(used)) or settings.run.oracle
    ends = ("error", *HEADS)
    rows = []
    for row in _rows(found):
        costs = [format_short(row[cost]) for cost in TO_TARGET]
        rows.append((row["title"], row["status"], error_text(row["relative_error"]), *costs))
    table(
        f"{about['nodes']} nodes, dim {about['dim']}, kappa {number(round(about['kappa'], 6))}, "
        f"chi {number(about['chi'])}{steps_of(about['window'])}; "
        f"parameters {settings.run.parameters}, dual oracle {oracle}\n"
        f"final relative error; cost to reach {found.aim}",
        ("method", "status", *ends),
        rows,
        numbers=ends,
        spare=SPARE,
    )


def _end(skipped: dict[str, str], outside: str, interrupted: str) -> int:
    """Report methods that did not run or ran outside of their proofs, and Ctrl-C; return the exit code."""
    from . import output

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
