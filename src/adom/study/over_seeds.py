"""Runs that differ only in the seed as one row: the median of each cost, its least and its greatest value."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.endings import LOST
from ..util.columns import TO_TARGET

if TYPE_CHECKING:
    import pandas as pd

PLACES = ("member", "network", "seed")
"""Columns of numbers for which a median has no meaning."""


def medians(table: "pd.DataFrame", keys: Any) -> "pd.DataFrame":
    """Return one row per group of runs, in the order in which groups appear.

    The columns are every cost to the target as a median, with the ends ``_low`` and ``_high``, the number of ``seeds``
    and on how many of them the target was ``reached``, and how many runs were ``lost``. A run that missed the target
    or was lost has an infinite cost.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per run, with columns for the status and for all costs to the target.
    keys : list of str, or Series
        What the runs of a group have in common.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"status": ["converged"] * 3, **{cost: [3.0, None, 1.0] for cost in TO_TARGET}})
    >>> medians(runs, pd.Series(["a", "b", "a"]))[["rounds_to_target", "rounds_to_target_high", "reached", "seeds"]]
       rounds_to_target  rounds_to_target_high  reached  seeds
    a               2.0                    3.0        2      2
    b               inf                    inf        0      1
    """
    import pandas as pd

    lost = table["status"].isin(LOST)
    costs = table[list(TO_TARGET)].astype(float).mask(lost).fillna(np.inf)
    by = [table[key] for key in keys] if isinstance(keys, list) else keys
    over = costs.groupby(by, sort=False)
    found = pd.concat([over.median(), over.min().add_suffix("_low"), over.max().add_suffix("_high")], axis=1)
    reached = np.isfinite(costs["rounds_to_target"]).groupby(by, sort=False).sum()
    return found.assign(reached=reached, seeds=over.size(), lost=lost.groupby(by, sort=False).sum())


def ranked(table: "pd.DataFrame", keys: Sequence[Any], by: str) -> "pd.DataFrame":
    """Return one row per group of finished members of a sweep, best first; see `adom.Sweep.ranking`.

    Parameters
    ----------
    table : pandas.DataFrame
        `adom.Sweep.table`.
    keys : sequence
        Columns, with a value for every row of the table, whose values define the groups.
    by : str
        The column of costs to rank by.
    """
    import pandas as pd

    texts = pd.Series([repr(each) for each in zip(*keys, strict=True)], index=table.index)
    judged = table[table["status"] != "interrupted"]
    key = texts[judged.index]
    firsts = key[judged["status"] != "refused"].drop_duplicates()
    rows, over, found = judged.loc[firsts.index].set_index(firsts), judged.groupby(key), medians(judged, key)
    for name in map(str, judged.select_dtypes("number")):
        if name not in (*PLACES, *TO_TARGET) and (over[name].nunique() > 1).any():
            rows[name] = over[name].median()
    rows = rows.drop(columns=list(TO_TARGET)).join(found.replace(np.inf, np.nan))
    rows = rows[[*table.columns, *map(str, found.columns.difference(table.columns, sort=False))]]
    rows["seed"] = rows["seed"].mask(over["seed"].nunique() > 1)
    rows["status"] = over["status"].agg(_statuses)
    finite = judged["relative_error"].where(judged["status"] != "diverged", np.inf)
    order = {"mostly lost": rows["lost"] > 0.5 * rows["seeds"], "last error": finite.groupby(key).median()}
    best_first = rows.assign(**order).sort_values(["mostly lost", by, "last error", "member"])
    return best_first.drop(columns=["lost", *order]).reset_index(drop=True)


def _statuses(statuses: "pd.Series") -> str:
    """Return the status of all members, or how many have each if they differ.

    Examples
    --------
    >>> import pandas as pd
    >>> _statuses(pd.Series(["converged"] * 3)), _statuses(pd.Series(["growing", "converged", "converged"]))
    ('converged', '2 converged, 1 growing')
    """
    counts = statuses.value_counts()
    return ", ".join(f"{count} {status}" for status, count in counts.items()) if len(counts) > 1 else statuses.iloc[0]
