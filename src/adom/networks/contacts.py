"""Networks from temporal contact lists: who met whom when."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError, InputTypeError, shown
from ..util import files
from ..util.checks import check_whole
from .checks import node_count, truth
from .connect import join_in_chain
from .from_data import distinct_graphs, iterable
from .lazy import Batch, Graph
from .links import Ints, Longs, canonical
from .network import Network

WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
"""A whole number that fits in 64 bits."""


def from_contacts(path_or_rows: Any, *, window: int = 1, nodes: int | None = None, repair: bool = False) -> Network:
    """Return the network of a temporal contact list: each window of time is a round.

    A file has one contact per line, ``t u v``: a time and two node ids, all whole numbers, separated by whitespace or
    commas. Empty lines, comments after ``#`` and one header line are skipped. Contacts with the same
    ``(t - t_min) // window`` form one graph; windows without contacts are skipped. Most of these graphs are not
    connected. It is enough that all of them together are (see `Network.window`, which counts rounds).

    Parameters
    ----------
    path_or_rows : path, iterable of (t, u, v), or pandas.DataFrame with columns t, u and v
    window : int
        The length of a round, in the unit of t.
    nodes : int, optional
        The number of nodes; their ids are then 0, ..., nodes - 1. By default the ids that occur are renumbered in
        ascending order.
    repair : bool
        Join the components of each graph into a chain by linking their smallest nodes in ascending order.
        ``recipe["links_added"]`` counts the added links over one period.

    Examples
    --------
    >>> network = from_contacts([(0, 7, 8), (0, 8, 9), (20, 9, 7), (21, 7, 8)], window=20)
    >>> [network.edges(g).tolist() for g in network.order]
    [[[0, 1], [1, 2]], [[0, 1], [0, 2]]]
    """
    window = check_whole("window", window, 1, "it is a length of time in the unit of t")
    repair = truth("repair", repair)
    rows, where = _contacts(path_or_rows)
    if not len(rows):
        raise InputError(
            f"{where} holds no contacts, but a network needs one or more; expected lines `t u v` of whole numbers"
        )
    times = (rows[:, 0] - rows[:, 0].min()) // window
    count, ends = _numbered(rows[:, 1:], nodes, where)
    by_time = np.argsort(times, kind="stable")
    cuts = np.flatnonzero(np.diff(times[by_time])) + 1
    parts = [canonical(pairs, count) for pairs in np.split(ends[by_time], cuts)]
    met = sum(map(len, parts))
    if repair:
        parts = [canonical(np.concatenate([p, join_in_chain(count, p)]), count) for p in parts]
    links, ones, _, order = distinct_graphs(count, map(Graph, parts))
    recipe = {"generator": "from_contacts", "nodes": count, "window": window, "repair": repair}
    if repair:
        recipe["links_added"] = sum(map(len, parts)) - met
    recipe |= {"contacts": len(rows), "sha256": links.digest(ones, order)}
    return Network(Batch.laplacian(links, joined=repair), order, recipe)


def _contacts(source: Any) -> tuple[Longs, str]:
    """Return the contacts as an (m, 3) array, and the name of their source for error messages."""
    if isinstance(source, str | os.PathLike):
        return _read_file(Path(source))
    if hasattr(source, "columns") and hasattr(source, "__getitem__"):
        source = _rows_of_frame(source)
    if isinstance(source, bytes | dict | Network) or not iterable(source):
        raise InputTypeError(
            f"contacts must be a path or rows (t, u, v), got {type(source).__name__}; e.g. [(0, 1, 2)]"
        )
    table = []
    for number, row in enumerate(source):
        try:
            fields = [str(_integer(value)) for value in row]
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"row {number}: expected three whole numbers (t, u, v), got {shown(row)}; e.g. (0, 1, 2)"
            ) from None
        table.append(_contact(fields, f"row {number}"))
    return np.array(table, dtype=np.int64).reshape(-1, 3), "the list of contacts"


def _rows_of_frame(frame: Any) -> Iterable[Any]:
    """Return the rows (t, u, v) of a data frame."""
    columns = list(frame.columns)
    if any(columns.count(name) != 1 for name in "tuv"):
        raise InputError(
            f"a data frame of contacts needs the columns t, u and v, once each, got {shown(columns)}; "
            "frame.rename(columns={...}) names them"
        )
    return zip(*(frame[name] for name in "tuv"), strict=True)


def _integer(value: Any) -> int:
    """Return a whole number of any numeric type as an int; raise ValueError for anything else."""
    number = int(value)
    if isinstance(value, str | bytes | bool | np.bool_) or number != value:
        raise ValueError(value)
    return number


def _read_file(path: Path) -> tuple[Longs, str]:
    """Read a contact file."""
    lines = enumerate(files.text(path, "expected a file of lines `t u v`").splitlines(), start=1)
    split = [(number, line.partition("#")[0].replace(",", " ").split()) for number, line in lines]
    rows = [(number, fields) for number, fields in split if fields]
    if rows and not any(WHOLE.fullmatch(field) for field in rows[0][1]):
        del rows[0]  # a header
    table = [_contact(fields, f"{path}, line {number}") for number, fields in rows]
    return np.array(table, dtype=np.int64).reshape(-1, 3), str(path)


def _contact(fields: list[str], where: str) -> tuple[int, int, int]:
    """Return one contact; refuse anything but three whole numbers with two different nodes."""
    if len(fields) != 3:
        raise InputError(f"{where}: expected 3 columns `t u v`, got {len(fields)}; keep time and the two node ids only")
    for field in fields:
        if not WHOLE.fullmatch(field):
            raise InputError(f"{where}: expected whole numbers `t u v`, got {shown(field)}; round or renumber first")
    t, u, v = (int(field) for field in fields)
    if u == v:
        raise InputError(f"{where}: node {u} meets itself, but a contact joins two nodes; remove the line")
    return t, u, v


def _numbered(ids: Longs, nodes: int | None, where: str) -> tuple[int, Ints]:
    """Return the number of nodes, and the contacts with nodes numbered 0, 1, ..."""
    if nodes is None:
        names, ends = np.unique(ids, return_inverse=True)
        return len(names), ends.reshape(-1, 2).astype(np.int32)
    count = node_count(nodes)
    outside = ids[(ids < 0) | (ids >= count)]
    if outside.size:
        raise InputError(
            f"{where} names node {outside[0]}, but nodes={count} allows 0 to {count - 1}; "
            "leave `nodes` out to number the ids that occur"
        )
    return count, ids.astype(np.int32)
