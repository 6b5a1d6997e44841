"""Several processes for one run: start them, and act as one of them."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from ..errors import NEEDS_MPI, InputError
from .exit_codes import Exit

RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
"""Environment variables of launchers with the rank: Open MPI, srun --mpi=pmix, MPICH and Intel MPI."""
ONE_THREAD = {
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_CPU_ENABLE_ASYNC_DISPATCH": "false",  # a rank's calls are short: waiting for another thread costs more
}


def rank() -> int | None:
    """Return the rank of this process, None outside mpirun and the like."""
    return next((int(os.environ[name]) for name in RANK_VARIABLES if os.environ.get(name, "").isdigit()), None)


CODE = "ADOM_EXIT_CODE"
"""Environment variable with the file for rank 0's exit code, read by `start`: launchers warn of codes but 0."""


def prepare() -> None:
    """Limit a rank to one thread, unless its environment says otherwise: there are as many ranks as cores, or more.

    SIGUSR1 counts as Ctrl-C: launchers pass it on, but at Ctrl-C itself they kill the ranks.
    """
    if rank() is None:
        return
    if CODE not in os.environ:  # started by the user's launcher: its output may go to a file, so no colours
        os.environ["TERM"] = "dumb"
    if hasattr(signal, "SIGUSR1"):
        signal.signal(signal.SIGUSR1, lambda number, frame: signal.raise_signal(signal.SIGINT))
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    if "xla_cpu_multi_thread_eigen" not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()


@contextmanager
def watched(doing: str) -> Iterator[None]:
    """Let the other ranks know within a block that this one is alive.

    A rank that fails alone ends without waiting for the others; the launcher then ends them.
    """
    if rank() is None:
        yield
        return
    from ..run.ranks import watch

    watch.early = True
    from ..run.ranks import world as mpi

    mpi.begin(doing)
    try:
        yield
    except InputError as error:
        error.of_all_ranks = error.of_all_ranks or mpi.all_refuse(str(error))
        mpi.finalize = error.of_all_ranks
        raise
    except BaseException:
        mpi.finalize = False
        raise


def leave(code: Exit) -> Exit:
    """Return the exit code of a rank once all ranks have finished; rank 0 saves its own for `start`."""
    file = os.environ.get(CODE)
    if file is None:
        return code
    if rank() == 0:
        Path(file).write_text(str(int(code)))
    return Exit.DONE


def start(ranks: int, arguments: list[str], folder: Path) -> int:
    """Run a command line on several ranks; return the exit code. `folder` is for files of the ranks and the code."""
    if find_spec("mpi4py") is None:
        raise InputError(NEEDS_MPI)
    launcher = _launcher()
    code_file = folder / "code"
    environment = {**os.environ, CODE: str(code_file), "COLUMNS": str(shutil.get_terminal_size().columns)}
    if not sys.stdout.isatty():  # a rank cannot tell, since some launchers give it a terminal
        environment["TERM"] = "dumb"
    command = [launcher, "-n", str(ranks)]
    if "Open MPI" in _version(launcher):
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        command += ["--bind-to", "none"]
        # Files of a killed launcher, named by its process id, stop a later one with that id: each gets its own folder.
        environment["TMPDIR"] = str(folder)
        command += ["--oversubscribe"] if ranks > cores else []
        if hasattr(os, "geteuid") and os.geteuid() == 0:  # in a container there may be no other user
            environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command += [sys.executable, "-m", "adom", *arguments]
    code, interrupted = _wait(command, environment)
    if code == 0 and code_file.exists():
        code = int(code_file.read_text())
    if interrupted and code != Exit.DONE:
        return Exit.INTERRUPTED
    return code if code >= 0 else 128 - code


def _wait(command: list[str], environment: dict[str, str]) -> tuple[int, bool]:
    """Wait for the launcher; return its exit code, and whether Ctrl-C was pressed.

    The launcher does not receive Ctrl-C or SIGTERM: the first one asks the ranks to stop and save, the next Ctrl-C ends
    them.
    """
    ask = getattr(signal, "SIGUSR1", signal.SIGTERM)
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    interrupted = False
    while True:
        try:
            return process.wait(), interrupted
        except KeyboardInterrupt:
            process.send_signal(signal.SIGTERM if interrupted else ask)
            interrupted = True


def _launcher() -> str:
    """Return the mpirun that belongs to this Python, or else the first on the path."""
    for name in ("mpirun", "mpiexec"):
        beside = Path(sys.executable).with_name(name)
        path = str(beside) if beside.exists() else shutil.which(name)
        if path:
            return path
    raise InputError(f"no mpirun was found; {NEEDS_MPI}, which brings one, or load your cluster's MPI module")


def _version(launcher: str) -> str:
    try:
        return subprocess.run([launcher, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
