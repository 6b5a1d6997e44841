"""``make bench-peers``: the same job by adom, by plain scripts and by other tools, interleaved in one run.

The job: ADOM or the nearest method, 1,000 rounds with one gradient each, 100 nodes with 100 samples of 40 features,
kappa 100, a random geometric network of 1,000 graphs, one core, one thread. Every contender is a script in
``benchmarks/peers``, started in a fresh process: the whole process is timed, and in another one its second call.
Numbers are the least wall seconds of the repeats; one that takes more than ten seconds is not repeated.
"""

import argparse
import csv
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import one_core

SCRIPTS = Path(__file__).parent / "peers"
ROUNDS = 1000
SLOW, PATIENCE = 10, 900
"""Seconds: who takes longer is not repeated; who takes longer is ended and left out."""


@dataclass(frozen=True)
class Contender:
    """One row of the table: what it runs, and how it is started."""

    key: str
    title: str
    method: str
    words: tuple[str, ...]
    python: str = sys.executable
    keeps: bool = False
    """Whether it keeps programs between processes, so that its first run on a machine is another thing."""

    @property
    def command_line(self) -> bool:
        """Whether this is `adom solve`, which makes a folder and has no second call."""
        return self.words[0] == "-m"


@dataclass(frozen=True)
class Peer:
    """Another tool: its script, the package that must be there, what its row says, and how to install it."""

    title: str
    script: str
    package: str
    method: str
    how: str
    repository: str = ""
    """Where its checkout comes from, if it is no package itself."""


def ours(key: str, title: str, method: str, script: str, *words: str) -> Contender:
    return Contender(key, title, method, (str(SCRIPTS / script), *words), keeps=script == "adom_script.py")


OURS = [
    ours("numpy", "NumPy script", "ADOM, one gradient", "numpy_script.py"),
    ours("jax", "JAX script", "ADOM, one gradient", "jax_script.py"),
    ours("gd:1", "adom", "ADOM, one gradient", "adom_script.py", "--oracle", "gd:1"),
    ours("auto", "adom", "ADOM, oracle `auto`", "adom_script.py", "--oracle", "auto"),
    ours("default", "adom", "ADOM, nothing given", "adom_script.py", "--oracle", "auto", "--parameters", "auto"),
    ours("exact", "adom", "ADOM, oracle `exact`", "adom_script.py", "--oracle", "exact"),
    Contender("solve", "`adom solve`", "its default", ("-m", "adom", "solve", "--out"), keeps=True),
]
BASE = OURS[0].key
PEERS = {
    "nda": Peer(
        "NDA", "nda_script.py", "cvxpy", "gradient tracking",
        "cvxpy, colorlog, matplotlib, networkx, pandas and scikit-learn", "liboyue/Network-Distributed-Algorithm",
    ),
    "dadao": Peer("DADAO", "dadao_script.py", "torch", "ADOM+", "torch, networkx and scipy", "AdelNabli/DADAO"),
    "decent-bench": Peer(
        "decent-bench", "decent_bench_script.py", "decent_bench", "exact diffusion, one graph", "decent-bench"
    ),
    "tvopt": Peer("tvopt", "tvopt_script.py", "tvopt", "distributed gradient method", "tvopt 'numpy<2.4'"),
}  # fmt: skip


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def settle(asked: argparse.Namespace) -> tuple[list[Contender], dict[str, str]]:
    """Return who takes part, and why the other peers do not."""
    present, left_out = [*OURS], {}
    for key, peer in PEERS.items():
        python, checkout = asked.python_of.get(key, sys.executable), getattr(asked, key, None)
        code = f"import {peer.package}, importlib.metadata as m; print(m.version({peer.package.replace('_', '-')!r}))"
        found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        where = f"--python-of {key}=PATH, the Python of an environment with"
        if peer.repository and (found.returncode or checkout is None):
            left_out[key] = f"give --{key} FOLDER, a checkout of github.com/{peer.repository}, and {where} {peer.how}"
        elif found.returncode:
            left_out[key] = f"give {where} it (pip install {peer.how})"
        else:
            title = peer.title if peer.repository else f"{peer.title} {found.stdout.strip()}"
            words = ("--checkout", str(checkout)) if peer.repository else ()
            present.append(Contender(key, title, peer.method, (str(SCRIPTS / peer.script), *words), python))
    chosen = {BASE, *asked.only} if asked.only else {*(one.key for one in OURS), *PEERS}
    return [one for one in present if one.key in chosen], {k: why for k, why in left_out.items() if k in chosen}


