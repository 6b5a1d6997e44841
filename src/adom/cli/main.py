"""The command `adom`: its subcommands, and how it ends on bad input, Ctrl-C and bugs."""

import atexit
import errno
import gc
import os
import shlex
import sys
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .. import __version__
from ..errors import InputError, nearest
from . import error_text, options, output, own_code, ranks
from .agents import agent, swarm
from .bench import bench
from .compare import compare
from .describe import data, methods, network, verify
from .exit_codes import MEANING, Ending, Exit
from .options import INSTALL, SHOW
from .predict import predict, score
from .report import plot, report
from .reproduce import ledger, reproduce
from .solve import solve
from .split import shard, split
from .sweep import sweep

UsageError: Any = typer.BadParameter.__bases__[0]  # typer carries its own click or uses the one installed

START = """\
adom: decentralized convex optimization over changing networks

to begin
  adom solve                   run ADOM on the paper's default problem
  adom solve --data FILE       the same on your own samples; or a6a, w6a, ijcnn1
  adom compare                 run several methods on one problem, side by side
  adom methods                 list the methods
the network
  adom network --network ring  describe and draw a network
further
  adom bench --quick           rank all methods on a fixed suite
  adom sweep sweep.toml        run every combination of the lists in a file
  adom verify                  check the theorem and its lemmas in every round
  adom plot out/result.npz     draw a saved run again
  adom report out              one page of curves and the network in motion
  adom predict out/model.json new.csv
                               use the model that a run on data has left;
  adom score out/model.json held-out.csv
                               and score it
the paper
  adom data                    list its data sets, and fetch them
  adom reproduce --quick       its figures and claims, in miniature
  adom ledger out/reproduce    judge its claims from the files of a reproduction
many machines
  adom shard FILE --node NAME  on each: its own file becomes the shard of a node
  adom split FILE --nodes 100  one file per node: each holds only its own
  adom solve --shards shards --engine mpi --ranks 4
                               four processes that talk to their neighbours
  adom agent node-a.toml       one node on a real network that changes
  adom swarm                   eight of them here; links are cut, agents killed

Files go to out/. For more: adom --help and adom COMMAND --help."""

EXAMPLES = {
    solve: "adom solve --data a6a --nodes 50 --kappa 1000 --network ring --rounds 20000",
    compare: "adom compare --methods adom,diging --rounds 3000   or, over seeds: adom compare --seeds 5 --latex",
    sweep: "adom sweep sweep.toml --out out/sweep   with lines [sweep.factors] and eta = [0.5, 1, 2] in the file",
    bench: "adom bench --quick   or, with a method of your own: adom bench --method mymodule:MyMethod",
    verify: "adom verify --nodes 10 --network ring --rounds 200",
    network: "adom network --network ring,star --every 20 --nodes 50",
    methods: "adom methods",
    data: "adom data a6a --download",
    split: "adom split data.svm --nodes 100 --by label --out shards",
    shard: "adom shard patients.csv --node north --target ill --without name",
    reproduce: "adom reproduce --quick   or, one panel: adom reproduce kappa/d40-kappa100",
    ledger: "adom ledger out/reproduce --claim best-over-kappa",
    predict: "adom predict out/model.json new.csv --out predictions.csv",
    score: "adom score out/model.json held-out.csv",
    plot: "adom plot out/result.npz other/result.npz --axis floats_sent -o both.svg",
    report: "adom report out/compare -o report.html",
    swarm: "adom swarm --agents 8 --seconds 30 --page 8080",
    agent: "adom agent node-a.toml --tol 1e-8   or, for certificates: adom agent keys node-a node-b",
}
"""An example call of every command, for its help."""


class EndError(Exception):
    """Early end of a command, with an exit code and perhaps a message."""

    def __init__(self, code: Exit, message: str = "") -> None:
        super().__init__(message)
        self.code = code


@contextmanager
def _ending() -> Iterator[None]:
    """Give Ctrl-C and a closed pipe our exit codes, not typer's; explain errors in the user's own code."""
    try:
        yield
    except KeyboardInterrupt:
        raise EndError(Exit.INTERRUPTED, "interrupted") from None
    except BrokenPipeError:
        raise EndError(Exit.UNREAD) from None
    except SystemExit as end:  # rich raises it on a broken pipe
        if isinstance(end.__context__, BrokenPipeError):
            raise EndError(Exit.UNREAD) from None
        raise
    except Exception as error:
        own_code.explain(error)
        raise


class Help:
    """Mixin for commands whose --help is not listed as a <bool>."""

    def get_help_option(self, context: Any) -> Any:
        """Return the option --help."""
        option = super().get_help_option(context)  # type: ignore[misc]  # a mixin of typer's commands
        if option is not None:
            option.metavar = ""
        return option


class Command(Help, TyperCommand):
    """Command whose help shows the names of arguments, not their types in Python."""

    def collect_usage_pieces(self, context: Any) -> list[str]:
        """Return the parts of the usage line."""
        names = [(argument.metavar or argument.name, argument.required) for argument in self._arguments()]
        return ["[OPTIONS]", *(name if required or name[0] == "[" else f"[{name}]" for name, required in names)]

    def get_params(self, context: Any) -> list[Any]:
        """Return options and arguments."""
        for argument in self._arguments():
            argument.display_type_rich = lambda **_: ""  # typer would print <list[Path]>
        return super().get_params(context)

    def invoke(self, context: Any) -> Any:
        """Run the command; refusals name its options and the keys of its file, not arguments of the library."""
        try:
            return super().invoke(context)
        except InputError as error:
            error.args = (error_text.in_settings(str(error), context),)
            raise

    def _arguments(self) -> list[Any]:
        return [parameter for parameter in self.params if parameter.param_type_name == "argument"]


