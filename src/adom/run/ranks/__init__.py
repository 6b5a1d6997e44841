"""The MPI engine: every process holds a block of the nodes."""
