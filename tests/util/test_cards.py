"""What a notebook shows: the facts themselves, at no cost, in the notebook's own colours; names do no harm."""

import math
import re
from dataclasses import dataclass, replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp

import adom
from adom.networks import pool
from adom.problems.base import Problem
from adom.problems.linear_model import LeastSquares, SoftmaxRegression
from adom.problems.shifted import Shifted
from adom.study.compare import Comparison
from adom.util.cards import bounds, card, curve, drawing, grid
from support.drawn import made as drawn

EVIL = "<img src=x onerror=alert(1)>'\""
TAGS = {"div", "strong", "span", "table", "thead", "tbody", "tr", "th", "td", "svg", "g", "path", "circle", "text"}
ATTRIBUTES = {
    "style",
    "scope",
    "role",
    "aria-label",
    "width",
    "height",
    "viewBox",
    "d",
    "fill",
    "stroke",
    "x",
    "y",
    "r",
}
ATTRIBUTES |= {"stroke-width", "stroke-linejoin", "opacity", "cx", "cy", "text-anchor", "font-size"}


def read(thing):
    """Parse HTML, which must be well-formed and without foreign tags, attributes, colours and addresses."""
    markup = thing if isinstance(thing, str) else thing._repr_html_()
    tree = ElementTree.fromstring(f"<page>{markup.replace('&ensp;', chr(0x2002))}</page>")
    _, *elements = tree.iter()
    attributes = [element.attrib for element in elements]
    assert {element.tag for element in elements} <= TAGS
    assert {name for element in attributes for name in element} <= ATTRIBUTES
    colours = {element[name] for element in attributes for name in ("fill", "stroke") if name in element}
    assert colours <= {"currentColor", "none"}
    assert not any(re.search(r"(?<!-)color:|url|#", element.get("style", "")) for element in attributes)
    rows = [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]
    facts = {row[0]: row[1] for row in rows if len(row) == 2}
    tags = [element.tag for element in elements]
    return SimpleNamespace(tags=tags, attributes=attributes, texts=list(tree.itertext()), rows=rows, facts=facts)


def made(errors=(4.0, 0.2, 1e-3), status="max_rounds", oracle=None, **provenance):
    halves = 0.5 * np.asarray(errors, dtype=float)
    return drawn(errors, halves, status, start=10.0, oracle=oracle, step=10, **provenance)


@pytest.fixture(scope="module")
def problem():
    generator = np.random.default_rng(0)
    return adom.LogisticRegression(generator.standard_normal((31, 3)), np.arange(31) % 2, nodes=6, kappa=20.0)


@pytest.fixture(scope="module")
def network():
    return adom.networks.geometric(6, 0.6, graphs=4, seed=1)


def test_a_result_shows_what_its_last_record_says():
    described = {"type": "Quadratic", "nodes": 2, "dim": 1, "kappa": 3.0}
    result = made(rounds=500, problem=described, network={"generator": "ring", "chi": 7.5}, oracle="gd:1")
    page = read(result)
    assert page.facts == {
        "error": "0.001",
        "consensus": "0.0005",
        "rounds": "30 of 500",
        "gradients a node": "90",
        "floats sent": "30,000",
        "seconds": "3",
        "problem": "Quadratic, nodes 2, dim 1, kappa 3",
        "network": "ring, chi 7.5",
        "parameters": "unit",
        "dual oracle": "gd:1",
    }
    assert page.texts[:2] == ["ADOM", "\u2002"]
    assert "max_rounds" in page.texts
    assert page.tags.count("svg") == 1


def test_a_result_that_came_to_nothing_shows_itself_too():
    blown = read(made([1.0, math.inf, math.nan], status="diverged", message="the error reached inf by round 20"))
    assert "diverged: the error reached inf by round 20" in blown.texts
    assert blown.facts["error"] == "–"
    bare = made()
    unmonitored = replace(bare, history=bare.history.drop(columns=["error", "consensus"]))
    assert "svg" not in read(unmonitored).tags
    unknown = replace(bare, history=bare.history.rename(columns={"error": "gradient_norm"}))
    assert read(unknown).facts["gradient norm"] == "0.001"
    assert "rounds" not in read(replace(bare, history=bare.history.iloc[:0])).facts


