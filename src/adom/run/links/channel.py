"""What links do to messages, on arrays (2, links, vectors, columns): the messages of both ends of all links."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri

from ...networks.channel import Channel, Quantised, Sparsified
from ...networks.lossy import DIGITS, draws, draws_of_numbers

Array = Any
NEARLY = 1e-4
"""A number of columns this little above a whole number is not rounded up."""

SORTED = 128
"""Columns above which sorting takes less time than comparing every number of a row with every other."""


class Sizes(NamedTuple):
    """Size of a coded row."""

    numbers: Array
    each: Array  # bits of a number
    placed: bool = False  # whether the numbers' places are sent too


class Quantiser(NamedTuple):
    """Rounds numbers to an even grid: `levels` steps on either side of zero, up to the largest number of a row."""

    levels: Array
    bits: Array
    key: Array | None  # None to round to nearest

    def coded(self, rows: Array, clock: Array, code: Array) -> Array:
        """Return the rows that arrive; `code` identifies the message of each end of each link."""
        scale = jnp.abs(rows).max(axis=-1, keepdims=True)
        steps = rows * (self.levels / jnp.where(scale > 0, scale, 1))
        if self.key is None:
            whole = jnp.round(steps)
        else:
            whole = jnp.floor(steps + _uniform(self.key, clock, code, rows.shape[-2:]).astype(rows.dtype))
        return jnp.clip(whole, -self.levels, self.levels) * (scale / self.levels)

    def spread(self, columns: int) -> Array:
        """Return the bound for dithering: min(d / levels^2, sqrt(d) / levels)."""
        return 0 if self.key is None else jnp.minimum(columns / self.levels**2, columns**0.5 / self.levels)

    def sizes(self, sizes: Sizes, columns: int) -> Sizes:
        """Return the sizes of coded rows: numbers of a few bits."""
        return sizes._replace(each=self.bits)


class Sparsifier(NamedTuple):
    """Keeps a share of the numbers of a row and replaces the others by zeros."""

    keep: Array
    key: Array | None  # None for the largest; else both ends of a link draw the same places

    def coded(self, rows: Array, clock: Array, code: Array) -> Array:
        """Return the rows that arrive."""
        score = -jnp.abs(rows) if self.key is None else _uniform(self.key, clock, code[0], rows.shape[-2:])
        return jnp.where(_rank(score) < self._count(rows.shape[-1]), rows, 0)

    def spread(self, columns: int) -> Array:
        """Return 0: the error is smaller than the row."""
        return 0

    def sizes(self, sizes: Sizes, columns: int) -> Sizes:
        """Return the sizes of coded rows: fewer numbers, and their places unless both ends draw these."""
        numbers = jnp.minimum(sizes.numbers, self._count(columns))
        return sizes._replace(numbers=numbers, placed=sizes.placed or self.key is None)

    def _count(self, columns: int) -> Array:
        return jnp.maximum(1, jnp.ceil(self.keep * columns - NEARLY)).astype(jnp.int64)


class LinkChannel(NamedTuple):
    """A network's `Channel` as arrays."""

    coders: tuple[Quantiser | Sparsifier, ...]
    noise: Array | None
    noise_key: Array
    delay: Array | None
    delay_key: Array | None  # None if all messages are equally late

    def coded(self, rows: Array, clock: Array, code: Array) -> Array:
        """Return the rows after all coders."""
        for coder in self.coders:
            rows = coder.coded(rows, clock, code)
        return rows

    def spread(self, columns: int) -> Array:
        """Return a bound on the mean squared error that dithering adds to coded rows, relative to their squares."""
        return sum(coder.spread(columns) for coder in self.coders)

    def floats(self, vectors: int, columns: int, width: int) -> Array:
        """Return how many floats of `width` bits a message of coded rows takes, rounded up.

        A quantised row also carries its largest number in full, once for all quantisers.
        """
        scale = width if any(isinstance(coder, Quantiser) for coder in self.coders) else 0
        sizes = Sizes(columns, width)
        for coder in self.coders:
            sizes = coder.sizes(sizes, columns)
        place = jnp.where(sizes.numbers < columns, (columns - 1).bit_length(), 0) if sizes.placed else 0
        return -(-vectors * (sizes.numbers * (sizes.each + place) + scale) // width)

    def heard_noise(self, clock: Array, code: Array, shape: tuple[int, int]) -> Array:
        """Return the noise on the messages that both ends hear: (2, links, vectors, columns)."""
        assert self.noise is not None
        return self.noise * ndtri(_uniform(self.noise_key, clock, code, shape))

    def late_by(self, clock: Array, code: Array, most: int) -> Array:
        """Return how many rounds late the messages at both ends are, if that varies: (2, links)."""
        return draws(self.delay_key, clock.astype(jnp.uint64), code) % np.uint64(most + 1)


def link_channel(channel: Channel) -> LinkChannel | None:
    """Return the arrays of a channel; None where it changes nothing."""
    if channel.perfect:
        return None
    delay_key = _key(channel.delay_seed, 3) if channel.varying else None
    delay = np.int64(channel.delay) if channel.delay else None
    noise = np.float64(channel.noise) if channel.noise else None
    coders = tuple(_coder(coder, place) for place, coder in enumerate(channel.coders))
    return LinkChannel(coders, noise, _key(channel.noise_seed, 2), delay, delay_key)


def _coder(coder: Quantised | Sparsified, place: int) -> Quantiser | Sparsifier:
    """Return a coder as arrays; coders of the same seed draw differently at different places."""
    key = _key(coder.seed, 4 + place)
    if isinstance(coder, Sparsified):
        return Sparsifier(np.float64(coder.keep), None if coder.largest else key)
    levels = np.float64(2 ** (coder.bits - 1) - 1)
    return Quantiser(levels, np.int64(coder.bits), key if coder.dither else None)


def _rank(score: Array) -> Array:
    """Return the rank of every number in its row; equal numbers keep their order."""
    columns = score.shape[-1]
    if columns > SORTED:
        return jnp.argsort(jnp.argsort(score, axis=-1), axis=-1)
    one, other = score[..., :, None], score[..., None, :]
    earlier = np.tri(columns, k=-1, dtype=bool)
    return ((other < one) | ((other == one) & earlier)).sum(axis=-1)


def _key(seed: int, purpose: int) -> Any:
    """Return a 64-bit key for a seed and a purpose: losses, noise, delays and coders draw independently."""
    return np.random.SeedSequence((seed, purpose)).generate_state(1, np.uint64)[0]


def _uniform(key: Array, clock: Array, code: Array, shape: tuple[int, int]) -> Array:
    """Return numbers strictly between 0 and 1 for messages: (*code.shape, vectors, columns)."""
    vectors, columns = shape
    whole = draws_of_numbers(key, clock.astype(jnp.uint64), code, vectors * columns)
    return ((whole + 0.5) / 2.0**DIGITS).reshape(*code.shape, vectors, columns)
