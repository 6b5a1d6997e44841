"""Networks whose messages arrive late, coarse, in part, or with noise."""

from dataclasses import replace
from typing import Any

from ..errors import InputError, InputTypeError
from ..util.checks import check_real, check_whole
from .channel import Channel, Quantised, Sparsified
from .checks import seed_number, truth
from .lossy import LossyNetwork, check_together, no_loss
from .network import Network
from .recipes import generator

LATEST = 1000
"""The most rounds by which a message may be late."""
FINEST = 32
"""The most bits of a coarse number."""
LOUDEST = 1e150
"""The largest standard deviation of noise."""
CHOICES = ("largest", "random")


@generator
def delayed(network: Network, rounds: int, varying: bool = False, seed: int = 0) -> Network:
    """Return the network on which messages arrive so many rounds late.

    Both ends of a link take the difference of what they sent in the same round, when the other's message is there: what
    a method conserves is conserved in the end. Averaging with late values swings, so lambda_max and chi count as larger
    by 1 / sin(pi / (4 rounds + 2)), and parameters are computed with them.

    Parameters
    ----------
    network : Network
    rounds : int
    varying : bool
        Whether each message is late by a number of rounds drawn from 0, ..., `rounds`.
    seed : int

    Examples
    --------
    >>> from adom.networks import ring
    >>> round(delayed(ring(4), 1).chi / ring(4).chi, 12)
    2.0
    """
    rounds = check_whole("rounds", rounds, 0, "e.g. delayed(network, 2)", LATEST)
    varying, seed = truth("varying", varying), seed_number(seed)
    channel = _channel("delayed", network)
    if channel.delay:
        raise InputError(f"messages are {channel.delay} rounds late already; give delayed(...) the sum once")
    recipe = {"generator": "delayed", "rounds": rounds, "varying": varying, "seed": seed}
    return _wrapped(network, replace(channel, delay=rounds, varying=varying, delay_seed=seed), recipe)


@generator
def quantised(network: Network, bits: int = 8, dither: bool = True, feedback: bool = True, seed: int = 0) -> Network:
    """Return the network whose messages have numbers of a few bits.

    A message is the largest number of a row as it is, and the others on an even grid up to it.

    Parameters
    ----------
    network : Network
    bits : int
        From 2 to 32.
    dither : bool
        Round up or down at random, so that the mean is right; False to round to nearest. With feedback, of d numbers
        and s = 2^(bits - 1) - 1 levels, 1 / (1 + min(d / s^2, d^(1/2) / s)) of every dithered difference is taken, or
        copies could run away: with few bits and many numbers copies follow slowly, and parameters know nothing of that.
    feedback : bool
        Both ends of a link keep copies of what came over it; a message is the coded difference to the copy, which all
        take in place of the row. What is left out comes later, and errors shrink with the differences. Without feedback
        a method stops at the error of rounding.
    seed : int

    Examples
    --------
    >>> from adom.networks import ring
    >>> quantised(ring(4), bits=4).channel.coders
    (Quantised(bits=4, dither=True, seed=0),)
    """
    bits = check_whole("bits", bits, 2, "e.g. bits=8", FINEST)
    coder = Quantised(bits, truth("dither", dither), seed_number(seed))
    recipe = {"generator": "quantised", "bits": bits, "dither": coder.dither, "feedback": feedback, "seed": coder.seed}
    return _coded(network, coder, feedback, recipe)


@generator
def sparsified(network: Network, keep: float, choice: str = "largest", feedback: bool = True, seed: int = 0) -> Network:
    """Return the network whose messages have a share of their numbers.

    Parameters
    ----------
    network : Network
    keep : float
        The share that is sent, rounded up to whole numbers.
    choice : {"largest", "random"}
        The largest numbers, with their places; or numbers whose places both ends of a link draw from one seed. The
        latter take the same numbers out of both rows, so that without feedback each of them is gossiped on a part of
        the links: chi counts as larger by 1 / keep then.
    feedback : bool
        As in `quantised`.
    seed : int

    Examples
    --------
    >>> from adom.networks import ring
    >>> sparsified(ring(4), 0.1, "random", feedback=False).chi
    20.0
    """
    keep = check_real("keep", keep, 0, 1, "it is the share of numbers that are sent, e.g. keep=0.1", strict=True)
    if choice not in CHOICES:
        raise InputError(f"choice must be one of {', '.join(CHOICES)}, got {choice!r}; e.g. choice='largest'")
    coder = Sparsified(keep, choice == "largest", seed_number(seed))
    recipe = {"generator": "sparsified", "keep": keep, "choice": choice, "feedback": feedback, "seed": coder.seed}
    return _coded(network, coder, feedback, recipe)


@generator
def noisy(network: Network, std: float, seed: int = 0) -> Network:
    """Return the network that adds Gaussian noise to every number of every message, each direction by itself.

    Parameters
    ----------
    network : Network
    std : float
        Standard deviation.
    seed : int

    Examples
    --------
    >>> from adom.networks import ring
    >>> noisy(ring(4), std=1e-3).channel.noise
    0.001
    """
    std = check_real("std", std, 0, LOUDEST, "the squares of larger numbers overflow; e.g. std=1e-3")
    seed = seed_number(seed)
    channel = _channel("noisy", network)
    if channel.noise:
        raise InputError(f"messages have noise of {channel.noise:g} already; give noisy(...) the root of both squares")
    recipe = {"generator": "noisy", "std": std, "seed": seed}
    return _wrapped(network, replace(channel, noise=std, noise_seed=seed), recipe)


def _channel(name: str, network: Any) -> Channel:
    """Return what the links of a network do so far."""
    if not isinstance(network, Network):
        raise InputTypeError(f"{name} takes an undirected network, got {type(network).__name__}; e.g. ring(5)")
    if not network.held:
        raise InputError(f"{name} needs all graphs in memory, which {network!r} has not; take fewer graphs or nodes")
    return network.channel if isinstance(network, LossyNetwork) else Channel()


def _coded(network: Any, coder: Quantised | Sparsified, feedback: bool, recipe: dict[str, Any]) -> Network:
    """Return the network with one coder more."""
    channel, feedback = _channel(recipe["generator"], network), truth("feedback", feedback)
    if channel.coders and channel.feedback != feedback:
        raise InputError(
            f"feedback={feedback} and feedback={channel.feedback} on one network: links keep copies or not; "
            "give both wrappers the same"
        )
    return _wrapped(network, replace(channel, coders=(*channel.coders, coder), feedback=feedback), recipe)


def _wrapped(network: Any, channel: Channel, recipe: dict[str, Any]) -> Network:
    """Return the network with such links; the same one where they change nothing."""
    if channel.perfect:
        same: Network = network
        return same
    loss = network.loss if isinstance(network, LossyNetwork) else no_loss(network.nodes)
    check_together(loss, channel)
    return LossyNetwork(network, loss, {**recipe, "network": network.recipe}, channel)