class ContenderError(Exception):
    """A contender that did not end well."""


def measure(contender: Contender, more: list[str], cache: Path) -> dict[str, Any]:
    """Run one process; return its wall and CPU seconds, and what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {"JAX_PLATFORMS": "cpu", "ADOM_CACHE": str(cache)}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    try:
        done = subprocess.run(
            [contender.python, *contender.words, *more], env=environment, capture_output=True, text=True, check=False,
            timeout=PATIENCE,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ContenderError(f"it took more than {PATIENCE} seconds") from None
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise ContenderError("\n".join((done.stderr or done.stdout).strip().splitlines()[-20:]))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu, "output": done.stdout}


@contextmanager
def fresh(kernels: Path) -> Iterator[Path]:
    """Return a cache folder that holds compiled kernels and nothing else."""
    with tempfile.TemporaryDirectory(prefix="adom-peers-") as folder:
        cache = Path(folder) / "cache"
        shutil.copytree(kernels, cache)
        yield cache


def compete(contender: Contender, kernels: Path) -> dict[str, Any]:
    """Measure a contender once: its first run where that differs, a fresh process, a second call."""
    found: dict[str, Any] = {}
    with fresh(kernels) as cache:
        folder = cache.parent / "out"
        once = [str(folder)] if contender.command_line else ["--calls", "1"]
        for run in ("first", "cold") if contender.keeps else ("cold",):
            took = measure(contender, once, cache)
            found |= {f"{run} wall": took["wall"], f"{run} cpu": took["cpu"]}
        if contender.command_line:
            with (folder / "history.csv").open() as file:
                *_, last = csv.DictReader(file)
            found |= {"rounds": int(last["round"]), "error": float(last["error"])}
        else:
            printed = json.loads(measure(contender, ["--calls", "2"], cache)["output"].splitlines()[-1])
            found |= {"warm": printed["calls"][1], "per round": printed["per_round"], "error": printed["error"]}
            found["warm / loop"] = found["warm"] / (ROUNDS * found["per round"])
    return found


def least(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the least of every figure; second call over its own loop is of the least second call."""
    best = {name: min(run[name] for run in runs) for name in runs[0]}
    if "warm" in best:
        best["warm / loop"] = min(runs, key=lambda run: run["warm"])["warm / loop"]
    return {**best, "repeats": len(runs)}


