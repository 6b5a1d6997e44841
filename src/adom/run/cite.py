"""`adom.cite`: the references for what a run used."""

import json
import re
from collections.abc import Iterable
from typing import Any

from .. import __version__
from ..algorithms import METHODS, method_class
from ..algorithms.references import PAPERS
from ..data.sets import SETS
from ..errors import InputTypeError
from .result import Result

ADOM = "2102.09234"
INFECTIOUS = "6699b527f2d015617adae8cf97d0f2d0fc011a51619c765e122ee00a67f11eb5"
"""Digest of the infectious_ct1 contacts, which identifies them in a network's recipe."""

SOFTWARE = """@software{{adom,
  author = {{{{The adom developers}}}},
  title = {{adom: decentralized convex optimization over changing networks}},
  version = {{{version}}},
  year = {{2026}},
}}"""

JAX = """@software{jax,
  author = {Bradbury, James and Frostig, Roy and Hawkins, Peter and Johnson, Matthew James and Leary, Chris
    and Maclaurin, Dougal and Necula, George and Paszke, Adam and VanderPlas, Jake and Wanderman-Milne, Skye
    and Zhang, Qiao},
  title = {{JAX}: composable transformations of {Python+NumPy} programs},
  url = {http://github.com/jax-ml/jax},
  year = {2018},
}"""

MPI4PY = """@article{dalcin2021mpi4py,
  author = {Dalcin, Lisandro and Fang, Yao-Lung L.},
  title = {mpi4py: Status Update After 12 Years of Development},
  journal = {Computing in Science \\& Engineering},
  year = {2021},
  doi = {10.1109/MCSE.2021.3083216},
}"""

LIBSVM = """@article{chang2011libsvm,
  author = {Chang, Chih-Chung and Lin, Chih-Jen},
  title = {{LIBSVM}: A Library for Support Vector Machines},
  journal = {ACM Transactions on Intelligent Systems and Technology},
  year = {2011},
}"""

TUDATASET = """@misc{morris2020tudataset,
  author = {Morris, Christopher and Kriege, Nils M. and Bause, Franka and Kersting, Kristian and Mutzel, Petra
    and Neumann, Marion},
  title = {{TUDataset}: A collection of benchmark datasets for learning with graphs},
  year = {2020},
  eprint = {2007.08663},
  archiveprefix = {arXiv},
}"""

TEMPORAL = """@inproceedings{oettershagen2020temporal,
  author = {Oettershagen, Lutz and Kriege, Nils M. and Morris, Christopher and Mutzel, Petra},
  title = {Temporal Graph Kernels for Classifying Dissemination Processes},
  booktitle = {Proceedings of the 2020 SIAM International Conference on Data Mining},
  pages = {496--504},
  year = {2020},
  eprint = {1911.05496},
  archiveprefix = {arXiv},
}"""


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
    yield SOFTWARE.format(version=provenance.get("versions", {}).get("adom", __version__))
    name = provenance.get("method", {}).get("name")
    if name in METHODS:
        yield from (PAPERS[paper] for paper in re.findall(r"arXiv:(\d+\.\d+)", method_class(name).reference))
    if "reproduction" in provenance:
        yield PAPERS[ADOM]
    yield JAX
    if provenance.get("engine") == "mpi":
        yield MPI4PY
    words = set(re.findall(r"\w+", json.dumps(provenance, default=str)))
    if any(data.home == "libsvm" for data in SETS.values() if data.name in words):
        yield LIBSVM
    if words & {INFECTIOUS, "infectious_ct1"}:
        yield from (TUDATASET, TEMPORAL)
