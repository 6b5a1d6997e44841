"""`adom agent`: one node on a real network, in this process; `adom agent keys` makes the certificates for it."""

import json as json_lines
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from .exit_codes import Exit
from .options import OUTPUT, AsJson, number_option, switch

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
