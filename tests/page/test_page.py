"""The page: what is in it, that no text in it can do harm, how large it gets."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adom import page
from adom.algorithms import METHODS
from adom.errors import InputError
from adom.page.content import (
    DARK,
    DECADE,
    FLOOR,
    LETTERS,
    Content,
    Figure,
    Line,
    Panel,
    Run,
    coded,
    data,
    letters,
    looks,
)
from adom.plot.style import COLOURS
from support.made_page import EVIL, WORSE, content, falling, line, run


def numbers(text):
    """What the page's script makes of letters, written independently."""
    found, change, weight = [], 0, 0
    for letter in text:
        value = LETTERS.index(letter)
        change |= (value & 31) << weight
        weight += 5
        if value < 32:
            found.append(-(change >> 1) if change & 1 else change >> 1)
            change = weight = 0
    return np.cumsum(np.cumsum(found)) if found else np.array([])


def heights(line, measure):
    return [10.0 ** (numbers(text) / DECADE) for text in line["heights"][measure]]


@given(st.lists(st.integers(-(10**9), 10**9), max_size=30))
def test_letters_are_the_numbers(given_numbers):
    assert numbers(letters(given_numbers)).tolist() == given_numbers


def test_a_run_of_few_records_is_kept_as_it_is():
    one = run(falling(0.2))
    kept = coded(Line("ADOM", "adom", [one]), 120)
    rounds = numbers(kept["rounds"])
    assert rounds.tolist() == [0, *one.history["round"]]
    np.testing.assert_allclose(heights(kept, "relative")[0], [1, *falling(0.2)], rtol=0.003)
    np.testing.assert_allclose(heights(kept, "error")[0][1:], one.history["error"], rtol=0.003)
    for name in ("gradients", "floats_sent", "seconds"):
        step, text = kept["costs"][name]
        np.testing.assert_allclose(step * numbers(text) * rounds, [0, *one.history[name]], rtol=0.001)
    assert "diverged" not in kept


def test_long_runs_are_thinned_out_from_start_to_end():
    one = run(falling(0.001, 5000), every=1)
    kept = coded(Line("ADOM", "adom", [one]), 120)
    rounds = numbers(kept["rounds"])
    assert 90 <= len(rounds) <= 120
    assert (rounds[0], rounds[1], rounds[-1]) == (0, 1, 5000)
    np.testing.assert_allclose(heights(kept, "relative")[0], 10.0 ** (-0.001 * rounds), rtol=0.003)


def test_several_seeds_are_a_median_with_a_band_and_a_finished_run_keeps_its_last_value():
    seeds = [run(falling(0.1, 20)), run(falling(0.2, 30)), run(falling(0.3, 40))]
    kept = coded(Line("ADOM", "adom", seeds), 120)
    rounds = numbers(kept["rounds"])
    assert rounds[-1] == 400
    middle, below, above = (numbers(text) / DECADE for text in kept["heights"]["relative"])
    at = rounds.tolist().index(100)
    np.testing.assert_allclose([middle[at], middle[at] - below[at], middle[at] + above[at]], [-2, -3, -1], atol=0.002)
    np.testing.assert_allclose([middle[-1], middle[-1] - below[-1], middle[-1] + above[-1]], [-6, -12, -2], atol=0.002)
    assert kept["seeds"] == 3
    wild = [run([10.0, 1e3, 1e6, 1e13], status="diverged")] * 2
    lost = coded(Line("DNM", "dnm", [*wild, run(falling(0.1, 20))]), 120)
    assert lost["diverged"] is True
    assert numbers(lost["rounds"])[-1] == 20  # where the lost ones grew wild


