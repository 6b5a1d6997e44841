"""Programs as XLA compiles them by default; in the tests it is in a hurry (conftest.py).

For tests of bits that must not depend on the shapes or parts of a program.
"""

from functools import partial

import jax

jit = partial(
    jax.jit,
    compiler_options={
        "xla_cpu_use_fusion_emitters": True,
        "xla_cpu_parallel_codegen_split_count": 32,
        "xla_backend_optimization_level": 3,
    },
)
