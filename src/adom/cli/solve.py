"""`adom solve`: run a method on a problem and a network, show what came out, and keep it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import AsJson, ConfigFile, OutFolder, with_settings
from .settings import USUAL, Config, Tables

if TYPE_CHECKING:
    from ..engine.result import Result

EXIT = {"diverged": 1, "interrupted": 130}
"""Exit codes by status; all other statuses end with 0."""


@with_settings("problem", "network", "run", usual=USUAL)
def solve(flags: Tables, config: ConfigFile = None, out: OutFolder = Path("out"), json: AsJson = False) -> int:
    """Minimise over a changing network and save the result.

    Without options it runs the paper's default: ADOM on synthetic logistic
    regression over 100 nodes whose links change every round.
    """
    from ..algorithms import method_class
    from . import build, output
    from .config import settle

    settings = settle(config, flags, USUAL)
    method_class(settings.run.method)
    build.check_run(settings)
    output.folder(out)
    network, problem = build.both(settings)
    result = _run(settings, problem, network)
    files = _save(result, settings, out)
    summary = _summary(result)
    if json:
        output.as_json({**summary, "files": files})
    else:
        output.table("", ("", ""), _rows(summary, result.protocol))
        output.lines("wrote", *(f"  {path}" for path in files.values()))
    if result.status == "diverged":
        output.note(
            f"diverged: {result.message}; take --parameters theory, and --oracle exact where the method is dual"
        )
    elif result.status == "interrupted":
        output.note(f"interrupted after {summary['rounds']} rounds; what was done so far is saved")
    return EXIT.get(result.status, 0)


def _run(settings: Config, problem: Any, network: Any) -> "Result":
    from .. import solve as solve_problem
    from . import build

    run = settings.run
    return solve_problem(
        problem,
        network,
        run.method,
        build.parameters(run.parameters),
        run.oracle,
        engine=run.engine,
        **build.budget(settings, problem),
    )


def _save(result: "Result", settings: Config, out: Path) -> dict[str, str]:
    """Write everything that a run leaves; return the files by kind."""
    from ..engine.result import atomic
    from ..report.figures import convergence, save
    from .config import write_toml

    files = {
        "result": result.save(out / "result.npz"),
        "history": out / "history.csv",
        "figure": save(convergence([result]), out / "convergence.png"),
        "config": out / "config.toml",
    }
    with atomic(files["history"]) as partial:
        result.history.to_csv(partial, index=False)
    write_toml(settings, files["config"])
    return {kind: str(path) for kind, path in files.items()}


def _summary(result: "Result") -> dict[str, Any]:
    made, last = result.provenance, result.history.iloc[-1]
    start = float(made["start_error"])
    return {
        "method": made["method"]["name"],
        "title": made["method"]["title"],
        "protocol": made["protocol"],
        "parameters": made["method"]["parameters"],
        "oracle": made["oracle"],
        "nodes": made["problem"]["nodes"],
        "dim": made["problem"]["dim"],
        "kappa": made["problem"]["kappa"],
        "chi": made["network"]["chi"],
        "rounds": int(last["round"]),
        "gradients": float(last["gradients"]),
        "floats_sent": int(last["floats_sent"]),
        "seconds": float(last["seconds"]),
        "start_error": start,
        "error": float(last["error"]),
        "relative_error": float(last["error"]) / start if start else None,
        "consensus": float(last["consensus"]),
        "status": result.status,
        "message": result.message,
    }


def _rows(summary: dict[str, Any], protocol: str) -> list[tuple[str, str]]:
    from .output import number

    relative = summary["relative_error"]
    status = {
        "converged": "converged: the tolerance was met",
        "max_rounds": "max_rounds: the budget of rounds is spent; raise --rounds for more",
    }
    return [
        ("method", f"{summary['title']}, parameters {protocol}"),
        ("oracle", summary["oracle"] or "gradients"),
        ("problem", f"{summary['nodes']} nodes, dim {summary['dim']}, kappa {number(round(summary['kappa'], 6))}"),
        ("network", f"chi {number(summary['chi'])}"),
        ("rounds", number(summary["rounds"])),
        ("gradients", f"{number(summary['gradients'])} per node"),
        ("floats sent", number(summary["floats_sent"])),
        ("seconds", f"{summary['seconds']:.2f}"),
        ("error", f"{number(summary['error'])}" + ("" if relative is None else f" = {relative:.2e} of the start")),
        ("status", status.get(summary["status"], summary["status"])),
    ]