def test_where_runs_end_is_the_median_over_seeds_though_the_line_goes_on_to_the_longest():
    # Mine is the slower one in the middle, and has the shorter longest run.
    ours, theirs = (
        coded(Line(name, "", [run(falling(8 / length, length), every=1) for length in lengths]), 120)
        for name, lengths in (("ADOM", (87, 69, 123, 80, 90)), ("Mine", (92, 86, 101, 90, 95)))
    )
    assert numbers(ours["rounds"])[-1] == 123
    assert (ours["ends"]["round"], theirs["ends"]["round"]) == ([87, 69, 123], [92, 86, 101])
    assert ours["ends"]["gradients"] == [3 * 87, 3 * 69, 3 * 123]
    np.testing.assert_allclose(ours["ends"]["relative"], 1e-8, rtol=1e-4)
    alone = coded(Line("ADOM", "adom", [run(falling(0.2, 31), every=1)]), 120)
    assert alone["ends"]["round"] == [31]
    wild = run([10.0, 1e3, 1e6, 1e13], status="diverged")
    mixed = coded(Line("DNM", "dnm", [wild, run(falling(0.1, 20)), run(falling(0.1, 30))]), 120)
    assert mixed["ends"]["round"] == [300, 200, None]  # what diverges early has not come cheaply
    lost = coded(Line("DNM", "dnm", [wild, wild]), 120)
    assert lost["ends"]["round"] == [20, 20, 20]


def test_a_run_that_diverged_is_cut_where_it_grew_wild():
    lost = run([10.0, 1e3, 1e6, 1e13], status="diverged")
    kept = coded(Line("DNM", "dnm", [lost]), 120)
    assert kept["diverged"] is True
    assert heights(kept, "relative")[0].max() <= 1.01e4
    mixed = coded(Line("DNM", "dnm", [lost, run([0.1]), run([0.1])], shown=False), 120)
    assert (mixed["status"], mixed["off"], "diverged" in mixed) == ("1 diverged, 2 max_rounds", True, False)


def test_where_the_solution_is_unknown_the_gradient_norm_is_shown():
    one = run(falling(0.2))
    history = one.history.rename(columns={"error": "gradient_norm"})
    unknown = replace(one, history=history, provenance={**one.provenance, "start_error": None})
    kept = coded(Line("ADOM", "adom", [unknown]), 120)
    assert list(kept["heights"]) == ["gradient_norm", "consensus"]
    steps = numbers(kept["heights"]["gradient_norm"][0])
    assert steps[0] < FLOOR * DECADE  # nothing is known of round 0
    np.testing.assert_allclose(10.0 ** (steps[1:] / DECADE), history["gradient_norm"], rtol=0.003)


def test_colours_are_those_of_the_methods_and_variants_differ_in_the_dash():
    lines = [line("a", "apm", 0.1), line("b", "adom", 0.1), line("c", "adom", 0.1, variant="exact")]
    assert looks(lines) == [[5, 0, 5], [0, 0, 0], [0, 1, 0]]
    alike = looks([line("a", "adom", 0.1), line("b", "adom", 0.1)])
    assert alike[0][0] != alike[1][0]
    assert len({COLOURS[one[0]] for one in looks([line("", "", 0.1)] * 11)}) == 11
    every = looks([line("", name, 0.1) for name in METHODS])
    assert len({(colour, dash) for colour, dash, _ in every}) == len(METHODS)
    split = looks([line("", name, 0.1, variant=kind) for name in METHODS for kind in ("", "split")])
    assert len({(colour, dash) for colour, dash, _ in split}) == 2 * len(METHODS)
    assert len(DARK) == len(COLOURS) == len(set(DARK))


class Elements(HTMLParser):
    def __init__(self, content):
        super().__init__()
        self.tags, self.attributes, self.scripts, self.inside, self.text = [], [], [], None, ""
        self.feed(content)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.inside = tag
        if tag == "script":
            self.scripts.append([dict(attrs), ""])

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, text):
        if self.inside == "script":
            self.scripts[-1][1] += text
        else:
            self.text += text


@pytest.fixture(scope="module")
def text():
    return page.render(content())


@pytest.fixture(scope="module")
def elements(text):
    return Elements(text)


def test_no_text_becomes_an_element_or_a_script(elements):
    assert "img" not in elements.tags
    assert not [name for name, _ in elements.attributes if name.startswith("on")]
    assert [about for about, _ in elements.scripts] == [{"type": "application/json", "id": "data"}, {}, {}]
    assert EVIL in elements.text
    stored = elements.scripts[0][1]
    assert not re.search("[<>&\u2028\u2029]", stored)
    kept = json.loads(stored)
    assert kept["figures"][0]["title"] == f"kappa {EVIL}"
    assert kept["figures"][0]["caption"] == WORSE  # also what looks like a place of the template


