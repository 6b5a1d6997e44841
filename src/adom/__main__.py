"""Run the command `adom` for `python -m adom`."""

from .cli.main import run

run()
