"""Figures: what is drawn is what the results say, whatever is in them."""

from collections.abc import Callable
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adom
from adom.errors import InputError
from adom.plot.curves import convergence
from adom.plot.medians import median_figure, mostly, profile_figure
from adom.plot.networks import network_picture
from adom.plot.style import save
from adom.plot.sweeps import sweep_figure
from adom.util.columns import AXES
from support.drawn import legend, made, table


@pytest.mark.parametrize(("axis", "step"), [("round", 1), ("gradients", 3), ("floats_sent", 1000), ("seconds", 0.1)])
def test_curves_are_the_columns(axis: str, step: float) -> None:
    figure = convergence([made([1.0, 0.1, 0.01], [0.5, 0.05, 0.005])], axis=axis)
    axes = figure.axes[0]
    error, consensus = axes.lines
    assert len(made([1.0, 0.5]).plot(axis=axis).axes[0].lines) == 2
    np.testing.assert_allclose(error.get_xdata(), step * np.arange(1, 4))
    np.testing.assert_allclose(error.get_ydata(), [1, 0.1, 0.01])
    np.testing.assert_allclose(consensus.get_ydata(), [0.5, 0.05, 0.005])
    assert error.get_linestyle() == "-"
    assert consensus.get_linestyle() == "--"
    assert consensus.get_linewidth() < error.get_linewidth()
    assert axes.get_yscale() == "log"
    assert axes.get_xlabel() == AXES[axis]
    assert "ADOM (unit, oracle gd:1)" in legend(figure)
    assert "diverged" not in legend(figure)


def test_runs_differ_in_colour_and_name() -> None:
    runs = [made([1.0, k + 1.0]) for k in range(10)] + [made([1.0, 1.0], protocol={"protocol": "unit", "eta": 0.5})]
    figure = convergence(runs)
    looks = {(line.get_color(), str(line.get_linestyle())) for line in figure.axes[0].lines[::2]}
    assert len(looks) == len(runs)
    names = legend(figure)[: len(runs)]
    assert len(set(names)) == len(runs)
    assert names[:10] == [f"ADOM (unit, oracle gd:1) #{k}" for k in range(1, 11)]
    assert names[-1] == "ADOM (unit with eta=0.5, oracle gd:1)"


def test_runs_of_a_comparison_are_told_apart_by_its_seeds() -> None:
    runs = [made([1.0, k], compare={"problem": "p", "network": "ring", "seed": k}) for k in (3, 4)]
    assert legend(convergence(runs))[:2] == ["ADOM (unit, oracle gd:1), seed 3", "ADOM (unit, oracle gd:1), seed 4"]
    there = made([1.0, 9.0], compare={"problem": "p", "network": "star", "seed": 4})
    names = legend(convergence([*runs, there], labels=["a"] * 3))
    assert names[:3] == ["a, p on ring, seed 3", "a, p on ring, seed 4", "a, p on star"]


def test_many_runs_without_consensus_differ_in_every_way() -> None:
    runs = [made([1.0, 10.0**-k], title=f"M{k}", oracle=None if k % 2 else "auto") for k in range(11)]
    labels = [f"method {k}" for k in range(11)]
    figure = convergence(runs, consensus=False, labels=labels)
    lines = figure.axes[0].lines
    assert len(lines) == 11
    for run, line in zip(runs, lines, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), run.history["error"])
    assert len({line.get_color() for line in lines}) == 11
    assert len({line.get_marker() for line in lines}) == 11
    styles = [line._dash_pattern for line in lines]  # what get_linestyle would call "--" is of several kinds
    assert all(one != next_ for one, next_ in pairwise(styles))
    assert len({line.get_zorder() for line in lines}) == len({str(style) for style in styles}) == 4
    assert legend(figure) == labels
    assert figure.legends[0].get_title().get_text() == "parameters unit, dual oracle auto"
    assert figure.axes[0].get_ylabel().startswith("squared distance to $x^*$")


def test_what_runs_do_not_share_stands_with_each() -> None:
    runs = [made([1.0]), made([1.0], protocol="theory", oracle=None), made([1.0], oracle="exact")]
    figure = convergence(runs, consensus=False, labels=["a", "b", "c"])
    assert legend(figure) == ["a (unit, oracle gd:1)", "b (theory)", "c (unit, oracle exact)"]
    assert figure.legends[0].get_title().get_text() == ""
    primal = convergence([made([1.0], oracle=None)], consensus=False, labels=["a"])
    assert primal.legends[0].get_title().get_text() == "parameters unit"
    assert legend(primal) == ["a"]


