"""`adom shard`: make the samples of one machine the shard of its node."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from .exit_codes import Exit
from .options import AsJson, OutFolder, number_option, switch

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV, Parquet, NPZ or LIBSVM file of this machine's samples.")
]
Node = Annotated[str, typer.Option("--node", metavar="NAME", help="Name of this node, different from all others.")]
Target = Annotated[
    str | None, typer.Option("--target", metavar="TEXT", help="Column to be predicted; left out: the last.")
]
Features = Annotated[
    str | None,
    typer.Option("--features", metavar="A,B,...", help="Columns to take, separated by commas; left out: all others."),
]
Without = Annotated[
    str | None, typer.Option("--without", metavar="A,B,...", help="Columns to leave out, such as names and dates.")
]
LAST = "Number of features of LIBSVM text, if the last ones may be missing."
Dim = Annotated[int | None, number_option("--dim", LAST, int, 100)]
Overwrite = Annotated[bool, switch("--overwrite", "Replace the shard of that name.")]


def shard(
    data: Data,
    node: Node,
    target: Target = None,
    features: Features = None,
    without: Without = None,
    dim: Dim = None,
    overwrite: Overwrite = False,
    out: OutFolder = Path("shards"),
    json: AsJson = False,
) -> int:
    """Make this machine's samples the shard of a node.

    Run it on every machine, each with its own file; nothing is copied to
    another. The file is read in blocks and may be larger than memory. Columns
    are numbers, the target numbers or text; `adom solve --shards` compares
    the columns of all nodes when they meet. Writes DIR/NAME/shard.json and
    arrays beside it.
    """
    from ..data.node_shards import open_shard, write_shard
    from . import output

    with output.busy(f"reading {data}"):
        columns: dict[str, Any] = {"features": _names(features), "without": _names(without) or []}
        place = write_shard(data, node, out, target=target, dim=dim, overwrite=overwrite, **columns)
        made = open_shard(place)
    facts = made.facts
    onward = f"adom solve --shards {shlex.quote(str(out))} --nodes N --scale --engine mpi"
    if json:
        about = {"node": node, "samples": facts.samples, "features": facts.features, "target": facts.target}
        about |= {"layout": facts.layout, "fingerprint": facts.fingerprint}
        output.as_json({**about, "folder": place, "next": onward})
        return Exit.DONE
    shown = ", ".join(facts.features[:6]) + (", ..." if len(facts.features) > 6 else "")
    kind = "numbers" if facts.labels is None else f"text: {', '.join(sorted(facts.labels)[:6])}"
    rows = [
        ("node", node),
        ("samples", output.number(facts.samples)),
        ("features", f"{output.number(len(facts.features))}: {shown}"),
        ("target", f"{facts.target}, {kind}"),
        ("fingerprint", f"{facts.fingerprint[:16]}, the same on all machines"),
    ]
    output.table("", ("", ""), rows)
    output.lines(
        *("wrote", f"  {place}", "next, once every machine has its shard, with N of them in all", f"  {onward}"),
        f"  adom agent {node}.toml   with data = {str(place)!r} and nodes = N in its table [problem]",
    )
    return Exit.DONE


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
