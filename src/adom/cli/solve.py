"""`adom solve`: run a method on a problem and a network, and save the result."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..algorithms import METHODS
from ..errors import InputError
from ..util.checks import check_whole
from ..util.columns import METRICS, STATES, Column, totals
from ..util.setting import Tables
from .error_text import in_flags
from .exit_codes import of_run
from .options import AsJson, ConfigFile, OutFolder, with_settings
from .own_code import method_of
from .settings import USUAL, Config, MpiTable

if TYPE_CHECKING:
    from ..run.ranks.checkpoints import Checkpoints
    from ..run.result import Result

FLOOR, LATELY = "at the floor of rounding", "has fallen lately"
COMPARE = "`adom compare` shows which methods suit this problem and network"


@with_settings("problem", "network", "run", "mpi", usual=USUAL)
def solve(flags: Tables, config: ConfigFile = None, out: OutFolder = Path("out"), json: AsJson = False) -> int:
    """Minimise over a changing network and save the result.

    Without options it runs the paper's default: ADOM on synthetic logistic
    regression over 100 nodes whose links change every round. Writes
    result.npz, history.csv, convergence.png, and config.toml, which repeats
    the run.
    """
    from . import output, ranks
    from .config import settle
    from .many_runs import refuse_runs

    settings = settle(config, flags, USUAL)
    check(settings)
    output.folder(out)
    refuse_runs(out, "of a comparison or a sweep", "take another --out")
    if settings.mpi.checkpoints is not None:
        output.folder(Path(settings.mpi.checkpoints), "--checkpoints")
        _checkpoints(settings.mpi)  # before any rank starts
    if settings.mpi.ranks is not None and ranks.rank() is None:
        return _start(settings, out, json)
    if settings.run.engine == "mpi":
        with ranks.watched("building the problem and the network"):
            result = _build_and_run(settings, out)
    else:
        result = _build_and_run(settings, out)
    code = of_run(result.status, result.provenance["tol"])
    if ranks.rank():  # rank 0 prints and writes the rest; the model is saved on every machine
        _save_model(result, settings, out)
        return ranks.leave(code)
    files = _save(result, settings, out) | _save_model(result, settings, out)
    summary = _summary(result, settings)
    if json:
        output.as_json({**summary, "files": files})
    else:
        output.table("", ("", ""), _rows(summary, result.protocol))
        output.wrote(*files.values())
    if result.status in {"diverged", "growing", "stalled"}:
        output.note(f"{result.status}: {result.message}; {summary['advice']}")
    elif result.status == "interrupted":
        model = ", and the model is unfinished" if "model" in files else ""
        output.note(f"interrupted after {summary['rounds']} rounds; what was done so far is saved{model}")
    if result.outside:
        output.note(f"warning: outside of its proof: {result.label} is {result.outside}")
    return ranks.leave(code)


def check(settings: Config) -> None:
    """Refuse a wrong request before anything is built."""
    from . import build, output, ranks

    run = settings.run
    names = [name.strip() for name in run.method.split(",")]
    if len(names) > 1 and set(names) <= METHODS.keys():
        raise InputError(
            f"--method takes one method, got {run.method!r}; `adom compare --methods {run.method}` runs all"
        )
    method = method_of(run.method)
    build.check_run(settings, [method]).oracle_for(method)
    if settings.mpi.ranks is not None:
        check_whole("ranks", settings.mpi.ranks, remedy="e.g. ranks=4")
    if run.engine == "mpi":
        for flag, path in (("--data", settings.problem.data), ("--contacts", settings.network.contacts)):
            if path is not None and Path(path).exists() and not Path(path).is_file():
                raise InputError(f"{flag} {path} must be a file that every rank can read by itself; save it as one")
        if settings.mpi.ranks is None and ranks.rank() is None:
            output.note("engine mpi in one process only; --ranks N starts several, and so does mpirun -n N")


def _checkpoints(mpi: MpiTable) -> "Checkpoints":
    from .. import Checkpoints

    return Checkpoints(str(mpi.checkpoints), mpi.every_rounds, mpi.every_seconds, bool(mpi.resume))


def _build_and_run(settings: Config, out: Path) -> "Result":
    from . import build
    from .config import lie_apart

    problem: Any
    folder = settings.problem.shards
    if folder is not None and (settings.run.engine == "mpi" or lie_apart(folder)):
        network, problem = build.network(settings), build.shards(settings)
    else:
        network, problem = build.both(settings)
    from .. import solve as solve_problem  # not before: it loads JAX

    run, mpi = settings.run, settings.mpi
    more: dict[str, Any] = {"monitor": not mpi.unwatched, "follow": out}
    if mpi.patience is not None:
        more["patience"] = mpi.patience
    if mpi.checkpoints is not None:
        more["checkpoints"] = _checkpoints(mpi)
    method: Any = method_of(run.method) if ":" in run.method else run.method
    parameters, budget = build.parameters(run.parameters), build.budget(settings, problem)
    return solve_problem(problem, network, method, parameters, run.oracle, engine=run.engine, **budget, **more)


def _start(settings: Config, out: Path, json: bool) -> int:
    """Start the run on several ranks, from a file of its settings."""
    from tempfile import TemporaryDirectory

    from . import ranks
    from .config import write_toml

    assert settings.mpi.ranks is not None
    with TemporaryDirectory(prefix="adom-") as folder:
        file = Path(folder) / "config.toml"
        write_toml(settings, file, absolute=True)
        words = ["solve", str(file), "--out", str(out), *(["--json"] if json else [])]
        return ranks.start(settings.mpi.ranks, words, Path(folder))


def _save(result: "Result", settings: Config, out: Path) -> dict[str, str]:
    """Write the files of a run; return them by kind."""
    from ..util.files import atomic, write_table
    from .config import write_toml

    files = {
        "result": result.save(out / "result.npz"),
        "history": out / "history.csv",
        "config": out / "config.toml",
    }
    with atomic(files["history"]) as partial:
        write_table(result.columns, partial)
    write_toml(settings, files["config"])
    if result.measure:
        from ..plot.curves import convergence
        from ..plot.style import save

        files["figure"] = save(convergence([result]), out / "convergence.png")
    return {kind: str(path) for kind, path in files.items()}


def _save_model(result: "Result", settings: Config, out: Path) -> dict[str, str]:
    """Write the model of a run on data, on every rank; return the file by its kind."""
    from ..data.sample_files import feature_names
    from ..data.sets import SAMPLES

    table = settings.problem
    if (table.data is None and table.shards is None) or result.lost:
        return {}
    named = table.data is not None and table.data not in SAMPLES
    names = feature_names(str(table.data), table.label) if named else None
    return {"model": str(result.model(names).save(out / "model.json"))}


def _summary(result: "Result", settings: Config) -> dict[str, Any]:
    provenance, last = result.provenance, result.last
    method, problem = provenance["method"], provenance["problem"]
    start = provenance["start_error"]
    measured = {name: float(last[name]) for name in STATES if name in last}
    if "error" in measured:
        measured["relative_error"] = measured["error"] / start if start else float("nan")
    return {
        "method": method["name"],
        "title": method["title"],
        "protocol": provenance["protocol"],
        "parameters": method["parameters"],
        "oracle": provenance["oracle"],
        "nodes": problem["nodes"],
        "dim": problem["dim"],
        "kappa": problem["kappa"],
        "samples": problem.get("samples"),
        "penalty": (problem.get("model") or {}).get("penalty"),
        "chi": provenance["network"]["chi"],
        "outside": result.outside,
        "window": provenance["window"],
        "settings": provenance.get("settings"),
        **totals(last),
        "start_error": start,
        **measured,
        "error_bound": provenance.get("error_bound"),
        "wire": provenance.get("wire"),
        "status": result.status,
        "message": result.message,
        "advice": advice(result, settings.run.stop_flag),
    }


def _rows(summary: dict[str, Any], protocol: str) -> list[tuple[str, str]]:
    from ..problems.samples import penalty_text, weighting_text
    from .output import number, steps_of

    status = summary["status"]
    if status == "converged":
        status = "converged: the tolerance was met"
    elif status == "max_rounds":
        status = "; ".join(filter(None, ("max_rounds: the rounds are spent", summary["message"], summary["advice"])))
    weights = weighting_text(summary["samples"], usual=True)
    return [
        ("method", f"{summary['title']}, parameters {protocol}"),
        ("oracle", summary["oracle"] or "gradients"),
        ("problem", f"{summary['nodes']} nodes, dim {summary['dim']}{_kappa(summary['kappa'])}"),
        *([("weights", weights)] if weights else []),
        *([("penalty", penalty_text(summary["penalty"]))] if summary["penalty"] else []),
        ("network", f"chi {number(summary['chi'])}{steps_of(summary['window'])}"),
        *_assumed(summary),
        *((cost.words, _spent(cost, summary[name])) for name, cost in METRICS.items()),
        *_accuracy(summary),
        ("status", status),
    ]


def _kappa(kappa: float | None) -> str:
    """Return kappa in words; a fit that has no mu and has not come to its end does not know it."""
    from .output import number

    return "" if kappa is None else f", kappa {number(round(kappa, 6))}"


def _spent(cost: Column, total: float) -> str:
    from .output import number

    return f"{total:.2f}" if cost.timed else f"{number(total)}{' per node' if cost.per_node else ''}"


def _assumed(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a row with the chi that a run with parameters `auto` assumed."""
    from .output import number

    settings = summary["settings"]
    if not settings:
        return []
    chis = [settings[end]["chi"] for end in (0, -1)]
    first, last = ("none (plain descent)" if chi is None else number(chi) for chi in chis)
    return [("assumed chi", f"{first} at first, {last} in the end, after {number(len(settings) - 1)} decisions")]


