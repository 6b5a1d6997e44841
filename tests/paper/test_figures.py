"""Figures in the paper's arrangement."""

from types import SimpleNamespace

import numpy as np
import pytest

import adom
from adom.algorithms import METHODS
from adom.paper.evidence import table_of_runs
from adom.paper.figures import LETTERS, draw, look, panel_grid, pictures, rates_figure, sample_network
from adom.paper.panels import FIGURES
from adom.plot.style import COLOURS
from support.drawn import made as drawn
from support.made import absent, four, linear, saved, seeds
from support.made import panel as place


def run(errors, status="max_rounds"):
    return drawn(errors, status=status, step=10)


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


def test_one_panel_of_a_figure_fills_it():
    runs = {("adom", ""): [run([1e-1, 1e-2])]}
    (axes,) = panel_grid([(panel(3, 2), runs, "")], title="", methods=["adom"]).axes
    assert axes.get_title() == "3, 2"


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


def test_a_curve_does_not_jump_where_a_seed_ends():
    seeds_of = [run([1e-3, 1e-6], "converged"), run([1e-2, 1e-4, 1e-6], "converged"), run([1e-1, 1e-2, 1e-3, 1e-4])]
    (axes,) = panel_grid([(panel(0, 0), {("adom", ""): seeds_of}, "")], title="", methods=["adom"]).axes
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [1, 1e-2, 1e-4, 1e-6, 1e-6])


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


def test_without_runs_there_is_no_picture_and_an_old_one_goes(tmp_path):
    nothing = absent(place("real_kappa", "a6a-kappa10", data="a6a"), "adom", "a6a is not there")
    folder = saved([*four(place(), 200, 400, 900, 900), nothing], tmp_path)
    old = folder / "figures" / "real_kappa-unit.png"
    old.parent.mkdir()
    old.touch()
    for figure in ("kappa", "real_kappa"):
        draw((figure, "unit"), folder)
    assert [path.name for path in pictures(folder, "kappa", "unit")] == ["kappa-unit.png", "kappa-unit.pdf"]
    assert not pictures(folder, "real_kappa", "unit")
    assert not old.exists()


def growing(method, over_kappa, over_chi):
    """Rounds like a power of kappa and of chi, times log(kappa) for Mudag, which differ from seed to seed."""
    found = []
    for name, power in {"kappa": over_kappa, "chi": over_chi}.items():
        for value in (10.0, 20.0, 40.0):
            one = place("rates", f"{name}{value:g}", **{name: value})
            log = np.log(one.settings["kappa"]) if method == "mudag" else 1.0
            curves = [linear(10 * log * factor * value**power) for factor in (1.0, 1.1, 1.2)]
            found += seeds(one, method, *curves, budget=10**4)
    return found


def test_rates_are_lines_on_logarithmic_axes_with_their_exponents():
    slow = [
        run
        for value in (10.0, 20.0, 40.0)
        for run in seeds(place("rates", f"kappa{value:g}", kappa=value), "panda", 1e7)
    ]
    runs = table_of_runs([*growing("adom", 0.5, 1.0), *growing("mudag", 0.4, 1.0), *slow])
    figure = rates_figure(runs, "unit", title="rates")
    kappa, chi = figure.axes
    assert [axes.get_xscale() + axes.get_yscale() for axes in (kappa, chi)] == ["loglog"] * 2
    adom, mudag, panda = [text.get_text() for text in kappa.get_legend().get_texts()]
    assert adom.startswith("ADOM: $\\kappa^{0.50}$ [0.")
    assert adom.endswith("], Table 1: 0.5")
    assert mudag.startswith("Mudag: $\\kappa^{0.40}\\,\\log\\kappa$ [0.")
    assert panda == "PANDA: not fitted, 9 runs miss 1e-04"
    _, steady = [text.get_text() for text in chi.get_legend().get_texts()]
    assert steady.startswith("Mudag: $\\chi^{1.00}$ [")  # log(kappa) is the same throughout
    points, fit = kappa.lines[:2]
    assert len(points.get_xdata()) == 9
    middle = np.exp(np.mean(np.log(np.reshape(points.get_ydata(), (3, 3))), axis=1))
    np.testing.assert_allclose(np.interp([10, 20, 40], *fit.get_data()), middle, rtol=0.03)
    bent = kappa.lines[4]  # Mudag's: steeper than its exponent alone
    low, high = bent.get_ydata()[[0, -1]]
    assert high / low == pytest.approx(4**0.4 * np.log(40) / np.log(10), rel=0.03)


def test_rates_of_too_few_panels_are_curves(tmp_path):
    runs = seeds(place("rates", "kappa10", kappa=10.0), "adom", 200)
    assert rates_figure(table_of_runs(runs), "unit", title="") is None
    draw(("rates", "unit"), saved(runs, tmp_path))
    assert len(pictures(tmp_path, "rates", "unit")) == 2


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
