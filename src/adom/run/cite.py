"""`adom.cite`: the references for what a run used."""

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from .. import __version__
from ..algorithms import METHODS, method_class
from ..data.sets import SETS
from ..errors import InputTypeError
from .result import Result

REFERENCES = Path(__file__).parents[1] / "references.bib"
SOFTWARE, JAX, MPI4PY, LIBSVM = "adom", "jax", "dalcin2021mpi4py", "chang2011libsvm"
ADOM, TUDATASET, TEMPORAL = "2102.09234", "2007.08663", "1911.05496"
INFECTIOUS = "6699b527f2d015617adae8cf97d0f2d0fc011a51619c765e122ee00a67f11eb5"
"""Digest of the infectious_ct1 contacts, which identifies them in a network's recipe."""


@cache
def references() -> dict[str, str]:
    """Return all BibTeX entries, by their arXiv id, or by their key if they have none.

    Examples
    --------
    >>> references()[ADOM].splitlines()[0]
    '@inproceedings{kovalev2021adom,'
    """
    found = {}
    for entry in REFERENCES.read_text(encoding="utf-8").strip().split("\n\n"):
        name = re.search(r"eprint = \{(.+)\}", entry) or re.search(r"\{(.+),", entry)
        assert name is not None
        found[name[1]] = entry
    return found


def cite(results: Any) -> str:
    """Return the BibTeX references for the software, methods, data sets and networks that runs used.

    Parameters
    ----------
    results : Result, Comparison, Sweep, or several of them
        Each reference appears once. Your own data is not included.

    Examples
    --------
    >>> import adom
    >>> problem = adom.Quadratic([[[2.0]], [[4.0]]], [[2.0], [0.0]])
    >>> result = adom.solve(problem, adom.networks.path(2), "diging", rounds=5)
    >>> [line for line in cite(result).splitlines() if line.startswith("@")]
    ['@software{adom,', '@article{nedic2017achieving,', '@software{jax,']
    """
    entries = [entry for result in _runs(results) for entry in _entries(result.provenance)]
    return "\n\n".join(dict.fromkeys(entries))


def _runs(results: Any) -> Iterable[Result]:
    if isinstance(results, Result):
        yield results
    elif isinstance(runs := getattr(results, "results", results), Iterable) and not isinstance(runs, str | bytes):
        for run in runs.values() if isinstance(runs, dict) else runs:
            yield from _runs(run)
    else:
        raise InputTypeError(
            f"cite takes a Result, a Comparison, a Sweep or several of them, got a {type(results).__name__}; "
            "adom.load(path) reads a result from its file"
        )


def _entries(provenance: dict[str, Any]) -> Iterable[str]:
    """Yield the entries of one run; a data set is found by its name anywhere in the provenance."""
    known = references()
    yield known[SOFTWARE].replace("VERSION", provenance.get("versions", {}).get("adom", __version__))
    name = provenance.get("method", {}).get("name")
    if name in METHODS:
        yield from (known[paper] for paper in re.findall(r"arXiv:(\d+\.\d+)", method_class(name).reference))
    if "reproduction" in provenance:
        yield known[ADOM]
    yield known[JAX]
    if provenance.get("engine") == "mpi":
        yield known[MPI4PY]
    words = set(re.findall(r"\w+", json.dumps(provenance, default=str)))
    if any(data.home == "libsvm" for data in SETS.values() if data.name in words):
        yield known[LIBSVM]
    if words & {INFECTIOUS, "infectious_ct1"}:
        yield from (known[TUDATASET], known[TEMPORAL])
