"""What simulation, ranks and agents decide alike, in NumPy: healing, the choices of auto, how a run ended."""
