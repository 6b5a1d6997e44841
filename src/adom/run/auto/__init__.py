"""`parameters="auto"`: runs that need no constants of the network."""
