"""Networks whose messages arrive late, coarse, incomplete or noisy: one class and one function for each kind of link.

The class says what the links do, as arithmetic on arrays of NumPy or JAX: rows of shape (2, links, vectors, columns)
are the messages of both ends of all links, `clock` is the round, and `code` identifies the message of each end of each
link. The compiled loop takes the classes as they are. `LINKS` has all kinds of imperfect links.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, shown
from ..util.checks import check_real, check_whole
from .lossy import Size, channel_of, draws, lossy, uniform, with_channel
from .network import Network
from .recipes import generator, seed_number, truth

LATEST = 1000
"""The longest delay, in rounds."""
FINEST = 32
"""The most bits per number."""
FEWEST = 1e-9
"""The smallest share of numbers; every message has one number at least."""
LOUDEST = 1e150
"""The largest standard deviation of noise."""
CHOICES = ("largest", "random")
NEARLY = 1e-4
"""A number of columns this little above a whole number is not rounded up."""
SORTED = 128
"""Columns above which sorting takes less time than comparing every number of a row with every other."""


class Late(NamedTuple):
    """Messages that arrive some rounds late."""

    rounds: Any
    key: Any = None  # None if all are equally late; else each is by a number drawn from 0, ..., rounds

    @property
    def mean(self) -> float:
        """The average delay."""
        return float(self.rounds if self.key is None else self.rounds / 2)

    def by(self, clock: Any, code: Any, most: int) -> Any:
        """Return how many rounds late the messages at both ends are, if that varies: (2, links)."""
        return draws(self.key, clock.astype(np.uint64), code) % np.uint64(most + 1)


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
    channel = channel_of("delayed", network)
    if channel.late is not None:
        raise InputError(f"messages are {channel.delay} rounds late already; give delayed(...) the sum once")
    recipe = {"generator": "delayed", "rounds": rounds, "varying": varying, "seed": seed}
    late = Late(np.asarray(rounds), _key(seed, 3) if varying else None) if rounds else None
    return with_channel(network, channel._replace(late=late), recipe)


class Quantised(NamedTuple):
    """Messages of few bits per number, on an even grid up to the largest number of a row, which is sent exactly."""

    bits: Any
    levels: Any  # steps on either side of zero
    key: Any  # None to round to nearest

    @property
    def sent(self) -> float:
        """The share of numbers that is sent: all."""
        return 1.0

    @property
    def share(self) -> float:
        """The share of W that acts on average: all."""
        return 1.0

    def coded(self, rows: Any, clock: Any, code: Any) -> Any:
        """Return the rows that arrive."""
        library = rows.__array_namespace__()
        scale = abs(rows).max(axis=-1, keepdims=True)
        steps = rows * (self.levels / library.where(scale > 0, scale, 1))
        if self.key is None:
            whole = library.round(steps)
        else:
            whole = library.floor(steps + uniform(self.key, clock, code, rows.shape[-2:]).astype(rows.dtype))
        return library.clip(whole, -self.levels, self.levels) * (scale / self.levels)

    def spread(self, columns: int) -> Any:
        """Return the bound for dithering: min(d / levels^2, sqrt(d) / levels)."""
        if self.key is None:
            return 0
        library = self.levels.__array_namespace__()
        return library.minimum(columns / self.levels**2, columns**0.5 / self.levels)

    def size(self, size: Size, columns: int) -> Size:
        """Return the size of coded rows: numbers of a few bits, and the largest in full."""
        return size._replace(each=self.bits, scaled=True)


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
    >>> quantised(ring(4), bits=4)
    LossyNetwork(quantised(ring, bits=4), nodes=4, graphs=1, period=1, edges=4)
    """
    bits, dither, seed = check_whole("bits", bits, 2, "e.g. bits=8", FINEST), truth("dither", dither), seed_number(seed)

    def coder(key: Any) -> Quantised:
        return Quantised(np.asarray(bits), np.asarray(2.0 ** (bits - 1) - 1), key if dither else None)

    recipe = {"generator": "quantised", "bits": bits, "dither": dither, "feedback": feedback, "seed": seed}
    return _coded(network, coder, recipe)


class Sparsified(NamedTuple):
    """Messages with a share of their numbers, the others replaced by zeros."""

    sent: Any
    key: Any  # None for the largest; else both ends of a link draw the same places

    @property
    def share(self) -> float:
        """The share of W that acts on average: places that both ends leave out are not gossiped."""
        return 1.0 if self.key is None else float(self.sent)

    def coded(self, rows: Any, clock: Any, code: Any) -> Any:
        """Return the rows that arrive."""
        score = -abs(rows) if self.key is None else uniform(self.key, clock, code[0], rows.shape[-2:])
        return rows.__array_namespace__().where(_rank(score) < self._count(rows.shape[-1]), rows, 0)

    def spread(self, columns: int) -> Any:
        """Return 0: the error is smaller than the row."""
        return 0

    def size(self, size: Size, columns: int) -> Size:
        """Return the size of coded rows: fewer numbers, and their places unless both ends draw these."""
        numbers = self.sent.__array_namespace__().minimum(size.numbers, self._count(columns))
        return size._replace(numbers=numbers, placed=size.placed or self.key is None)

    def _count(self, columns: int) -> Any:
        library = self.sent.__array_namespace__()
        return library.maximum(1, library.ceil(self.sent * columns - NEARLY)).astype(np.int64)