def compete_all(contenders: list[Contender], repeats: int, left_out: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Let everybody compete in turn, some times over; a peer that fails is left out."""
    runs: dict[str, list[dict[str, Any]]] = {contender.key: [] for contender in contenders}
    with tempfile.TemporaryDirectory(prefix="adom-peers-") as folder:
        kernels = Path(folder) / "kernels"
        kernels.mkdir()
        built = measure(Contender("kernels", "", "", ("-m", "adom.native")), [], kernels)
        say(built["output"].strip())
        for repeat in range(repeats):
            for contender in contenders:
                mine = runs[contender.key]
                if contender.key in left_out or (mine and mine[0]["cold wall"] > SLOW):
                    continue
                try:
                    mine.append(compete(contender, kernels))
                except ContenderError as error:
                    if contender in OURS:
                        raise SystemExit(f"{contender.key} failed:\n{error}") from None
                    left_out[contender.key] = f"it failed: {error}"
                    say(f"{contender.key} is left out; {left_out[contender.key]}")
                else:
                    say(f"{repeat + 1}/{repeats} {contender.key}: {_words(mine[-1])}")
    return {key: least(mine) for key, mine in runs.items() if mine and key not in left_out}


def _words(run: dict[str, Any]) -> str:
    """Write one run's figures in a line."""
    first = f", first run {run['first wall']:.2f} s" if "first wall" in run else ""
    warm = f", second call {run['warm']:.3f} s" if "warm" in run else ""
    return f"fresh process {run['cold wall']:.2f} s{first}{warm}"


def ratio(value: float, base: float) -> str:
    return f"{value / base:.2f}" if value < 10 * base else f"{value / base:.0f}"


def tables(contenders: list[Contender], found: dict[str, dict[str, Any]]) -> str:
    """Write what was found as two Markdown tables."""
    base = found[BASE]
    times, kept = [], []
    for one in (one for one in contenders if one.key in found):
        run = found[one.key]
        method = f"{one.method}, {run['rounds']} rounds and files" if "rounds" in run else one.method
        row = [one.title, method, *(ratio(run[name], base[name]) for name in ("cold wall", "cold cpu"))]
        row += [ratio(run[name], base[name]) if name in run else "" for name in ("warm", "per round")]
        row += [f"{run['cold wall']:.2f}", f"{run['cold cpu']:.2f}"]
        row += [f"{run['warm']:.3f}", f"{1e6 * run['per round']:.0f}"] if "warm" in run else ["", ""]
        times.append(row)
        if one.keeps:
            walls = [run["cold wall"], run["first wall"]]
            row = [one.title, method, *(ratio(wall, base["cold wall"]) for wall in walls), f"{walls[1] - walls[0]:.2f}"]
            kept.append([*row, f"{run['warm / loop']:.2f}" if "warm" in run else ""])
    heads = ["over the NumPy script", "method", "fresh process", "its CPU time", "second call", "a round"]
    text = table([*heads, "s", "CPU s", "second call, s", "µs a round"], times)
    if not kept:
        return text
    heads = ["over the NumPy script", "method", "second run on a machine", "first run", "first less second, s"]
    return text + "\n" + table([*heads, "second call / its rounds"], kept)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Write a Markdown table whose first two columns are text."""
    rule = ["---", "---", *["--:"] * (len(heads) - 2)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (heads, rule, *rows))


def read(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the options; refuse what cannot be meant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="default 3")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help=f"against {BASE}; may be repeated")
    parser.add_argument(
        "--python-of", action="append", default=[], metavar="NAME=PATH", help=f"Python of a peer: {', '.join(PEERS)}"
    )
    for name, peer in PEERS.items():
        if peer.repository:
            parser.add_argument(f"--{name}", type=Path, metavar="FOLDER", help=f"checkout of {peer.repository}")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the tables there")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    asked = parser.parse_args(arguments)
    if asked.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {asked.repeats}; leave it out for 3")
    pythons = {}
    for text in asked.python_of:
        name, _, path = text.partition("=")
        if name not in PEERS or not shutil.which(path):
            parser.error(f"--python-of takes NAME=PATH, a peer ({', '.join(PEERS)}) and its Python, got {text!r}")
        pythons[name] = path
    asked.python_of = pythons
    for name in (name for name, peer in PEERS.items() if peer.repository):
        folder = getattr(asked, name)
        if folder is not None and not folder.is_dir():
            parser.error(f"--{name} must be a folder, a checkout of {PEERS[name].repository}, got {str(folder)!r}")
    known = [*(one.key for one in OURS), *PEERS]
    for name in asked.only:
        if name not in known:
            parser.error(f"--only must be one of {', '.join(known)}, got {name!r}")
    return asked


def main() -> None:
    asked = read()
    began = time.time()
    one_core()
    contenders, left_out = settle(asked)
    for key, remedy in left_out.items():
        say(f"{key} is left out: {remedy}")
    found = compete_all(contenders, asked.repeats, left_out)
    text = tables(contenders, found)
    print(f"Least seconds of {asked.repeats} repeats, on one core, with one thread.\n\n{text}")
    minutes = (time.time() - began) / 60
    machine = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(), "minutes": minutes}
    asked.out.mkdir(parents=True, exist_ok=True)
    file = asked.out / "peers.json"
    partial = file.with_name("peers.json.partial")
    partial.write_text(json.dumps({**machine, "found": found, "left out": left_out}, indent=1) + "\n")
    partial.replace(file)
    if asked.markdown:
        asked.markdown.write_text(text)
    print(f"wrote {file} after {minutes:.1f} minutes")


if __name__ == "__main__":
    main()
