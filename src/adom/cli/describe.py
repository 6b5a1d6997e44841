"""Commands that describe what there is, or check it: `adom methods`, `data`, `network` and `verify`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..util.setting import Tables
from . import output
from .exit_codes import Exit
from .options import AsJson, ConfigFile, OutFolder, one_of, switch, with_settings
from .settings import DATA_SETS, SMALL, USUAL

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME]...",
        help="a6a, w6a, ijcnn1 or infectious_ct1; left out: all of them.",
        show_default=False,
        autocompletion=one_of((*DATA_SETS, "infectious_ct1")),
    ),
]
Download = Annotated[bool, switch("--download", "Download missing files from the official pages.")]
Check = Annotated[bool, switch("--check", "Compare all files with the paper's Table 2 and its chi.")]
SPANS = ("edges", "degree")


def methods(json: AsJson = False) -> int:
    """List the methods with their costs and sources.

    Give a name to `adom solve --method`, several to `adom compare --methods`.
    A dual method needs an oracle for grad F*, a primal one gradients.
    """
    from ..algorithms import METHODS, NEEDS, method_class

    classes = {name: method_class(name) for name in METHODS}
    if json:
        fields = ("title", "oracle", "vectors_per_round", "rounds_per_step", "needs", "complexity", "reference")
        output.as_json({name: {field: getattr(cls, field) for field in fields} for name, cls in classes.items()})
        return Exit.DONE
    needs = "; ".join(f"{word}, {text}" for word, text in NEEDS.items())
    output.table(
        f"network: what the proof asks for ({needs})",
        ("name", "oracle", "vectors per round", "rounds to error eps (network)", "source"),
        [
            (name, cls.oracle, cls.vectors_per_round, f"{cls.complexity} ({cls.needs})", cls.reference.split()[-1])
            for name, cls in classes.items()
        ],
    )
    return Exit.DONE


def data(names: Names = None, download: Download = False, check: Check = False, json: AsJson = False) -> int:
    """List the data sets: whether they are present and intact, and where.

    They lie in ADOM_DATA if that is set, otherwise in the user's cache folder.
    The exit code is 1 if a file is not what it should be.
    """
    from ..data.sets import SETS, fetch, find_set, folder, state

    chosen = [find_set(name) for name in names or SETS]
    if download:
        for data_set in chosen:
            with output.busy(f"fetching {data_set.name}"):
                fetch(data_set.name)
    states = {data_set.name: state(data_set.name) for data_set in chosen}
    checked = _check_data() if check else None
    if json:
        listed = {
            each.name: {**states[each.name]._asdict(), "url": each.url, "what": each.what, "reference": each.reference}
            for each in chosen
        }
        output.as_json({"folder": folder(), "sets": listed, **(checked or {})})
    else:
        _print_data(chosen, states, checked)
    wrong = [file.message for file in states.values() if file.status == "wrong"]
    for message in wrong:
        output.note(message)
    return Exit.FAILED if wrong or (checked and not checked["agrees"]) else Exit.DONE


def _check_data() -> dict[str, Any]:
    """Compare the paper's numbers with those of the files."""
    from ..data.paper_data import PAPER_CHI, readings, table2

    with output.busy("reading the files"):
        table, read = table2(), readings()
    chi = float(read["chi"].iloc[0])
    return {
        "table2": table.to_dict("records"),
        "readings": read.to_dict("records"),
        "agrees": bool(table["agrees"].all()) and PAPER_CHI <= chi < PAPER_CHI + 1,
    }


def _print_data(chosen: list[Any], states: dict[str, Any], checked: dict[str, Any] | None) -> None:
    words = {"present": "present, checksum right", "absent": "absent", "wrong": "WRONG CHECKSUM"}
    output.table(
        "",
        ("name", "what", "state", "where"),
        [(each.name, each.what, words[states[each.name].status], states[each.name].path) for each in chosen],
    )
    if any(file.status == "absent" for file in states.values()):
        output.lines("adom data --download fetches absent files; a run that needs one does so by itself.")
    if checked is None:
        return
    output.table(
        "Table 2 of the paper, and the files",
        ("dataset", "samples", "of file", "dimension", "of file", "agrees"),
        [
            (
                row["dataset"],
                row["samples_paper"],
                row["samples"],
                row["dimension_paper"],
                row["dimension"],
                "yes" if row["agrees"] else "NO",
            )
            for row in checked["table2"]
        ],
    )
    output.table(
        "chi of infectious_ct1 (the paper: about 232)",
        ("reading", "graphs", "not connected", "chi", "median"),
        [
            (row["reading"], row["graphs"], row["not_connected"], f"{row['chi']:.3f}", f"{row['median']:.3f}")
            for row in checked["readings"]
        ],
        numbers=("graphs", "not connected", "chi", "median"),
    )


