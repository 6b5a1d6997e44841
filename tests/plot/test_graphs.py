"""Rounds of a network as pictures: the links of those rounds, nodes that stay where they are, colours that say it."""

import re
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.quiver import Quiver
from PIL import Image

import adom
from adom.errors import InputError
from adom.networks import pool
from adom.plot.networks import network_picture
from support.browser import Browser, program

GO = """(() => {{
  const slider = document.querySelector("input");
  slider.value = {};
  slider.dispatchEvent(new Event("input"));
  return document.querySelector("img").src;
}})()"""


@pytest.fixture(scope="module")
def moving():
    return adom.networks.waypoint(12, 0.5, graphs=40, speed=0.1, seed=2)


@pytest.fixture(scope="module")
def placeless():
    return adom.networks.erdos_renyi(12, 0.25, graphs=5, seed=3)


def lines(axes):
    return next(one for one in axes.collections if isinstance(one, LineCollection))


def dots(axes):
    return axes.collections[-1]


def links(axes):
    """Return which nodes a panel joins, told by their places."""
    place = {tuple(spot): i for i, spot in enumerate(np.asarray(dots(axes).get_offsets()).round(9))}
    return sorted(sorted(place[tuple(end)] for end in np.round(segment, 9)) for segment in lines(axes).get_segments())


def test_a_round_is_drawn_with_its_own_links_and_places(moving):
    assert links(moving.plot().axes[0]) == moving.edges(0).tolist()
    axes = moving.plot(7).axes[0]
    g = moving.order[7]
    assert links(axes) == moving.edges(g).tolist()
    np.testing.assert_array_equal(dots(axes).get_offsets(), moving.positions(g))
    assert axes.get_title() == f"round 7: {len(moving.edges(g))} links, $\\chi$ = {_chi(moving, g):.3g}"


def _chi(network, g):
    return network.spectrum[g, 1] / network.spectrum[g, 0]


def test_rounds_stand_side_by_side_and_go_round_and_round(moving):
    figure = moving.plot([0, 5, 41])
    assert [links(axes) for axes in figure.axes] == [moving.edges(g).tolist() for g in (0, 5, 1)]
    assert [axes.get_title().split(":")[0] for axes in figure.axes] == ["round 0", "round 5", "round 41"]
    many = moving.plot(np.arange(5))
    assert [axes.axison for axes in many.axes] == [False] * 6
    assert [bool(axes.collections) for axes in many.axes] == [True] * 5 + [False]


@pytest.mark.parametrize("style", [None, "column", "slide"])
@pytest.mark.parametrize("values", [None, np.arange(12.0)])
def test_titles_lie_inside_the_figure_and_apart(moving, style, values):
    figure = moving.plot([0, 17, 33], style=style, values=values)
    FigureCanvasAgg(figure).draw()
    boxes = [axes.title.get_window_extent() for axes in figure.axes[:3]]
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1 for box in boxes)
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_nodes_that_lie_nowhere_stay_where_they_are(placeless):
    together = [np.asarray(dots(axes).get_offsets()) for axes in placeless.plot([0, 3]).axes]
    np.testing.assert_array_equal(*together)
    np.testing.assert_array_equal(dots(placeless.plot(4).axes[0]).get_offsets(), together[0])
    assert 0 <= together[0].min() < together[0].max() <= 1
    ring = adom.networks.ring(12)
    mixed = adom.networks.alternate([ring, placeless], every=1).plot([0, 1])
    np.testing.assert_array_equal(*(dots(axes).get_offsets() for axes in mixed.axes))


@pytest.mark.parametrize("unit", [100.0, 1e-3, np.nan])
def test_positions_fill_the_picture_and_those_that_are_not_finite_are_ignored(unit):
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, {i: (unit * i, unit) for i in range(4)}, "pos")
    network = adom.networks.from_graphs([graph])
    if np.isnan(unit):
        assert np.isfinite(dots(network.plot().axes[0]).get_offsets()).all()
        return
    for axes in (network.plot().axes[0], network_picture(network).axes[0]):
        x, y = np.asarray(dots(axes).get_offsets()).T
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        assert left < x.min() < x.max() < right
        assert low < y.min() <= y.max() < high
        assert np.ptp(x) > 0.9 * (right - left)


