"""The command `adom`: its parts, and what becomes of bad input."""

import sys
import time
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import InputError
from . import ranks
from .compare import compare
from .data import data
from .ledger import ledger
from .methods import methods
from .network import network
from .plot import plot
from .report import report
from .reproduce import reproduce
from .solve import solve
from .split import split
from .sweep import sweep
from .verify import verify

UsageError: Any = typer.BadParameter.__bases__[0]  # typer carries its own click or uses the one installed

START = """\
adom: decentralized convex optimization over changing networks

  adom solve                    run ADOM on the paper's default problem; files go to out/
  adom solve --engine mpi --ranks 4
                                the same in four processes that talk to their neighbours
  adom solve --data FILE        the same on your own samples, or on a6a, w6a, ijcnn1
  adom compare                  run all methods on the same problem, side by side
  adom sweep sweep.toml         run every combination of the settings that a file lists
  adom network --network ring   describe and draw a network
  adom verify                   check the theorem and its lemmas round by round
  adom methods                  list the methods
  adom data                     list the data sets, where they are, and fetch them
  adom split FILE --nodes 100 --out shards
                                write one file a node, so that each machine holds its own only
  adom reproduce --quick        reproduce the paper's figures and claims, in miniature; without it in full
  adom ledger FOLDER            judge the paper's claims from the files of a reproduction
  adom plot out/result.npz      draw a saved run again
  adom report out -o report.html
                                one page with curves, claims and the network in motion, that works offline

adom --help and adom COMMAND --help say more."""


class OneLine(TyperGroup):
    """Commands whose bad input ends in one line on stderr and exit code 2; any other error is a bug."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command; exit with its code, or return it where `standalone_mode` is off."""
        standalone = extra.pop("standalone_mode", True)
        extra["standalone_mode"] = False  # so that errors arrive here
        try:
            code = super().main(*args, **extra)
        except InputError as error:
            code = _refuse(str(error))
        except UsageError as error:
            where = error.ctx.command_path if error.ctx else "adom"
            message = error.format_message().rstrip(".")
            link = "" if message.endswith("?") else ";"
            code = _refuse(f"{message[:1].lower()}{message[1:]}{link} {where} --help lists what there is")
        except (KeyboardInterrupt, typer.Abort):
            print("interrupted", file=sys.stderr)
            code = 130
        code = code if isinstance(code, int) else 0
        if standalone:
            sys.exit(code)
        return code


def _refuse(message: str) -> int:
    rank = ranks.rank()
    if rank:  # rank 0 says the same, unless this rank alone has the trouble
        time.sleep(1.0)
        message = f"rank {rank}: {message}"
    print(f"error: {' '.join(message.splitlines())}", file=sys.stderr, flush=True)
    return 2


app = typer.Typer(
    name="adom",
    cls=OneLine,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (solve, compare, sweep, verify, network, methods, data, split, reproduce, ledger, plot, report):
    app.command()(command)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"adom {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Decentralized convex optimization over changing networks."""
    if context.invoked_subcommand is None:
        print(START)


def run() -> None:
    """Run the command line; the entry point of the installed command."""
    ranks.calm()
    app(prog_name="adom")
