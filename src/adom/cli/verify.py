"""`adom verify`: check the theorem and its lemmas on a run, round by round."""

from ..util.settings import Tables
from .exit_codes import Exit
from .options import AsJson, ConfigFile, with_settings
from .settings import SMALL


@with_settings("problem", "network", "run.rounds", usual=SMALL)
def verify(flags: Tables, config: ConfigFile = None, json: AsJson = False) -> int:
    """Check the theorem and its lemmas in every round of a run.

    Each line gives the worst ratio of the left side to the right side; up to 1
    the statement holds. A round in which both sides are within rounding of 0 is
    not checked; lines below the table say so. The exit code is 1 if a statement
    does not hold. Writes no files.
    """
    from . import build, output
    from .config import settle

    settings = settle(config, flags, SMALL)
    network, problem = build.both(settings)

    from .. import verify as verify_theory

    with output.busy("checking every round"):
        checked = verify_theory(problem, network, rounds=settings.run.rounds)
    rows = [row.to_json() for row in checked.rows]
    code = Exit.DONE if checked.holds else Exit.FAILED
    if json:
        about = {"nodes": problem.nodes, "dim": problem.dim, "kappa": problem.kappa, "chi": network.chi}
        output.as_json({**about, "holds": checked.holds, "rows": rows})
        return code
    output.table(
        f"{problem.nodes} nodes, dim {problem.dim}, kappa {output.number(round(problem.kappa, 6))}, "
        f"chi {output.number(network.chi)}{output.steps_of(network.window)}",
        ("name", "statement", "worst left/right", "in round", "rounds checked", "holds"),
        [
            (
                row["name"],
                row["statement"],
                f"{row['worst_ratio']:.6g}" if row["rounds_checked"] else "",
                row["round_of_worst"] if row["rounds_checked"] else "",
                row["rounds_checked"],
                ("yes" if row["rounds_checked"] else "nothing to check") if row["holds"] else "NO",
            )
            for row in rows
        ],
    )
    output.lines(*(f"{row['name']}: {row['why_unchecked']}" for row in rows if row["why_unchecked"]))
    return code