@pytest.mark.parametrize("axis", ["all", None])
def test_a_panel_for_every_cost(axis: str | None, tmp_path: Path) -> None:
    wild = made([2.0, 1e9], status="diverged")
    figure = convergence([made([1.0, 0.1, 0.01]), wild], axis=axis, consensus=False)
    assert [panel.get_xlabel() for panel in figure.axes] == list(AXES.values())
    for panel, column in zip(figure.axes, AXES, strict=True):
        np.testing.assert_allclose(panel.lines[0].get_xdata(), made([1.0] * 3).history[column])
        assert panel.get_xlim()[0] == 0
        assert sum(line.get_marker() == "X" for line in panel.lines) == 1
    assert len({panel.get_ylim() for panel in figure.axes}) == 1
    assert legend(figure)[-1] == "diverged"
    assert len(figure.legends) == 1
    assert save(figure, tmp_path / "all.png").stat().st_size > 5000


def test_curves_of_very_different_lengths_get_a_logarithmic_axis() -> None:
    long, short = made([1.0] * 100), made([1.0] * 3)
    assert convergence([long, short]).axes[0].get_xscale() == "log"
    assert convergence([long, made([1.0] * 4)]).axes[0].get_xscale() == "linear"
    assert convergence([long, made([1.0, 9.0], status="diverged")]).axes[0].get_xscale() == "linear"


def test_what_a_logarithm_does_not_take_is_left_out(tmp_path: Path) -> None:
    figure = convergence([made([1.0, 0.0, np.nan, np.inf, 1e-3], [0.0] * 5)])
    (error,) = figure.axes[0].lines
    np.testing.assert_array_equal(np.isfinite(error.get_ydata()), [True, False, False, False, True])
    assert save(figure, tmp_path / "gaps.png").stat().st_size > 1000


@pytest.mark.parametrize("values", [[0.0], [np.nan], [0.5], [np.inf, np.inf]])
@pytest.mark.parametrize("status", ["max_rounds", "diverged"])
def test_histories_with_next_to_nothing(tmp_path: Path, values: list[float], status: str) -> None:
    figure = convergence([made(values, status=status)])
    crosses = [line for line in figure.axes[0].lines if line.get_marker() == "X"]
    assert len(crosses) == (status == "diverged")
    if values == [0.5]:
        assert figure.axes[0].lines[0].get_marker() == "o"
    assert save(figure, tmp_path / "one.png").stat().st_size > 1000


def test_a_diverged_run_ends_in_a_cross_before_it_outgrows_the_rest() -> None:
    wild = made([2.0, 50.0, 1e3, 1e9, np.inf], status="diverged", start=1.0)
    figure = convergence([made([1.0, 1e-3]), wild])
    cross = figure.axes[0].lines[-1]
    assert (cross.get_marker(), cross.get_xdata()[0], cross.get_ydata()[0]) == ("X", 3, 1e3)
    assert figure.axes[0].get_ylim()[1] < 1e5
    assert legend(figure)[-1] == "diverged"
    both = convergence([made([1.0, 3.0, 9.0], status="growing"), made([1.0, 1e9], status="diverged")])
    assert [line.get_xdata()[0] for line in both.axes[0].lines if line.get_marker() == "X"] == [3, 1]
    assert legend(both)[-1] == "diverged or growing"


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: convergence([made([1.0])], axis="time"), "unknown axis 'time'; use one of round"),
        (lambda: convergence([made([1.0])] * 2, labels=["a"]), "got 1 labels for 2 results"),
        (lambda: convergence([]), "no results"),
        (lambda: convergence(["result.npz"]), "got str"),
        (lambda: network_picture([]), "got list"),
        (lambda: network_picture(adom.networks.ring(4), rounds=[]), "one to six"),
    ],
)
def test_bad_arguments(draw: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw()


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_saved_files_are_whole_reproducible_and_silent(tmp_path: Path, kind: str) -> None:
    magic = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[kind]
    first = save(convergence([made([1.0, 0.1])]), tmp_path / "new" / f"a.{kind}").read_bytes()
    second = save(convergence([made([1.0, 0.1])]), tmp_path / f"b.{kind}").read_bytes()
    assert first.startswith(magic)
    assert first == second
    for secret in (str(tmp_path), str(Path.home()), "CreationDate"):
        assert secret.encode() not in first
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"b.{kind}", "new"]


