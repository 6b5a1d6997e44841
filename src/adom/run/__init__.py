"""One run: `solve`, its driver, its recorder and its engines."""
