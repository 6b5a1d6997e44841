"""A picture of a sweep shows what its table says."""

import numpy as np
import pandas as pd
import pytest

from adom.errors import InputError
from adom.plot.style import save
from adom.plot.sweeps import sweep_figure
from support.drawn import legend, table


def test_curves_show_the_setting_that_is_best_by_its_median_over_seeds():
    # Two settings of tau at each of two etas, on three seeds; at the larger eta one seed misses the target. The least
    # of all, 5, is a lucky draw of a setting that is worse in the middle.
    rows = [(eta, tau, seed) for eta in (0.5, 4.0) for tau in (1, 2) for seed in (0, 1, 2)]
    rounds = [30, 20, 10, 33, 5, 40, 7, 9, np.nan, 8, 6, np.nan]
    eta, tau, seed = zip(*rows, strict=True)
    given = table(factor_eta=eta, setting=tau, seed=seed, rounds_to_target=rounds, protocol=["unit"] * len(eta))
    figure = sweep_figure(given, "factor_eta")
    line = figure.axes[0].lines[0]
    assert line.get_xdata().tolist() == [0.5, 4.0]
    assert line.get_ydata().tolist() == [20.0, 8.0]  # medians of (30, 20, 10) and of (8, 6, never)
    (band,) = figure.axes[0].collections
    corners = band.get_paths()[0].vertices
    assert {10.0, 30.0} <= set(corners[corners[:, 0] == 0.5, 1])  # the least and the greatest
    assert figure.axes[0].get_xlabel() == "eta, as a multiple of unit's"
    several = given.assign(protocol=["unit", "theory"] * (len(eta) // 2))
    assert sweep_figure(several, "factor_eta").axes[0].get_xlabel() == "eta, as a multiple of its base's"
    assert (figure.axes[0].get_xscale(), figure.axes[0].get_yscale()) == ("log", "log")


def test_a_single_place_shows_its_range_too():
    given = table(factor_eta=[0.5] * 3 + [4.0], setting=[1, 1, 1, 2], rounds_to_target=[10, 20, 30, np.nan])
    (range_,) = sweep_figure(given, "factor_eta").axes[0].collections
    assert [[0.5, 10.0], [0.5, 30.0]] in [segment.tolist() for segment in range_.get_segments()]


def test_what_never_reached_the_target_is_a_cross():
    given = table(kappa=[10.0, 12.0], rounds_to_target=[5, np.nan])
    axes = sweep_figure(given, "kappa").axes[0]
    crosses = next(line for line in axes.lines if line.get_marker() == "x")
    assert crosses.get_xdata().tolist() == [12.0]
    assert axes.get_xscale() == "linear"
    words = [text.get_text() for text in sweep_figure(given, "kappa").legends[0].get_texts()]
    assert words == ["target not reached"]


def test_values_are_labelled_where_there_is_room_and_names_stand_side_by_side():
    wide = sweep_figure(table(eta=[0.5, 1.0, 4.0], rounds_to_target=[1, 2, 3]), "eta").axes[0]
    assert [text.get_text() for text in wide.get_xticklabels()] == ["0.5", "1", "4"]
    near = sweep_figure(table(eta=[1.0, 1.01, 100.0], rounds_to_target=[1, 2, 3]), "eta").axes[0]
    assert len(near.get_xticks()) != 3
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
    cross, star = panels[0].lines
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (1, 1)
    assert (cross.get_xdata().tolist(), cross.get_ydata().tolist()) == ([2], [1])
    assert legend(figure) == ["the least", "target not reached"]
    assert save(figure, tmp_path / "map.png").exists()


def test_crosses_of_different_methods_do_not_hide_each_other():
    given = table(label=["a", "a", "b", "b", "c", "c"], eta=[1.0, 2.0] * 3, rounds_to_target=[5, np.nan] * 2 + [5, 6])
    figure = sweep_figure(given, "eta")
    figure.draw_without_rendering()
    crosses = [line for line in figure.axes[0].lines if line.get_marker() == "x"]
    assert len({line.get_color() for line in crosses}) == 2
    heights = sorted(line.get_transform().transform((2.0, 1.0))[1] / figure.dpi for line in crosses)
    assert heights[1] - heights[0] > 5 / 72  # the size of a cross
    assert heights[0] > figure.axes[0].get_window_extent().y1 / figure.dpi


@pytest.mark.parametrize("columns", [["eta"], ["eta", "tau"]])
def test_where_no_setting_reached_the_target_the_figure_says_so_and_has_no_scale(columns, tmp_path):
    given = table(eta=[1.0, 2.0], tau=[1.0, 2.0], rounds_to_target=[np.nan, np.nan])
    figure = sweep_figure(given, *columns)
    (axes,) = figure.axes  # without a bar of colours
    assert [" ".join(text.get_text().split()) for text in axes.texts] == ["no setting reached the target"]
    assert columns == ["eta", "tau"] or len(axes.get_yticks()) == 0
    assert save(figure, tmp_path / "figure.png").stat().st_size > 1000


def test_a_map_tells_what_missed_the_target_from_what_was_not_run():
    given = table(eta=[1.0, 2.0, 1.0], tau=[1.0, 1.0, 2.0], rounds_to_target=[5, np.nan, 6])
    figure = sweep_figure(given, "eta", "tau")
    assert legend(figure) == ["the least", "target not reached", "not run"]
    assert figure.axes[0].lines[0].get_xdata().tolist() == [1]


def test_all_axes_write_numbers_in_one_way():
    kappas = [10.0, 300.0, 1e3, 2e4]
    axes = sweep_figure(table(kappa=kappas, rounds_to_target=[620, 1000, 4000, 15_000]), "kappa").axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["10", "300", "1k", "20k"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["1k", "2k", "5k", "10k"]
    assert not [text for text in axes.get_yticklabels(minor=True) if text.get_text()]
    figure = sweep_figure(
        table(kappa=kappas, eta=[0.1, 0.3, 1.0, 3.0], rounds_to_target=[620, 640, 650, 690]), "kappa", "eta"
    )
    panel, bar = figure.axes
    assert [text.get_text() for text in bar.get_yticklabels()] == ["620", "640", "660", "680"]
    assert {text.get_rotation() for text in panel.get_xticklabels()} == {0.0}


@pytest.mark.parametrize(
    ("columns", "value", "message"),
    [
        (["eta"], "error", "value must be one of rounds_to_target"),
        (["beta"], "rounds_to_target", "no column 'beta'"),
        (["eta", "eta"], "rounds_to_target", "x and y must be different"),
        (["empty"], "rounds_to_target", "no member of the sweep has a value"),
    ],
)
def test_refusals(columns, value, message):
    with pytest.raises(InputError, match=message):
        sweep_figure(table(eta=[1.0, 2.0], empty=[np.nan] * 2, rounds_to_target=[1, 2]), *columns, value=value)
