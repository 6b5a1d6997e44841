"""Agents: one process a machine, each with its own data, on a network that changes.

`wire` is what they say, `agent` what one does with it, free of clocks and sockets; `links` carries it over Zenoh, and
`service` runs it as a process. Nothing here needs JAX: an agent is NumPy on one node's rows.
"""
