"""C++ and CUDA kernels for the sums that take most of a round's time; XLA calls them inside the compiled loop.

They are optional. On first use, `kernels.cc` (`kernels.cu` for a GPU) is compiled for this machine, with jaxlib's
headers, into a cache folder. Without a compiler everything runs on JAX alone, with the same results up to rounding.
``ADOM_NATIVE=0`` switches the kernels off; ``python -m adom.native`` builds them and reports the outcome. `graphs.cc`,
for drawing networks, is compiled the same way but is independent of XLA: see `adom.native.graphs`.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..util.files import cache_dir, kind, processor

Array = Any
TARGETS = {
    "cpu": (
        "adom_logistic_dense",
        "adom_logistic_sparse",
        "adom_logistic_newton",
        "adom_logistic_exact",
        "adom_gossip",
        "adom_exchange",
        "adom_distances",
    ),
    "gpu": ("adom_logistic_dense", "adom_logistic_many", "adom_gossip_dense"),
}
GPU_COLUMNS = 2048
"""Most features that the GPU's gradient kernel takes."""
GPU_FEW_COLUMNS = 64
"""Most features that the GPU's gradient kernels for few nodes and for many settings take."""
GPU_FEW_NODES, GPU_WHOLE = 512, 5000
"""Most nodes, and most numbers per node, that the kernel for few nodes takes."""
GPU_MANY = 64
"""Fewest settings for which the kernel for many settings pays."""
GPU_VECTORS = 4
"""Most vectors that the GPU's gossip kernel takes."""
PLATFORMS = {"cpu": "cpu", "gpu": "CUDA"}
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


@cache
def problem(backend: str, dtype: str = "float64") -> str:
    """Load the kernels for "cpu" or "gpu", building them if needed; return why they cannot be used, or ""."""
    if switched_off():
        return "switched off by ADOM_NATIVE=0"
    if backend not in TARGETS:
        return f"there are no kernels for {backend}"
    import jax

    try:
        loaded = _loaded(backend, dtype)
        for name in TARGETS[backend]:
            handler = jax.ffi.pycapsule(getattr(loaded, name))
            jax.ffi.register_ffi_target(_target(name, dtype), handler, platform=PLATFORMS[backend])
    except (BuildError, OSError, AttributeError) as error:
        return str(error)
    return ""


@cache
def _loaded(backend: str, dtype: str) -> Any:
    return ctypes.CDLL(str(library(backend, dtype)))


def _target(name: str, dtype: str) -> str:
    """Return a kernel's name in XLA for numbers of one type."""
    return f"{name}_float32" if dtype == "float32" else name


def usable(backend: str = "cpu") -> bool:
    """Return whether compiled loops run on this kind of device and can call its kernels."""
    import jax

    return jax.default_backend() == backend and not problem(backend)


def _kernel(name: str, dtype: Any) -> str:
    """Return a kernel's name in XLA; on a CPU, first build and load the kernels of this type if needed."""
    import jax

    if jax.default_backend() != "cpu":
        return name
    if reason := problem("cpu", str(dtype)):
        raise BuildError(f"{reason}; set ADOM_NATIVE=0 to run without kernels")
    return _target(name, str(dtype))


def logistic_dense(samples: Sequence[Array], x: Array) -> Array:
    """Return the sum over each node's samples of weights * -1/(1 + e^margin) * row, shape (nodes, dim).

    `samples` are the rows, of shape (nodes, m, dim) and multiplied by their labels, and their weights.
    """
    return _call("adom_logistic_dense", x, *samples, x)


def logistic_sparse(samples: Sequence[Array], x: Array) -> Array:
    """Return the sums of `logistic_dense` for samples in CSR form: value, feature, start, node_start, weights.

    The samples of node i begin at node_start[i].
    """
    return _call("adom_logistic_sparse", x, *samples, x)


def logistic_many(signed: Array, weights: Array, x: Array) -> Array:
    """Return the sums of `logistic_dense` on a GPU, for x of shape (nodes, settings, dim) in float64."""
    return _call("adom_logistic_many", x, signed, weights, x)


def logistic_newton(
    samples: Sequence[Array],
    l2: Array,
    L: Array,
    z: Array,
    z_past: Array,
    memory: Sequence[Array],
    **rules: float,
) -> Sequence[Array]:
    """Return the next memory of the oracle `auto`: x, e, p, contraction, longest, gradients, and the inverse's parts.

    `samples` are those of `logistic_dense` or `logistic_sparse`.
    """
    import jax
    import jax.numpy as jnp

    scalars = [jnp.asarray(scalar, z.dtype) for scalar in (l2, L)]
    operands = (*scalars, z, z_past)
    out = [jax.ShapeDtypeStruct(part.shape, part.dtype) for part in memory]
    aliases = {len(operands) + index: index for index in range(len(memory))}
    call = jax.ffi.ffi_call(
        _kernel("adom_logistic_newton", z.dtype), out, vmap_method="sequential", input_output_aliases=aliases
    )
    numbers = {name: np.float64(rule) for name, rule in rules.items()}
    parts: Sequence[Array] = call(*operands, *memory, *samples, **numbers)
    return parts