@generator
def sparsified(network: Network, keep: float, choice: str = "largest", feedback: bool = True, seed: int = 0) -> Network:
    """Return the network with messages that contain a share of their numbers.

    Parameters
    ----------
    network : Network
    keep : float
        The share of numbers that is sent, at least 1e-9, rounded up to whole numbers.
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
    keep = check_real("keep", keep, FEWEST, 1, "it is the share of numbers that are sent, e.g. keep=0.1")
    if not isinstance(choice, str) or choice not in CHOICES:
        raise InputError(f"choice must be one of {', '.join(CHOICES)}, got {shown(choice)}; e.g. choice='largest'")
    seed = seed_number(seed)

    def coder(key: Any) -> Sparsified:
        return Sparsified(np.asarray(keep), None if choice == "largest" else key)

    recipe = {"generator": "sparsified", "keep": keep, "choice": choice, "feedback": feedback, "seed": seed}
    return _coded(network, coder, recipe)


class Noise(NamedTuple):
    """Gaussian noise on every number that arrives."""

    std: Any
    key: Any

    def heard(self, clock: Any, code: Any, shape: tuple[int, int]) -> Any:
        """Return the noise on the messages that both ends hear: (2, links, vectors, columns)."""
        from jax.scipy.special import ndtri

        return self.std * ndtri(uniform(self.key, clock, code, shape))


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
    >>> noisy(ring(4), std=1e-3)
    LossyNetwork(noisy(ring, std=0.001), nodes=4, graphs=1, period=1, edges=4)
    """
    std = check_real("std", std, 0, LOUDEST, "the squares of larger numbers overflow; e.g. std=1e-3")
    seed = seed_number(seed)
    channel = channel_of("noisy", network)
    if channel.noise is not None:
        raise InputError(
            f"messages have noise of {channel.noise.std:g} already; give noisy(...) the root of both squares"
        )
    noise = Noise(np.asarray(std), _key(seed, 2)) if std else None
    return with_channel(network, channel._replace(noise=noise), {"generator": "noisy", "std": std, "seed": seed})


def _coded(network: Any, coder: Callable[[Any], Any], recipe: dict[str, Any]) -> Network:
    """Return the network with one more coder, made from a key: the same seed draws differently at every place."""
    channel, feedback = channel_of(recipe["generator"], network), truth("feedback", recipe["feedback"])
    if channel.coders and channel.feedback != feedback:
        raise InputError(
            f"feedback={feedback} conflicts with feedback={channel.feedback} of the inner network; "
            "use the same for both"
        )
    made = coder(_key(recipe["seed"], 4 + len(channel.coders)))
    channel = channel._replace(coders=(*channel.coders, made), feedback=feedback)
    return with_channel(network, channel, recipe | {"feedback": feedback})


def _key(seed: int, purpose: int) -> Any:
    """Return a 64-bit key for a seed and a purpose: losses, noise, delays and coders draw independently."""
    return np.random.SeedSequence((seed, purpose)).generate_state(1, np.uint64)[0]


def _rank(score: Any) -> Any:
    """Return the rank of every number in its row; equal numbers keep their order."""
    columns = score.shape[-1]
    if columns > SORTED:
        library = score.__array_namespace__()
        return library.argsort(library.argsort(score, axis=-1), axis=-1)
    one, other = score[..., :, None], score[..., None, :]
    earlier = np.tri(columns, k=-1, dtype=bool)
    return ((other < one) | ((other == one) & earlier)).sum(axis=-1)


@dataclass(frozen=True)
class Link:
    """A kind of imperfect links, as people choose it.

    Attributes
    ----------
    make : callable
        The function that gives a network such links.
    options : dict
        The argument that each setting of the command line stands for; settings named no_... switch one off.
    floor : callable
        What such links do that no method or parameters can mend, from the network's recipe; "" if nothing.
    """

    make: Callable[..., Network]
    options: Mapping[str, str]
    floor: Callable[[Mapping[str, Any]], str] = lambda recipe: ""


def _coarse_floor(recipe: Mapping[str, Any]) -> str:
    if recipe.get("feedback") or recipe.get("choice") == "random":
        return ""
    return "coarse messages without feedback leave a floor; leave feedback=False out (docs/links.md)"


def _noise_floor(recipe: Mapping[str, Any]) -> str:
    words = "noise on the links leaves a floor, or errors that grow, with any parameters; docs/links.md says which"
    return words if recipe.get("std") else ""


def _loss_floor(recipe: Mapping[str, Any]) -> str:
    loses = recipe.get("one_way") or recipe.get("leaving") or recipe.get("joining")
    if not loses or recipe.get("healing"):
        return ""
    return "lost messages and nodes lead to a wrong answer without healing; leave healing=False out (docs/loss.md)"


LINKS = {
    "sparsified": Link(sparsified, {"keep": "keep", "no_feedback": "feedback"}, _coarse_floor),
    "quantised": Link(quantised, {"bits": "bits", "no_feedback": "feedback"}, _coarse_floor),
    "delayed": Link(delayed, {"delay": "rounds"}),
    "noisy": Link(noisy, {"noise": "std"}, _noise_floor),
    "lossy": Link(
        lossy,
        {"one_way": "one_way", "leaving": "leaving", "joining": "joining", "no_healing": "healing"},
        _loss_floor,
    ),
}
"""All kinds of imperfect links, in the order in which the command line applies them."""
