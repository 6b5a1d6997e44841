"""The local engine: all nodes in one process, compiled by JAX."""
