"""`adom data`: the data sets, where they are, and whether they are what the paper used."""

from typing import Annotated, Any

import typer

from .completion import one_of
from .exit_codes import Exit
from .options import AsJson
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
Download = Annotated[
    bool, typer.Option("--download", metavar="", help="Fetch what is missing from the official pages.")
]
Check = Annotated[
    bool, typer.Option("--check", metavar="", help="Hold all files against the paper's Table 2 and its chi.")
]


def data(names: Names = None, download: Download = False, check: Check = False, json: AsJson = False) -> int:
    """List the data sets: whether they are there, whole, and where.

    They lie in ADOM_DATA if that is set, otherwise in the user's cache folder.
    The exit code is 1 if a file is not what it should be.
    """
    from ..data.download import fetch, folder, state
    from ..data.sets import SETS, find_set
    from . import output

    chosen = [find_set(name) for name in names or SETS]
    if download:
        for one in chosen:
            with output.busy(f"fetching {one.name}"):
                fetch(one.name)
    states = {one.name: state(one.name) for one in chosen}
    checked = _check() if check else None
    if json:
        listed = {
            one.name: {**states[one.name]._asdict(), "url": one.url, "what": one.what, "reference": one.reference}
            for one in chosen
        }
        output.as_json({"folder": folder(), "sets": listed, **(checked or {})})
    else:
        _print(chosen, states, checked)
    wrong = [found.message for found in states.values() if found.status == "wrong"]
    for message in wrong:
        output.note(message)
    return Exit.FAILED if wrong or (checked and not checked["agrees"]) else Exit.DONE


def _check() -> dict[str, Any]:
    """Return the paper's figures beside those of the files, and whether they agree."""
    from ..data.infectious import PAPER_CHI, readings
    from ..data.samples import table2
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
        [(one.name, one.what, words[states[one.name].status], states[one.name].path) for one in chosen],
    )
    if any(found.status == "absent" for found in states.values()):
        output.lines("adom data --download fetches what is absent; a run that needs it does so by itself.")
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