def test_the_page_asks_for_nothing_and_runs_only_its_own_scripts(text, elements):
    (policy,) = (value for name, value in elements.attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    for about, script in elements.scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert (f"'sha256-{digest}'" in policy) == (not about)
    assert not [value for name, value in elements.attributes if name in ("src", "srcset", "action", "data")]
    assert all(value.startswith("#") for name, value in elements.attributes if name == "href")
    assert "@import" not in text.split("</style>")[0]


def test_the_same_content_gives_the_same_bytes(text, tmp_path):
    assert page.render(content()) == text
    first, second = (page.write(content(), tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert first == second == text.encode()


def test_claims_stand_in_the_page_itself_with_their_evidence(elements):
    for words in ("ADOM is best", "1 of 2 panels", "not tested", "How it is judged", "Evidence, 1 rows"):
        assert words in elements.text
    assert ("href", "#curves/kappa/theory/two") in elements.attributes


def test_a_full_reproduction_stays_below_six_megabytes():
    rng = np.random.default_rng(0)
    rates = 0.02 * (1 + rng.random(30))
    wobble = 0.3 * np.sin(0.5 * np.arange(400)) + 0.01 * rng.standard_normal(400)
    some = [run(10.0 ** (-rate * np.arange(400) + wobble), every=12) for rate in rates]
    figures = []
    for number in range(84):  # 84 panels of four methods under three protocols, three seeds each
        lines = [Line(f"m{i}", "", [some[(number + i + j) % 30] for j in range(3)]) for i in range(4)]
        pages = {name: [Panel(f"panel{number}", "κ = 10", lines, "about")] for name in ("theory", "unit", "tuned")}
        figures.append(Figure(f"figure{number}", "title", "caption", pages))
    words = "alpha 0.49178, eta 0.0066202, theta 0.010167, sigma 1, tau 0.0032557"
    runs = [
        Run(
            {"figure": "kappa", "panel": f"d40-{number % 90}", "method": "ADOM", "status": "converged", "seed": 1,
             "rounds": number, "gradients": 12345.6, "floats sent": 123456789, "seconds": 1.2345, "error": 1.2345e-7},
            {"file": f"{number:024x}.npz", "parameters": f"{words}{number}", "created": f"2026-01-01T00:{number}"},
        )
        for number in range(3151)
    ]  # fmt: skip
    size = len(page.render(Content("full", [], figures, runs)).encode())
    assert 2e6 < size < 6e6


def test_the_table_of_runs_has_every_text_once_and_no_empty_columns():
    runs = [Run({"method": "ADOM", "rounds": 5, "error": float("nan")}, {"commit": "abc"}) for _ in range(3)]
    kept = data(Content("", [], [], runs))["runs"]
    assert kept["columns"] == ["method", "rounds"]
    assert kept["words"] == ["ADOM", "commit", "abc"]
    assert kept["rows"] == [[0, 5]] * 3


def test_text_on_the_page_can_be_read_in_both_themes():
    style = page._asset("page.css")
    themes = [dict(re.findall(r"--([\w-]+): (#\w{6})", block)) for block in re.findall(r":root[^{]*\{([^}]*)\}", style)]
    assert len(themes) == 2
    for theme in themes:
        for paper in ("paper", "raised"):
            for ink in ("ink", "soft", "accent", "good", "mixed", "bad", "none"):
                assert contrast(theme[ink], theme[paper]) >= 4.5, (ink, paper)
        assert contrast(theme["on-accent"], theme["accent"]) >= 4.5
        assert contrast(theme["focus"], theme["paper"]) >= 3
    assert min(contrast(colour, themes[1]["paper"]) for colour in DARK) >= 3


def contrast(one, other):
    """The contrast of two colours by the rule of WCAG 2."""

    def light(colour):
        parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_refusals(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"suffix must be \.html"):
        page.write(content(), tmp_path / "page.pdf")
    monkeypatch.setattr(page, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs bokeh.*'\.\[report\]'"):
        page.render(content())
    assert not list(tmp_path.iterdir())


def test_the_plotting_library_is_loaded_when_a_page_is_written():
    script = "import sys, adom.page, adom.page.reading; print('bokeh' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