def test_save_refuses_other_suffixes_and_places(tmp_path: Path) -> None:
    figure = convergence([made([1.0])])
    with pytest.raises(InputError, match=r"suffix must be one of .png, .pdf, .svg"):
        save(figure, tmp_path / "figure.jpg")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write"):
        save(figure, tmp_path / "file" / "figure.png")


def panels(network: Any, **options: Any) -> tuple[Any, ...]:
    return tuple(network_picture(network, **options).axes)


def drawn_links(axes: Any) -> np.ndarray:
    return np.array([len(c.get_segments()) for c in axes.collections if hasattr(c, "get_segments")])


def test_network_picture_shows_links_chi_and_degrees() -> None:
    ring, star = adom.networks.ring(8), adom.networks.star(8)
    one, two, chi, degrees = panels(adom.networks.alternate([ring, star], every=5))
    assert one.get_title() == f"round 0: 8 links, $\\chi$ = {ring.chi:.3g}"
    assert two.get_title() == "round 5: 7 links, $\\chi$ = 8"
    assert drawn_links(one).tolist() == [8]
    assert drawn_links(two).tolist() == [7]
    assert len(one.collections[1].get_offsets()) == 8
    curve = chi.lines[0]
    np.testing.assert_allclose(curve.get_ydata(), [ring.chi] * 5 + [8.0] * 6)
    assert chi.get_yscale() == "log"
    shares = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in degrees.patches}
    assert shares[2] == pytest.approx(0.5)  # the ring's nodes
    assert shares[1] == pytest.approx(7 / 16)
    assert shares[7] == pytest.approx(1 / 16)


@pytest.mark.parametrize(
    "make",
    [
        lambda: adom.networks.geometric(30, 0.3, graphs=4),
        lambda: adom.networks.erdos_renyi(30, 0.1, graphs=4),
        lambda: adom.networks.from_contacts([(0, 1, 2), (0, 2, 3), (1, 1, 3), (1, 1, 2)]),
    ],
)
def test_positions_lie_in_the_frame(make: Callable[[], Any], tmp_path: Path) -> None:
    network = make()
    figure = network_picture(network)
    for axes in figure.axes[:-2]:
        points = np.asarray(axes.collections[1].get_offsets())
        assert points.shape == (network.nodes, 2)
        assert np.isfinite(points).all()
        assert points.min() >= 0
        assert points.max() <= 1
    assert save(figure, tmp_path / "network.png").stat().st_size > 5000


def test_large_networks_are_drawn_by_their_links_alone() -> None:
    network = adom.networks.geometric(301, 0.15)
    one, *_ = panels(network)
    assert drawn_links(one).tolist() == [len(network.edges(0))]
    assert len(one.collections) == 1


def test_a_long_period_keeps_its_worst_round() -> None:
    ring, star = adom.networks.ring(6), adom.networks.star(6)
    network = adom.networks.redraw(adom.networks.cyclic([star] * 40 + [ring]), rounds=5000, seed=1)
    chi = panels(network, rounds=(0, 1))[-2]
    curve = chi.lines[0].get_ydata()
    assert len(curve) <= 1001
    assert curve.max() == pytest.approx(network.chi)
    assert "worst of every 5" in chi.get_xlabel()


NAMES = ("cost $5 and $x", "$x^{$")


@pytest.mark.parametrize(
    "draw",
    [
        lambda runs: convergence(runs, labels=NAMES),
        lambda runs: convergence(runs, labels=NAMES, consensus=False, axis="all"),
        lambda runs: median_figure({(name, name): {name: runs} for name in NAMES}),
        lambda runs: profile_figure(pd.DataFrame({name: [0.5, 1.0] for name in NAMES}, index=[1.0, 2.0])),
        lambda runs: sweep_figure(table(factor_a=[1, 2], label=list(NAMES), rounds_to_target=[5, 6]), "factor_a"),
        lambda runs: sweep_figure(table(network=list(NAMES), rounds_to_target=[5, 6]), "network"),
    ],
    ids=["curves", "axes", "medians", "profile", "sweep", "names"],
)
def test_names_with_dollars_are_drawn_as_they_are(draw, tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = save(draw([made([1.0, 0.1]), made([1.0, 0.2])]), tmp_path / "drawn.svg")
    words = unescape(file.read_text())  # text is drawn as outlines, each word with a comment that says it
    for name in NAMES:
        assert name in words
        assert name.replace("$", "\\$") not in words


def test_half_is_not_most():
    assert [mostly(given) for given in ([True, False], [True, False, True], [])] == [False, True, False]
