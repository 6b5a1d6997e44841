"""Texts of figures find room: whatever names are given, none is cut off and none lies on another."""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from adom.plot.curves import convergence
from adom.plot.labels import fitted, inches_of
from adom.plot.medians import median_figure, profile_figure
from adom.plot.sweeps import sweep_figure
from support.drawn import legend, made, table

OURS = "Accelerated gradient tracking with multi-consensus (ours)"
NINETY = "a method with a label of ninety letters, which says all that there is to say about it, twice"
NAMES = (OURS, "ADOM", NINETY)
PROBLEMS = ("LogisticRegression", "a ridge with quite a long name, on shards", "softmax", "Quadratic")
NETWORKS = ("perfect", "8 bits", "contacts_of_the_whole_office_in_the_first_week_of_May_2020", "ring", "radio")


def box(text: Any, figure: Any) -> Any:
    return text.get_window_extent(figure.canvas.get_renderer())


def fits(figure: Any) -> None:
    """Hold that names of panels and entries of legends lie in the figure, and not on each other."""
    FigureCanvasAgg(figure).draw()
    titles = [axes.title for axes in figure.axes if axes.title.get_text()]
    entries = [
        text
        for one in (*figure.legends, *(axes.get_legend() for axes in figure.axes))
        if one
        for text in one.get_texts()
    ]
    below = [axes.xaxis.label for axes in figure.axes if axes.xaxis.label.get_text()]
    beside = [axes.yaxis.label for axes in figure.axes if axes.yaxis.label.get_text()]
    assert entries
    for text in (*titles, *entries, *below, *beside):
        inside = box(text, figure)
        assert -1 <= inside.x0 < inside.x1 <= figure.bbox.x1 + 1, text.get_text()
        assert -1 <= inside.y0 < inside.y1 <= figure.bbox.y1 + 1, text.get_text()
    for alike in (titles, entries, below, beside):
        for one, other in combinations(alike, 2):
            assert not box(one, figure).overlaps(box(other, figure)), (one.get_text(), other.get_text())


def over_seeds(problems: int, networks: int, style: str | None) -> Any:
    runs = [made([0.5, 0.1, 0.01]), made([0.6, 0.2, 0.03])]
    places = [(problem, network) for problem in PROBLEMS[:problems] for network in NETWORKS[:networks]]
    return median_figure({place: dict.fromkeys(NAMES, runs) for place in places}, style=style)


@pytest.mark.parametrize("style", [None, "column", "slide"])
@pytest.mark.parametrize(("problems", "networks"), [(1, 1), (1, 4), (1, 5), (4, 1), (2, 4), (4, 5)])
def test_panels_of_comparisons(problems: int, networks: int, style: str | None) -> None:
    fits(over_seeds(problems, networks, style))


def test_panels_of_many_problems_on_many_networks_are_in_line() -> None:
    figure = over_seeds(4, 5, None)
    assert len(figure.axes) == 20
    assert figure.axes[0].get_subplotspec().get_geometry()[:2] == (5, 4)
    assert figure.get_size_inches()[1] < 9.5  # a page
    assert [axes.get_title() for axes in figure.axes[:4]] == [
        PROBLEMS[0],
        "a ridge with quite a long\nname, on shards",
        *PROBLEMS[2:],
    ]
    assert [axes.get_ylabel().split("\n")[0] for axes in figure.axes[::4]][:2] == ["perfect", "8 bits"]


RUNS = [made([1.0, 0.1]), made([1.0, 0.2]), made([1.0, 0.3])]


@pytest.mark.parametrize("style", [None, "page", "slide"])
@pytest.mark.parametrize(
    "draw",
    [
        lambda style: convergence(RUNS, labels=NAMES, style=style),
        lambda style: convergence(RUNS, labels=NAMES, style=style, consensus=False, axis="all"),
        lambda style: profile_figure(_profile(NAMES), style=style),
        lambda style: profile_figure(_profile([*NAMES, *"abcdefghi"]), style=style),
        lambda style: sweep_figure(_swept("factor_a", [0.5, 1.0, 2.0]), "factor_a", style=style),
        lambda style: sweep_figure(_swept("oracle", ["gd:1", OURS, NINETY]), "oracle", style=style),
        lambda style: sweep_figure(_swept("factor_a", [0.5, 1.0, 2.0]), "factor_a", "factor_b", style=style),
    ],
    ids=["curves", "axes", "profile", "profile of many", "sweep", "names", "maps"],
)
def test_legends_and_titles(draw: Any, style: str | None) -> None:
    fits(draw(style))


def _profile(names: Any) -> pd.DataFrame:
    return pd.DataFrame({name: [0.5, 1.0] for name in names}, index=[1.0, 2.0])


def _swept(column: str, values: list[Any]) -> pd.DataFrame:
    parts = [
        table(label=[name] * 3, **{column: values}, factor_b=values, rounds_to_target=[600 + number, 20_000, np.nan])
        for number, name in enumerate(NAMES)
    ]
    return pd.concat(parts).assign(setting=range(9))


def test_no_two_names_look_alike_where_they_differ_at_their_ends() -> None:
    alike = [f"{NINETY} {NINETY} {NINETY}, eta = {eta}" for eta in (0.1, 0.2)]
    assert len(set(legend(profile_figure(_profile(alike))))) == 2
    for inches in (0.3, 1.0, 3.0):
        lines = fitted(NINETY, inches, 8)
        assert len(lines) <= 4
        assert max(inches_of(line, 8) for line in lines) <= inches


def test_ratios_below_three_have_ticks_between() -> None:
    axes = profile_figure(_profile(["a", "b"]).set_axis([1.0, 2.2])).axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "1.2", "1.4", "1.6", "1.8", "2", "2.2", "2.4"]