def _accuracy(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return rows on how close a run came to the solution."""
    from ..util.text import format_bytes
    from .output import number

    rows = []
    if "error" in summary:
        relative = summary["relative_error"]
        rows.append(("error", number(summary["error"]) + (f" = {relative:.2e} of the start" if relative >= 0 else "")))
    if summary["error_bound"] is not None:
        rows.append(("error", f"at most {number(summary['error_bound'])}, as the nodes agreed"))
    if "gradient_norm" in summary:
        rows.append(("gradient", f"{number(summary['gradient_norm'])} at the mean of the nodes"))
        rows.append(("consensus", number(summary["consensus"])))
    wire = summary["wire"]
    if wire is not None:
        sent = f"{number(wire['messages'])} messages, {format_bytes(wire['bytes'])}"
        rows.append(("ranks", f"{wire['ranks']}, which sent {sent}"))
    return rows


def advice(result: "Result", tol_flag: str) -> str:
    """Return advice on a run, without options that it uses already; "" if there is none."""
    status = result.status
    careful, floor = _more_careful(result), _floor(result.provenance.get("network") or {})
    if floor and status in {"growing", "stalled"} and FLOOR not in result.message:
        return floor
    if status in {"growing", "diverged"}:
        return f"take {_listed(careful, 'and')}" if careful else f"no setting here is more careful; {COMPARE}"
    if status == "stalled":
        if FLOOR in result.message:
            finer = [f"take {option}" for option in careful if option == "--dtype float64"]
            return " or ".join([*finer, f"ask for less by a larger {tol_flag}"])
        rounds = "raise --rounds" if LATELY in result.message else "more rounds do not help"
        return f"{rounds}; " + (f"take {_listed(careful, 'or')}" if careful else COMPARE)
    if status == "max_rounds":
        if not result.measure:
            return "leave out --no-monitor to see it"
        if FLOOR in result.message:
            return "more rounds do not help"
        more = "to see whether it falls again" if " rose from " in result.message else "for more"
        return f"raise --rounds {more}{floor and f', but {floor}'}"
    return ""


def _floor(network: Mapping[str, Any]) -> str:
    """Return what the links do, by the network's recipe, that no method or parameters can mend; "" if nothing."""
    from ..networks.imperfect import LINKS

    link, inner = LINKS.get(network.get("generator", "")), network.get("network")
    floor = in_flags(link.floor(network)) if link else ""
    return floor or (_floor(inner) if isinstance(inner, Mapping) else "")


def _more_careful(result: "Result") -> list[str]:
    """Return the options that are more careful than the run's own."""
    provenance = result.provenance
    careful = {
        "a method that is proved for networks that change, e.g. --method adom": result.unproved,
        "--parameters theory": result.protocol != "theory" and not result.unproved,
        "--oracle exact": provenance.get("oracle") not in (None, "exact"),
        "--dtype float64": provenance.get("dtype", "float64") != "float64",
    }
    return [option for option, differs in careful.items() if differs]


def _listed(words: list[str], last: str) -> str:
    """Join words with commas, and with `last` before the last one.

    Examples
    --------
    >>> _listed(["a", "b", "c"], "and"), _listed(["a"], "or")
    ('a, b and c', 'a')
    """
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))
