"""`adom split` and `adom shard`: one shard of samples per node, from one file of all or on the machine of each."""

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, nearest
from .exit_codes import Exit
from .options import AsJson, OutFolder, number_option, one_of, switch
from .settings import DATA_SETS

if TYPE_CHECKING:
    from ..data.shards import Manifest


def ways() -> list[str]:
    """Return the ways to split samples among nodes."""
    from ..data.shards import BY

    return list(BY)


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="LIBSVM (also .bz2, .gz, .xz), CSV or NPZ file of labelled samples; or a6a, w6a, ijcnn1.",
        autocompletion=one_of(DATA_SETS),
    ),
]
By = Annotated[
    str,
    typer.Option(
        "--by", metavar="TEXT", help="rows (in file order), shuffled, label or dirichlet.", autocompletion=one_of(ways)
    ),
]
Nodes = Annotated[int, number_option("--nodes", "Number of nodes.", int, 100)]
Seed = Annotated[int, number_option("--seed", "Seed of a shuffled or dirichlet split.", int, 0)]
ALIKE = "How alike the nodes of a dirichlet split are; left out: 0.5, fairly unlike."
Alpha = Annotated[float | None, number_option("--alpha", ALIKE, float, 0.5)]
Overwrite = Annotated[bool, switch("--overwrite", "Replace the shards that the folder holds.")]


def split(
    data: Data,
    nodes: Nodes,
    by: By = "rows",
    seed: Seed = 0,
    alpha: Alpha = None,
    overwrite: Overwrite = False,
    out: OutFolder = Path("shards"),
    json: AsJson = False,
) -> int:
    """Write one shard of samples per node, and a manifest of them.

    Each machine then needs the manifest and the shards of its own nodes only:
    with `adom solve --shards` no sample leaves it. Writes manifest.json and
    the shards node-00000, node-00001, ...
    """
    from . import build, output

    if by not in ways():
        raise InputError(f"samples cannot be split by {by!r}; {nearest(by, ways())}")
    build.check_file(data)

    from ..data.shards import MANIFEST, read_manifest, write_shards

    with output.busy(f"splitting {data}"):
        folder = write_shards(data, nodes, out, by, seed=seed, alpha=alpha, overwrite=overwrite)
        manifest = read_manifest(folder)
        summary = _summary(manifest, folder)
    nodes, last = len(manifest.files), manifest.files[-1].name
    onward = f"adom solve --shards {shlex.quote(str(folder))} --kappa 100 --engine mpi --ranks {min(4, nodes)}"
    if json:
        output.as_json({**summary, "files": {"folder": folder, "manifest": folder / MANIFEST}, "next": onward})
        return Exit.DONE
    output.table("", ("", ""), _rows(summary))
    output.lines(
        "wrote",
        f"  {folder / MANIFEST}",
        f"  {manifest.files[0].name}{f' to {last}' if nodes > 1 else ''}, one per node",
        "next",
        f"  {onward}",
    )
    return Exit.DONE


def _summary(manifest: "Manifest", folder: Path) -> dict[str, Any]:
    from statistics import median

    samples = [file.samples for file in manifest.files]
    return {
        "nodes": len(manifest.files),
        "dim": manifest.dim,
        "samples": sum(samples),
        "density": manifest.density,
        "classes": list(manifest.classes),
        "by": manifest.by,
        "seed": manifest.seed,
        "alpha": manifest.alpha,
        "samples_per_node": {"min": min(samples), "median": median(samples), "max": max(samples)},
        "nodes_with_classes": _classes(manifest, folder),
    }


def _classes(manifest: "Manifest", folder: Path) -> dict[str, int]:
    """Count the nodes with both classes and those with only one, by reading their labels."""
    import numpy as np

    counts: Counter[str] = Counter()
    for shard in manifest.files:
        labels = set(np.load(folder / shard.name / "target.npy", mmap_mode="r", allow_pickle=False).tolist())
        counts["both" if len(labels) > 1 else f"only {manifest.classes[labels == {manifest.classes[1]}]}"] += 1
    return {name: counts[name] for name in ("both", *(f"only {label}" for label in manifest.classes))}


def _rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    from .output import number

    each = summary["samples_per_node"]
    seed = f", seed {summary['seed']}" if summary["by"] in ("shuffled", "dirichlet") else ""
    alpha = "" if summary["alpha"] is None else f", alpha {summary['alpha']:g}"
    nodes = number(summary["nodes"])
    classes = {name: count for name, count in summary["nodes_with_classes"].items() if count}
    return [
        ("nodes", nodes),
        ("samples", f"{number(summary['samples'])} of dim {summary['dim']}, {summary['density']:.0%} non-zero"),
        ("split by", f"{summary['by']}{alpha}{seed}"),
        ("samples per node", f"{number(each['min'])} to {number(each['max'])}, median {number(each['median'])}"),
        ("classes per node", ", ".join(f"{name}: {number(count)} of {nodes} nodes" for name, count in classes.items())),
    ]


OwnData = Annotated[
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
OverwriteOne = Annotated[bool, switch("--overwrite", "Replace the shard of that name.")]


def shard(
    data: OwnData,
    node: Node,
    target: Target = None,
    features: Features = None,
    without: Without = None,
    dim: Dim = None,
    overwrite: OverwriteOne = False,
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