def test_directed_links_are_arrows_from_sender_to_receiver():
    network = adom.networks.directed_geometric(8, 0.5, graphs=2, seed=1)
    axes = network.plot(1).axes[0]
    arrows = next(one for one in axes.collections if isinstance(one, Quiver))
    arcs, place = network.arcs(1), network.positions(1)
    np.testing.assert_allclose(np.c_[arrows.X, arrows.Y], place[arcs[:, 0]])
    way = place[arcs[:, 1]] - place[arcs[:, 0]]
    along = np.c_[arrows.U, arrows.V]
    np.testing.assert_allclose(along[:, 0] * way[:, 1], along[:, 1] * way[:, 0], atol=1e-12)
    gap = np.hypot(*way.T) - np.hypot(*along.T)  # the receiver's dot
    far = np.hypot(*way.T) > 0.05
    assert ((along * way).sum(axis=1)[far] > 0).all()
    np.testing.assert_allclose(gap[far], gap[far][0])
    assert 0.005 < gap[far][0] < 0.05
    assert axes.get_title() == f"round 1: {len(arcs)} arcs"


def test_values_become_colours_on_one_scale(moving):
    values = np.arange(24.0).reshape(2, 12) + 1
    values[0, 3] = np.inf
    figure = moving.plot([0, 1], values=values, label="what it is")
    one, two, bar = figure.axes
    assert bar.get_ylabel() == "what it is"
    np.testing.assert_array_equal(dots(two).get_array(), values[1])
    assert np.ma.getmaskarray(dots(one).get_array()).tolist() == [i == 3 for i in range(12)]
    assert (dots(one).norm.vmin, dots(two).norm.vmax) == (1, 24)
    assert dots(one).get_cmap().name == "viridis"
    same = moving.plot([0, 1], values=values[1])
    np.testing.assert_array_equal(dots(same.axes[0]).get_array(), dots(same.axes[1]).get_array())


def test_values_that_spread_widely_are_coloured_by_their_logarithm(moving):
    values = 10.0 ** -np.arange(12)
    values[-1] = 0
    shown = dots(moving.plot(values=values).axes[0])
    assert isinstance(shown.norm, LogNorm)
    assert (shown.norm.vmin, shown.norm.vmax) == (1e-10, 1)
    assert shown.get_array().min() == 1e-10  # 0 has the colour of the least
    assert not isinstance(dots(moving.plot(values=values - 1).axes[0]).norm, LogNorm)
    assert dots(moving.plot(values=10.0 ** -(3 * np.arange(12.0))).axes[0]).norm.vmin == pytest.approx(1e-12)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda n: n.plot(range(13)), "k must be 1 to 12 whole numbers of rounds, counted from 0, got 13 of them"),
        *((lambda n, k=k: n.plot(k), "whole numbers of rounds") for k in ([], [-1], [0.5], [[0]], True)),
        (lambda n: n.plot(values=np.ones(5)), r"values must have the shape \(12,\) or \(1, 12\), .* got \(5,\)"),
        (lambda n: n.plot(values=["a"] * 12), "values must be numbers"),
        (lambda n: n.plot(values=np.full(12, np.nan)), "finite"),
        (lambda n: n.plot(style="poster"), "unknown style 'poster'; known: column, page, slide"),
        (lambda n: n.animate(style="poster"), "unknown style"),
        (lambda n: n.animate(30), r"rounds must be round numbers, got 30; e.g. range\(30\)"),
        (lambda n: n.animate(range(201)), "1 to 200 whole numbers of rounds, counted from 0, got 201 of them"),
        (lambda n: n.animate(range(3), np.ones(12)), r"values must have the shape \(3, 12\)"),
        (lambda n: n.animate(interval=0), "interval must be a number of milliseconds"),
        (lambda _: adom.networks.ring(301).animate(), r"300 nodes at most, got 301; plot\(k\)"),
    ],
)
def test_wrong_arguments_are_refused(moving, draw, message):
    with pytest.raises(InputError, match=message):
        draw(moving)


