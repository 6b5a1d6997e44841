"""`adom predict` and `adom score`: a model file on new rows; `adom summary`: its coefficients and their errors."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from .exit_codes import Exit
from .options import OUTPUT, AsJson, switch

if TYPE_CHECKING:
    import numpy as np

    from ..data.model import Model
    from ..data.sample_files import Table

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="File of the model, such as out/model.json.")]
Rows = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV, Parquet, NPZ or LIBSVM file; columns are found by their names.")
]
OutFile = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="CSV file to write; left out: stdout.", rich_help_panel=OUTPUT),
]
Target = Annotated[
    str | None, typer.Option("--target", metavar="TEXT", help="Column with the true values; left out: the model's own.")
]


def predict(model: ModelFile, data: Rows, out: OutFile = None, json: AsJson = False) -> int:
    """Predict new rows by a model.

    Columns are taken by name, wherever they stand; missing ones are refused,
    others left alone. Writes one line a row: the prediction and, of a model
    of classes, the probability of each.
    """
    import sys

    from ..data.sample_files import open_table
    from ..util.files import atomic
    from . import output

    fitted = _loaded(model)
    if out is not None:
        output.file(out, [".csv"], "--out")
    table = open_table(data, None, fitted.features)
    if json:
        rows = list(_predictions(fitted, table))
        found = {"rows": len(rows), "columns": _columns(fitted), "predictions": rows}
        output.as_json({**found, "file": None if out is None else str(out)})
    if out is not None:
        with atomic(out) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            _write(fitted, rows if json else _predictions(fitted, table), file)
        if not json:
            output.wrote(out)
    elif not json:
        _write(fitted, _predictions(fitted, table), sys.stdout)
    return Exit.DONE


def _loaded(path: Path) -> "Model":
    """Return a saved model; say on stderr if its fit did not come to its end."""
    from ..data.model import load_model
    from . import output, ranks

    fitted = load_model(path)
    if fitted.provenance.get("status") == "interrupted" and not ranks.rank():
        output.note(f"warning: {path} is unfinished: its fit was interrupted; let the fit run to its end")
    return fitted


def _columns(model: "Model") -> list[str]:
    from ..data.sample_files import label_text

    return ["prediction", *(f"p({label_text(name)})" for name in model.classes)]


def _predictions(model: "Model", table: "Table") -> Iterator[list[Any]]:
    """Yield the prediction of every row, and the probabilities of the classes."""
    from ..data.sample_files import label_text

    for features, _ in table.blocks:
        predicted = model.predict(features).tolist()
        if not model.classes:
            yield from ([value] for value in predicted)
            continue
        for value, shares in zip(predicted, model.predict_proba(features).tolist(), strict=True):
            yield [label_text(value), *shares]


def _write(model: "Model", rows: Iterable[list[Any]], file: IO[str]) -> None:
    import csv

    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_columns(model))
    writer.writerows(rows)


def score(model: ModelFile, data: Rows, target: Target = None, json: AsJson = False) -> int:
    """Score a model on rows whose truth is known.

    Prints the share of right classes, or R^2 of a model of numbers, as
    scikit-learn counts them. Started by mpirun, every rank takes its own
    rows, and the score is that of all of them.
    """
    from ..data.model import score_of
    from . import output, ranks

    with ranks.watched(f"reading {data}"):
        fitted = _loaded(model)
        sums = _sums(fitted, data, target or fitted.target or None)
        if ranks.rank() is not None:
            from ..run.ranks.world import sums_of_ranks

            sums = sums_of_ranks(sums)
    if ranks.rank():
        return ranks.leave(Exit.DONE)
    name = "accuracy" if fitted.classes else "R^2"
    if json:
        output.as_json({"samples": int(sums[0]), "measure": name, "score": score_of(sums), "kind": fitted.kind})
    else:
        output.table(
            "", ("", ""), [("model", repr(fitted)), ("samples", f"{int(sums[0]):,}"), (name, f"{score_of(sums):.6g}")]
        )
    return Exit.DONE


Level = Annotated[
    float, typer.Option("--level", metavar="FLOAT", help="Of the confidence intervals.", show_default=True)
]
Robust = Annotated[bool, switch("--robust", "Errors that hold whatever the variance is (the sandwich, HC0).")]
FACTS = ("samples", "nodes", "log_likelihood", "deviance", "dispersion", "aic", "bic")


def summary(model: ModelFile, level: Level = 0.95, robust: Robust = False, json: AsJson = False) -> int:
    """Show the coefficients of a model with their errors.

    A fit by --method newton without a penalty has standard errors,
    p-values and confidence intervals. Below them: how well it fits, or why
    there are no errors.
    """
    from . import output

    fitted = _loaded(model)
    shown = fitted.summary(level=level, robust=robust)
    facts = {name: shown.attrs[name] for name in FACTS if name in shown.attrs}
    refused = shown.attrs.get("refused")
    rows = shown.reset_index()
    if json:
        output.as_json({"kind": fitted.kind, "coefficients": rows.to_dict("records"), **facts, "refused": refused})
        return Exit.DONE
    names = [str(name) for name in rows.columns]
    cells = [[f"{cell:.5g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows.values.tolist()]
    output.table(repr(fitted), names, cells, numbers=list(shown.columns), spare=("z",))
    below = [(name.replace("_", " "), f"{value:.7g}") for name, value in facts.items()]
    output.table("", ("", ""), [*below, *([("no errors", refused)] if refused else [])])
    return Exit.DONE


def _sums(model: "Model", data: Path, target: str | None) -> "np.ndarray":
    """Return the sums over all rows from which the score is computed."""
    from ..data.sample_files import open_table
    from ..errors import InputError

    if target is None:
        raise InputError(
            f"{data} must have a column with the true values, but the model names none; give it with --target"
        )
    parts = [model.sums(*block) for block in open_table(data, target, model.features).blocks]
    if not parts:
        raise InputError(f"{data} has no rows; give a file with at least one")
    total: np.ndarray = sum(parts[1:], parts[0])
    return total
