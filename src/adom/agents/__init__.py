"""Agents: one process per machine, each with its own data, on a network that changes.

`wire` defines the messages. `agent` is the logic of one agent, without clocks or sockets. `links` carries messages over
Zenoh, and `service` runs an agent as a process. Nothing here needs JAX: an agent is NumPy on one node's rows.
"""
