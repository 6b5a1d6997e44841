"""Figures in the paper's arrangement."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

import adom
from adom.algorithms import METHODS
from adom.paper.figures import LETTERS, look, panel_grid, sample_network
from adom.paper.panels import FIGURES
from adom.plot.style import COLOURS
from adom.run.result import Result


def run(errors, status="max_rounds", every=10):
    rounds = every * np.arange(1, len(errors) + 1)
    history = pd.DataFrame({"round": rounds, "error": np.asarray(errors, dtype=float) * 2})
    return Result(np.zeros((1, 1)), history, status, {"start_error": 2.0})


def panel(row, column):
    return SimpleNamespace(row=row, column=column, title=f"{row}, {column}")


def test_panels_stand_at_their_places_and_empty_ones_say_why():
    runs = {("adom", ""): [run([1e-1, 1e-2])], ("apm", ""): [run([0.5, 0.1])]}
    shown = [(panel(0, 0), runs, ""), (panel(1, 1), {}, "a6a is not in the cache")]
    figure = panel_grid(shown, title="all", methods=["adom", "apm"])
    grid = np.reshape(figure.axes, (2, 2))
    assert grid[0, 0].get_title() == "0, 0"
    assert len(grid[0, 0].lines) == 2
    assert grid[0, 0].get_yscale() == "log"
    assert "a6a is not in" in grid[1, 1].texts[0].get_text().replace("\n", " ")
    assert not grid[0, 1].axison
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ADOM", "APM"]


def test_curves_are_medians_over_seeds_with_a_band_from_least_to_most():
    seeds = [run([1e-2, 1e-4]), run([1e-1, 1e-2]), run([1e-3, 1e-6])]
    (axes,) = panel_grid([(panel(0, 0), {("adom", ""): seeds}, "")], title="", methods=["adom"]).axes
    across, heights = axes.lines[0].get_data()
    np.testing.assert_allclose(heights[[0, -1]], [1.0, 1e-4])
    np.testing.assert_allclose(np.interp(10, across, np.log10(heights)), -2, atol=0.02)
    (band,) = axes.collections
    edge = band.get_paths()[0].vertices
    last = edge[np.isclose(edge[:, 0], 20)]
    np.testing.assert_allclose([last[:, 1].min(), last[:, 1].max()], [1e-6, 1e-2])


def test_a_method_that_diverged_ends_in_a_cross_where_it_grew_wild():
    wild = run([10.0, 1e3, 1e6, 1e13], "diverged")
    figure = panel_grid([(panel(0, 0), {("dnm", ""): [wild]}, "")], title="", methods=["dnm"])
    curve, cross = figure.axes[0].lines
    assert cross.get_marker() == "X"
    assert np.nanmax(curve.get_ydata()) <= 1e4
    assert "diverged" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_data_split_by_label_is_dashed():
    runs = {("adom", ""): [run([0.5])], ("adom", "split-label"): [run([0.6])]}
    figure = panel_grid([(panel(0, 0), runs, "")], title="", methods=["adom"])
    solid, dashed = figure.axes[0].lines
    assert (solid.get_linestyle(), dashed.get_linestyle()) == ("-", "--")
    assert solid.get_color() == dashed.get_color()
    assert figure.legends[0].get_texts()[-1].get_text() == "split by label"


def test_each_method_has_its_own_colour_and_marker():
    looks = [(look(name)["color"], look(name)["marker"]) for name in METHODS]
    assert [colour for colour, _ in looks[: len(COLOURS)]] == [*COLOURS]  # the paper's methods: no two of a colour
    assert len(set(looks)) == len(METHODS)


def test_a_sample_network_shows_rounds_and_arrows():
    figure = sample_network(adom.networks.geometric(20, 0.3, graphs=3, seed=0))
    assert [axes.get_title().split(":")[0] for axes in figure.axes] == ["round 0", "round 1", "round 2"]
    assert [len(axes.texts) for axes in figure.axes] == [0, 1, 1]


def test_a_long_title_is_broken_into_lines_where_there_is_one_panel():
    title = FIGURES["slow2"].caption + "\nparameters auto"
    page = panel_grid([(panel(0, 0), {}, "nothing was run")], title=title, methods=["adom"])
    text = page.get_suptitle()
    assert text.replace("\n", " ") == title.replace("\n", " ")
    assert max(map(len, text.split("\n"))) <= LETTERS * page.get_figwidth()
