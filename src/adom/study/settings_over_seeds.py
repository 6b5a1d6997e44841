"""Combine members of a sweep that differ only in the seed: one row per setting, with medians over the seeds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.endings import LOST
from ..util.columns import TO_TARGET

if TYPE_CHECKING:
    import pandas as pd

PLACES = ("member", "network", "seed")
"""Columns of numbers for which a median has no meaning."""


def over_seeds(table: "pd.DataFrame", keys: Sequence[Any], by: str) -> "pd.DataFrame":
    """Return one row per group of finished members with the same keys, best first; see `adom.Sweep.ranking`.

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

    costs = list(TO_TARGET)
    judged = table[table["status"] != "interrupted"]
    lost = judged["status"].isin(LOST)
    judged = judged.assign(**{cost: judged[cost].mask(lost).fillna(np.inf) for cost in costs})
    key = pd.Series([repr(each) for each in zip(*keys, strict=True)], index=table.index)[judged.index]
    over = judged.groupby(key)
    rows = judged.assign(seeds=over["member"].transform("size"))
    for name in [str(name) for name in judged.select_dtypes("number") if name not in PLACES]:
        if (over[name].nunique() > 1).any():  # leave columns as they are in which no seed differs
            rows[name] = over[name].transform("median")
    rows["seed"] = rows["seed"].mask(over["seed"].transform("nunique") > 1)
    rows["status"] = over["status"].transform(_statuses)
    rows["reached"] = np.isfinite(judged[by]).groupby(key).transform("sum")
    for cost in costs:
        rows[f"{cost}_low"], rows[f"{cost}_high"] = over[cost].transform("min"), over[cost].transform("max")
    ends = [*costs, *(f"{cost}_{end}" for cost in costs for end in ("low", "high"))]
    rows[ends] = rows[ends].replace(np.inf, np.nan)
    rows["_lost"] = lost.groupby(key).transform("mean") > 0.5
    finite = judged["relative_error"].where(judged["status"] != "diverged", np.inf)
    rows["_last"] = finite.groupby(key).transform("median")
    firsts = key[judged["status"] != "refused"].drop_duplicates().index
    return rows.loc[firsts].sort_values(["_lost", by, "_last", "member"]).drop(columns=["_lost", "_last"])


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
