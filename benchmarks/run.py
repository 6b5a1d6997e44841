"""``make bench``: all benchmarks of speed, one after the other, as a table, a JSON file and pictures.

Every part runs in a process of its own, on one core where it says so. Ratios are within one part's process.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
PARTS = {
    "cpu": ["cpu.py"],
    "cpu, two cores": ["cpu.py", "--cores", "2"],
    "cpu, without kernels": ["cpu.py"],
    "sweep": ["sweep.py"],
    "sparse": ["sparse.py"],
    "large": ["large.py"],
    "growth": ["growth.py"],
    "gpu": ["gpu.py"],
}


def run(part: str) -> list[dict]:
    environment = {**os.environ}
    if "without kernels" in part:
        environment["ADOM_NATIVE"] = "0"
    if not part.startswith("gpu"):
        environment["JAX_PLATFORMS"] = "cpu"
    file, *arguments = PARTS[part]
    done = subprocess.run(
        [sys.executable, str(HERE / file), *arguments], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        raise SystemExit(f"{part} failed:\n{done.stderr}")
    rows: list[dict] = json.loads(done.stdout.splitlines()[-1])
    return rows


def show(part: str, rows: list[dict]) -> None:
    print(f"\n{part}")
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_short(row.get(name, "")) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[i]) for line in cells)) for i, name in enumerate(names)]
    for line in ([*names], *cells):
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)), flush=True)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def draw(rows: list[dict], file: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    kinds = list(dict.fromkeys(row["what"] for row in rows))
    figure, axes = plt.subplots(1, len(kinds), figsize=(2.4 * len(kinds), 2.4), sharey=True, layout="constrained")
    for axis, kind in zip(axes, kinds, strict=True):
        points = [(row["value"], row["us"]) for row in rows if row["what"] == kind]
        x, y = zip(*points, strict=True)
        axis.loglog(x, y, "o-", markersize=3)
        middle = len(x) // 2
        axis.loglog(x, [y[middle] * value / x[middle] for value in x], ":", color="grey", linewidth=1)
        axis.set_xticks(x[::2], [str(value) for value in x[::2]])
        axis.minorticks_off()
        axis.set_xlabel(kind)
    axes[0].set_ylabel("a round, µs")
    axes[-1].plot([], [], ":", color="grey", label="in proportion")
    axes[-1].legend(frameon=False, fontsize=7)
    figure.savefig(file, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"some of: {'; '.join(PARTS)}")
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {unknown[0]!r}; there are: {'; '.join(PARTS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    found: dict = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count()}
    began = time.time()
    for part in options.parts or PARTS:
        found[part] = run(part)
        show(part, found[part])
    if "growth" in found:
        draw(found["growth"], options.out / "growth.png")
    found["minutes"] = (time.time() - began) / 60
    partial = options.out / "bench.json.partial"
    partial.write_text(json.dumps(found, indent=1) + "\n")
    partial.replace(options.out / "bench.json")
    print(f"\nwrote {options.out / 'bench.json'} after {found['minutes']:.1f} minutes")


if __name__ == "__main__":
    main()
