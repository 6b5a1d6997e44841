"""Compile `graphs.cc`, `kernels.cc` and, for a GPU, `kernels.cu` once for this machine, into a cache folder."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from ..util.files import cache_dir, kind, processor

HOST_FLAGS = (
    "-std=c++17",
    "-O3",
    "-fPIC",
    "-shared",
    "-w",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
)
GRAPH_FLAGS = (*HOST_FLAGS[:-1], "-ffp-contract=off")
GPU_FLAGS = ("-std=c++17", "-O3", "-Xcompiler", "-fPIC", "-shared", "-w")
LIMIT = 300
"""Seconds after which a compiler, or another process that builds, is given up on."""


def switched_off() -> bool:
    """Return whether the user has switched compiled code off."""
    return os.environ.get("ADOM_NATIVE", "1") == "0"


class BuildError(Exception):
    """The kernels cannot be built; the message says why."""


class Recipe(NamedTuple):
    """How the kernels of one kind of device are compiled."""

    source: Path
    compiler: str
    flags: tuple[str, ...]
    tuned: str  # a flag for this processor, dropped if compiling with it fails
    called_by_xla: bool = True  # then it needs jaxlib's headers


def library(backend: str, dtype: str = "float64") -> Path:
    """Return the path of the compiled library for "cpu", "gpu" or "graphs", building it if it is not cached.

    Only the library for "cpu" depends on `dtype`.
    """
    recipe = _recipe(backend, dtype)
    try:
        file = cache_dir() / f"{recipe.source.stem}-{_digest(recipe)}.so"
    except RuntimeError as error:
        raise BuildError(f"there is no cache folder for the compiled kernels: {error}") from None
    if kind(file) != "file":
        with _alone(file):
            if kind(file) != "file":  # no other process has built it meanwhile
                if recipe.called_by_xla:  # graphs.cc takes less than a second
                    print(
                        "adom: compiling its kernels for this machine, once (ten seconds)", file=sys.stderr, flush=True
                    )
                build(recipe, file)
    return file


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Let one process build at a time, if the folder allows locks: else all ranks would compile the same file."""
    from filelock import FileLock

    with ExitStack() as held:
        with suppress(OSError, NotImplementedError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            held.enter_context(FileLock(file.with_suffix(".lock"), timeout=LIMIT))
        yield


def _recipe(backend: str, dtype: str) -> Recipe:
    here = Path(__file__)
    if backend in ("cpu", "graphs"):
        compiler = _find("C++", os.environ.get("CXX"), "c++", "g++", "clang++")
        if backend == "graphs":
            return Recipe(here.with_name("graphs.cc"), compiler, GRAPH_FLAGS, "-march=native", called_by_xla=False)
        flags = (*HOST_FLAGS, "-DADOM_FLOAT32") if dtype == "float32" else HOST_FLAGS
        return Recipe(here.with_name("kernels.cc"), compiler, flags, "-march=native")
    home = os.environ.get("CUDA_HOME")
    compiler = _find("CUDA", "nvcc", f"{home}/bin/nvcc" if home else None, "/usr/local/cuda/bin/nvcc")
    return Recipe(here.with_name("kernels.cu"), compiler, GPU_FLAGS, "-arch=native")


def _find(language: str, *names: str | None) -> str:
    """Return the path of the first compiler found."""
    for name in names:
        if name and (compiler := shutil.which(name)):
            return compiler
    raise BuildError(f"no {language} compiler found (looked for {', '.join(name for name in names if name)})")


def build(recipe: Recipe, file: Path) -> None:
    """Compile into `file`; if two processes do so at once, the last one wins."""
    include = []
    if recipe.called_by_xla:
        import jax

        include = [f"-I{jax.ffi.include_dir()}"]
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
            partial = Path(scratch, file.name)
            for flags in ((*recipe.flags, recipe.tuned), recipe.flags):
                done = _run([recipe.compiler, *flags, *include, str(recipe.source), "-o", str(partial)])
                if done.returncode == 0:
                    partial.replace(file)
                    return
    except (OSError, subprocess.SubprocessError) as error:
        raise BuildError(f"{recipe.compiler} could not be run: {error}") from None
    complaint = next((line for line in done.stderr.splitlines() if "error" in line), "no message")
    raise BuildError(f"{recipe.compiler} could not compile the kernels: {complaint.strip()}")


def _headers_version() -> str:
    from jaxlib.version import __version__

    return str(__version__)


def _digest(recipe: Recipe) -> str:
    """Return a digest of all that the compiled file depends on; for the compiler, its path, size and time."""
    about = Path(recipe.compiler).resolve().stat()
    compiler = f"{recipe.compiler} {about.st_size} {about.st_mtime_ns}"
    sources = sorted({recipe.source, *recipe.source.parent.glob("*.h")})
    source = "".join(file.read_text(encoding="utf-8") for file in sources)
    headers = _headers_version() if recipe.called_by_xla else ""
    parts = (source, compiler, " ".join(recipe.flags), headers, processor())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
