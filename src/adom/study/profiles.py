"""Rank tables and performance profiles of methods over many problems, networks and seeds.

They read a long table: one row for each run, with the columns

- ``problem``, ``network``, ``seed``: what was solved; those that are missing are the same for all runs;
- ``method``: who solved it;
- a cost such as ``rounds_to_target``, NaN where the target was not reached;
- ``status``: a run that diverged, or was growing when its rounds were spent, counts as one that failed, even if it met
  the target on its way.

An instance is one combination of problem, network and seed. A method without a row for an instance failed on it.
"""

from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..run.endings import LOST

if TYPE_CHECKING:
    import pandas as pd

INSTANCE = ("problem", "network", "seed")
"""Columns that say what a run solved."""
COST = "rounds_to_target"
"""The cost by which methods are compared unless another is asked for."""


def costs_by_instance(table: "pd.DataFrame", cost: str = COST) -> "pd.DataFrame":
    """Return the cost of every method on every instance: a row for each instance, a column for each method.

    It is infinite where a method failed.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"seed": [0, 0, 1], "method": ["a", "b", "a"], "rounds_to_target": [10, float("nan"), 30]})
    >>> costs_by_instance(runs.assign(status="max_rounds")).values.tolist()
    [[10.0, inf], [30.0, inf]]
    """
    for name in ("method", "status", cost):
        if name not in table:
            raise InputError(
                f"the table of runs has no column {name!r}; it has {', '.join(map(str, table.columns))}, and needs "
                f"method, status, {cost} and some of {', '.join(INSTANCE)}"
            )
    keys = [name for name in INSTANCE if name in table]
    twice = table.duplicated([*keys, "method"])
    if twice.any():
        row = table[twice].iloc[0]
        where = ", ".join(f"{name} {row[name]}" for name in keys) or "the only instance"
        raise InputError(f"{row['method']!r} has two runs on {where}; keep one, or tell them apart by a seed")
    if table.empty:
        raise InputError("the table of runs is empty; give one run at least")
    known = table.assign(**{cost: table[cost].where(~table["status"].isin(LOST)).astype(float).fillna(np.inf)})
    keyed = known.assign(**{} if keys else {"seed": 0}).set_index([*(keys or ["seed"]), "method"])[cost]
    wide = keyed.unstack("method").fillna(np.inf)
    return wide[list(dict.fromkeys(table["method"]))]


def ratios_to_best(table: "pd.DataFrame", cost: str = COST) -> "pd.DataFrame":
    """Return `costs_by_instance` over the least cost of each instance; infinite where a method, or all, failed.

    Where the best solved an instance at no cost, all others count as an infinite multiple of it.
    """
    costs = costs_by_instance(table, cost)
    ratios = costs.div(costs.min(axis=1), axis=0)
    return ratios.mask(costs == 0, 1.0).fillna(np.inf)  # 0 / 0 is the best, inf / inf where all failed


def rank_table(table: "pd.DataFrame", cost: str = COST) -> "pd.DataFrame":
    """Return how methods rank over all instances, best first.

    Parameters
    ----------
    table : pandas.DataFrame
        One row for each run; see the top of this module.
    cost : str
        Column of costs, NaN where the target was not reached.

    Returns
    -------
    pandas.DataFrame
        One row a method, with the columns

        - ``mean_rank``: 1 is best; methods that tie share the mean of their ranks, and so do those that failed;
        - ``first``: instances on which no other was cheaper;
        - ``reached``, ``instances``: those that it solved, and all;
        - ``median``: its cost in the middle, infinite where it failed on half of them or more;
        - ``over_best``: in the middle, its cost over that of the best method.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"problem": ["p", "p", "q", "q"], "method": ["a", "b"] * 2, "status": "converged"})
    >>> ranks = rank_table(runs.assign(rounds_to_target=[10, 20, 30, float("nan")]))
    >>> ranks["mean_rank"].tolist(), ranks["first"].tolist(), ranks["reached"].tolist()
    ([1.0, 2.0], [2, 0], [2, 1])
    """
    import pandas as pd

    costs, ratios = costs_by_instance(table, cost), ratios_to_best(table, cost)
    ranks = costs.rank(axis=1, method="average")
    solved = np.isfinite(costs)
    found = pd.DataFrame(
        {
            "mean_rank": ranks.mean(),
            "first": ((ratios == 1.0) & solved).sum(),
            "reached": solved.sum(),
            "instances": len(costs),
            "median": np.median(costs, axis=0),
            "over_best": np.median(ratios, axis=0),
        }
    )
    return found.sort_values(["mean_rank", "over_best"], kind="stable").rename_axis("method").reset_index()


def performance_profile(table: "pd.DataFrame", cost: str = COST) -> "pd.DataFrame":
    """Return the share of instances that each method solves at no more than so many times the least cost.

    This is the profile of Dolan and More (2002, arXiv:cs/0102001): at ratio 1, how often a method is the best; at the
    last ratio, how often it solves the instance at all. An instance that none solves counts in all shares.

    Parameters
    ----------
    table, cost
        As for `rank_table`.

    Returns
    -------
    pandas.DataFrame
        Indexed by ratio, from 1 on, one column a method: the value from this ratio up to the next.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"problem": ["p", "p", "q", "q"], "method": ["a", "b"] * 2, "status": "converged"})
    >>> performance_profile(runs.assign(rounds_to_target=[10, 20, 30, float("nan")])).to_dict()
    {'a': {1.0: 1.0, 2.0: 1.0}, 'b': {1.0: 0.0, 2.0: 0.5}}
    """
    import pandas as pd

    ratios = ratios_to_best(table, cost)
    values = ratios.to_numpy()
    steps = np.unique(np.append(values[np.isfinite(values)], 1.0))
    shares = (values[None, :, :] <= steps[:, None, None]).mean(axis=1)
    return pd.DataFrame(shares, index=pd.Index(steps, name="ratio"), columns=ratios.columns)