def test_a_curve_is_straight_where_the_error_falls_by_a_factor_a_round():
    page = read(curve([0, 25, 50, 100], [1.0, 1e-1, 1e-2, 1e-4]))
    line = next(one["d"] for one in page.attributes if one.get("stroke-width") == "1.5")
    spots = np.array([spot.split() for spot in line[1:].split("L")], dtype=float)
    np.testing.assert_allclose(np.diff(spots[:, 1]) / np.diff(spots[:, 0]), np.ptp(spots[:, 1]) / np.ptp(spots[:, 0]))
    assert [text for text in page.texts if text.strip()] == ["10⁰", "10⁻⁴", "0", "100 rounds"]


def test_what_a_logarithm_does_not_take_is_left_out_of_a_curve():
    assert curve([1, 2, 3], [0.0, math.nan, math.inf]) == ""
    assert curve([], []) == ""
    line = next(one["d"] for one in read(curve([1, 2, 3, 4], [1.0, 0.0, math.inf, 0.1])).attributes if "d" in one)
    assert line
    assert bounds([([1], [0.0])]) == (1.0, 0, 1)
    assert "svg" in read(curve([7], [0.3])).tags


def test_a_long_history_makes_a_short_picture_with_its_last_point():
    k = np.arange(1, 100_001)
    found = curve(k, 10.0 ** (-k / 10_000))
    assert len(found) < 5000
    assert "from 10^-0.0 to 10^-10.0" in found
    assert "100,000 rounds" in found


def test_a_comparison_marks_the_least_and_says_what_was_skipped():
    quick, slow = made([5.0, 1e-9, 1e-9], oracle="exact"), made([5.0, 4.0, 1e-9])
    found = Comparison({"a": quick, "b": slow, "c": made([9.0, 9.0, 9.0])}, 1e-8, {"d": "it cannot run here"})
    page = read(found)
    assert page.facts == {"d skipped": "it cannot run here"}
    heads, *rows = [row for row in page.rows if len(row) > 2]
    assert [row[0] for row in rows] == ["a", "b", "c"]
    assert [row[heads.index("rounds")] for row in rows] == ["20", "30", "–"]
    assert [row[heads.index("relative error at the end")] for row in rows] == ["1e-10", "1e-10", "0.9"]
    assert found._repr_html_().count("<strong>20</strong>") == 1
    assert "<strong>30</strong>" not in found._repr_html_()
    assert page.tags.count("svg") == 3


def test_a_sweep_shows_its_best_first():
    problem = adom.Quadratic([[[1.0]], [[3.0]]], [[1.0], [0.0]])
    swept = adom.sweep(problem, adom.networks.path(2), "adom", factors={"eta": [0.25, 0.5, 1]}, rounds=40)
    page = read(swept)
    heads, *rows = [row for row in page.rows if len(row) > 2]
    assert [int(row[0]) for row in rows] == swept.ranking()["member"].tolist()
    assert [float(row[heads.index("factor eta")]) for row in rows] == swept.ranking()["factor_eta"].tolist()
    assert "3 members: 3 max_rounds" in page.texts
    assert read(replace(swept, results={})).rows == []


def test_a_network_shows_its_facts_and_round_0(network):
    page = read(network)
    assert page.facts["nodes"] == "6"
    assert page.facts["chi"] == f"{network.chi:.3g}"
    assert page.facts["radius"] == "0.6"
    assert page.facts["period"] == "4 rounds"
    assert page.tags.count("circle") == 6
    assert page.attributes[page.tags.index("path")]["d"].count("M") == len(network.edges(0))


def test_arrows_have_heads():
    page = read(adom.networks.directed_ring(8))
    lines, heads = (one["d"] for tag, one in zip(page.tags, page.attributes, strict=True) if tag == "path")
    assert lines.count("M") == heads.count("Z") == 8
    assert page.facts["arcs of a graph"] == "8"
    assert "M" not in drawing([(0.0, 0.0), (1.0, 0.0)], 2, [], arrows=True)


@pytest.mark.parametrize("places", [None, [(0.0, math.nan), (1.0, 1.0), (2.0, 0.0)], [(1e6, 5.0), (-1e6, 5.0), (0, 5)]])
def test_drawn_nodes_lie_in_the_picture(places):
    page = read(drawing(places, 3, [(0, 1), (1, 2)]))
    spots = [(float(one["cx"]), float(one["cy"])) for one in page.attributes if "cx" in one]
    assert len(set(spots)) == 3
    assert 0 <= np.min(spots) < np.max(spots) <= 360


