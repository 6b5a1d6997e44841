"""Rank tables and performance profiles, against tables small enough to work out by hand."""

import numpy as np
import pandas as pd
import pytest

from adom.errors import InputError
from adom.plot.medians import profile_figure
from adom.study.profiles import costs_by_instance, performance_profile, rank_table

NONE = float("nan")
COSTS = {  # instance -> rounds of a, b, c
    ("p", "ring", 0): (10, 20, 40),
    ("p", "ring", 1): (10, 10, NONE),
    ("q", "ring", 0): (30, 15, NONE),
    ("q", "star", 0): (NONE, NONE, NONE),
}


def long_table(costs=COSTS, **changes):
    rows = [
        {"problem": p, "network": n, "seed": s, "method": method, "status": "max_rounds", "rounds_to_target": cost}
        for (p, n, s), several in costs.items()
        for method, cost in zip("abc", several, strict=True)
    ]
    return pd.DataFrame(rows).assign(**changes)


def test_the_profile_is_the_share_within_each_ratio():
    profile = performance_profile(long_table())
    assert profile.index.tolist() == [1.0, 2.0, 4.0]
    assert profile["a"].tolist() == [0.5, 0.75, 0.75]  # best twice, once twice as dear, once not at all
    assert profile["b"].tolist() == [0.5, 0.75, 0.75]
    assert profile["c"].tolist() == [0.0, 0.0, 0.25]


def test_profiles_of_random_costs_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    costs = {("p", "n", seed): rng.lognormal(3, 1, 3) for seed in range(30)}
    profile = performance_profile(long_table(costs))
    values = np.array(list(costs.values()))
    for ratio in (1.0, 1.3, 2.0, 7.0):
        at = profile[profile.index <= ratio].iloc[-1]
        by_hand = [np.mean([row[m] <= ratio * row.min() for row in values]) for m in range(3)]
        assert at.tolist() == pytest.approx(by_hand, abs=1e-12)
    assert (profile.diff().dropna() >= 0).all().all()


def test_ranks_share_ties_and_failures():
    ranks = rank_table(long_table()).set_index("method")
    # ranks of a, b, c by instance: 1 2 3; 1.5 1.5 3; 2 1 3; 2 2 2
    assert ranks["mean_rank"].to_dict() == {"a": 6.5 / 4, "b": 6.5 / 4, "c": 11 / 4}
    assert ranks["first"].to_dict() == {"a": 2, "b": 2, "c": 0}
    assert ranks["reached"].to_dict() == {"a": 3, "b": 3, "c": 1}
    assert set(ranks["instances"]) == {4}
    assert ranks["median"].to_dict() == {"a": 20.0, "b": 17.5, "c": np.inf}
    plain = rank_table(long_table({("p", "n", 0): (1, 2, 3), ("p", "n", 1): (3, 2, 1)})).set_index("method")
    assert plain["median"].to_dict() == {"a": 2.0, "b": 2.0, "c": 2.0}


def test_what_went_the_wrong_way_and_what_is_missing_failed():
    table = long_table()
    table.loc[0, "status"] = "growing"  # a on the first instance, which met the target on its way
    assert costs_by_instance(table)["a"].tolist() == [np.inf, 10, 30, np.inf]
    assert costs_by_instance(table.drop(index=4))["b"].tolist() == [20, np.inf, 15, np.inf]
    assert list(costs_by_instance(table)) == ["a", "b", "c"]
    alone = costs_by_instance(table[["method", "status", "rounds_to_target"]].head(3))
    assert alone.shape == (1, 3)


def test_at_no_cost_only_those_that_took_none_are_the_best():
    table = long_table({("p", "n", 0): (0, 20, NONE), ("p", "n", 1): (30, 10, NONE), ("p", "n", 2): (0, 0, 5)})
    profile = performance_profile(table)
    assert profile.index.tolist() == [1.0, 3.0]
    assert profile["a"].tolist() == [2 / 3, 1.0]
    assert profile["b"].tolist() == [2 / 3, 2 / 3]  # 20 is no multiple of 0
    assert profile["c"].tolist() == [0.0, 0.0]
    ranks = rank_table(table).set_index("method")
    assert ranks["first"].to_dict() == {"a": 2, "b": 2, "c": 0}
    assert ranks["over_best"].to_dict() == {"a": 1.0, "b": 1.0, "c": np.inf}


def test_tables_that_cannot_be_read_are_refused():
    table = long_table()
    with pytest.raises(InputError, match="no column 'gradients_to_target'; it has problem, network, seed"):
        rank_table(table, "gradients_to_target")
    with pytest.raises(InputError, match="'a' has two runs on problem p, network ring, seed 0; keep one"):
        performance_profile(pd.concat([table, table.head(1)]))
    with pytest.raises(InputError, match="is empty"):
        rank_table(table.head(0))


def test_the_figure_draws_what_the_profile_says():
    profile = performance_profile(long_table())
    figure = profile_figure(profile)
    (axes,) = figure.axes
    for line, name in zip(axes.lines, profile, strict=True):
        assert line.get_label() == name
        assert line.get_drawstyle() == "steps-post"
        assert line.get_ydata().tolist() == [*profile[name], profile[name].iloc[-1]]
    assert axes.get_xlim()[0] == 1.0
    again = figure.add_subplot()
    assert profile_figure(profile, ax=again) is figure
    assert len(again.lines) == 3
