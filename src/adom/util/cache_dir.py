"""Where adom keeps files between runs."""

import hashlib
import os
import platform
from functools import cache
from pathlib import Path


def cache_dir() -> Path:
    """Return the folder of files that can be rebuilt or fetched again: $ADOM_CACHE, or `adom` in the user's cache."""
    chosen = os.environ.get("ADOM_CACHE")
    if chosen:
        return Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "adom"


@cache
def processor() -> str:
    """Return a digest of the processor's features, since different machines may share a home folder."""
    try:
        with Path("/proc/cpuinfo").open() as lines:  # it describes every core; the first is enough
            features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        features = platform.processor()
    return hashlib.sha256(f"{platform.machine()} {features}".encode()).hexdigest()[:12]