class OneLine(Help, TyperGroup):
    """Group of commands whose bad input ends in one line on stderr and exit code 2; any other error is a bug."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command; exit with its code, or return it where `standalone_mode` is off."""
        standalone = extra.pop("standalone_mode", True)
        extra["standalone_mode"] = False  # so that errors arrive here
        words = args[0] if args else extra.get("args")
        own_code.forget()
        try:
            code = super().main(*args, **extra)
        except InputError as error:
            code = _refuse(error_text.in_flags(str(error)), error.of_all_ranks)
        except UsageError as error:
            code = _refuse(error_text.explain(error, sys.argv[1:] if words is None else words, self.commands))
        except (EndError, typer.Abort) as end:
            if str(end) and not ranks.rank():
                output.note(str(end))
            code = end.code if isinstance(end, EndError) else Exit.INTERRUPTED
        except MemoryError as error:
            code = _refuse(f"not enough memory ({error}); take fewer nodes, samples or features")
        except OSError as error:
            if error.errno not in TROUBLES:
                raise
            action = f"read or write {error.filename}" if error.filename else "write the output"
            code = _refuse(f"cannot {action}: {error.strerror}; choose another place")
        code = int(code) if isinstance(code, int) else Exit.DONE
        if standalone:
            sys.exit(code)
        return code

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        """Handle the completion options, each with an optional name of a shell; parse the rest."""
        if args and args[0] in (INSTALL, SHOW) and not context.resilient_parsing:
            print(options.offer(args[0], args[1] if len(args) > 1 else options.present_shell()))
            raise typer.Exit
        return super().parse_args(context, args)

    def resolve_command(self, context: Any, args: list[str]) -> Any:
        """Return the command that is called, or suggest the closest."""
        known = self.commands
        if args and args[0] not in known and not args[0].startswith("-") and not context.resilient_parsing:
            raise InputError(f"unknown command {args[0]!r}; {nearest(args[0], known)}")
        return super().resolve_command(context, args)

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse a call; --help prints and ends here."""
        with _ending():
            return super().make_context(*args, **extra)

    def invoke(self, context: Any) -> Any:
        """Run the command that is called."""
        with _ending():
            return super().invoke(context)

    def _main_shell_completion(
        self, ctx_args: MutableMapping[str, Any], prog_name: str, complete_var: str | None = None
    ) -> None:
        if options.VARIABLE in os.environ:
            options.TYPERS.completion_init()
        super()._main_shell_completion(ctx_args, prog_name, complete_var)


TROUBLES = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM),
    *(errno.EMFILE, errno.ENFILE, errno.ENAMETOOLONG, errno.ELOOP),
)
"""Errors of the system that are not bugs in adom."""


def _refuse(message: str, of_all_ranks: bool = False) -> int:
    rank = ranks.rank()
    if rank and not of_all_ranks:  # rank 0 prints the same, unless this rank alone fails
        time.sleep(1.0)
        message = f"rank {rank}: {message}"
    if not (rank and of_all_ranks):
        output.note(f"error: {message}")
    return ranks.leave(Exit.REFUSED) if of_all_ranks else Exit.REFUSED


app = typer.Typer(
    name="adom",
    cls=OneLine,
    add_completion=False,  # typer's own takes no name of a shell; see options.py
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: " + "; ".join(f"{code.value} {words}" for code, words in MEANING.items()) + ".",
)
command: Any
for command, line in EXAMPLES.items():
    app.command(cls=Command, epilog=f"Example: {line}".replace("[", "\\["))(command)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"adom {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    install: Annotated[
        bool,
        typer.Option(INSTALL, metavar="[SHELL]", help="Let the Tab key complete commands in bash, zsh or fish."),
    ] = False,
    show: Annotated[
        bool,
        typer.Option(SHOW, metavar="[SHELL]", help="Print the script that does so, to place it yourself."),
    ] = False,
) -> None:
    """Decentralized convex optimization over changing networks."""
    if context.invoked_subcommand is None:
        print(START)


def run() -> None:
    """Run the command line; the entry point of the installed command."""
    gc.set_threshold(100_000)  # imports make many objects that stay
    atexit.register(gc.freeze)  # so that the collections at exit have nothing to traverse
    ranks.prepare()
    ending = Ending()
    ending.listen()
    output.prepare_streams()
    output.plain_warnings(quiet=bool(ranks.rank()))
    try:
        code = app(prog_name="adom", standalone_mode=False)
        sys.stdout.flush()  # while a failure can still be reported
    except BrokenPipeError:
        code = Exit.UNREAD
    except OSError as error:
        code = _bug(error) if error.errno not in TROUBLES else _refuse(f"cannot write the output: {error.strerror}")
    except Exception as error:  # a bug: its traceback and a line that asks for a report
        code = _bug(error)
    if code != Exit.DONE:
        output.mute()
    sys.exit(ending.code(code))


def _bug(error: Exception) -> int:
    """Report an unexpected error as a bug."""
    import traceback

    wanted = os.environ.get("JAX_PLATFORMS")
    frames = traceback.extract_tb(error.__traceback__)
    if wanted and frames and frames[-1].filename.endswith("xla_bridge.py"):
        return _refuse(f"JAX_PLATFORMS={wanted} names no device of this machine; unset it, or take JAX_PLATFORMS=cpu")
    traceback.print_exc()
    called = shlex.join(["adom", *sys.argv[1:]])
    output.note(f"error: a bug in adom {__version__}; please report it with the lines above and this call: {called}")
    return Exit.BUG
