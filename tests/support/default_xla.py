"""Programs as XLA compiles them by default; in the tests it is in a hurry (conftest.py).

For tests of bits that must not depend on the shapes or parts of a program.
"""

import os
from functools import partial

import jax

DEFAULTS = {"xla_cpu_parallel_codegen_split_count": 32, "xla_backend_optimization_level": 3}
if "xla_cpu_use_fusion_emitters" in os.environ.get("XLA_FLAGS", ""):  # set by conftest.py for a jaxlib that knows it
    DEFAULTS["xla_cpu_use_fusion_emitters"] = True

jit = partial(jax.jit, compiler_options=DEFAULTS)
