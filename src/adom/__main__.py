"""`python -m adom` is the command `adom`."""

from .cli.main import run

run()
