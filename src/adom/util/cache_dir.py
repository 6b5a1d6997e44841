"""Where adom keeps files between runs."""

import os
from pathlib import Path


def cache() -> Path:
    """Return the folder of what can be made or fetched anew: $ADOM_CACHE, or adom's folder in the user's cache."""
    given = os.environ.get("ADOM_CACHE")
    if given:
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "adom"
