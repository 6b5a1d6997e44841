"""Agents on a real network: `adom agent` runs one in this process, `adom agent keys` makes their certificates.

`adom swarm` runs many on this machine, disturbs them, and shows them live.
"""

import json as json_lines
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .exit_codes import Exit
from .options import OUTPUT, AsJson, number_option, switch

if TYPE_CHECKING:
    from ..agents.testbed.processes import Swarm

What = Annotated[
    str, typer.Argument(metavar="CONFIG.toml|keys", help="Settings of the agent; or keys, to make certificates.")
]
Names = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]...", help="With keys: the names of agents.", show_default=False)
]
Name = Annotated[str | None, typer.Option("--name", metavar="TEXT", help="Name of this agent.", show_default=False)]
Listen = Annotated[
    str | None,
    typer.Option(
        "--listen", metavar="TEXT", help="Where it listens: tls/HOST:PORT, tcp/HOST:PORT.", show_default=False
    ),
]
Data = Annotated[str | None, typer.Option("--data", metavar="FILE", help="Its samples.", show_default=False)]
Tol = Annotated[
    float | None,
    number_option("--tol", "Stop when all agents agree that the squared error is at most this.", float, 1e-8),
]
Rounds = Annotated[int | None, number_option("--rounds", "Stop after this many rounds.", int, 1000)]
Seconds = Annotated[float | None, number_option("--seconds", "Stop after this many seconds.", float, 60)]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any other setting, as in the file.", show_default=False),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="DIR", help="Folder for model and checkpoint, or keys.", show_default=False,
        rich_help_panel=OUTPUT,
    ),
]  # fmt: skip
Check = Annotated[bool, switch("--check", "Read the settings and the data, print what they imply, and exit.")]


def agent(
    what: What,
    names: Names = None,
    name: Name = None,
    listen: Listen = None,
    data: Data = None,
    tol: Tol = None,
    rounds: Rounds = None,
    seconds: Seconds = None,
    setting: Set = None,
    check: Check = False,
    out: Out = None,
    json: AsJson = False,
) -> int:
    """Run one agent: a process with its own data that solves together with its neighbours.

    Neighbours are found, lost and found again; nobody has a special role. It
    needs no constants, survives lost messages, cut links and machines that
    die, and stops when all agree (--tol), or runs on and follows its data.
    The log goes to stdout, one JSON object a line.
    """
    if what == "keys":
        return _keys(names or [], out or Path("keys"), json)
    if names:
        raise InputError(f"unexpected {names[0]!r}; adom agent takes one file of settings, or keys and names")
    given = {"name": name, "listen": listen, "data": data, "tol": tol, "rounds": rounds, "seconds": seconds}
    overrides = {key: value for key, value in given.items() if value is not None} | _settings(setting or [])
    if out is not None:
        overrides["out"] = str(out)

    from ..agents.configuration import read_config
    from ..agents.making import describe
    from ..agents.service import INCOMPLETE, NOT_WRITTEN, run_agent
    from . import output

    config = read_config(Path(what), overrides)
    if check:
        print(json_lines.dumps(describe(config)))
        return Exit.DONE
    ending = run_agent(config)
    try:
        sys.stdout.flush()
    except OSError:  # the agent has said so already, and the exit code is about its work
        output.mute()
    failed = ending in (INCOMPLETE, NOT_WRITTEN)
    return Exit.INTERRUPTED if ending == "interrupted" else Exit.FAILED if failed else Exit.DONE


def _settings(pairs: list[str]) -> dict[str, Any]:
    """Read KEY=VALUE pairs: values as in TOML, or plain text."""
    import tomllib

    from ..agents.configuration import TABLES
    from ..errors import nearest

    known = [key for keys in TABLES.values() for key in keys]
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key not in known:
            raise InputError(f"--set {pair} is not KEY=VALUE of a known key; {nearest(key, known)}")
        try:
            found[key] = tomllib.loads(f"value = {value}")["value"]
        except ValueError:
            found[key] = value
    return found


def _keys(names: list[str], folder: Path, json: bool) -> int:
    if not names:
        raise InputError("adom agent keys needs the names of agents; e.g. adom agent keys node-a node-b")
    from ..agents.keys import make_keys
    from . import output

    made = make_keys(folder, names)
    if json:
        output.as_json({"folder": folder, "files": made})
        return Exit.DONE
    one = names[0]
    output.lines(
        "wrote",
        *(f"  {path}" for path in made),
        "next",
        f"  copy ca.pem, {one}.pem and {one}.key to the machine of {one}, and so on for each; keep ca.key to yourself",
        f'  {shlex.join(["adom", "agent", f"{one}.toml"])}   with keys = "FOLDER" in its table [agent]',
    )
    return Exit.DONE


# Many of them here

