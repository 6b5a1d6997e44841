"""``make reproduction-docs FOLDER=out/reproduce``: a full reproduction's figures, ledger and findings as documentation.

Figures become small PNG files in docs/images/reproduction; the ledger and the findings are copied as they are.
"""

import shutil
import sys
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).parent
WIDTH, COLOURS = 1100, 48
"""Of a picture: wide enough to read a panel of four, few colours, for curves need no more."""


def main(folder: Path) -> None:
    target = DOCS / "images" / "reproduction"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in sorted((folder / "figures").glob("*.png")):
        with Image.open(path) as picture:
            flat = Image.new("RGB", picture.size, "white")
            flat.paste(picture, mask=picture.getchannel("A") if picture.mode == "RGBA" else None)
        size = (WIDTH, round(flat.height * WIDTH / flat.width))
        small = flat.resize(size, Image.Resampling.LANCZOS) if flat.width > WIDTH else flat
        small.quantize(COLOURS, dither=Image.Dither.NONE).save(target / path.name, optimize=True)
    for name in ("ledger.md", "findings.md"):
        shutil.copyfile(folder / name, DOCS / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
