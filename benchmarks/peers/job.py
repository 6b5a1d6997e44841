"""The job that every script here does, and what they share: options, timing of calls, the line that each prints."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

KAPPA, RADIUS = 100.0, 0.33
CHECKOUT = {"type": Path, "required": True, "metavar": "FOLDER", "help": "a checkout of its repository"}


def options(description: str | None, **more: dict[str, Any]) -> argparse.Namespace:
    """Return what the command line says; `more` are options of one script alone."""
    parser = argparse.ArgumentParser(description=description)
    sizes = {"nodes": 100, "samples": 100, "dim": 40, "rounds": 1000, "graphs": 1000}
    for name, size in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=size, metavar="N", help=f"default {size}")
    parser.add_argument("--calls", type=int, default=2, metavar="N", help="solve so many times; default 2")
    for name, details in more.items():
        parser.add_argument(f"--{name}", **details)
    asked = parser.parse_args()
    for name in (*sizes, "calls"):
        if getattr(asked, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(asked, name)}; leave it out for the usual one")
    return asked


def run(asked: argparse.Namespace, solve: Callable[[], tuple[float, float | None]]) -> None:
    """Time calls of `solve` and print them as one line of JSON.

    It returns the squared error in the end and the seconds of its rounds alone, None if a call is nothing else.
    """
    calls, loops, error = [], [], 0.0
    for _ in range(asked.calls):
        began = perf_counter()
        error, loop = solve()
        calls.append(perf_counter() - began)
        loops.append(calls[-1] if loop is None else loop)
    print(json.dumps({"calls": calls, "per_round": loops[-1] / asked.rounds, "error": float(error)}))