EVERY = 0.5
"""Seconds between two updates."""
Agents = Annotated[int, number_option("--agents", "Number of agents.", int, 8, ge=2, le=64)]
Troubled = Annotated[float, number_option("--seconds", "Seconds during which faults happen.", float, 20, ge=0, le=1e6)]
Faults = Annotated[
    str, typer.Option("--faults", metavar="TEXT", help="random, none, or a file of events: SECONDS EVENT NAME...")
]
Late = Annotated[int, number_option("--late", "Agents that only a file of events starts.", int, 0, ge=0, le=63)]
Plain = Annotated[bool, switch("--plain", "Without TLS.")]
Spaces = Annotated[bool, switch("--namespaces", "Each agent in a network namespace of its own (root).")]
Seed = Annotated[int, number_option("--seed", "Seed of data, links and faults.", int, 0, ge=0, le=2**32 - 1)]
Reached = Annotated[
    float, number_option("--tol", "Relative error that all agents must reach in the end.", float, 1e-8, gt=0)
]
Port = Annotated[int, number_option("--port", "First port on loopback.", int, 17447, ge=1024, le=65000)]
Page = Annotated[
    int | None, number_option("--page", "Show the network on http://127.0.0.1:PORT/.", int, 8080, ge=1024, le=65535)
]
Kept = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="DIR", help="Keep data, settings, logs and models here.", rich_help_panel=OUTPUT
    ),
]


def swarm(
    agents: Agents = 8,
    seconds: Troubled = 20.0,
    faults: Faults = "random",
    late: Late = 0,
    namespaces: Spaces = False,
    plain: Plain = False,
    seed: Seed = 0,
    tol: Reached = 1e-8,
    port: Port = 17447,
    page: Page = None,
    out: Kept = None,
    json: AsJson = False,
) -> int:
    """Try agents on this machine: links are cut, agents killed, stopped and revived.

    Each is a process with samples of its own. In the end all that are there
    must be at the exact answer for their samples; the exit code says whether.
    """
    from ..agents.live_page import Server
    from ..agents.testbed.processes import (
        Loopback,
        Namespaces,
        Swarm,
        missing,
        random_events,
        random_links,
        read_script,
        write_samples,
    )
    from . import output

    names = [f"n{i}" for i in range(agents)]
    links = random_links(names, seed)
    if faults not in ("random", "none"):
        events = read_script(Path(faults), names)
    else:
        events = list(random_events(names, links, seed, seconds)) if faults == "random" else []
    if namespaces and (why := missing()):
        raise InputError(f"no network namespaces here: {why}; leave out --namespaces to use loopback")
    with tempfile.TemporaryDirectory(prefix="adom-swarm-") if out is None else nullcontext(out) as home:
        folder = Path(home)
        folder.mkdir(parents=True, exist_ok=True)
        write_samples(folder, names, seed)
        wires = Namespaces(names, links) if namespaces else Loopback(names, range(port, port + agents))
        quick = {"patience": 0.5, "gone": 3.0, "gather": 3.0}
        with (
            Swarm(folder, names, links, wires, not plain, quick) as made,
            nullcontext() if page is None else Server(page, made.picture),
        ):
            for name in names[: agents - late]:
                made.start(name)
            reached = _watch(made, events, seconds, tol, quiet=json)
            summary = _summary(made, reached)
    if json:
        output.as_json(summary)
    else:
        words = "all are at the exact answer" if reached else "NOT all are at the exact answer"
        output.lines(f"{words}: greatest relative error {summary['error']:.1e} of {len(summary['present'])} agents")
    return Exit.DONE if reached else Exit.FAILED


def _watch(made: "Swarm", events: list[Any], seconds: float, tol: float, quiet: bool) -> bool:
    """Let events happen and show the swarm; return whether all agents then reach the exact answer in time."""
    from ..agents.testbed.processes import happen

    waiting = list(events)
    with _shown(made, quiet) as show:
        while waiting or time.monotonic() - made.began < seconds:
            now = time.monotonic() - made.began
            while waiting and waiting[0].seconds <= now:
                happen(made, waiting.pop(0))
            made.ask()
            time.sleep(min(EVERY, max(0.05, waiting[0].seconds - now if waiting else EVERY)))
            show()
        end, reached = time.monotonic() + max(30.0, seconds), False
        while not reached and time.monotonic() < end:
            reached = made.wait_for_error(tol, EVERY)
            show()
    return reached


@contextmanager
def _shown(made: "Swarm", quiet: bool) -> Iterator[Any]:
    """Yield a function that shows the swarm: as a live table on a terminal, else as lines."""
    from . import output

    if quiet:
        yield lambda: None
        return
    if not sys.stderr.isatty():
        told = 0

        def show() -> None:
            nonlocal told
            for event in made.events[told:]:
                output.note(event)
            told, errors = len(made.events), made.errors()
            if errors:
                output.note(f"{len(errors)} agents, greatest relative error {max(errors.values()):.1e}")

        yield show
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=4) as live:
        yield lambda: live.update(_table(made))


def _table(made: "Swarm") -> Any:
    from rich.table import Table

    table = Table("agent", "state", "round", "rounds/s", "links", "chi", "error", "repaired", "forgotten")
    errors = made.errors()
    for name in made.names:
        state = "hangs" if name in made.stopped else "runs" if made.alive(name) else "-"
        status = made.status.get(name, {}) if made.alive(name) else {}
        row = [status.get(key, "") for key in ("round", "rounds_per_second", "links", "chi", "repaired", "forgotten")]
        error = f"{errors[name]:.1e}" if name in errors else ""
        cells = [*row[:2], " ".join(row[2] or []), row[3], error, *row[4:]]
        table.add_row(name, state, *map(str, cells))
    table.caption = "\n".join(made.events[-4:])
    return table


def _summary(made: "Swarm", reached: bool) -> dict[str, Any]:
    errors = made.errors()
    return {
        "reached": reached,
        "error": max(errors.values(), default=float("inf")),
        "errors": errors,
        "present": made.present(),
        "events": made.events,
        "status": {name: made.status.get(name, {}) for name in made.present()},
    }