def test_showing_a_large_network_computes_and_draws_nothing(monkeypatch):
    large = adom.networks.geometric(300, 0.2)
    page = read(large)
    assert not large.chi_known
    assert page.facts["chi"] == "not computed yet"
    assert "svg" not in page.tags
    assert "svg" not in read(adom.networks.complete(120)).tags  # more links than a small picture can show
    monkeypatch.setattr(pool, "HELD_BYTES", 100)
    streamed = adom.networks.expander(50, 4, graphs=20)
    monkeypatch.setattr(streamed._pool, "single", None)
    assert read(streamed).facts["graphs"] == "20, drawn when they are asked for"


def test_problems_show_their_facts_and_are_not_solved(problem, monkeypatch):
    monkeypatch.setattr(Problem, "solution", None)
    facts = read(problem).facts
    assert {name: facts[name] for name in ("nodes", "dim", "kappa")} == {"nodes": "6", "dim": "3", "kappa": "20"}
    assert (facts["mu"], facts["L"]) == (f"{problem.mu:.3g}", f"{problem.L:.3g}")
    assert facts["samples"] == "31, 5 to 6 a node, dense"
    sparse = adom.LogisticRegression(sp.csr_array(np.eye(4)), [0, 1, 0, 1], nodes=2, l2=0.25)
    assert read(sparse).facts["samples"] == "4, 2 a node, sparse (4 numbers)"
    assert read(sparse).facts["l2"] == "0.25"
    data = [(np.eye(2), [0, 1]), (np.ones((1, 2)), [1])]
    assert read(SoftmaxRegression(data, classes=3, l2=0.5)).facts["classes"] == "3"
    assert read(LeastSquares(data, l2=0.5)).facts["samples"] == "3, 1 to 2 a node, dense"
    inner = adom.Quadratic([[[1.0]], [[3.0]]], [[1.0], [1.0]])
    assert read(Shifted(inner, [2.0], [[0.0], [0.0]])).facts["of"] == "Quadratic"


def test_a_method_shows_its_parameters(problem, network):
    method = adom.ADOM.theory(adom.constants(problem, network))
    facts = read(method).facts
    assert {name: facts[name] for name in method.parameters()} == {
        name: f"{value:.3g}" for name, value in method.parameters().items()
    }
    assert "2102.09234" in facts["reference"]
    batch = replace(method, eta=method.eta * np.ones(5))
    assert read(batch).facts["eta"] == "5 values"


def test_no_name_does_harm(problem, network):
    wild = made(
        title=EVIL,
        status=EVIL,
        message=EVIL,
        oracle=EVIL,
        problem={"type": EVIL, "nodes": EVIL},
        network={"generator": EVIL, "chi": EVIL},
    )
    wild.provenance["protocol"] = EVIL
    assert sum(text.count(EVIL) for text in read(wild).texts) >= 8
    rows = read(Comparison({EVIL: wild}, None, {EVIL + "2": EVIL})).rows
    assert any(EVIL in cell for row in rows for cell in row)

    def loss(x, c):
        return 0.5 * ((x - c) ** 2).sum()

    loss.__name__ = EVIL
    assert read(adom.from_loss(loss, np.zeros((3, 2)), mu=1.0, L=1.0)).facts["loss"] == EVIL

    @dataclass(frozen=True)
    class Evil(adom.Method):
        name, title, oracle, complexity, reference = "evil", EVIL, "primal", EVIL, EVIL

    assert read(Evil()).facts["reference"] == EVIL
    recipe = {"generator": EVIL, EVIL: EVIL}
    assert read(adom.networks.Network(network._pool, [0], recipe)).facts[EVIL] == EVIL
    assert EVIL in "".join(read(card(EVIL, EVIL, {EVIL: EVIL}, below=grid([EVIL], [[EVIL]]))).texts)


def test_text_and_pictures_do_without_heavy_libraries():
    import subprocess
    import sys

    code = (
        "import sys, adom.util.cards, adom.algorithms.base; print({'numpy', 'pandas', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
