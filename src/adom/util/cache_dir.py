"""Where adom keeps files between runs."""

import os
from pathlib import Path


def cache_dir() -> Path:
    """Return the folder of files that can be rebuilt or fetched again: $ADOM_CACHE, or `adom` in the user's cache."""
    chosen = os.environ.get("ADOM_CACHE")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "adom"
