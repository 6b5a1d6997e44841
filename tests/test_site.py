"""The site is built without a warning, has everything public, no dead link, and nothing from another host."""

import os
import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from urllib.parse import unquote, urlsplit

import pytest

from adom.algorithms import METHODS
from support.browser import Browser, program
from support.documents import ROOT, blocks

NEEDED = ("sphinx", "myst_parser", "furo", "numpydoc", "sphinx_gallery", "sphinx_copybutton")
MISSING = [name for name in NEEDED if find_spec(name) is None]
PUBLIC = ("adom", "adom.algorithms", "adom.data", "adom.networks", "adom.sklearn")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing: pip install '.[docs]'")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site, built as `make docs` builds it, from a copy: what the gallery writes stays out of the tree."""
    folder = tmp_path_factory.mktemp("site")
    for name in ("docs", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("gallery", "__pycache__"))
    shutil.copy(ROOT / "CONTRIBUTING.md", folder)
    recipe = re.search(r"-m sphinx (-\S+ --keep-going -b html)", (ROOT / "Makefile").read_text())[1]
    assert "W" in recipe.split()[0]  # warnings are errors
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *recipe.split(), "-d", folder / "doctrees", folder / "docs", folder / "html"],
        env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "html"


class Page(HTMLParser):
    """What a page has and what it asks for."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        about = dict(attributes)
        self.anchors |= {about[name] for name in ("id", "name") if about.get(name)}
        if tag == "a" and about.get("href"):
            self.links.append(about["href"])
        elif tag == "link" and about.get("rel") in ("stylesheet", "icon", "preload", "modulepreload", "manifest"):
            self.loaded.append(about["href"])
        elif tag in ("script", "img", "iframe", "source", "video", "audio", "embed") and about.get("src"):
            self.loaded.append(about["src"])


@pytest.fixture(scope="session")
def pages(site):
    return {path: Page(path.read_text()) for path in site.rglob("*.html")}


def inventory(site):
    """Return the names that the site documents, and their pages."""
    content = (site / "objects.inv").read_bytes()
    text = zlib.decompress(content.split(b"\n", 4)[4]).decode()
    return {line.split()[0]: line.split()[3] for line in text.splitlines() if line.split()[1].startswith("py:")}


def found(name):
    """Return what a dotted name stands for, None where it stands for nothing by itself."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = import_module(".".join(parts[:cut]))
            for part in parts[cut:]:
                value = getattr(value, part)
            return value
        except (ImportError, AttributeError):
            continue
    return None


def test_everything_public_is_documented(site):
    documented = inventory(site)
    objects = [found(name) for name in documented]
    names = [f"{module}.{name}" for module in PUBLIC for name in import_module(module).__all__]
    names += [f"adom.{place.split(':')[1]}" for place in METHODS.values()] + ["adom.errors.InputTypeError"]
    missing = [name for name in names if name not in documented and not any(found(name) is one for one in objects)]
    assert missing == [], "add it to a page in docs/api"


def test_names_in_the_text_lead_to_where_they_are_documented(site):
    assert (
        '<a class="reference internal" href="api/running.html#adom.sweep">' in (site / "quick-start.html").read_text()
    )


def test_links_and_anchors_lead_somewhere(site, pages):
    assert len(pages) > 40
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = pages.get(target)
            if not target.exists() or (parts.fragment and known and unquote(parts.fragment) not in known.anchors):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == []


def test_nothing_is_loaded_from_another_host(site, pages):
    for path, page in pages.items():
        for place in page.loaded:
            parts = urlsplit(place)
            assert parts.scheme in ("", "data"), f"{path.name} loads {place}"
            assert parts.netloc == "", f"{path.name} loads {place}"
            assert parts.scheme == "data" or (path.parent / unquote(parts.path)).exists(), f"{path.name}: {place}"
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?\s*(https?:)?//", path.read_text()), path


def test_the_search_index_has_the_words(site):
    index = (site / "searchindex.js").read_text()
    for word in ("gossip", "kappa", "geometric"):
        assert word in index


def test_every_formula_is_drawn(site):
    written = (ROOT / "docs" / "methods.md").read_text().count("$$") // 2
    text = (site / "methods.html").read_text()
    assert text.count('<div class="math">') == written == len(METHODS)
    assert "merror" not in text
    assert "\\tau" not in text


def test_the_quick_start_on_the_site_is_the_one_that_runs(site):
    text = re.sub(r"<[^>]+>", "", (site / "quick-start.html").read_text()).replace("&quot;", '"').replace("&#39;", "'")
    for block in blocks(ROOT / "docs" / "quick-start.md", "python"):
        assert block.text.splitlines()[0] in text


needs_browser = pytest.mark.skipif(
    program() is None, reason="no Chromium is installed; `apt-get install chromium` brings one"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.close()


@needs_browser
@pytest.mark.parametrize("name", ["index", "methods", "api/running", "gallery/index", "notation"])
@pytest.mark.parametrize("width", [1300, 390])
def test_a_page_opens_without_trouble_and_fits(site, browser, name, width):
    with browser.page(site / f"{name}.html", width=width, dark=width < 500) as page:
        page.wait("document.readyState === 'complete'")
        assert page.troubles() == []
        assert page.run("document.documentElement.scrollWidth") <= width
        ground = page.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert max(ground) < 60 if width < 500 else min(ground) > 240  # it follows the browser's colours


@needs_browser
def test_formulas_are_drawn_line_below_line(site, browser):
    with browser.page(site / "methods.html") as page:
        page.wait("document.readyState === 'complete'")
        rows = page.run(
            "[...document.querySelectorAll('#adom math mtr')].map(row => {"
            "const box = row.children[1].getBoundingClientRect(); return [box.x, box.y, box.width]})"
        )
        assert len(rows) == 5  # lines 4 to 8 of Algorithm 2
        assert len({round(x) for x, _, _ in rows}) == 1
        assert all(above[1] < below[1] for above, below in pairwise(rows))
        assert all(width > 50 for _, _, width in rows)


@needs_browser
def test_the_search_works_from_the_files_alone(site, browser):
    with browser.page(site / "search.html") as page:
        page.call("Page.navigate", url=f"{(site / 'search.html').as_uri()}?q=waypoint")
        titles = page.wait("[...document.querySelectorAll('#search-results li a')].map(one => one.textContent).join()")
        assert "waypoint" in titles
        assert page.troubles() == []
