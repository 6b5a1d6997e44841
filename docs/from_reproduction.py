"""``make reproduction-docs FOLDER=out/reproduce``: a full reproduction's figures, ledger and findings as documentation.

Figures become small PNG files in docs/images/reproduction, the ledger and the findings are copied as they are, and the
tables of docs/reproduction.md between its marks are written anew. What miniatures show beside their own goes into the
package: the verdicts of docs/ledger.md and the sentences of docs/findings.md, as full_run.json.
"""

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageColor

from adom.paper.runs import PROTOCOLS
from adom.plot.style import COLOURS

DOCS = Path(__file__).parent
FULL_RUN = DOCS.parent / "src" / "adom" / "paper" / "full_run.json"
WIDTH = 1100
"""Of a picture: wide enough to read a panel of four."""


def main(folder: Path) -> None:
    if json.loads((folder / "ledger.json").read_text())["quick"]:
        sys.exit(f"error: {folder} holds a miniature; the documents are those of a full run: adom reproduce")
    target = DOCS / "images" / "reproduction"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in sorted((folder / "figures").glob("*.png")):
        with Image.open(path) as picture:
            flat = Image.new("RGB", picture.size, "white")
            flat.paste(picture, mask=picture.getchannel("A") if picture.mode == "RGBA" else None)
        size = (WIDTH, round(flat.height * WIDTH / flat.width))
        small = flat.resize(size, Image.Resampling.LANCZOS) if flat.width > WIDTH else flat
        in_palette(small).save(target / path.name, optimize=True)
    for name in ("ledger.md", "findings.md"):
        shutil.copyfile(folder / name, DOCS / name)
    page = DOCS / "reproduction.md"
    text = page.read_text()
    for name, lines in (("verdicts", verdicts(folder)), ("figures", figures(target))):
        block = "\n".join([f"<!-- {name} -->", "", *lines, "", "<!-- end -->"])
        text = re.sub(rf"<!-- {name} -->.*?<!-- end -->", lambda _, block=block: block, text, flags=re.DOTALL)
    page.write_text(text)
    FULL_RUN.write_text(json.dumps(full_run(), indent=1) + "\n")


def in_palette(picture: Image.Image) -> Image.Image:
    """Return a picture in 256 colours, which makes its file small: those of all methods, and their shades up to white.

    Each pixel gets the nearest of them. (A palette made for the picture spends its colours on what fills most of it,
    and merges thin curves.)
    """
    colours = np.array([ImageColor.getrgb(colour) for colour in COLOURS])
    whiter = np.linspace(0, 1, 255 // len(COLOURS), endpoint=False)[:, np.newaxis, np.newaxis]
    shades = np.rint(colours + (255 - colours) * whiter).astype(np.uint8).reshape(-1, 3)
    shades = np.concatenate([shades, np.full((1, 3), 255, np.uint8)])
    pixels = np.asarray(picture.convert("RGB")).astype(np.int64) @ (1 << 16, 1 << 8, 1)
    present, where = np.unique(pixels, return_inverse=True)
    parts = np.stack([present >> 16, present >> 8 & 255, present & 255], axis=1)
    nearest = ((parts[:, np.newaxis] - shades) ** 2).sum(axis=2).argmin(axis=1)
    found = Image.fromarray(nearest.astype(np.uint8)[where].reshape(pixels.shape), "L")
    found.putpalette(shades.tobytes())
    return found


def full_run() -> dict:
    """Return the verdicts of docs/ledger.md and the texts of docs/findings.md, for miniatures."""
    ledger, findings = ((DOCS / name).read_text() for name in ("ledger.md", "findings.md"))
    verdicts_by_claim: dict[str, dict[str, str]] = {}
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| ([\w-]+) \| (\w+) \| (.*?) \|", ledger, re.M)
    for verdict, claim, protocol, count in rows:
        verdicts_by_claim.setdefault(claim, {})[protocol] = ", ".join(text for text in (verdict, count) if text)
    commit = re.search(r"commit (\w+)\.", ledger)[1]
    texts = dict(re.findall(r"^## (.+)\n\n(.+)$", findings, re.M))
    return {"commit": commit, "verdicts": verdicts_by_claim, "findings": texts}


def verdicts(folder: Path) -> list[str]:
    """Return a table with a line a claim and a column a protocol."""
    ledger = json.loads((folder / "ledger.json").read_text())
    claims: dict[str, dict[str, dict]] = {}
    for entry in ledger["entries"]:
        claims.setdefault(entry["claim"], {})[entry["protocol"]] = entry
    lines = ["| claim | what the paper says | " + " | ".join(PROTOCOLS) + " |", "|" + " --- |" * 6]
    for claim, entries in claims.items():
        first = next(iter(entries.values()))
        cells = [_cell(entries[name]) if name in entries else "" for name in PROTOCOLS]
        lines.append(f"| {claim} | {first['statement']} ({first['where']}) | " + " | ".join(cells) + " |")
    return lines


def _cell(entry: dict) -> str:
    count = f", {entry['holding']} of {entry['tested']}" if entry["tested"] else ""
    return f"{entry['verdict']}{count}"


def figures(folder: Path) -> list[str]:
    """Return all figures, those of one name under its own heading."""
    lines: list[str] = []
    names = sorted(path.stem for path in folder.glob("*.png"))
    order = sorted(names, key=lambda name: (name.partition("-")[0], ["", *PROTOCOLS].index(name.partition("-")[2])))
    for name in order:
        figure, _, protocol = name.partition("-")
        heading = f"### {figure}"
        if heading not in lines:
            lines += ["", heading]
        lines += ["", f"![Figure {figure}{f' under {protocol}' if protocol else ''}](images/reproduction/{name}.png)"]
    return lines[1:]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
