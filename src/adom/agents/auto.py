"""Parameters of an agent's method: from a given chi or that of a path, or found while agents run.

They are found as in `adom.run.auto`: canaries ride along in every message. For each block of rounds, every agent uses
the greatest `BlockSettings` that it has heard of. A block has four quarters. At the end of each, an agent notes what it
saw of the canaries, and for some rounds all repeat the greatest numbers they have heard. Then each takes the same
decision from the same numbers, and announces it for as many rounds before it takes effect. An agent that lacks numbers,
since it came late or messages were lost, adopts the others' decision. So agents never disagree for long, and their
answer does not depend on the parameters.
"""

from math import ceil, inf, log, pi, sin
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import Constants, Method
from ..dynamics.auto_state import SETTINGS, AutoSettings
from ..dynamics.policy import Policy
from ..errors import InputError
from ..problems.minimiser import ULP
from .functions import Function
from .rows import AgentRows
from .wire import LAST_ROUND

Array = np.ndarray
QUARTERS = 4
LOOK = 3
"""Numbers of a quarter besides the canaries': the run's longest step, its answer's size, whether f_i changed."""
GOOD, ANEW = 1, 2
"""Values of `keep`: the state is one to go back to; agents have come or gone, so no earlier state is."""
TOO_LARGE = 1e100
"""Canaries end when one of them exceeds this."""
OUTGROWN = 1e300
SEED = 17


def safe_chi(nodes: int) -> float:
    """Return the chi of a path, which with the agents' weights mixes about the slowest of all connected networks.

    Examples
    --------
    >>> [round(safe_chi(nodes), 1) for nodes in (1, 2, 8, 32)]
    [1.0, 2.0, 26.3, 415.3]
    """
    return 1.0 if nodes < 2 else 1 / sin(pi / (2 * nodes)) ** 2


class Settings:
    """Parameters that follow from mu, L and the number of agents, with a chi that is given or safe.

    In a round, an agent calls `prepare`, `seen`, `hear` for each message, and `look`.

    Parameters
    ----------
    cls : type of Method
    chi, mu, L : float, optional
        Used in place of those of the agents present.
    """

    canaries = 0
    why = "chi is given, or that of a path"

    def __init__(
        self, cls: type[Method], chi: float | None = None, mu: float | None = None, L: float | None = None
    ) -> None:
        if cls.rounds_per_step != 1 or cls.directed or cls.name == "pngd":
            raise InputError(
                f"agents cannot run {cls.name}: its steps need more than one round on undirected links; "
                "take adom, adom+ or diging"
            )
        if cls.width is not Method.width:
            raise InputError(f"agents cannot run {cls.name}: its messages hold Hessians; take adom, adom+ or diging")
        self.cls, self._chi, self._mu, self._L = cls, chi, mu, L
        self._key: tuple[Any, ...] = ()
        self._method: Method | None = None

    def method(self, mu: float, L: float, nodes: int) -> Method:
        """Return the method for the constants of all agents present."""
        key = (self._mu or mu, self._L or L, self._chi or safe_chi(nodes), nodes)
        if self._method is None or key != self._key:
            mu, L, chi, nodes = key
            self._key, self._method = key, self.cls.unit(Constants(mu, L, 1 / chi, 1.0, nodes))
        return self._method

    @property
    def chi(self) -> float:
        """The assumed chi."""
        return float(self._key[2]) if self._key else float("nan")

    def prepare(self, rows: AgentRows, number: int, mu: float, L: float, nodes: int) -> None:
        """Before a round, give the rows the method for the agents present, and let it drop rounding."""
        rows.method = self.method(mu, L, nodes)
        rows.renew(number)

    def seen(self) -> Array:
        """Return the numbers to tell neighbours."""
        return np.zeros(0)

    def hear(self, seen: Array) -> None:
        """Take in the numbers of a neighbour."""

    def look(self, wide: Array, number: int) -> None:
        """Take in the answer of a round."""

    def excuse(self) -> None:
        """Allow for a change of this agent's function."""


class BlockSettings(NamedTuple):
    """What all agents do in a block; of two, the greater one counts."""

    number: int
    power: int  # the run assumes this one
    centre: int  # canaries try powers around this one
    rounds: int
    start: int  # the block's first round
    keep: int = 0  # whether the state at its start is one to go back to, or no earlier state is
    back: int = 0  # the block to whose start the run goes back, or 0
    rest: int = 0  # whether momentum restarts


