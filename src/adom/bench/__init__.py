"""`adom bench`: a fixed suite of problems and networks, all methods on it, and what others submit for theirs."""
