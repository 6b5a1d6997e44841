"""A picture of a sweep shows what its table says."""

import numpy as np
import pandas as pd
import pytest

from adom.errors import InputError
from adom.plot.style import save
from adom.plot.sweeps import sweep_figure
from support.drawn import table


def test_curves_show_the_best_of_the_rest_and_the_median_over_seeds():
    # Two settings of tau at each of two etas, on three seeds; at the larger eta one seed misses the target.
    rows = [(eta, tau, seed) for eta in (0.5, 4.0) for tau in (1, 2) for seed in (0, 1, 2)]
    rounds = [30, 20, 10, 33, 5, 40, 7, 9, np.nan, 8, 6, np.nan]
    eta, tau, seed = zip(*rows, strict=True)
    figure = sweep_figure(table(factor_eta=eta, factor_tau=tau, seed=seed, rounds_to_target=rounds), "factor_eta")
    line = figure.axes[0].lines[0]
    assert line.get_xdata().tolist() == [0.5, 4.0]
    assert line.get_ydata().tolist() == [10.0, 7.0]  # medians of (30, 5, 10) and of (7, 6, never)
    assert figure.axes[0].get_xlabel() == "eta / its base"
    assert (figure.axes[0].get_xscale(), figure.axes[0].get_yscale()) == ("log", "log")


def test_what_never_reached_the_target_is_a_cross():
    given = table(kappa=[10.0, 12.0], rounds_to_target=[5, np.nan])
    axes = sweep_figure(given, "kappa").axes[0]
    crosses = next(line for line in axes.lines if line.get_marker() == "x")
    assert crosses.get_xdata().tolist() == [12.0]
    assert axes.get_xscale() == "linear"
    words = [text.get_text() for text in sweep_figure(given, "kappa").legends[0].get_texts()]
    assert words == ["target not reached"]


def test_names_stand_side_by_side():
    axes = sweep_figure(table(oracle=["gd:1", "exact"], rounds_to_target=[50, 5]), "oracle").axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["gd:1", "exact"]
    assert axes.lines[0].get_ydata().tolist() == [50, 5]


@pytest.mark.parametrize("labels", [1, 2, 4])
def test_maps_have_a_panel_for_each_method_and_mark_the_best(labels, tmp_path):
    parts = []
    for number in range(labels):
        cells = [(x, y) for x in (1.0, 2.0, 3.0) for y in (0.1, 0.2)]
        x, y = zip(*cells, strict=True)
        rounds = [9.0, 8, 7, 3, 5, np.nan]
        parts.append(table(label=[f"m{number}"] * 6, eta=x, tau=y, rounds_to_target=rounds))
    figure = sweep_figure(pd.concat(parts), "eta", "tau")
    panels = [axes for axes in figure.axes if axes.images]
    assert len(panels) == labels
    np.testing.assert_array_equal(panels[0].images[0].get_array().filled(np.nan), [[9, 7, 5], [8, 3, np.nan]])
    star = panels[0].lines[0]
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (1, 1)
    assert save(figure, tmp_path / "map.png").exists()


def test_nothing_reached_at_all_can_be_drawn(tmp_path):
    given = table(eta=[1.0, 2.0], tau=[1.0, 2.0], rounds_to_target=[np.nan, np.nan])
    save(sweep_figure(given, "eta"), tmp_path / "curves.png")
    save(sweep_figure(given, "eta", "tau"), tmp_path / "map.png")


def test_refusals():
    given = table(eta=[1.0, 2.0], rounds_to_target=[1, 2])
    with pytest.raises(InputError, match="value must be one of rounds_to_target"):
        sweep_figure(given, "eta", value="error")
    with pytest.raises(InputError, match="no column 'beta'"):
        sweep_figure(given, "beta")
    with pytest.raises(InputError, match="x and y must be different"):
        sweep_figure(given, "eta", "eta")
    with pytest.raises(InputError, match="no member of the sweep has a value"):
        sweep_figure(given.assign(eta=np.nan), "eta")