HEAD = len(BlockSettings._fields)


class Auto(Settings):
    """Parameters that agents find while they run.

    Parameters
    ----------
    cls : type of Method
    function : Function
        Of this agent.
    seed : int
        Of the canaries' starts; different for each agent.
    rules : AutoSettings
    """

    def __init__(self, cls: type[Method], function: Function, seed: int, rules: AutoSettings = SETTINGS) -> None:
        super().__init__(cls)
        self._dim, self._rules = function.dim, rules
        self._policy = Policy(cls, Constants(function.mu, function.L), cls.plain, rules=rules)
        self.canaries = self._policy.canaries
        self._window = self._policy.state.window  # of this block; a decision changes the policy's own before the next
        self._random = np.random.default_rng(np.random.SeedSequence([SEED, seed]))
        self._now = BlockSettings(0, *self._opening, 0)
        self._next: BlockSettings | None = None  # settings that begin in a later round
        self._number, self._nodes = 0, 1
        self._whole = True  # here for the whole block
        self._changed = self._altered = False
        self._grew, self._times = 0, 0
        self._x, self._answers = np.zeros(self._dim), np.zeros(self.canaries)
        self._forget_good()
        self._restart()
        self.why = "the start: nothing is known yet"

    def _forget_good(self) -> None:
        self._good: tuple[int, Any, dict[str, Array]] | None = None  # a block, and the state at its start
        self._good_step = inf

    def _restart(self) -> None:
        """Forget all that was seen, at the start of a block."""
        self._looks, self._waiting, self._fresh = 0, False, True
        self._numbers = np.zeros(QUARTERS * (self.canaries + LOOK) + 2)
        self._greatest, self._moved = np.zeros(self.canaries), 0.0

    @property
    def _opening(self) -> tuple[int, int, int]:
        """Power, centre and rounds of the first block."""
        rules = self._rules
        return self._policy.careful if self.cls.plain else rules.start, rules.start, rules.first_block

    @property
    def chi(self) -> float:
        """The assumed chi; infinite for plain descent."""
        return inf if self._policy.is_plain(self._now.power) else self._rules.chi(self._now.power)

    def excuse(self) -> None:
        """Tell all agents that this agent's function has changed, so that the run may grow once more."""
        self._altered = True

    @property
    def _quarter(self) -> int:
        return max(2, self._now.rounds // QUARTERS)

    @property
    def _agreement(self) -> int:
        """Rounds in which news reaches all agents."""
        return self._nodes + 2

    @property
    def _careful(self) -> int:
        """The power to assume while the agents take longer to agree than their block lasted."""
        return self._policy.careful if self.cls.plain else self._most

    @property
    def _usual(self) -> int:
        """The greatest power that a connected network of this many agents needs."""
        return ceil(log(safe_chi(self._nodes), self._rules.ratio)) + self._rules.spare

    @property
    def _most(self) -> int:
        """The greatest power: the usual one, and more after blocks in which all canaries grew."""
        return min(self._rules.most, self._usual + self._rules.spare * self._grew)

    def method(self, mu: float, L: float, nodes: int) -> Method:
        """Return the method, with parameters for each column."""
        policy = self._policy
        self._changed |= self._nodes != nodes
        policy.constants, self._nodes = Constants(mu, L, 1.0, 1.0, nodes), nodes
        run = self._careful if self._waiting else self._now.power
        key = (mu, L, run, *self._window)
        if self._method is None or key != self._key:
            self._key, self._method = key, policy.columns(self._dim, run, self._window)
        return self._method

    # Observing and telling

    def look(self, wide: Array, number: int) -> None:
        """Take in the answer of a round; at the end of a quarter, note what was seen in it."""
        x, answers = wide[: self._dim], wide[self._dim :]
        with np.errstate(over="ignore", invalid="ignore"):
            np.maximum(self._greatest, np.abs(answers), out=self._greatest)  # NaN stays NaN
            moved = float(np.linalg.norm(x - self._x))
        self._moved = max(self._moved, moved if np.isfinite(moved) else OUTGROWN)
        self._x, self._answers = x, answers
        quarter, over = divmod(number + 1 - self._now.start, self._quarter)
        if over == 0 and 1 <= quarter <= QUARTERS:
            size = float(np.nan_to_num(np.abs(x).max(), nan=OUTGROWN, posinf=OUTGROWN))
            greatest = np.nan_to_num(self._greatest, nan=OUTGROWN, posinf=OUTGROWN)
            own = np.minimum(np.append(greatest, [self._moved, size, self._altered]), OUTGROWN)
            place = self._numbers[(quarter - 1) * own.size : quarter * own.size]
            np.maximum(place, own, out=place)
            self._greatest, self._moved, self._altered = np.zeros(self.canaries), 0.0, False

    def seen(self) -> Array:
        """Return what to tell neighbours: the settings, and for a while after a quarter what was seen."""
        head = np.array(self._next or self._now, dtype=float)
        quarter, since = divmod(self._number - self._now.start, self._quarter)
        lately = quarter > 0 and (since <= self._agreement or quarter > QUARTERS)
        telling = self._next is None and lately and self._numbers[: self.canaries].any()
        return np.concatenate([head, self._numbers]) if telling else head

    def hear(self, seen: Array) -> None:
        """Take in what a neighbour tells."""
        if seen.size not in (HEAD, HEAD + self._numbers.size):
            return
        if (seen[:HEAD] != np.clip(np.rint(seen[:HEAD]), 0, LAST_ROUND)).any():
            return
        told = BlockSettings(*(int(number) for number in seen[:HEAD]))
        if self._can_be(told) and told > (self._next or self._now):
            self._next, self.why = told, "taken over from another agent"
        if told == self._now and seen.size > HEAD:
            np.maximum(self._numbers, np.minimum(seen[HEAD:], OUTGROWN), out=self._numbers)

    def _can_be(self, told: BlockSettings) -> bool:
        """Return whether agents can have come to these settings; others would hold everybody up for long."""
        return (
            told.number <= max(self._number, self._now.number) + self._rules.soon
            and max(told.power, told.centre) <= self._rules.most
            and 1 <= told.rounds <= self._longest
            and told.start <= self._number + QUARTERS * self._agreement + self._rules.soon
            and told.keep <= ANEW
            and told.back <= told.number
        )

    @property
    def _longest(self) -> int:
        """The most rounds of a block: without a limit, a wild guess would last for minutes."""
        return int(max(self._rules.longest_block, self._rules.rounds_per_chi * self._rules.ratio**self._usual))

    # Deciding

    def prepare(self, rows: AgentRows, number: int, mu: float, L: float, nodes: int) -> None:
        """Before a round, look at the numbers, decide, or change to new settings, if it is time."""
        self._number = number
        self._look_and_decide(number)
        if self._nodes > 1 and not np.abs(self._answers).max(initial=0.0) <= TOO_LARGE:
            self._greatest[:] = OUTGROWN  # too large, or not finite: all canaries end
            rows.plant(self._dim, np.zeros(self.canaries))
            self._answers = np.zeros(self.canaries)
        super().prepare(rows, number, mu, L, nodes)
        if self._fresh:
            self._fresh = False
            self._plant(rows)

    def _look_and_decide(self, number: int) -> None:
        if self._nodes < 2:
            self._now = BlockSettings(*self._now[:4], number)
            self._restart()
            return
        latest = number + QUARTERS * self._agreement + self._rules.soon
        if (self._next or self._now).start > latest:  # rounds began again at 0
            self._next = None
            self._begin_anew(number)
        if self._changed and self._next is None and number >= self._now.start + self._agreement:
            self._begin_anew(number)
        start, quarter = self._now.start, self._quarter
        while self._next is None and self._looks < QUARTERS:
            if number < start + (self._looks + 1) * quarter + self._agreement:
                break
            if not self._whole and number < start + QUARTERS * quarter + self._rules.late * self._agreement:
                break
            if self._see():
                self._decide(number)
        over = number >= start + QUARTERS * quarter
        self._waiting = over and 2 * self._agreement > self._now.rounds and self._now.power < self._careful
        if self._next is not None and number >= self._next.start:
            self._open(number)

    def _open(self, number: int) -> None:
        """Begin the next block."""
        assert self._next is not None
        whole = self._next.start == number
        self._now, self._next, self._whole = self._next, None, whole
        opening, anew = self._now[1:4] == self._opening, self._now.keep == ANEW
        if anew:
            self._changed, self._grew = False, 0
            self._forget_good()
        if opening or anew:
            self._policy = Policy(self.cls, self._policy.constants, self.cls.plain, rules=self._rules)
        if not opening:
            self._policy.begin(self._now.centre, self._now.rounds)
        self._policy.state.power = self._now.power
        self._window = self._policy.state.window
        self._restart()

    def _begin_anew(self, number: int) -> None:
        """Announce a short block and forget what was seen, after agents have come or gone."""
        early = self._now.rounds < self._rules.short_block
        opening = self._opening if early else (self._now.power, self._now.centre, self._rules.short_block)
        self._changed, self.why = False, "agents have come or gone"
        self._next = BlockSettings(self._now.number + 1, *opening, number + self._agreement, ANEW)

    def _see(self) -> bool:
        """Give the policy the next quarter; return whether the block is over."""
        size = self.canaries + LOOK
        look = self._numbers[self._looks * size : (self._looks + 1) * size]
        self._looks += 1
        step, length, _ = look[-LOOK:]
        return self._policy.see(look[: self.canaries], step, self._policy.rests(step, length, ULP))

    def _decide(self, number: int) -> None:
        if not self._numbers[:-2].any():
            self._begin_anew(number)
            return
        constants = self._policy.constants
        flattest, steepest = max(-self._numbers[-2], constants.mu), min(self._numbers[-1], constants.L)
        if not 0 < flattest <= steepest:
            flattest, steepest = constants.mu, constants.L
        if self._numbers[:-2].reshape(QUARTERS, -1)[:, -1].any():  # the function of some agent has changed
            self._policy.excuse(number)
            self._forget_good()
        decision = self._policy.decide(number, flattest, steepest)
        step = self._numbers[(self._looks - 1) * (self.canaries + LOOK) + self.canaries]
        grown = decision.back and step > self._rules.much * self._good_step
        back = self._good[0] if grown and self._good is not None else 0
        self._times = self._times + 1 if back and back == self._now.back else 0
        if self._times >= self._rules.times:
            back = 0
            self._forget_good()
        if decision.good:
            self._good_step = step
        most, centre = self._most, self._policy.state.centre
        if centre > most and self._now.rounds >= self._rules.short_block:
            self._grew += 1
        elif centre <= most - 2 * self._rules.spare:  # what made the canaries grow is over
            self._grew = max(0, self._grew - 1)
        power = decision.power if decision.power != centre else min(centre, most)
        rest = self.cls.plain and (decision.rest or self._waiting)
        rounds = min(self._policy.state.block.rounds, self._longest)
        about = (power, min(centre, most), rounds, number + self._agreement)
        self._next = BlockSettings(self._now.number + 1, *about, GOOD * decision.good, back, int(rest))
        self.why = decision.why

    def _plant(self, rows: AgentRows) -> None:
        """In a new block, restore or keep the run's state, and plant new canaries."""
        now, function = self._now, rows.run.function
        if now.back and self._good is not None and self._good[0] == now.back:
            rows.state, rows.entries = self._good[1], dict(self._good[2])
        elif now.keep == GOOD:
            self._good = (now.number, rows.state, dict(rows.entries))
        if now.rest:
            rows.rest()
        low, high = function.mu, function.L
        if self._dim <= self._rules.eigen_dim and np.isfinite(self._x).all():
            values = np.linalg.eigvalsh(function.hessian(self._x))
            low, high = (float(np.clip(value, low, high)) for value in (values[0], values[-1]))
        rows.oracle.curvature = self._policy.curvatures(np.array([low]), np.array([high]))
        self._numbers[-2:] = np.maximum(self._numbers[-2:], [-low, high]) if self._numbers[-1] else [-low, high]
        ended = np.nan_to_num(self._answers, nan=0.0, posinf=0.0, neginf=0.0)
        seeds = ended / max(np.abs(ended).max(), 1e-290) + self._rules.noise * self._random.standard_normal(
            self.canaries
        )
        if self._now.number == 0:
            seeds = self._random.standard_normal(self.canaries)
        rows.plant(self._dim, seeds)