def test_networks_that_are_not_held_are_drawn_a_round_at_a_time(monkeypatch):
    monkeypatch.setattr(pool, "HELD_BYTES", 100)
    network = adom.networks.erdos_renyi(12, 0.3, graphs=50)
    (source,), asked = network._pool.sources, []
    counted = source._replace(draw=lambda g: asked.append(g) or source.draw(g))
    monkeypatch.setattr(network._pool, "sources", (counted,))
    assert links(network.plot(3).axes[0]) == network.edges(3).tolist()
    assert set(asked) == {3}


def test_a_picture_of_a_large_network_does_not_wait_for_its_chi():
    network = adom.networks.geometric(301, 0.15)
    axes = network.plot().axes[0]
    assert axes.get_title() == f"round 0: {len(network.edges(0))} links"
    assert not network.chi_known
    assert len(axes.collections) == 1  # links alone
    assert len(network.plot(values=np.arange(301)).axes[0].collections) == 2


def test_a_film_has_a_frame_a_round_and_only_what_changes_changes(moving, placeless, tmp_path):
    assert moving.animate().rounds == list(range(30))
    assert placeless.animate().rounds == list(range(5))
    assert moving.animate(values=np.ones((4, 12))).rounds == [0, 1, 2, 3]
    assert moving.animate(np.array([3, 50])).rounds == [3, 50]
    values = np.linspace(0, 1, 36).reshape(3, 12)
    path = moving.animate([0, 0, 9], values, interval=120).save(tmp_path / "new" / "film.gif")
    with Image.open(path) as film:
        assert film.n_frames == 3
        assert film.info["duration"] == 120
        assert film.info["loop"] == 0
        frames = []
        for number in range(3):
            film.seek(number)
            frames.append(np.asarray(film.convert("RGB")).astype(int))
    changed = [np.abs(after - before).max(axis=2) > 60 for before, after in pairwise(frames)]
    assert 0 < changed[0].mean() < changed[1].mean()  # colours alone; then also links and places
    bar = slice(int(0.88 * changed[0].shape[1]), None)
    assert not changed[0][:, bar].any()
    assert not changed[1][:, bar].any()
    assert [one.name for one in path.parent.iterdir()] == ["film.gif"]


def test_other_suffixes_and_places_are_refused_before_anything_is_drawn(moving, tmp_path, monkeypatch):
    film = moving.animate(range(2))
    with pytest.raises(InputError, match=r"suffix must be one of .gif, .html; rename it"):
        film.save(tmp_path / "film.mp4")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write"):
        film.save(tmp_path / "file" / "film.gif")


def test_a_notebook_gets_a_player_that_needs_nothing_from_outside(moving):
    film = moving.animate([0, 9], interval=50)
    page = film._repr_html_()
    assert page.count("iVBORw0KGgo") == 3  # two frames, and the first once more for where scripts do not run
    assert not re.search(r"https?:|src=\"(?!data:)", page)
    assert re.search(r'id="(adom-\w+)"', page)[1] != re.search(r'id="(adom-\w+)"', film._repr_html_())[1]
    assert repr(film) == "Animation(12 nodes and their links, rounds 0 to 9, 2 frames)"


@pytest.mark.skipif(program() is None, reason="no Chromium is installed; `apt-get install chromium` brings one")
def test_the_player_plays_stops_and_goes_where_it_is_told(moving, tmp_path):
    path = moving.animate([0, 9, 18], interval=20).save(tmp_path / "film.html")
    browser = Browser(tmp_path)
    try:
        with browser.page(path) as page:
            frame = "Number(document.querySelector('input').value)"
            page.wait(f"document.readyState === 'complete' && {frame} === 2")
            page.run("document.querySelector('button').click()")
            stopped = page.run(frame)
            assert page.run(f"new Promise((done) => setTimeout(() => done({frame}), 200))") == stopped
            pictures = [page.run(GO.format(number)) for number in range(3)]
            assert len(set(pictures)) == 3
            page.run("document.querySelector('button').click()")
            page.wait(f"document.querySelector('img').src === '{pictures[0]}'")
            assert page.troubles() == []
    finally:
        browser.close()
