"""What a run runs: the method with its parameters, and under `parameters="auto"` the pilot that changes them."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ...algorithms import Constants, Method
from ...algorithms.base import made, plain
from ...dynamics.auto_state import SETTINGS, AutoSettings
from ...errors import InputError
from ...networks import DirectedNetwork, LossyNetwork, Network
from ...problems.base import Problem
from ..constants import make_method, unspectral
from ..links import rule_on, serving
from ..request import AUTO, method_type
from .pilot import Greatest, Pilot, RunPart


class Resolved(NamedTuple):
    """What a run runs."""

    method: Method
    pilot: Pilot | None  # changes the method's parameters on the way
    protocol: Any  # how the parameters are chosen, as a result tells it


def resolve(
    problem: Problem,
    network: Network | DirectedNetwork,
    method: Any,
    parameters: Any,
    first: int = 0,
    greatest: Greatest = np.asarray,
    rules: AutoSettings = SETTINGS,
) -> Resolved:
    """Return what runs the method given by name, class or instance, for the nodes of `problem`: `first` and the next.

    `greatest` returns the elementwise maximum over all processes. "tuned" parameters are found elsewhere.
    """
    if isinstance(method, Method):
        return Resolved(make_method(problem, network, method, parameters), None, "given")
    if parameters == AUTO and (pilot := pilot_for(problem, network, method_type(method), first, greatest, rules)):
        return Resolved(plain(pilot.assumed), pilot, AUTO)
    return Resolved(make_method(problem, network, method, parameters), None, parameters)


def pilot_for(
    problem: Problem,
    network: Network | DirectedNetwork,
    cls: type[Method],
    first: int = 0,
    greatest: Greatest = np.asarray,
    rules: AutoSettings = SETTINGS,
) -> Pilot | None:
    """Return the pilot of a method for the nodes of `problem`; None if the method's formulas do not use chi."""
    constants = unspectral(problem, network)
    if not _uses_chi(cls, constants):
        return None
    check_findable(cls, network)
    run = RunPart(problem, network, cls, constants, first, greatest, rules)
    in_windows = cls.windowed and not network.connected and not isinstance(network, LossyNetwork)
    if cls.rounds_per_step == 1 and not in_windows:
        from .canary_pilot import CanaryPilot

        return CanaryPilot(run)
    from .mixing_pilot import MixingPilot

    return MixingPilot(run)


def check_findable(cls: type[Method], network: Network | DirectedNetwork) -> None:
    """Raise an `InputError` if a method's parameters cannot be found on this network."""
    some = Constants(mu=1.0, L=10.0)
    if not isinstance(network, LossyNetwork) or not _uses_chi(cls, some):
        return
    rule_on(made(cls, "unit", some), network)
    if not network.channel.perfect:
        other = ", or a method without chi in its formulas, e.g. NIDS" if serving(network) == "NIDS" else ""
        raise InputError(
            f"parameters='auto' needs links that deliver messages unchanged and without delay, which {network!r} "
            f"does not have; take 'theory', 'unit' or 'tuned'{other}"
        )
    if cls.rounds_per_step != 1:
        raise InputError(
            f"parameters='auto' cannot measure how fast {cls.title} averages where messages are lost; "
            "take 'theory' or 'unit'"
        )


def _uses_chi(cls: type[Method], constants: Constants) -> bool:
    top = constants.lambda_max
    some = [made(cls, "unit", replace(constants, lambda_min_plus=top / chi)) for chi in (30.0, 300.0)]
    return some[0].parameters() != some[1].parameters()
