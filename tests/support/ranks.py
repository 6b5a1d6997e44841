"""Starting programs on several ranks from a test."""

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("mpi_program.py")
FILES = tempfile.TemporaryDirectory(prefix="adom-mpi-")  # killed launchers leave some, which stop later ones
ENVIRONMENT = {
    "TMPDIR": FILES.name,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "JAX_CPU_ENABLE_ASYNC_DISPATCH": "false",
}


def mpirun():
    beside = Path(sys.executable).with_name("mpirun")
    return str(beside) if beside.exists() else shutil.which("mpirun")


@cache
def why_not():
    """Return why there is no MPI here, "" where there is."""
    if find_spec("mpi4py") is None:
        return "mpi4py is not installed: pip install '.[mpi]'"
    if mpirun() is None:
        return "there is no mpirun: pip install '.[mpi]'"
    done = subprocess.run(
        [mpirun(), "-n", "1", sys.executable, "-c", "from mpi4py import MPI"],
        env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return "" if done.returncode == 0 else f"MPI does not start here: {done.stderr.strip()[-200:]}"


needs_mpi = pytest.mark.skipif(bool(why_not()), reason=why_not() or "MPI is there")


def command(ranks, *words):
    return [mpirun(), "-n", str(ranks), "--oversubscribe", "--bind-to", "none", sys.executable, *map(str, words)]


def start(ranks, *words, **more):
    """Start the program; the caller waits."""
    environment = {**os.environ, **ENVIRONMENT, **more.pop("env", {})}
    return subprocess.Popen(
        command(ranks, PROGRAM, *words), env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        **more,
    )  # fmt: skip


def run(ranks, *words, timeout=240, **more):
    """Run the program; return its exit code and all that it printed."""
    process = start(ranks, *words, **more)
    try:
        out, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, out
