"""`adom data`: the data sets, where they are, and whether they are the ones that the paper used."""

from typing import Annotated, Any

import typer

from .completion import one_of
from .exit_codes import Exit
from .options import AsJson, switch
from .settings import DATA_SETS

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


def data(names: Names = None, download: Download = False, check: Check = False, json: AsJson = False) -> int:
    """List the data sets: whether they are present and intact, and where.

    They lie in ADOM_DATA if that is set, otherwise in the user's cache folder.
    The exit code is 1 if a file is not what it should be.
    """
    from ..data.sets import SETS, fetch, find_set, folder, state
    from . import output

    chosen = [find_set(name) for name in names or SETS]
    if download:
        for data_set in chosen:
            with output.busy(f"fetching {data_set.name}"):
                fetch(data_set.name)
    states = {data_set.name: state(data_set.name) for data_set in chosen}
    checked = _check() if check else None
    if json:
        listed = {
            each.name: {**states[each.name]._asdict(), "url": each.url, "what": each.what, "reference": each.reference}
            for each in chosen
        }
        output.as_json({"folder": folder(), "sets": listed, **(checked or {})})
    else:
        _print(chosen, states, checked)
    wrong = [file.message for file in states.values() if file.status == "wrong"]
    for message in wrong:
        output.note(message)
    return Exit.FAILED if wrong or (checked and not checked["agrees"]) else Exit.DONE


def _check() -> dict[str, Any]:
    """Compare the paper's numbers with those of the files."""
    from ..data.paper_data import PAPER_CHI, readings, table2
    from . import output

    with output.busy("reading the files"):
        table, read = table2(), readings()
    chi = float(read["chi"].iloc[0])
    return {
        "table2": table.to_dict("records"),
        "readings": read.to_dict("records"),
        "agrees": bool(table["agrees"].all()) and PAPER_CHI <= chi < PAPER_CHI + 1,
    }


def _print(chosen: list[Any], states: dict[str, Any], checked: dict[str, Any] | None) -> None:
    from . import output

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
