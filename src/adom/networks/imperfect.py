"""Networks whose messages arrive late, coarse, incomplete or noisy."""

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
"""The longest delay, in rounds."""
FINEST = 32
"""The most bits per number."""
LOUDEST = 1e150
"""The largest standard deviation of noise."""
CHOICES = ("largest", "random")


@generator
def delayed(network: Network, rounds: int, varying: bool = False, seed: int = 0) -> Network:
    """Return the network with messages that arrive `rounds` rounds late.

    When a message arrives, its receiver takes the difference to the row that it sent itself in that round. So both ends
    of a link take opposite differences, and sums that a method conserves are off for a few rounds only. Averaging with
    late values oscillates. Parameters are therefore computed with lambda_max and chi multiplied by
    1 / sin(pi / (4 rounds + 2)).

    Parameters
    ----------
    network : Network
    rounds : int
    varying : bool
        Whether the delay of each message is drawn from 0, ..., `rounds`.
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
    """Return the network with messages of few bits per number.

    A message has the largest number of a row exactly, and the others rounded to an even grid up to it.

    Parameters
    ----------
    network : Network
    bits : int
        From 2 to 32.
    dither : bool
        If True, round up or down at random, so that the mean is exact; if False, round to nearest. With feedback, d
        numbers and s = 2^(bits - 1) - 1 levels, copies move by the part 1 / (1 + min(d / s^2, d^(1/2) / s)) of every
        dithered difference; otherwise they could diverge. With few bits and many numbers copies follow slowly, and
        parameters do not account for this.
    feedback : bool
        If True, both ends of a link keep a copy of the row sent over it and gossip with the copy. A message is the
        coded difference of the row to the copy. Numbers left out are sent later, and errors shrink with the
        differences. Without feedback, a method stops at the rounding error.
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
    """Return the network with messages that contain a share of their numbers.

    Parameters
    ----------
    network : Network
    keep : float
        The share of numbers that is sent, rounded up to whole numbers.
    choice : {"largest", "random"}
        "largest" sends the largest numbers with their places. With "random", both ends of a link draw the same places
        from one seed. Without feedback each number is then gossiped on a share of the links only, so chi counts as
        larger by 1 / keep.
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
    """Return the network with Gaussian noise on every number of every message, independent in each direction.

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
    """Return the network's channel so far; refuse networks that cannot have one."""
    if not isinstance(network, Network):
        raise InputTypeError(f"{name} takes an undirected network, got {type(network).__name__}; e.g. ring(5)")
    if not network.held:
        raise InputError(
            f"{name} needs all graphs in memory, but those of {network!r} are not; take fewer graphs or nodes"
        )
    return network.channel if isinstance(network, LossyNetwork) else Channel()


def _coded(network: Any, coder: Quantised | Sparsified, feedback: bool, recipe: dict[str, Any]) -> Network:
    """Return the network with one more coder."""
    channel, feedback = _channel(recipe["generator"], network), truth("feedback", feedback)
    if channel.coders and channel.feedback != feedback:
        raise InputError(
            f"feedback={feedback} conflicts with feedback={channel.feedback} of the inner network; "
            "use the same for both"
        )
    return _wrapped(network, replace(channel, coders=(*channel.coders, coder), feedback=feedback), recipe)


def _wrapped(network: Any, channel: Channel, recipe: dict[str, Any]) -> Network:
    """Return the network with this channel; the same network if the channel is perfect."""
    if channel.perfect:
        same: Network = network
        return same
    loss = network.loss if isinstance(network, LossyNetwork) else no_loss(network.nodes)
    check_together(loss, channel)
    return LossyNetwork(network, loss, {**recipe, "network": network.recipe}, channel)
