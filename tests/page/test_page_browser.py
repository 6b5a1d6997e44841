"""The page in a browser: it draws, its controls work by mouse and keys, on a phone, in the dark; names do no harm."""

import re
import time
from dataclasses import replace

import pytest
from PIL import Image, ImageColor

from adom import page
from adom.page.content import Profile
from support.browser import PATIENCE, Browser, program
from support.made_page import EVIL, content

pytestmark = pytest.mark.skipif(
    program() is None, reason="no Chromium is installed; `apt-get install chromium` brings one"
)

EVERYWHERE = """
const everywhere = (test) => {
  const found = [];
  const walk = (node) => {
    if (test(node)) found.push(node);
    if (node.shadowRoot) [...node.shadowRoot.children].forEach(walk);
    [...node.children].forEach(walk);
  };
  walk(document.body);
  return found;
};
const figure = () => Bokeh.documents.at(-1)?.roots()[0];
const drawn = (kind) => (figure()?.renderers || []).filter((one) => one.glyph.type === kind && one.visible);
const tip = () => everywhere((node) => String(node.className).includes("bk-tooltip-content"))
  .map((node) => node.textContent).join();
const say = (selector, value, event) => {
  document.querySelector(selector).value = value;
  document.querySelector(selector).dispatchEvent(new Event(event));
};
const middle = () => {
  const view = Bokeh.index.find_one(figure()), {x, y} = drawn("Line")[0].data_source.data, at = x.length >> 1;
  const box = view.canvas_view.el.getBoundingClientRect();
  return [box.x + view.frame.x_scale.compute(x[at]), box.y + view.frame.y_scale.compute(y[at])];
};
const here = () => {
  const one = document.activeElement, label = one.labels?.[0] || one.closest("label");
  const marked = getComputedStyle(one.matches(".choice input") ? one.nextElementSibling : one).outlineStyle !== "none";
  const named = one.ariaLabel || label?.innerText || one.innerText || "";
  return [one.id || one.value || one.dataset.name || one.tagName, marked, Boolean(named.trim())];
};
const heights = () => [...document.querySelectorAll("main button, main select")]
  .filter((one) => one.checkVisibility()).map((one) => one.offsetHeight);
const click = (selector) => document.querySelector(selector).click();
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return page.write(content(), tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture
def opened(browser, file):
    """Open the page with some helpers; nothing may have gone wrong in it when the test is over."""
    pages = []

    def start(width=1200, dark=False, path=file, wanted="#plot .bk-Figure"):
        context = browser.page(path, width=width, dark=dark)
        one = context.__enter__()
        pages.append((context, one))
        one.wait(f"document.readyState === 'complete' && Boolean(document.querySelector('{wanted}'))")
        one.run(EVERYWHERE)
        return one

    yield start
    troubles = [one.troubles() for _, one in pages]
    for context, _ in pages:
        context.__exit__(None, None, None)
    assert troubles == [[] for _ in pages]


def settled(one):
    """Wait until the figure that was asked for last stands there."""
    one.wait("Bokeh.documents.length === document.querySelectorAll('.bk-Figure').length")


def shows(one, folder, *wanted, without=()):
    """Wait until the colours wanted are seen on the page, and the others are not."""
    until = time.monotonic() + PATIENCE
    while True:
        with Image.open(one.picture(folder / "seen.png")) as picture:
            seen = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24)}
        missing = [name for name in wanted if ImageColor.getrgb(name) not in seen]
        extra = [name for name in without if ImageColor.getrgb(name) in seen]
        if not missing and not extra:
            return
        assert time.monotonic() < until, f"not seen: {missing}; seen: {extra}"
        time.sleep(0.05)


def lines(one):
    settled(one)
    return one.run("drawn('Line').map((one) => one.name)")


def test_the_chart_is_seen_without_scrolling_and_numbers_are_those_of_the_tables(opened):
    one = opened(width=1400)  # and 900 high
    for figure in ("0", "1"):
        one.run(f"say('#figure', {figure}, 'change')")
        settled(one)
        box = "document.querySelector('#plot .bk-Figure').getBoundingClientRect()"
        top, bottom = one.run(f"[{box}.top, {box}.bottom]")
        assert 0 < top < bottom <= 900
        assert bottom - top >= 340
    cells = one.run("[...document.querySelectorAll('#ends tbody td.number')].map((cell) => cell.innerText)")
    assert "medians over seeds, and [least, greatest]" in one.run("document.querySelector('#ends caption').innerText")
    number = r"(–|\d{1,4}(\.\d+)?[kMGT]?|\d(\.\d)?e[+-]\d\d)"
    assert all(re.fullmatch(rf"{number}( \[{number}, {number}\])?", cell) for cell in cells)
    assert any("[" in cell for cell in cells)


def test_curves_are_drawn_in_their_colours(opened, tmp_path):
    one = opened()
    assert lines(one) == ["ADOM", "DNM", EVIL]
    shows(one, tmp_path, "#0072B2", "#009E73", "#56B4E9")  # those of ADOM, DNM and APM
    assert one.run("drawn('VArea').length") == 2  # bands of those with several seeds
    assert one.run("drawn('Scatter').filter((one) => one.glyph.marker.value === 'x').length") == 1  # DNM diverged
    table = one.run("document.querySelector('#ends').innerText")
    assert "diverged" in table
    assert "DNM" in table
    assert one.run("document.querySelectorAll('#panels button').length") == 3


def test_axes_can_be_switched(opened):
    one = opened()
    assert one.run("[figure().below[0].axis_label, figure().below[0].type, figure().left[0].type]") == [
        "communication rounds",
        "LinearAxis",
        "LogAxis",
    ]
    end = one.run("Math.max(...drawn('Line')[0].data_source.data.x)")
    one.run("click('#across input[value=gradients]')")
    one.wait("figure().below[0].axis_label === 'gradients per node'")
    assert one.run("Math.max(...drawn('Line')[0].data_source.data.x)") == pytest.approx(3 * end, rel=1e-3)
    one.run("click('#up input[value=consensus]'); click('#across-log'); click('#up-log')")
    one.wait("figure().below[0].type === 'LogAxis' && figure().left[0].type === 'LinearAxis'")
    one.wait("figure().left[0].axis_label.includes('mean')")
    for axis, words in (("floats_sent", "numbers sent"), ("seconds", "time (s)")):
        one.run(f"click('#across input[value={axis}]')")
        one.wait(f"figure().below[0].axis_label.includes('{words}')")


def test_methods_can_be_switched_on_and_off(opened):
    one = opened()
    one.run("click('#legend input[value=ADOM]')")
    one.wait("drawn('Line').length === 2")
    assert lines(one) == ["DNM", EVIL]
    one.run("click('#all')")
    one.wait("drawn('Line').length === 4")
    assert one.run("document.querySelectorAll('#panels button:first-child path').length") == 4
    one.run("click('#none')")
    one.wait("document.querySelector('#plot').innerText.includes('switched off')")
    assert one.run("Bokeh.documents.length") == 0  # what is not shown is not kept
    one.run("click('#none'); click('#all')")
    one.wait("drawn('Line').length === 4")


def test_every_panel_can_be_reached_and_has_an_address(opened):
    one = opened()
    assert one.run("document.querySelector('#protocol input:checked').value") == "unit"
    before = one.run("drawn('Line')[0].data_source.data.y.at(-1)")
    one.run("click('#protocol input[value=theory]'); click('#panels button[data-name=two]')")
    one.wait("location.hash === '#curves/kappa/theory/two'")
    settled(one)
    assert one.run("drawn('Line')[0].data_source.data.y.at(-1)") > 10 * before
    assert one.run("document.querySelector('#panels [aria-pressed=true]').dataset.name") == "two"
    one.run("click('#panels button[data-name=empty]')")
    one.wait("document.querySelector('#plot').innerText.includes('a6a is not there')")
    one.run("say('#figure', '1', 'change')")
    one.wait("document.querySelector('#panel-title').textContent.startsWith('panel only')")
    assert one.run("document.querySelector('#panels').hidden")
    assert "1 run missing" in one.run("document.querySelector('#panel-reason').innerText")
    one.run("location.hash = '#curves/kappa/theory/two'")
    one.wait("document.querySelector('#panel-title').textContent.startsWith('panel two')")


def test_evidence_leads_to_its_panel(opened):
    one = opened()
    one.run("click('#tab-ledger'); document.querySelectorAll('#ledger details').forEach((one) => (one.open = true))")
    one.run("click('#ledger a')")
    one.wait("!document.querySelector('#curves').hidden")
    one.wait("document.querySelector('#panel-title').textContent.startsWith('panel two')")
    assert one.run("document.querySelector('#protocol input:checked').value") == "theory"


def source(one, name):
    return one.run(f"figure().renderers.find((one) => one.name === '{name}').data_source.data")


def test_the_slider_moves_the_network(opened, tmp_path):
    one = opened()
    one.run("click('#tab-network')")
    one.wait("document.querySelectorAll('#graph .bk-Figure').length === 1")
    one.run("click('#alone')")
    assert [len(source(one, name)["x0"]) for name in ("kept", "come", "gone")] == [3, 0, 0]
    nodes, before = source(one, "nodes"), one.picture(tmp_path / "before.png").read_bytes()
    assert nodes["distance"] == pytest.approx([0, 0.301, 0.477, 0.602], abs=0.001)
    one.run("document.querySelector('#frame').focus()")
    one.press("ArrowRight", 39)
    one.wait("document.querySelector('#round').textContent === 'round 5 of 15'")
    assert [len(source(one, name)["x0"]) for name in ("kept", "come", "gone")] == [3, 1, 0]
    assert source(one, "nodes")["distance"] == pytest.approx([value - 1 for value in nodes["distance"]], abs=0.001)
    assert "4 links, 1 of them new, 0 gone" in one.run("document.querySelector('#motion-said').textContent")
    one.wait("document.querySelector('#frame').value === '1'")
    time.sleep(0.3)  # the drawing follows its data a frame later
    assert one.picture(tmp_path / "after.png").read_bytes() != before
    one.press("End", 35)
    one.wait("document.querySelector('#round').textContent === 'round 15 of 15'")
    one.run("click('#play')")  # from the start again
    one.wait("document.querySelector('#play').textContent === 'Pause'")
    one.wait("document.querySelector('#play').textContent === 'Play'")
    assert one.run("document.querySelector('#frame').value") == "3"


def test_names_do_no_harm(opened):
    one = opened()
    one.run("click('#none'); [...document.querySelectorAll('#legend input')].at(-1).click()")  # the evil one alone
    one.wait("drawn('Line').length === 1")
    settled(one)
    x, y = one.run("middle()")
    for step in (-2, -1, 0):  # a mouse that moves
        one.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + step, y=y)
    one.wait(f"tip().includes('{EVIL}')")
    one.run("click('#tab-runs'); click('#table td button')")
    assert EVIL in one.run("document.querySelector('#table .details').innerText")
    assert one.run("document.querySelector('h1').innerText") == f"A page {EVIL}"
    evil = "node.tagName === 'IMG' || [...node.attributes].some((one) => one.name.startsWith('on'))"
    assert one.run(f"everywhere((node) => {evil}).length") == 0
    assert one.run("document.querySelectorAll('script').length") == 3


def test_the_keyboard_is_enough(opened):
    one = opened()
    one.run("document.querySelector('#tab-curves').focus()")
    one.press("ArrowRight", 39)
    assert one.run("[document.activeElement.id, document.querySelector('#ledger').hidden]") == ["tab-ledger", False]
    one.press("End", 35)
    assert one.run("[document.activeElement.id, document.querySelector('#runs').hidden]") == ["tab-runs", False]
    one.press("ArrowRight", 39)
    seen = []
    for _ in range(60):
        one.press("Tab", 9)
        seen.append(one.run("here()"))
    reached = {name for name, _, _ in seen}
    assert {"figure", "up-log", "across-log", "one", "two", "ADOM", "DNM", "all", "none", "theme"} <= reached | {
        "theme"
    }
    own = [
        one for one in seen if one[0] not in ("BODY", "DIV")
    ]  # what remains are BokehJS' own and the end of the page
    assert all(marked for _, marked, _ in own), own
    assert all(named for _, _, named in own), own


def test_a_picture_can_be_saved(opened, browser, tmp_path):
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    one = opened()
    settled(one)
    at = "everywhere((node) => node.title === 'Save')[0].getBoundingClientRect()"
    x, y = one.run(f"[{at}.x + 10, {at}.y + 10]")
    for kind in ("mousePressed", "mouseReleased"):
        one.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    until = time.monotonic() + PATIENCE
    while not (tmp_path / "adom.png").exists():
        assert time.monotonic() < until, list(tmp_path.iterdir())
        time.sleep(0.05)


@pytest.mark.parametrize("tab", ["curves", "ledger", "network", "runs"])
def test_it_fits_on_a_phone(opened, tab):
    one = opened(width=375)
    one.run(f"click('#tab-{tab}'); document.querySelectorAll('details').forEach((one) => (one.open = true))")
    if tab == "network":
        one.wait("document.querySelectorAll('#graph .bk-Figure').length === 1")
    assert one.run("document.documentElement.scrollWidth") <= 375
    small = one.run("""everywhere((node) => !node.getRootNode().host && node.checkVisibility()
      && [...node.childNodes].some((part) => part.nodeType === 3 && part.data.trim())
      && parseFloat(getComputedStyle(node).fontSize) < 11).map((node) => node.outerHTML)""")
    assert small == []
    low = one.run("heights()")
    assert min(low, default=24) >= 24


def test_dark_and_light(opened, tmp_path):
    one = opened(dark=True)
    paper = "getComputedStyle(document.body).backgroundColor"
    assert one.run(paper) == "rgb(20, 23, 27)"
    shows(one, tmp_path, "#3F97D6", without=["#0072B2"])  # ADOM's colour there
    one.run("click('#theme')")
    assert one.run(paper) == "rgb(255, 255, 255)"
    shows(one, tmp_path, "#0072B2", without=["#3F97D6"])
    assert one.run("document.querySelector('#theme').getAttribute('aria-pressed')") == "false"


def test_runs_can_be_filtered_and_sorted(opened):
    one = opened()
    one.run("click('#tab-runs')")
    rows = "[...document.querySelectorAll('#table tbody tr')].map((row) => row.children[4].innerText)"
    assert one.run("document.querySelector('#count').innerText") == "250 of 250 runs, the first 100 shown"
    assert len(one.run(rows)) == 100
    one.run("click('#more')")
    assert len(one.run(rows)) == 250
    one.run("[...document.querySelectorAll('#table thead button')].find((one) => one.innerText === 'rounds').click()")
    assert one.run(rows)[0] == "method 249"
    assert one.run("document.querySelectorAll('[aria-sort=ascending]').length") == 1
    one.run("say('#filter', 'UNIT 13', 'input')")
    assert set(one.run(rows)) >= {"method 13", "method 130"}
    assert "method 14" not in one.run(rows)
    one.run("say('#filter', 'nothing', 'input')")
    assert "no run has all of these words" in one.run("document.querySelector('#count').innerText")


def test_profiles_open_the_page_fill_its_width_and_follow_its_theme(opened, tmp_path):
    whole = content()
    curves = {"ADOM": ([1.0, 2.0], [0.5, 1.0]), EVIL: ([1.0], [0.25])}
    profile = Profile(f"Profile {EVIL}", "rounds / least rounds", "share of pairs solved", curves, 3.0)
    places = "".join(f'<div><div id="profile-{number}" class="plot" role="img"></div></div>' for number in (0, 1))
    ledger = f'<div class="profiles">{places}</div><ul class="names" data-legend="0"></ul>'
    with_profiles = replace(whole, ledgers=[ledger], profiles=[profile, profile], tab="Ranks")
    path = page.write(with_profiles, tmp_path / "profiles.html")
    one = opened(width=1400, dark=True, path=path, wanted="#profile-1 .bk-Figure")
    assert one.run("[...document.querySelectorAll('[role=tab]')].map((tab) => tab.innerText)[0]") == "Ranks"
    assert one.run("[document.querySelector('#ledger').hidden, document.querySelector('#curves').hidden]") == [
        False,
        True,
    ]
    first, second = (
        one.run(f"document.querySelector('#profile-{number}').getBoundingClientRect().toJSON()") for number in (0, 1)
    )
    assert min(first["width"], second["width"]) > 600
    assert first["top"] == second["top"]
    assert first["bottom"] <= 900
    assert one.run("document.querySelector('.names').innerText") == f"ADOM\n{EVIL}"
    assert one.run("drawn('Line').map((one) => one.data_source.data.y)") == [[0.5, 0.5, 1, 1], [0.25, 0.25]]
    shows(one, tmp_path, "#3F97D6", without=["#0072B2"])  # ADOM's colour in the dark
    assert one.run("[figure().background_fill_color, figure().border_fill_color]") == ["#14171b"] * 2
    one.run("click('#theme')")
    shows(one, tmp_path, "#0072B2", without=["#3F97D6"])
    one.run("click('#tab-curves')")
    one.wait("Boolean(document.querySelector('#plot .bk-Figure'))")
    phone = opened(width=375, path=path, wanted="#profile-1 .bk-Figure")
    assert phone.run("document.documentElement.scrollWidth") <= 375


def test_what_is_not_there_is_said(opened, tmp_path):
    whole = content()
    path = page.write(replace(whole, motion=None, motionless=f"no config {EVIL}", ledgers=()), tmp_path / "less.html")
    one = opened(path=path)
    assert one.run("document.querySelector('#tab-ledger').hidden")
    one.run("click('#tab-network')")
    assert one.run("document.querySelector('#motionless').innerText") == f"no config {EVIL}"
    assert one.run("document.querySelector('#moving').hidden")
    never = page.write(replace(whole, motion=None, motionless=""), tmp_path / "never.html")
    assert opened(path=never).run("document.querySelector('#tab-network').hidden")
