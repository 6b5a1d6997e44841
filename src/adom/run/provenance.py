"""Provenance of a result: method, problem, network, versions, device, commit and time."""

import os
import platform
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__, native
from ..algorithms import Method
from ..networks import DirectedNetwork, Network
from ..problems.oracle_spec import OracleSpec

if TYPE_CHECKING:
    from ..problems.base import Problem

CHI_NODES = 2000
"""Up to this many nodes, chi of connected graphs is cheap and recorded even if no parameter depends on it."""


def recorded_chi(network: Network | DirectedNetwork) -> float | None:
    """Return chi if it is known or cheap to compute, else None."""
    cheap = network.nodes <= CHI_NODES and (network.connected or network.chi_quick)
    return network.chi if network.chi_known or cheap else None


def describe_run(
    network: Network | DirectedNetwork, method: type[Method], spec: OracleSpec, protocol: Any, engine: str
) -> dict[str, Any]:
    """Return network, oracle, protocol, engine and environment of a run."""
    return {
        "network": {**network.recipe, "chi": recorded_chi(network)},
        "oracle": str(spec) if method.oracle == "dual" else None,
        "protocol": protocol,
        "engine": engine,
        **_environment(),
    }


def describe_method(method: Method) -> dict[str, Any]:
    """Return name, title and parameters of a method."""
    parameters = {name: float(value) for name, value in method.parameters().items()}
    return {"name": method.name, "title": method.title, "parameters": parameters}


def describe_problem(problem: "Problem") -> dict[str, Any]:
    """Return type, size, constants, weighting and model of a problem."""
    return {
        "type": type(problem).__name__,
        "nodes": problem.nodes,
        "dim": problem.dim,
        "mu": problem.mu,
        "L": problem.L,
        "kappa": problem.kappa,
        "samples": problem.weighting(),
        "model": problem.model(),
    }


def _environment() -> dict[str, Any]:
    """Return versions, device, commit and time."""
    import jax

    return {
        "versions": _versions(),
        "device": str(jax.devices()[0].device_kind),
        "native": native.usable(),
        "platform": platform.platform(),
        "commit": commit(),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


@cache
def _versions() -> dict[str, str]:
    import jax
    import jaxlib
    import numpy
    import scipy

    known = {module.__name__: module.__version__ for module in (jax, jaxlib, numpy, scipy)}
    return {"adom": __version__, "python": platform.python_version(), **known}


@cache
def commit() -> str | None:
    """Return the commit of the source tree that this code was loaded from; None without one."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():  # an installed package: a repository around it is not its own
        return None
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
