"""A miniature gives no verdict where it cannot tell, and shows the full run's beside it, wherever it is shown."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from adom.paper import findings, ledger, verdicts
from adom.paper.claims import CLAIMS
from adom.paper.evidence import table_of_runs
from adom.paper.verdicts import NOT_JUDGED, NOT_TESTED, REPRODUCED
from adom.paper.webpage import read_reproduction
from adom.plot.style import COLOURS
from support.made import four, panel, saved, verified

ROOT = Path(__file__).parents[2]
FULL = "not reproduced, 0 of 16 panels"
"""What the full run says of claim best-over-kappa under tuned."""


@pytest.fixture(scope="module")
def documents():
    spec = importlib.util.spec_from_file_location("from_reproduction", ROOT / "docs" / "from_reproduction.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outcomes():
    """ADOM ahead by far in a panel of figure kappa, and a verification that holds."""
    return [verified(0.9), *four(panel("kappa"), 200, 400, 900, 900, protocol="tuned")]


@pytest.fixture
def folder(tmp_path):
    return saved(outcomes(), tmp_path, quick=True)


def compute(*, quick=False):
    return ledger.compute(table_of_runs(outcomes()), quick=quick)


def test_the_package_says_what_the_documents_say(documents):
    assert documents.full_run() == json.loads(verdicts.FILE.read_text()), "run `make reproduction-docs`"
    table = (ROOT / "docs" / "reproduction.md").read_text()
    for claim in CLAIMS.values():
        (row,) = (line for line in table.splitlines() if line.startswith(f"| {claim.name} |"))
        for protocol in claim.protocols:
            verdict, _, count = verdicts.full_verdict(claim.name, protocol).partition(", ")
            assert f"| {verdict}{', ' + ' '.join(count.split()[:3]) if count else ''} |" in row
    told = json.loads(verdicts.FILE.read_text())["findings"].keys()
    assert {one.title for one in findings.compute(table_of_runs([]))} == told


def test_the_documents_are_never_made_from_a_miniature(documents, folder):
    ledger.write(folder)
    with pytest.raises(SystemExit, match="holds a miniature; the documents are those of a full run"):
        documents.main(folder)


def test_pictures_keep_the_colours_of_all_methods(documents, tmp_path):
    page = Image.new("RGB", (len(COLOURS) + 1, 60), "white")
    for number, colour in enumerate(COLOURS):
        page.paste(ImageColor.getrgb(colour), (number, 0, number + 1, 2))
    rng = np.random.default_rng(0)
    page.paste(Image.fromarray(rng.integers(0, 256, (50, len(COLOURS), 3), dtype=np.uint8)), (0, 10))  # other colours
    documents.in_palette(page).save(tmp_path / "page.png", optimize=True)
    with Image.open(tmp_path / "page.png") as kept:
        assert kept.mode == "P"
        seen = [kept.convert("RGB").getpixel((column, 1)) for column in range(len(COLOURS) + 1)]
    assert seen == [*map(ImageColor.getrgb, COLOURS), (255, 255, 255)]


def test_what_depends_on_sizes_is_not_judged_and_what_does_not_is():
    full, quick = (compute(quick=size) for size in (False, True))
    assert full.find("best-over-kappa", "tuned").verdict == quick.find("theorem-1", "theory").verdict == REPRODUCED
    entry = quick.find("best-over-kappa", "tuned")
    assert (entry.verdict, entry.count, entry.full_run) == (NOT_JUDGED, "", FULL)
    assert entry.evidence == full.find("best-over-kappa", "tuned").evidence  # what was measured is still told
    assert full.find("best-over-kappa", "tuned").full_run == ""
    for one in quick.entries:
        assert CLAIMS[one.claim].miniature or one.verdict in (NOT_JUDGED, NOT_TESTED)
        assert one.full_run == verdicts.full_verdict(one.claim, one.protocol) != ""
    assert NOT_JUDGED in quick.counts().columns
    assert NOT_JUDGED not in full.counts().columns


def test_pages_and_terminals_show_the_full_run_instead(folder):
    found = ledger.write(folder)
    page = (folder / "ledger.md").read_text()
    assert f"| **not judged** | best-over-kappa | tuned |  | {FULL} | in miniature: best rival/ADOM: median" in page
    assert found.note_on_size in page
    assert json.loads((folder / "ledger.json").read_text())["entries"] == [one.to_json() for one in found.entries]

    (html,) = read_reproduction(folder, progress=False).ledgers
    assert found.note_on_size.replace("'", "&#x27;") in html
    assert f'not judged</span> <span class="count">the full run: {FULL}</span>' in html


def test_a_miniature_recommends_no_method(folder):
    ledger.write(folder)
    page = (folder / "findings.md").read_text()
    assert "Under `tuned`, of 70 panels: acc-dngd 22" in page
    assert "This miniature: Under `tuned`, of 1 panels: adom 1." in page
    _, advice = page.split("## Which method to take\n")
    assert advice.strip() == f"A miniature cannot tell. The full run: {verdicts.full_finding('Which method to take')}"