def logistic_exact(
    samples: Sequence[Array], l2: Array, L: Array, z: Array, x: Array, **limits: int
) -> tuple[Array, Array]:
    """Return the solutions of grad f_i(x_i) = z_i, started from x, and how many gradients each took."""
    import jax
    import jax.numpy as jnp

    scalars = [jnp.asarray(scalar, z.dtype) for scalar in (l2, L)]
    out = [jax.ShapeDtypeStruct(z.shape, z.dtype), jax.ShapeDtypeStruct(z.shape[:1], np.int32)]
    call = jax.ffi.ffi_call(_kernel("adom_logistic_exact", z.dtype), out, vmap_method="sequential")
    solution, gradients = call(*scalars, z, x, *samples, **limits)
    return solution, gradients


def distances(rows: Array, solution: Array) -> Array:
    """Return two sums in float64: of the rows' squared distances from the solution, and from their mean."""
    import jax

    two = jax.ShapeDtypeStruct((2,), np.float64)
    return jax.ffi.ffi_call(_kernel("adom_distances", rows.dtype), two, vmap_method="expand_dims")(rows, solution)


def gossip(graph: Array, start: Array, sender: Array, weight: Array, row_sum: Array, v: Array) -> Array:
    """Return A v for one graph of a pool; each is given as a CSR matrix without its diagonal, and by its row sums.

    On a process that holds only some nodes, A has fewer rows than v; they belong to the first rows of v.
    """
    import jax

    own = jax.ShapeDtypeStruct((*v.shape[:-2], row_sum.shape[-1], v.shape[-1]), v.dtype)
    return _call("adom_gossip", own, graph, start, sender, weight, row_sum, v)


FETCH = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_int64,
    ctypes.c_int64,
)
"""Fetches other processes' rows; its arguments are clock, number of tables, their addresses, rows and width."""


def exchange(fetch: Array, clock: Array, rows: int, vectors: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
    """Return the clock, and every vector extended to `rows` rows, which the function at address `fetch` fills in.

    All vectors have one shape. The clock does not change: whatever uses the one returned runs after this exchange.
    """
    import jax

    tables = [jax.ShapeDtypeStruct((rows, v.shape[1]), v.dtype) for v in vectors]
    shapes = (jax.ShapeDtypeStruct((), np.int64), *tables)
    after, *filled = jax.ffi.ffi_call("adom_exchange", shapes, has_side_effect=True)(fetch, clock, *vectors)
    return after, tuple(filled)


def gossip_dense(graph: Array, matrices: Array, row_sum: Array, vectors: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return A v on a GPU, for vectors of one shape and one matrix A of a pool of dense ones."""
    import jax

    outs = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in vectors]
    return tuple(jax.ffi.ffi_call("adom_gossip_dense", outs)(graph, matrices, row_sum, *vectors))


def gossip_rows(start: Array, sender: Array, weight: Array, row_sum: Array, v: Array) -> Array:
    """Return the first rows of A v, as many as there are row sums, for NumPy arrays."""
    own = v[: len(row_sum)]
    if not usable():
        receiver = np.repeat(np.arange(len(own)), np.diff(start))
        total = np.zeros_like(own)
        np.add.at(total, receiver, weight[:, None] * (v[sender] - v[receiver]))
        return np.asarray(row_sum[:, None] * own + total)
    v, out = np.ascontiguousarray(v), np.empty(own.shape, dtype=own.dtype)
    function = _loaded("cpu", str(v.dtype)).adom_gossip_rows
    function(*(address(a) for a in (v, start, sender, weight, row_sum, out)), *map(whole, own.shape))
    return out


def _call(name: str, like: Array, *operands: Array) -> Array:
    import jax

    out = jax.ShapeDtypeStruct(like.shape, jax.dtypes.canonicalize_dtype(like.dtype))  # as JAX casts the operands
    # Under vmap an operand that all settings share keeps a leading axis of length 1: the data is not repeated.
    return jax.ffi.ffi_call(_kernel(name, out.dtype), out, vmap_method="expand_dims")(*operands)


def address(array: npt.NDArray[Any]) -> Any:
    """Return the address of an array as a C pointer."""
    return ctypes.c_void_p(array.ctypes.data)


def whole(number: int) -> Any:
    """Return a whole number as a 64-bit C integer."""
    return ctypes.c_int64(number)
