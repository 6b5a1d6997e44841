import gc
import math
import os
import re
import signal
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pytest

# A shell's background jobs ignore Ctrl-C, and so do all that they start; the tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Several test processes on two cores: a second BLAS or XLA thread each only makes them wait for one another.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["ADOM_STRICT"] = "1"  # an agent raises what a message makes go wrong, and does not go on
os.environ["TERM"] = "xterm"  # a dumb terminal gets no progress bar, whose tests look for it
# XLA compiles a program in half the time if it emits fused loops in its older way and the program is one piece, and in
# a seventh less than that if LLVM optimises a little only.
# run/test_engines.py holds the bits of every method to those of its default. A jaxlib that does not know a flag ends
# the process, so only the pinned one gets them.
QUICK = (
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1 --xla_backend_optimization_level=1"
)
if version("jaxlib").startswith("0.10."):
    os.environ["XLA_FLAGS"] = f"{QUICK} {os.environ.get('XLA_FLAGS', '')}".strip()
# It takes a third of that if LLVM does not optimise at all, but the last bits are then not a user's. So it optimises
# where bits of different programs are compared; no last bit decides what the others, and the examples in docstrings,
# look at.
BITS = {"data", "problems/test_logistic.py"}
BITS |= {f"run/test_{name}.py" for name in ("auto", "checkpoints", "drift", "engines", "fit", "mpi", "solve", "ssh")}
UNOPTIMISED = "jax_disable_most_optimizations"
os.environ[UNOPTIMISED.upper()] = "true"


@pytest.fixture(autouse=True, scope="session")
def no_lines_of_progress():
    """However slow the machine, a run says nothing on stderr, where tests look for errors."""
    from adom.run import progress

    progress.FIRST = math.inf


PROCESSES = re.compile(r"subprocess|mpirun|Popen|[Ss]warm\b|multiprocessing|import .*\b(ranks|machines|browser)\b")
"""Words of files whose tests start processes."""


def pytest_collection_modifyitems(items):
    """Mark the tests of files that start processes: `make check` leaves them out."""
    texts = {}
    for item in items:
        if item.path not in texts:
            texts[item.path] = item.path.suffix == ".py" and PROCESSES.search(item.path.read_text(encoding="utf-8"))
        if texts[item.path] and item.path.name.startswith("test_"):
            item.add_marker("process")


@pytest.fixture(autouse=True)
def same_environment():
    """Give the next test the environment of this one: what it calls may set variables for its own process."""
    before = dict(os.environ)
    yield
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Load all modules without collections of garbage, and spare the later ones a walk over what was loaded."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def folder_of_programs():
    """Return JAX's settings for a folder of programs of this process alone.

    Adom's own folder is for many processes and stays small: JAX locks it and reads through it for every program, which
    takes as long as to compile one when two workers fill it. Processes that tests start use that one.
    """
    with tempfile.TemporaryDirectory(prefix="adom-programs-") as folder:
        yield {"jax_compilation_cache_dir": folder, "jax_persistent_cache_min_compile_time_secs": 0.0}


@pytest.fixture(autouse=True, scope="module")
def programs(request, folder_of_programs):
    """Compile as the module wants it, here and in processes that tests start; let go of what other modules compiled.

    They had other shapes, and a process would grow to gigabytes.
    """
    path = request.path.relative_to(Path(__file__).parent)
    bits = not BITS.isdisjoint(map(str, (path, *path.parents)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(UNOPTIMISED.upper(), "false" if bits else "true")
        if "jax" in sys.modules:
            jax = sys.modules["jax"]
            for name, value in {**folder_of_programs, UNOPTIMISED: not bits}.items():
                jax.config.update(name, value)
            jax.clear_caches()
        yield
