"""``python -m adom.native``: build the kernels now and report the outcome."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax

from . import graphs, problem

if __name__ == "__main__":
    graphs.usable()
    backend = jax.default_backend()
    types = ("float64", "float32") if backend == "cpu" else ("float64",)
    with ThreadPoolExecutor() as pool:
        reason = "".join(set(pool.map(partial(problem, backend), types)))
    print(f"adom runs on JAX alone: {reason}" if reason else "adom's kernels are compiled for this machine")
