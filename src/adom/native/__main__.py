"""``python -m adom.native``: build the kernels now and say how it went."""

import jax

from . import graphs, problem

if __name__ == "__main__":
    graphs.usable()
    reason = problem(jax.default_backend())
    print(f"adom runs on JAX alone: {reason}" if reason else "adom's kernels are compiled for this machine")
