"""`adom split`: one file of samples becomes one file a node, for machines that each hold their own."""

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError, nearest
from .completion import one_of
from .exit_codes import Exit
from .options import AsJson, OutFolder, number
from .settings import DATA_SETS, Setting

if TYPE_CHECKING:
    from ..data.manifest import Manifest

BY = ("rows", "shuffled", "label", "dirichlet")

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="LIBSVM (also .bz2, .gz, .xz), CSV or NPZ file of labelled samples; or a6a, w6a, ijcnn1.",
        autocompletion=one_of(DATA_SETS),
    ),
]
Nodes = Annotated[
    int,
    typer.Option(
        "--nodes",
        metavar="N",
        help="Number of nodes.",
        show_default=False,
        parser=number(int, "--nodes", Setting("", least=1, most=10**7, example=100)),
    ),
]
By = Annotated[
    str,
    typer.Option(
        "--by",
        metavar="TEXT",
        help="rows (in file order), shuffled, label or dirichlet.",
        autocompletion=one_of(BY),
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="N",
        help="Seed of a shuffled or dirichlet split.",
        parser=number(int, "--seed", Setting("", least=0, most=2**32 - 1, example=0)),
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        "--alpha",
        metavar="X",
        help="How alike the nodes of a dirichlet split are; left out: 0.5, fairly unlike.",
        show_default=False,
        parser=number(float, "--alpha", Setting("", above=0, most=1e6, example=0.5)),
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", metavar="", help="Replace the shards that the folder holds.")]


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
    """Write one file of samples a node, and a manifest of them.

    Each machine then needs the manifest and the files of its own nodes only:
    with `adom solve --shards` no sample leaves it. Writes manifest.json and
    node-00000.svm, node-00001.svm, ...
    """
    from . import build, output

    if by not in BY:
        raise InputError(f"samples cannot be split by {by!r}; {nearest(by, BY)}")
    build.check_file(data)

    from ..data.manifest import NAME, read_manifest
    from ..data.shards import write_shards

    with output.busy(f"splitting {data}"):
        folder = write_shards(data, nodes, out, by, seed=seed, alpha=alpha, overwrite=overwrite)
        made = read_manifest(folder)
        summary = _summary(made, folder)
    onward = f"adom solve --shards {shlex.quote(str(folder))} --kappa 100 --engine mpi --ranks {min(4, made.nodes)}"
    if json:
        output.as_json({**summary, "files": {"folder": folder, "manifest": folder / NAME}, "next": onward})
        return Exit.DONE
    output.table("", ("", ""), _rows(summary))
    output.lines(
        "wrote",
        f"  {folder / NAME}",
        f"  {made.files[0].name}{f' to {made.files[-1].name}' if made.nodes > 1 else ''}, a file a node",
        "next",
        f"  {onward}",
    )
    return Exit.DONE


def _summary(made: "Manifest", folder: Path) -> dict[str, Any]:
    from statistics import median

    samples = [file.samples for file in made.files]
    dense = sum(samples) * made.dim
    return {
        "nodes": made.nodes,
        "dim": made.dim,
        "samples": sum(samples),
        "density": sum(file.nonzeros for file in made.files) / dense,
        "classes": list(made.classes),
        "by": made.by,
        "seed": made.seed,
        "alpha": made.alpha,
        "samples_per_node": {"min": min(samples), "median": median(samples), "max": max(samples)},
        "nodes_with_classes": _classes(made, folder),
    }


def _classes(made: "Manifest", folder: Path) -> dict[str, int]:
    """Return how many nodes have both classes, and how many have one of them only, from the files themselves."""
    counts: Counter[str] = Counter()
    for shard in made.files:
        with (folder / shard.name).open(encoding="ascii") as file:
            labels = {float(line.partition(" ")[0]) for line in file}
        counts["both" if len(labels) > 1 else f"only {made.classes[labels == {made.classes[1]}]}"] += 1
    return {name: counts[name] for name in ("both", *(f"only {label}" for label in made.classes))}


def _rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    from .output import number

    each = summary["samples_per_node"]
    drawn = f", seed {summary['seed']}" if summary["by"] in ("shuffled", "dirichlet") else ""
    alpha = "" if summary["alpha"] is None else f", alpha {summary['alpha']:g}"
    nodes = number(summary["nodes"])
    held = {name: count for name, count in summary["nodes_with_classes"].items() if count}
    return [
        ("nodes", nodes),
        ("samples", f"{number(summary['samples'])} of dim {summary['dim']}, {summary['density']:.0%} non-zero"),
        ("split by", f"{summary['by']}{alpha}{drawn}"),
        ("samples a node", f"{number(each['min'])} to {number(each['max'])}, median {number(each['median'])}"),
        ("classes a node", ", ".join(f"{name}: {number(count)} of {nodes} nodes" for name, count in held.items())),
    ]
