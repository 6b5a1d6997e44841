"""`adom solve`: run a method on a problem and a network, show what came out, and keep it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from .exit_codes import of_run
from .options import AsJson, ConfigFile, OutFolder, with_settings
from .settings import USUAL, Config, Tables

if TYPE_CHECKING:
    from ..run.result import Result


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

    settings = settle(config, flags, USUAL)
    _check_early(settings)
    output.folder(out)
    if settings.mpi.checkpoints is not None:
        output.folder(Path(settings.mpi.checkpoints), "--checkpoints")
    if settings.mpi.ranks is not None and ranks.rank() is None:
        return _start(settings, out, json)
    if settings.run.engine == "mpi":
        with ranks.watched("building the problem and the network"):
            result = _build_and_run(settings)
    else:
        result = _build_and_run(settings)
    code = of_run(result.status, result.provenance["tol"])
    if ranks.rank():  # rank 0 speaks and writes for all
        return ranks.leave(code)
    files = _save(result, settings, out)
    summary = _summary(result, settings)
    if json:
        output.as_json({**summary, "files": files})
    else:
        output.table("", ("", ""), _rows(summary, result.protocol))
        output.lines("wrote", *(f"  {path}" for path in files.values()))
    if result.status in {"diverged", "growing", "stalled"}:
        output.note(f"{result.status}: {result.message}; {summary['advice']}")
    elif result.status == "interrupted":
        output.note(f"interrupted after {summary['rounds']} rounds; what was done so far is saved")
    return ranks.leave(code)


def _check_early(settings: Config) -> None:
    """Refuse what is wrong whatever the problem, before anything is built."""
    from ..algorithms import METHODS, method_class
    from . import build, output, ranks

    run = settings.run
    names = [name.strip() for name in run.method.split(",")]
    if len(names) > 1 and set(names) <= METHODS.keys():
        raise InputError(
            f"--method takes one method, got {run.method!r}; `adom compare --methods {run.method}` runs all"
        )
    method = method_class(run.method)
    build.check_run(settings, [method])
    if method.oracle != "dual" and run.oracle != "auto":
        dual = ", ".join(name for name in METHODS if method_class(name).oracle == "dual")
        raise InputError(
            f"oracle {run.oracle!r} has no effect on {method.title}, which uses gradients; "
            f"leave it out, or take a dual method: {dual}"
        )
    if run.engine == "mpi":
        for flag, place in (("--data", settings.problem.data), ("--contacts", settings.network.contacts)):
            if place is not None and Path(place).exists() and not Path(place).is_file():
                raise InputError(f"{flag} {place} must be a file that every rank can read by itself; save it as one")
    if run.engine == "mpi" and settings.mpi.ranks is None and ranks.rank() is None:
        output.note("engine mpi in one process only; --ranks N starts several, and so does mpirun -n N")


def _build_and_run(settings: Config) -> "Result":
    from . import build

    problem: Any
    if settings.run.engine == "mpi" and settings.problem.shards is not None:
        network, problem = build.network(settings), build.shards(settings)
    else:
        network, problem = build.both(settings)
    from .. import solve as solve_problem  # not before: it loads JAX

    run, mpi = settings.run, settings.mpi
    more: dict[str, Any] = {"monitor": not mpi.unwatched}
    if mpi.patience is not None:
        more["patience"] = mpi.patience
    if mpi.checkpoints is not None:
        from .. import Checkpoints

        more["checkpoints"] = Checkpoints(mpi.checkpoints, mpi.every_rounds, mpi.every_seconds, bool(mpi.resume))
    return solve_problem(
        problem,
        network,
        run.method,
        build.parameters(run.parameters),
        run.oracle,
        engine=run.engine,
        **build.budget(settings, problem),
        **more,
    )


def _start(settings: Config, out: Path, json: bool) -> int:
    """Start the same on several ranks, by a file of the settings."""
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
    """Write everything that a run leaves; return the files by kind."""
    from ..plot.curves import convergence
    from ..plot.style import save
    from ..util.files import atomic
    from .config import write_toml

    files = {
        "result": result.save(out / "result.npz"),
        "history": out / "history.csv",
        "config": out / "config.toml",
    }
    if result.measure:
        files["figure"] = save(convergence([result]), out / "convergence.png")
    with atomic(files["history"]) as partial:
        result.history.to_csv(partial, index=False)
    write_toml(settings, files["config"])
    return {kind: str(path) for kind, path in files.items()}


def _summary(result: "Result", settings: Config) -> dict[str, Any]:
    from .advice import advice

    made, last = result.provenance, result.history.iloc[-1]
    start = made["start_error"]
    measured = {name: float(last[name]) for name in ("error", "gradient_norm", "consensus") if name in last}
    if "error" in measured:
        measured["relative_error"] = measured["error"] / start if start else float("nan")
    return {
        "method": made["method"]["name"],
        "title": made["method"]["title"],
        "protocol": made["protocol"],
        "parameters": made["method"]["parameters"],
        "oracle": made["oracle"],
        "nodes": made["problem"]["nodes"],
        "dim": made["problem"]["dim"],
        "kappa": made["problem"]["kappa"],
        "samples": made["problem"].get("samples"),
        "chi": made["network"]["chi"],
        "rounds": int(last["round"]),
        "gradients": float(last["gradients"]),
        "floats_sent": int(last["floats_sent"]),
        "seconds": float(last["seconds"]),
        "start_error": start,
        **measured,
        "error_bound": made.get("error_bound"),
        "wire": made.get("wire"),
        "status": result.status,
        "message": result.message,
        "advice": advice(result, "--rtol" if settings.run.tol is None else "--tol"),
    }


def _rows(summary: dict[str, Any], protocol: str) -> list[tuple[str, str]]:
    from ..problems.weighting import told
    from .output import number

    status = {
        "converged": "converged: the tolerance was met",
        "max_rounds": "; ".join(
            filter(None, ("max_rounds: the rounds are spent", summary["message"], summary["advice"]))
        ),
    }
    return [
        ("method", f"{summary['title']}, parameters {protocol}"),
        ("oracle", summary["oracle"] or "gradients"),
        ("problem", f"{summary['nodes']} nodes, dim {summary['dim']}, kappa {number(round(summary['kappa'], 6))}"),
        *([("weights", words)] if (words := told(summary["samples"])) else []),
        ("network", f"chi {number(summary['chi'])}"),
        ("rounds", number(summary["rounds"])),
        ("gradients", f"{number(summary['gradients'])} per node"),
        ("floats sent", number(summary["floats_sent"])),
        ("seconds", f"{summary['seconds']:.2f}"),
        *_reached(summary),
        ("status", status.get(summary["status"], summary["status"])),
    ]


def _reached(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows that say how near a run came: to the solution, or by what can be known without it."""
    from .output import number

    found = []
    if "error" in summary:
        relative = summary["relative_error"]
        found.append(("error", number(summary["error"]) + (f" = {relative:.2e} of the start" if relative >= 0 else "")))
    if summary["error_bound"] is not None:
        found.append(("error", f"at most {number(summary['error_bound'])}, as the nodes agreed"))
    if "gradient_norm" in summary:
        found.append(("gradient", f"{number(summary['gradient_norm'])} at the mean of the nodes"))
        found.append(("consensus", number(summary["consensus"])))
    wire = summary["wire"]
    if wire is not None:
        found.append(
            ("ranks", f"{wire['ranks']}, which sent {number(wire['messages'])} messages, {_size(wire['bytes'])}")
        )
    return found


def _size(count: int) -> str:
    """Return a number of bytes for people to read.

    Examples
    --------
    >>> _size(512), _size(34_000_000)
    ('512 B', '34.0 MB')
    """
    power = 0
    value = float(count)
    while value >= 1000 and power < 4:
        value, power = value / 1000, power + 1
    return f"{value:.1f} {('B', 'kB', 'MB', 'GB', 'TB')[power]}" if power else f"{count} B"
