"""Several processes for one run: being one of them, and starting them."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from ..errors import NEEDS_MPI, InputError

PLACES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")
"""Where launchers say which rank a process is: Open MPI, srun --mpi=pmix, MPICH and Intel MPI."""
ONE_THREAD = {
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_CPU_ENABLE_ASYNC_DISPATCH": "false",  # a rank's calls are short: it would wait for another thread
}


def rank() -> int | None:
    """Return which rank this process is, None outside mpirun and the like."""
    return next((int(os.environ[name]) for name in PLACES if os.environ.get(name, "").isdigit()), None)


def calm() -> None:
    """Give a rank one thread, unless its user says otherwise: there are as many ranks as cores, or more."""
    if rank() is None:
        return
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    if "xla_cpu_multi_thread_eigen" not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()


def start(ranks: int, arguments: list[str]) -> int:
    """Run this command line once on each of several ranks; return the exit code."""
    if find_spec("mpi4py") is None:
        raise InputError(NEEDS_MPI)
    launcher = _launcher()
    environment = dict(os.environ)
    command = [launcher, "-n", str(ranks)]
    if "Open MPI" in _version(launcher):
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        command += ["--bind-to", "none"]
        command += ["--oversubscribe"] if ranks > cores else []
        if hasattr(os, "geteuid") and os.geteuid() == 0:  # in a container there is nobody else to be
            environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command += [sys.executable, "-m", "adom", *arguments]
    process = subprocess.Popen(command, env=environment)
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:  # it has reached the launcher as well, which ends the ranks
            continue
    return code if code >= 0 else 128 - code


def _launcher() -> str:
    """Return the mpirun that belongs to this Python, or else the first on the path."""
    for name in ("mpirun", "mpiexec"):
        beside = Path(sys.executable).with_name(name)
        found = str(beside) if beside.exists() else shutil.which(name)
        if found:
            return found
    raise InputError(f"no mpirun was found; {NEEDS_MPI}, which brings one, or load your cluster's MPI module")


def _version(launcher: str) -> str:
    try:
        return subprocess.run([launcher, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
