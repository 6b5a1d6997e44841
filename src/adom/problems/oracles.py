"""The dual oracle, grad F*(z) row by row, in its ways; inner gradients are always counted.

Row i of grad F*(z) is argmin_x f_i(x) - <x, z_i>. Every way but `exact` warm-starts at the previous round's
answer, so an oracle has a memory; it is passed in and out, never hidden.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import InputError
from .base import Array, Problem

KINDS = ("exact", "auto", "gd", "agd")


@dataclass(frozen=True)
class OracleSpec:
    """Which way, and with how many inner steps (0 where the way finds its own number)."""

    kind: str
    steps: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.steps}" if self.steps else self.kind


def parse_oracle(oracle: Any) -> OracleSpec:
    """Read "exact", "auto", ("gd", T), ("agd", T) or the text forms "gd:T", "agd:T".

    Examples
    --------
    >>> parse_oracle(("gd", 1)), str(parse_oracle("agd:3"))
    (OracleSpec(kind='gd', steps=1), 'agd:3')
    """
    if isinstance(oracle, OracleSpec):
        return oracle
    kind, steps = oracle, None
    if isinstance(oracle, str) and ":" in oracle:
        kind, _, text = oracle.partition(":")
        steps = int(text) if text.isdigit() else text
    elif isinstance(oracle, tuple | list) and len(oracle) == 2:
        kind, steps = oracle
    if kind in ("exact", "auto") and steps is None:
        return OracleSpec(kind)
    if kind in ("gd", "agd") and isinstance(steps, int) and not isinstance(steps, bool) and steps >= 1:
        return OracleSpec(kind, steps)
    raise InputError(
        f"unknown oracle {oracle!r}; use 'exact', 'auto', ('gd', T) or ('agd', T) with a whole number T >= 1; "
        "on the command line exact, auto, gd:T or agd:T"
    )


class Accuracy(NamedTuple):
    """How exact the `auto` oracle has to be (`adom.engine.rehearsal` finds these numbers)."""

    cap: Any  # inner steps at most, per round
    lag: Any  # how far the answer may lag behind z, in rounds
    patience: Any  # rounds from one look at whether z moves less than before to the next


class Memory(NamedTuple):
    """What the oracle keeps from round to round."""

    x: Array  # the last answer
    gradients: Array  # (rows,): gradients spent so far
    watch: "Watch | None" = None  # for `auto` only


class Watch(NamedTuple):
    """What `auto` knows, node by node; nothing here needs another node."""

    accuracy: Accuracy
    z: Array  # the last z asked for
    scale: Array  # how far z moves in a round, smoothed
    round: Array
    peak: Array  # the largest scale in the present window of `patience` rounds
    level: Array  # the largest scale of the window before, or of the first rounds


SMOOTHING = 0.9
SETTLING = 20  # rounds until the first level is taken
LARGEST_CAP = 2**14  # so that alarms without end cannot make a round endless


def start(zeros: Array, accuracy: Accuracy | None = None) -> Memory:
    """Return the memory that the first round starts from; `accuracy` is for the `auto` oracle."""
    rows = jnp.zeros(zeros.shape[0], dtype=jnp.int32)
    if accuracy is None:
        return Memory(zeros, rows)
    still = jnp.zeros(zeros.shape[0], dtype=zeros.dtype)
    per_row = Accuracy(rows + accuracy.cap, still + accuracy.lag, jnp.asarray(accuracy.patience))
    watch = Watch(per_row, zeros, still, jnp.zeros((), jnp.int32), still, still)
    return Memory(zeros, rows, watch)


def dual_gradient(spec: OracleSpec, problem: Problem, memory: Memory, z: Array) -> Memory:
    """Return the memory after one more evaluation; its `x` is the answer."""
    if spec.kind == "auto":
        return auto_steps(problem, memory, z)
    if spec.kind == "exact":
        x, spent = problem.exact_dual_gradient_rows(z, memory.x)
        return memory._replace(x=x, gradients=memory.gradients + spent)
    descend = gradient_steps if spec.kind == "gd" else accelerated_steps
    x = descend(problem, z, memory.x, spec.steps)
    return memory._replace(x=x, gradients=memory.gradients + spec.steps)


def auto_steps(problem: Problem, memory: Memory, z: Array) -> Memory:
    r"""As many accelerated steps as the round needs, decided at every node by what that node sees.

    The residual e = grad f(y) - z says of which z' = z + e the point y is the exact answer, and z moves by
    about `scale` in a round, so |e| / scale is the number of rounds by which the answer lags behind. A node
    takes inner steps until that lag is within what a rehearsal of the same method, parameters and graphs found
    harmless, and at most the number of steps that sufficed there for every curvature in [mu, L]. Where the
    hard curvatures do not occur, or are not stirred, the lag is reached sooner than the cap: that is what
    makes it cheap. Steps are those of Nesterov's method with the momentum started afresh, since T of them do
    at least as well as T of gradient descent and one is the same.

    The rehearsal knows neither the differences between the nodes' functions nor how they bend. So a guard
    watches. A node whose scale grows tenfold, or has not shrunk by a tenth from one window of `patience` rounds to
    the next, doubles its cap and halves its lag. Both tend to the exact oracle (the cap's own limit solves to
    rounding for any kappa up to about 1e6), so a run that the exact oracle makes converge does so, at worst after
    some such alarms.
    """
    accuracy, z_before, scale, round_, peak, level = memory.watch  # type: ignore[misc]  # set for this kind
    scale = SMOOTHING * scale + (1 - SMOOTHING) * jnp.linalg.norm(z - z_before, axis=-1)
    rounding = (
        64
        * float(np.finfo(z.dtype).eps)
        * (jnp.linalg.norm(z, axis=-1) + problem.L * jnp.linalg.norm(memory.x, axis=-1))
    )
    enough = jnp.maximum(accuracy.lag * scale, rounding)
    beta, step = _momentum(problem), 1 / problem.L

    def body(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        taken, x, y, spent, active = carry
        e = problem.gradient_rows(y) - z
        x_next = y - step * e
        y = jnp.where(active[:, None], x_next + beta * (x_next - x), y)
        x = jnp.where(active[:, None], x_next, x)
        more = (jnp.linalg.norm(e, axis=-1) > enough) & (taken + 1 < accuracy.cap)
        return taken + 1, x, y, spent + active, active & more

    everyone = jnp.ones(z.shape[0], dtype=bool)
    carry = (jnp.zeros((), jnp.int32), memory.x, memory.x, memory.gradients, everyone)
    _, x, _, gradients, _ = jax.lax.while_loop(lambda c: c[-1].any(), body, carry)

    round_ = round_ + 1
    peak = jnp.maximum(peak, scale)
    level = jnp.where(round_ <= SETTLING, jnp.maximum(peak, rounding), level)
    window_over = round_ % accuracy.patience == 0
    alarm = (scale > 10 * level) | (window_over & (peak > 0.9 * level) & (round_ > accuracy.patience))
    alarm = alarm & (scale > rounding)
    accuracy = accuracy._replace(
        cap=jnp.where(alarm, jnp.minimum(2 * accuracy.cap, LARGEST_CAP), accuracy.cap),
        lag=jnp.where(alarm, accuracy.lag / 2, accuracy.lag),
    )
    level = jnp.where(window_over | alarm, peak, level)
    peak = jnp.where(window_over, 0.0, peak)
    return Memory(x, gradients, Watch(accuracy, z, scale, round_, peak, level))


def gradient_steps(problem: Problem, z: Array, x: Array, steps: int) -> Array:
    """T steps of gradient descent, x <- x - (grad f(x) - z) / L."""
    step = 1 / problem.L  # outside the loop, which then need not divide
    return jax.lax.fori_loop(0, steps, lambda _, x: x - step * (problem.gradient_rows(x) - z), x)


def accelerated_steps(problem: Problem, z: Array, x: Array, steps: int) -> Array:
    """T steps of Nesterov's method, the momentum starting afresh; one step of it is one of gradient descent."""
    beta, step = _momentum(problem), 1 / problem.L

    def body(_: Array, pair: tuple[Array, Array]) -> tuple[Array, Array]:
        x, y = pair
        x_next = y - step * (problem.gradient_rows(y) - z)
        return x_next, x_next + beta * (x_next - x)

    return jax.lax.fori_loop(0, steps, body, (x, x))[0]


def _momentum(problem: Problem) -> Array:
    root = jnp.sqrt(problem.L / problem.mu)
    return (root - 1) / (root + 1)