@with_settings("network", "problem.nodes", "problem.seed", usual=USUAL)
def network(flags: Tables, config: ConfigFile = None, out: OutFolder = Path("out"), json: AsJson = False) -> int:
    """Describe a network and draw it: some rounds, chi by round, degrees.

    chi is the condition number that the methods' rates depend on. Writes
    network.png.
    """
    from . import build
    from .config import settle

    settings = settle(config, flags, USUAL)
    output.folder(out)

    from ..plot.networks import network_picture
    from ..plot.style import save

    with output.busy("building the network"):
        net = build.network(settings)
        described, chis = net.describe(), _chi_summary(net)
        picture = save(network_picture(net), out / "network.png")
    if json:
        more = {"chi_rests_on": _rests_on(net), "chi_rounds": chis, "recipe": net.recipe}
        output.as_json({**described, **more, "files": {"picture": picture}})
        return Exit.DONE
    text = {name: output.number(value) for name, value in described.items()}
    spans = {name: f"{text[f'{name}_min']} to {text[f'{name}_max']}, mean {text[f'{name}_mean']}" for name in SPANS}
    rows = {
        "nodes": text["nodes"],
        "graphs": f"{text['graphs']}, repeating after {text['period']} rounds",
        **spans,
        **_connectivity(net),
        "chi": f"{text['chi']} ({_kind(net)} {_rests_on(net)})",
        f"chi by {'round' if net.window == 1 else 'window'}": ", ".join(
            f"{name} {output.number(value)}" for name, value in chis.items()
        ),
    }
    output.table(str(settings.network.kind), ("", ""), rows.items())
    output.wrote(picture)
    return Exit.DONE


def _connectivity(net: Any) -> dict[str, str]:
    """Return rows on how many rounds connect the nodes, if not all do, and how many links a repair added."""
    rows = {}
    if net.window > 1:
        whole = int((net.spectrum[net.order, 0] > 0).sum())
        rows["connected"] = f"{whole:,} of {net.period:,} rounds; any {net.window:,} together, a window"
    if "links_added" in net.recipe:
        rows["links added"] = f"{net.recipe['links_added']:,}, by the repair of all rounds"
    return rows


def _kind(net: Any) -> str:
    """Return what chi means, in words."""
    return "lambda_max / lambda_min_plus" if net.window == 1 else f"of windows of {net.window:,} rounds"


def _rests_on(net: Any) -> str:
    """Return which graphs chi was computed from."""
    if net.held:
        return "over all rounds"
    return f"over {len(net.examined)} of its graphs: an estimate" if len(net.examined) else "as it was given"


def _chi_summary(net: Any) -> dict[str, float]:
    """Summarise chi over the rounds of a period: of each graph by itself, or of the window that starts there."""
    import numpy as np

    chis = net.chis[np.isfinite(net.chis)]  # all of them, or some of a network that is too large
    best, median, worst = np.quantile(chis, [0, 0.5, 1]) if chis.size else (net.chi,) * 3
    return {"best": float(best), "median": float(median), "worst": float(worst)}


@with_settings("problem", "network", "run.rounds", usual=SMALL)
def verify(flags: Tables, config: ConfigFile = None, json: AsJson = False) -> int:
    """Check the theorem and its lemmas in every round of a run.

    Each line gives the worst ratio of the left side to the right side; up to 1
    the statement holds. A round in which both sides are within rounding of 0 is
    not checked; lines below the table say so. The exit code is 1 if a statement
    does not hold. Writes no files.
    """
    from . import build
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
