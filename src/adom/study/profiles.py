"""Rank tables and performance profiles of methods over many problems, networks and seeds.

They take a long table with one row per run and the columns

- ``problem``, ``network``, ``seed``: what was solved; a missing column is the same for all runs;
- ``method``: which method solved it;
- a cost such as ``rounds_to_target``, NaN if the target was not reached;
- ``status``: a run that diverged, or was growing when its rounds were spent, counts as failed, even if it met the
  target on its way.

An instance is one combination of problem, network and seed. A method without a row for an instance failed on it.
"""

from typing import TYPE_CHECKING

import numpy as np

from ..dynamics.endings import LOST
from ..errors import InputError

if TYPE_CHECKING:
    import pandas as pd

INSTANCE = ("problem", "network", "seed")
"""Columns that say what a run solved."""
COST = "rounds_to_target"
"""The default cost by which methods are compared."""


def costs_by_instance(table: "pd.DataFrame", cost: str = COST) -> "pd.DataFrame":
    """Return the cost of every method on every instance: one row per instance, one column per method.

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
        raise InputError("the table of runs is empty; give at least one run")
    known = table.assign(**{cost: table[cost].where(~table["status"].isin(LOST)).astype(float).fillna(np.inf)})
    keyed = known.assign(**{} if keys else {"seed": 0}).set_index([*(keys or ["seed"]), "method"])[cost]
    wide = keyed.unstack("method").fillna(np.inf)
    return wide[list(dict.fromkeys(table["method"]))]


def ratios_to_best(table: "pd.DataFrame", cost: str = COST) -> "pd.DataFrame":
    """Return `costs_by_instance` divided by the least cost of each instance; infinite where a method failed.

    If the best method solved an instance at no cost, the ratio is infinite for all that had a cost.
    """
    costs = costs_by_instance(table, cost)
    ratios = costs.div(costs.min(axis=1), axis=0)
    return ratios.mask(costs == 0, 1.0).fillna(np.inf)  # 0 / 0: the best; inf / inf: all failed


def rank_table(table: "pd.DataFrame", cost: str = COST) -> "pd.DataFrame":
    """Return how methods rank over all instances, best first.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per run; see the top of this module.
    cost : str
        Column of costs, NaN if the target was not reached.

    Returns
    -------
    pandas.DataFrame
        One row per method, with the columns

        - ``mean_rank``: 1 is best; methods that tie share the mean of their ranks, and so do those that failed;
        - ``first``: number of instances that it solved and no other method solved at a lower cost;
        - ``reached``, ``instances``: number of instances that it solved, and of all instances;
        - ``median``: its median cost, infinite if it failed on half of the instances or more;
        - ``over_best``: the median ratio of its cost to that of the best method.

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
    """Return the share of instances that each method solves within each ratio of its cost to the least cost.

    This is the profile of Dolan and More (2002, arXiv:cs/0102001): at ratio 1, how often a method is the best; at the
    last ratio, how often it solves the instance at all. The shares are of all instances, including unsolved ones.

    Parameters
    ----------
    table, cost
        As for `rank_table`.

    Returns
    -------
    pandas.DataFrame
        Indexed by ratio, from 1 on, with one column per method. A value holds from its ratio up to the next.

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
