"""`adom compare`: run several methods on the same problem and network, side by side."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import InputError
from ..util.checks import check_whole
from ..util.columns import HEADS, TO_TARGET
from ..util.settings import Tables
from . import compare_lists
from .compare_output import end, print_latex
from .members import FRESH, kept, refuse_runs
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
    from .config import check_lists, settle

    settings = settle(config, flags, USUAL)
    check_lists(settings, flags)
    methods = _check(settings)
    if latex and json:
        raise InputError("--latex and --json exclude each other; give one of them")
    output.folder(out)
    table = settings.compare
    if (table.seeds, table.splits, table.networks) == (None, None, None):
        if not fresh:
            refuse_runs(out, "of several seeds, splits or networks", FRESH)
        return _compare_one(settings, methods, out, latex=latex, json=json)
    from .compare_many import compare_many

    return compare_many(settings, flags, config, methods, out, fresh=fresh, latex=latex, json=json)


def _compare_one(settings: Config, methods: list[Any] | str | None, out: Path, *, latex: bool, json: bool) -> int:
    """Run the methods on one problem and network."""
    from .. import Comparison
    from .. import compare as compare_methods
    from . import build, output
    from .config import write_toml

    network, problem = build.both(settings)

    from ..problems.samples import weighting_text
    from ..study.saved import file_names

    parameters, budget = build.parameters(settings.run.parameters), build.budget(settings, problem)
    comparison = compare_methods(problem, network, methods, parameters, settings.run.oracle, **budget)
    assert isinstance(comparison, Comparison)
    if comparison.table["rounds_to_target"].isna().all():
        comparison = replace(comparison, tol=None)  # compare at an error that one of them reached
    for path in kept(out):  # with --fresh
        path.unlink(missing_ok=True)
    comparison.save(out)
    write_toml(settings, out / "config.toml", "compare")
    results = {label: str(out / name) for label, name in file_names(comparison.results).items()}
    kinds = {"table": "table.csv", "figure": "comparison.png", "config": "config.toml"}
    files = {kind: str(out / name) for kind, name in kinds.items()}
    about = {"nodes": problem.nodes, "dim": problem.dim, "kappa": problem.kappa, "chi": network.chi}
    about["window"] = max((result.provenance["window"] for result in comparison.results.values()), default=1)
    if latex:
        print_latex(comparison.to_latex(), out)
    elif json:
        more = {"target": comparison.target, "rows": _rows(comparison), "skipped": comparison.skipped}
        all_files = {**files, "results": results}
        output.as_json({**about, **more, "interrupted": comparison.interrupted, "files": all_files})
    else:
        _print(comparison, settings, about)
        output.wrote(*files.values(), f"{len(results)} result files .npz")
    if weights := weighting_text(problem.weighting()):
        output.note(weights)
    said = "interrupted; what was done so far is saved" if comparison.interrupted else ""
    return end(comparison.skipped, comparison.outside, said)


def _check(settings: Config) -> list[Any] | str | None:
    """Refuse a wrong request before anything is built; return the methods, None for the usual ones."""
    from . import build

    if settings.run.engine != "local":
        raise InputError(f"comparisons run on engine local only, got {settings.run.engine!r}; use --engine local")
    if settings.compare.seeds is not None:
        check_whole("seeds", settings.compare.seeds, remedy="e.g. seeds=5", most=10**6)
    text = settings.compare.methods
    methods = [method_of(name, "--methods") for name in compare_lists.methods(text)]
    build.check_run(settings, methods)
    if text is None or text.strip().lower() == compare_lists.ALL:
        return None if text is None else compare_lists.ALL
    return methods


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
    from ..util.table import SPARE, error_text
    from ..util.text import format_short
    from .output import number, steps_of, table

    used = {result.provenance["oracle"] for result in comparison.results.values()} - {None}
    oracle = ", ".join(sorted(used)) or settings.run.oracle
    ends = ("error", *HEADS)
    rows = []
    for row in _rows(comparison):
        costs = [format_short(row[cost]) for cost in TO_TARGET]
        rows.append((row["title"], row["status"], error_text(row["relative_error"]), *costs))
    table(
        f"{about['nodes']} nodes, dim {about['dim']}, kappa {number(round(about['kappa'], 6))}, "
        f"chi {number(about['chi'])}{steps_of(about['window'])}; "
        f"parameters {settings.run.parameters}, dual oracle {oracle}\n"
        f"final relative error; cost to reach {comparison.aim}",
        ("method", "status", *ends),
        rows,
        numbers=ends,
        spare=SPARE,
    )
