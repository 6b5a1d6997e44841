"""Decisions of `parameters="auto"`: which chi to assume next, from numbers that all nodes have agreed on.

Assumed chis are powers of one number. A block of rounds has four quarters, followed by rounds in which the nodes agree
on what they saw. A canary's rate is how fast it shrank from the second quarter to the last. The rate of an assumed chi
is the worst rate of its canaries, at most the rate on a perfect network. The chi with the best rate is taken.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import product
from math import inf
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import Constants, Method
from ..algorithms.base import bare, made
from .auto_state import SETTINGS, AutoSettings, AutoState, Block, Decision

Array = np.ndarray
UNMOVED = 1e-9
"""An eigenvalue this close to 1 belongs to a conserved sum."""
TRIED, MODES = (5.0, 50.0), (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 1e4)
"""Assumed chis, and ratios of lambda_max to an eigenvalue of W, at which `fails_where_flat` measures growth."""
GREATEST = 1e150
"""Stands for the eigenvalue of a step with infinite or undefined entries."""
GROWS = 1e-6
"""Growth in a round that exceeds rounding."""


class _Seen(NamedTuple):
    """Rates that canaries have shown in a block."""

    rates: Array  # one for each power of the window, without plain descent
    plain: float  # of plain descent
    perfect: dict[int, float]  # power -> the rate that a perfect network would allow
    span: int  # rounds over which they were measured


class Policy:
    """Decisions about the parameters of a run.

    Parameters
    ----------
    cls : type of Method
    constants : Constants
        lambda_min_plus is unknown and set to lambda_max.
    plain : bool
        Whether plain descent is among the assumptions.
    apart : int
        Rounds in which all nodes hear of each other, if single rounds do not connect them; else 0. Every quarter of a
        block then has as many rounds, and every run is careful at first.
    rules : AutoSettings
    """

    def __init__(
        self,
        cls: type[Method],
        constants: Constants,
        plain: bool = False,
        apart: int = 0,
        rules: AutoSettings = SETTINGS,
    ) -> None:
        self._cls, self.rules = cls, rules
        self.constants = constants
        self._flat = fails_where_flat(cls, constants)
        self._plain = [rules.most] if plain else []
        self._apart, self._shortest = apart > 0, max(rules.first_block, 4 * apart)
        power = self.careful if plain or apart else rules.start
        window = [*rules.first, *self._plain]
        self.state = AutoState(power, rules.start, window, Block(self._shortest))
        self._methods: dict[tuple[Constants, int], Method] = {}

    # What the run and its canaries assume

    def method(self, power: int) -> Method:
        """Return the method that assumes chi = ratio^power."""
        key = self.constants, power
        if key not in self._methods:
            chi = self.rules.ratio**power
            constants = replace(self.constants, lambda_min_plus=self.constants.lambda_max / chi)
            self._methods[key] = made(self._cls, "unit", constants)
        return self._methods[key]

    @property
    def careful(self) -> int:
        """The power taken as safe."""
        return self.rules.most if self._plain else self.rules.careful

    @property
    def assumed(self) -> int:
        """The power that the run assumes now."""
        return self.careful if self.state.waiting else self.state.power

    @property
    def chi(self) -> float:
        """The chi that the run assumes now; infinite for plain descent."""
        return inf if self.is_plain(self.assumed) else self.rules.chi(self.assumed)

    def is_plain(self, power: int) -> bool:
        """Return whether a power makes the method plain descent."""
        return power in self._plain

    @property
    def canaries(self) -> int:
        """The number of canaries."""
        return len(self.state.window) * len(self.rules.stiffness)

    def columns(self, dim: int, power: int, window: Sequence[int] | None = None) -> Method:
        """Return the method with arrays for parameters: `dim` columns that assume `power`, then one for each canary.

        The canaries are those of the present block, or assume the powers of `window`.
        """
        run, each = self.method(power).parameters(), len(self.rules.stiffness)
        canaries = [self.method(other).parameters() for other in (self.state.window if window is None else window)]
        values = (
            (name, np.concatenate([np.full(dim, value), np.repeat([other[name] for other in canaries], each)]))
            for name, value in run.items()
        )
        return bare(self._cls, values)

    def curvatures(self, flattest: Array, steepest: Array) -> Array:
        """Return the curvatures of each node's canaries for all assumptions; plain descent comes last."""
        rules = self.rules
        some = [rules.stiffness] * (len(self.state.window) - len(self._plain)) + [rules.throughout] * len(self._plain)
        each = [curvatures_between(flattest, steepest, self._flat, stiffness) for stiffness in some]
        return np.concatenate(each, axis=1)

    # A checkpoint

    @property
    def facts(self) -> dict[str, Any]:
        """The state as data that JSON can hold; `recall` restores it."""
        facts = asdict(self.state)
        facts["block"]["tops"] = [top.tolist() for top in self.state.block.tops]
        facts["before"] = list(self.state.before.items())
        return facts

    def recall(self, facts: dict[str, Any]) -> None:
        """Restore what `facts` returned."""
        block = Block(**facts["block"])
        block.tops = [np.array(top, dtype=float) for top in block.tops]
        before = {int(power): float(rate) for power, rate in facts["before"]}
        self.state = AutoState(**{**facts, "block": block, "before": before})

    # Looks within a block

    def rests(self, step: float, size: float, eps: float) -> bool:
        """Return whether the longest step is only rounding, for answers of this size."""
        units = self.rules.rest + self.rules.rest_of_dual * self.constants.kappa * (self._cls.oracle == "dual")
        return bool(step <= units * eps * size)

    @property
    def quarter(self) -> int:
        """Rounds of a quarter."""
        return max(2, self.state.block.rounds // 4)

    @property
    def glance(self) -> int:
        """Rounds until the next glance: a quarter, or a part of it where nodes are apart."""
        return max(2, self.quarter // self.rules.glances) if self._apart else self.quarter

    def wild(self, step: float) -> bool:
        """Return whether a block must end at once, given the run's longest step since the last look.

        It may where single rounds do not connect the nodes: there it is long, and canaries that start from one round's
        few links show too little at first.
        """
        state = self.state
        if not self._apart or not state.block.steps:
            return False
        known = max(state.block.steps[0], state.good_step if np.isfinite(state.good_step) else 0.0)
        state.grown = not step <= self.rules.most_growth(self.constants.kappa) * known
        return state.grown

    def see(self, tops: Array, step: float, at_rest: bool = False, fully: bool = False) -> bool:
        """Record each canary's largest |answer| and the run's longest step; return whether the block is over.

        `at_rest`: the run's steps are rounding, so more care gains nothing. `fully`: a column is fully averaged; at the
        first look this ends the block, since there is nothing to find.
        """
        state, block = self.state, self.state.block
        block.tops.append(np.asarray(tops, dtype=float).reshape(len(state.window), len(self.rules.stiffness)))
        block.steps.append(float(step))
        block.at_rest = at_rest
        if len(block.tops) == 1 and not state.begun:
            state.begun, state.perfect = True, fully
            return state.perfect
        if state.grown:
            return True
        if len(block.tops) == 1 or state.power not in state.window:
            return len(block.tops) == 4
        own = state.window.index(state.power)
        first, last = block.tops[0][own].max(), block.tops[-1][own].max()
        return len(block.tops) == 4 or not last <= self.rules.alarm * max(first, 1e-300)

    def wait(self, rounds: int) -> str:
        """Note that the nodes now agree for `rounds` rounds; return why the run is careful meanwhile, "" if it is not.

        It is if the run grew, or if agreement takes longer than the block lasted.
        """
        state = self.state
        state.agreement, slow = rounds, rounds > state.block.rounds
        state.waiting = (slow or state.grown) and state.power < self.careful
        if not state.waiting:
            return ""
        return f"careful: {'the nodes take longer to agree than the block lasted' if slow else 'the run grew'}"

    # Deciding at the end of a block

    def decide(self, clock: int, flattest: float, steepest: float, left: float = inf) -> Decision:
        """Return what to do, given the least and the greatest curvature of any node; begin the next block.

        `left` is how many rounds remain: where nodes are apart, a run that could not undo growth in time is careful.
        """
        rules, state, block = self.rules, self.state, self.state.block
        waited, state.waiting = state.waiting, False
        if not block.tops[-1].any() and not block.tops[0].any():
            state.power, state.block = self.careful, Block(2 * block.rounds)
            why = "canaries have not started: no links in the round that planted them"
            return Decision(state.power, back=False, good=False, rest=waited, why=why)
        seen = self._rates(flattest, steepest)
        power, why = self._suggested(seen, clock)
        own, step = self._own_rate(seen), block.steps[-1]
        if state.returned:  # the last good state needs steps this long, even if its last ones were shorter
            state.good_step = max(state.good_step, block.steps[0])
        if self._apart and state.good_step == inf and (state.power in state.window or self._cls.oracle == "dual"):
            state.good_step = block.steps[0]  # the start is a good state; a dual method's first step is long
        back = self._grew(own, steepest / flattest)
        if back:
            state.high_step = 0.0
            power = max(power, state.centre + (rules.warned if state.grown else 1))
            why = "the run grew: back to the last good state"
        early = self._apart and state.power not in state.window  # the steps of a far greater chi tell nothing
        good = not back and bool(own > 0) and step < state.good_step and not early
        old = not state.perfect and (clock - state.rested) * seen.perfect.get(state.power, 0.0) >= rules.lasts
        rest = back or state.power == rules.most or old
        alarmed = len(block.tops) < 4 and not state.perfect
        # After an alarm, no block is shorter than its agreement.
        rounds = max(block.rounds // 2, state.agreement) if alarmed else 2 * block.rounds
        self.begin(min(max(0, power), rules.most), rounds)
        if not back and seen.plain > max(rules.plain_ahead * seen.rates.max(), rules.plain_shown / seen.span):
            state.power, why = rules.most, "plain descent is faster than any momentum"
        if self._apart and back and left <= state.block.rounds + state.agreement:
            state.power = self.careful
        state.good_step = step if good else state.good_step
        state.rested = clock if rest else state.rested
        state.returned = back
        return Decision(state.power, back, good, rest or waited, why)

    def _grew(self, own: float, kappa: float) -> bool:
        """Return whether the run's steps have grown too much, by themselves or with its own canaries' rate."""
        state, steps = self.state, self.state.block.steps
        step, most = steps[-1], self.rules.most_growth(kappa) * state.good_step
        grew = not step <= most or (own < 0 and step > self.rules.risen * steps[0])
        high = self._apart and step > self.rules.higher * state.good_step
        slowly = high and step > state.high_step > 0  # two blocks in a row, the second one higher
        state.high_step = step if high else 0.0
        return bool(grew) or state.grown or slowly

    def _rates(self, flattest: float, steepest: float) -> _Seen:
        """Return the rates that the block's canaries have shown."""
        window, tops = self.state.window, self.state.block.tops
        curvatures = np.geomspace(flattest, steepest, 5)
        perfect = perfect_rates(list(map(self.method, window)), curvatures, self.constants.lambda_max)
        span = self.quarter * _quarters_between(tops)
        doubt = self.rules.slack * np.maximum(0.0, 1 - perfect * span) / span
        rates = self._averaged(np.minimum(self._shrinking(tops, span).min(axis=1) + doubt, perfect))
        plain, rates = (float(rates[-1]), rates[:-1]) if self._plain else (-inf, rates)
        return _Seen(rates, plain, dict(zip(window, perfect.tolist(), strict=True)), span)

    def _shrinking(self, tops: Sequence[Array], span: int) -> Array:
        """Return each canary's rate per round from the second quarter seen (the first of two) to the last."""
        first, died = tops[1 if len(tops) > 2 else 0], self.rules.died
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            rates: Array = np.log(first / tops[-1]) / span
        rates = np.nan_to_num(rates, nan=-died, posinf=died, neginf=-died)
        dead = (tops[-1] < self.rules.dead * tops[0]) | (tops[-1] == 0)  # one by one: others may have overflowed
        rates[dead] = died
        return rates

    def _suggested(self, seen: _Seen, clock: int) -> tuple[int, str]:
        """Return the power that the canaries suggest, and why."""
        rules, state, rates = self.rules, self.state, seen.rates
        caution = self._waited(clock)
        if state.perfect:
            least = rules.kept * seen.perfect.get(state.power, inf)
            state.perfect = len(state.block.tops) == 1 or self._own_rate(seen) > least
        if state.perfect:
            return caution, "every round averages fully"
        best = len(rates) - 1 - int(np.argmax(rates[::-1]))  # the most careful of equals
        if rates[best] <= 0:
            return state.window[len(rates) - 1] + 2 + caution, "all canaries grew"
        sure = state.block.rounds >= rules.sure * rules.ratio ** state.window[best]
        return state.window[best] + (0 if sure else 1) + caution, "its canaries died fastest"

    def _own_rate(self, seen: _Seen) -> float:
        """Return the rate of the run's own canaries; the best rate if it has none."""
        state = self.state
        if self.is_plain(state.power):
            return seen.plain
        powers = state.window[: len(seen.rates)]
        if state.power in powers:
            return float(seen.rates[powers.index(state.power)])
        return float(seen.rates.max())

    def excuse(self, clock: int) -> None:
        """Forget earlier steps, so that a run whose functions have changed may grow."""
        state = self.state
        state.progress, state.least_step, state.good_step = clock, inf, inf
        state.block.steps = state.block.steps[-1:] * len(state.block.steps)

    def forget(self, clock: int) -> None:
        """Restart after nodes have left or joined: keep the present chi, and let the run grow."""
        self.excuse(clock)
        state = self.state
        state.caution, state.before, state.perfect, state.waiting = 0, {}, False, False
        self.begin(state.centre, state.block.rounds // 2)

    def _averaged(self, rates: Array) -> Array:
        """Return rates, averaged with those of the block before if that was long; only where both are positive."""
        state = self.state
        for i, power in enumerate(state.window):
            before = state.before.get(power, 0.0)
            if rates[i] > 0 and before > 0:
                rates[i] = (rates[i] + before) / 2
        long = state.block.rounds >= self.rules.many_rounds and len(state.block.tops) == 4
        state.before = dict(zip(state.window, rates.tolist(), strict=True)) if long else {}
        return rates

    def _waited(self, clock: int) -> int:
        """Return how many powers to add; it rises by one whenever the run makes no progress for long."""
        state, steps = self.state, self.state.block.steps
        if min(steps) < self.rules.fallen * state.least_step or state.block.at_rest:
            state.least_step, state.progress = steps[-1], clock
        else:
            c = self.constants
            (slow,) = perfect_rates([self.method(state.power)], np.geomspace(c.mu, c.L, 5), c.lambda_max)
            if clock - state.progress > max(self.rules.patience / slow if slow > 0 else inf, state.block.rounds):
                state.caution, state.progress = state.caution + 1, clock
        return state.caution

    def begin(self, power: int, rounds: int) -> None:
        """Begin a block of about `rounds` rounds that assumes chi = ratio^power."""
        rules, state = self.rules, self.state
        longest = max(rules.longest_block, rules.rounds_per_chi * rules.ratio**power, self._shortest)
        state.power = state.centre = power
        state.grown = False
        state.window = [*(max(0, power + offset) for offset in rules.around), *self._plain]
        state.block = Block(int(min(max(self._shortest, rounds), longest)))


def _quarters_between(tops: Sequence[Array]) -> int:
    """Return how many quarters lie between the second one seen (the first of two) and the last."""
    return max(1, len(tops) - (2 if len(tops) > 2 else 1))


def curvatures_between(flattest: Array, steepest: Array, flat: bool, stiffness: Sequence[float]) -> Array:
    """Return the curvatures of each node's canaries for one chi, (nodes, canaries), from the flat or the steep end.

    Examples
    --------
    >>> curvatures_between(np.array([1.0]), np.array([1e4]), flat=True, stiffness=(0, 0.15, 0.3)).round(2).tolist()
    [[1.0, 3.98, 15.85]]
    """
    spread = np.log(steepest / flattest)[:, None] * np.array(stiffness)
    curvatures: Array = flattest[:, None] * np.exp(spread) if flat else steepest[:, None] * np.exp(-spread)
    return curvatures


# The functions of canaries


class Scalars:
    """Oracle of the functions h_i x^2 / 2, one per column."""

    def __init__(self, curvature: Any) -> None:
        self.curvature = curvature

    def gradient(self, x: Any) -> Any:
        """Return h x."""
        return self.curvature * x

    def dual_gradient(self, z: Any) -> Any:
        """Return z / h."""
        return z / self.curvature


class WideOracle:
    """The run's oracle on the first columns, and the canaries', whose functions are `Scalars`, on the others."""

    def __init__(self, oracle: Any, curvature: Any) -> None:
        self.oracle, self.curvature = oracle, curvature

    def gradient(self, x: Any) -> Any:
        """Return the gradients of all columns."""
        return self._joined(x, self.oracle.gradient, Scalars(self.curvature).gradient)

    def dual_gradient(self, z: Any) -> Any:
        """Return the gradients of the conjugates."""
        return self._joined(z, self.oracle.dual_gradient, Scalars(self.curvature).dual_gradient)

    def _joined(self, rows: Any, run: Callable[[Any], Any], canaries: Callable[[Any], Any]) -> Any:
        count, library = self.curvature.shape[-1], rows.__array_namespace__()  # NumPy's, or JAX's
        return library.concat([run(rows[:, :-count]), canaries(rows[:, -count:])], axis=1)


# Rates on a perfect network, which every node can compute by itself


class _OneMode:
    """A network seen by columns that are eigenvectors of W: a round multiplies each by a number."""

    def __init__(self, eigenvalues: Any, lambda_max: float) -> None:
        self._w, self._m = eigenvalues, 1 - eigenvalues / lambda_max

    def __call__(self, *vectors: Any) -> Any:
        results = tuple(self._w * v for v in vectors)
        return results[0] if len(vectors) == 1 else results

    def average(self, *vectors: Any) -> Any:
        results = tuple(self._m * v for v in vectors)
        return results[0] if len(vectors) == 1 else results

    def push_pull(self, pulled: Any, pushed: Any) -> Any:
        return self._m * pulled, self._m * pushed

    def push(self, *vectors: Any) -> Any:
        return tuple(v if v.shape[-1] == 1 else self._m * v for v in vectors)  # weights of nodes stay at 1


def perfect_rates(methods: Sequence[Method], curvatures: Sequence[float] | np.ndarray, lambda_max: float) -> np.ndarray:
    """Return, for each setting of one method, how fast distances shrink per round if every round averages fully.

    The rate is the worst over the curvatures. No network allows a higher rate for long, so a canary that shows one is
    still in its transient.

    Examples
    --------
    >>> from adom.algorithms import Constants, method_class
    >>> careful, bold = (method_class("adom").unit(Constants(1.0, 100.0, 1 / chi, 1.0)) for chi in (40.0, 4.0))
    >>> perfect_rates([careful, bold], [1.0, 100.0], 1.0).round(4).tolist()
    [0.0032, 0.0303]
    """
    modes = (lambda_max,) if type(methods[0]).oracle == "dual" else (0.0, lambda_max)  # the mean of dual rows is zero
    worst: np.ndarray = _slowest(_eigenvalues(methods, curvatures, modes, lambda_max)).min(axis=1)
    return worst


def fails_where_flat(cls: type[Method], constants: Constants) -> bool:
    """Return whether a method that assumes too small a chi grows fastest where functions are flattest, not steepest.

    A method that grows at no single eigenvalue of W fails only because nodes differ: a dual method where functions are
    flattest, any other where they are steepest.

    Examples
    --------
    >>> from adom.algorithms import method_class
    >>> [fails_where_flat(method_class(name), Constants(1.0, 100.0, 1.0, 1.0)) for name in ("adom", "adom+", "acc-gt")]
    [True, True, False]
    """
    top = constants.lambda_max
    methods = [made(cls, "unit", replace(constants, lambda_min_plus=top / chi)) for chi in TRIED]
    ends, modes = (constants.mu, constants.L), [top / mode for mode in MODES]
    rates = _slowest(_eigenvalues(methods, ends, modes, top)).reshape(len(TRIED), len(ends), len(MODES))
    flat, steep = -rates.min(axis=(0, 2))
    return bool(flat > steep) if max(flat, steep) > GROWS else cls.oracle == "dual"


def _eigenvalues(
    methods: Sequence[Method], curvatures: Sequence[float] | np.ndarray, modes: Sequence[float], lambda_max: float
) -> np.ndarray:
    """Return a step's eigenvalues for each method and each pair of a curvature and an eigenvalue of W."""
    pairs = np.array(list(product(curvatures, modes)))
    start: Any = methods[0].init(np.zeros((1, 1)), Scalars(1.0))
    moving = [number for number, part in enumerate(start) if not np.any(part)]  # all but weights of nodes
    size = len(moving)
    h, mode = np.tile(np.repeat(pairs, size, axis=0), (len(methods), 1)).T
    units = np.tile(np.eye(size), len(methods) * len(pairs))[:, None]  # one part of the state at a time, for all pairs
    network: Any = _OneMode(mode, lambda_max)
    state = [*start]
    for number, unit in zip(moving, units, strict=True):
        state[number] = unit
    settings = [method.parameters() for method in methods]
    columns = {name: np.repeat([values[name] for values in settings], len(pairs) * size) for name in settings[0]}
    after, _ = bare(type(methods[0]), columns.items()).step(type(start)(*state), Scalars(h), network)
    parts = [np.broadcast_to(after[number], (1, h.size))[0] for number in moving]
    steps = np.stack(parts).reshape(size, len(methods), len(pairs), size)
    known = np.isfinite(steps).all(axis=(0, 3))[..., None]  # a step that overflows grows without bound
    found = np.linalg.eigvals(np.where(known[..., None], steps.transpose(1, 2, 0, 3), 0.0))
    return np.where(known, found, GREATEST)


def _slowest(eigenvalues: np.ndarray) -> np.ndarray:
    """Return the rate of each step's slowest mode, conserved sums left out."""
    sizes = np.where(np.abs(eigenvalues - 1) > UNMOVED, np.abs(eigenvalues), -1.0).max(axis=-1)
    return np.where(sizes < 0, np.inf, -np.log(np.maximum(sizes, 1e-300)))
