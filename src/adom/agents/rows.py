"""The state of one agent: its own row, and a ledger of the part of it that came over each link.

`adom.dynamics.healing` defines which parts of a method's state are conserved over all nodes, and how a step changes the
entries of the ledger. While two ends of a link hear each other in every round, their entries are opposite to the last
bit. If they are not opposite, the end with the smaller name sends its entry; the other end takes the opposite and adds
the difference to its state. An end that gives up a link takes its entry out of its state.

Such a jump of the state, and any change of the function, would throw the answer about: by 1 / mu times the jump. So the
agent holds its answer where it is: it tilts its function by a linear term that makes up for the jump, and lets go of
the tilt little by little (`adom.dynamics.healing.Holding`). The network follows, and never sees a jump. What a message
that was lost in the last rounds brings late is no jump: it is part of what the method does.
"""

import zlib
from collections.abc import Collection
from typing import Any, cast

import numpy as np

from ..algorithms import Method
from ..dynamics.healing import Healing, Holding, healing, holding

Array = np.ndarray
PASSES = 3
"""How often the state's conserved part is corrected: a first difference may be too large to be added exactly."""
SHORTEST, LONGEST = 64, 4096
"""The fewest and the most rounds in which an agent lets go of most of a tilt."""
EASE = 5.0
"""How many times e-fold it lets go of a tilt in that time."""
NOTHING = 1e-30
"""A tilt below this is over."""


class _StopHereError(Exception):
    """Ends the first half of a step; carries the vectors to send."""

    def __init__(self, vectors: tuple[Array, ...]) -> None:
        self.vectors = vectors


class _Asking:
    """The network in the first half of a step."""

    def __call__(self, *vectors: Array) -> Any:
        raise _StopHereError(vectors)

    average = __call__


class _Answering:
    """The network in the second half of a step: W v is the sum of the exchanges."""

    def __init__(self, taken: Array) -> None:
        self._taken = taken[:, None]  # (vectors, 1, width)

    def __call__(self, *vectors: Array) -> Any:
        return self._taken[0] if len(vectors) == 1 else tuple(self._taken)

    def average(self, *vectors: Array) -> Any:
        mixed = tuple(v - w for v, w in zip(vectors, self._taken, strict=True))
        return mixed[0] if len(mixed) == 1 else mixed


class AgentRows:
    """The state of one agent, and its steps.

    Parameters
    ----------
    method : Method
    oracle : object
        For one row; works like `adom.agents.functions.AgentOracle`.
    width : int
    """

    def __init__(self, method: Method, oracle: Any, width: int) -> None:
        self.oracle, self.width = oracle, width
        self.run = getattr(oracle, "oracle", oracle)  # without the canaries
        self.span = SHORTEST
        """Rounds in which most of a tilt is let go."""
        self.lean = np.zeros(self.run.function.dim)
        """A tilt that stays, that of the intercepts' centre."""
        self._held = self._lever = np.zeros(self.run.function.dim)
        self.method = method
        self.parts = self.rule.parts
        self.state: Any = None
        self.entries: dict[str, Array] = {}
        """For each neighbour, the part of the state that came from it: (parts, width)."""
        self.restart()

    def restart(self) -> None:
        """Reset to the state of a new agent, without links."""
        self.run.new_round()
        self.state, self.entries = self.method.init(np.zeros((1, self.width)), self.oracle), {}

    @property
    def method(self) -> Method:
        """The method, with its present parameters."""
        return self._method

    @method.setter
    def method(self, method: Method) -> None:
        if method is not getattr(self, "_method", None):
            self._method, self.rule = method, _rule(method)
            self._ways: Holding | None = None

    def renew(self, k: int) -> None:
        """Let the method drop parts that only gather rounding, before step k."""
        self.state = self.method.renewed(self.state, k)

    # Holding the answer

    @property
    def _dim(self) -> int:
        return int(self.run.function.dim)

    @property
    def _holding(self) -> Holding:
        if self._ways is None:
            self._ways = holding(_first(self.method))
        return self._ways

    def tilt(self, more: Array) -> None:
        """Tilt the function by `more`, to be let go from the next round on."""
        fine = np.isfinite(self._held + more).all()
        self._held, self._lever = (self._held + more, self._lever + more) if fine else (0 * more, 0 * more)
        self.run.tilt = self.lean + self._held

    def let_go(self) -> None:
        """Let go of some of the tilt, after a round: of a jump, (1 + t) exp(-t) is left, which begins gently."""
        kept = np.exp(-EASE / self.span)
        self._lever = kept * self._lever
        self._held = kept * self._held + (1 - kept) * self._lever
        if np.abs(self._held).max() < NOTHING and np.abs(self._lever).max() < NOTHING:
            self._held = self._lever = 0 * self._held
        self.run.tilt = self.lean + self._held

    def start(self, x: Array) -> None:
        """Begin anew at an answer, without links."""
        self.tilt(self.run.function.gradient(x) - self.run.tilt)
        self.restart()
        if self.method.oracle != "dual":
            self._set(self._holding.rest[:, None] * x)

    def match(self, vectors: Array, sent: Array) -> None:
        """Move what neither the answer nor the ledger depends on, so that this agent sends the vectors of others."""
        self._set(self._values() + self._holding.matched @ (vectors - sent)[:, : self._dim])

    def replace(self, function: Any, x: Array) -> None:
        """Replace the function; hold the answer x."""
        with np.errstate(over="ignore", invalid="ignore"):
            more = function.gradient(x) - self.run.function.gradient(x)
        self.run.replace(function)
        self.tilt(more)

    def _fields(self, state: Any) -> Array:
        """Return the fields of a state that are rows, (fields, width)."""
        return np.concatenate([np.broadcast_to(part, (1, self.width)) for part in state if np.ndim(part) == 2])

    def _values(self) -> Array:
        """Return the run's columns of the fields, (fields, dim)."""
        return self._fields(self.state)[:, : self._dim]

    def _set(self, values: Array, first: int = 0) -> None:
        """Set columns of the fields from `first` on, (fields, columns)."""
        fields = self._fields(self.state)
        fields[:, first : first + values.shape[1]] = values
        rows = iter(fields[:, None])
        self.state = type(self.state)(*(next(rows) if np.ndim(part) == 2 else part for part in self.state))

    def ask(self) -> Array:
        """Run the first half of a step; return the vectors to send, (vectors, width)."""
        self.run.new_round()
        try:
            self.method.step(self.state, self.oracle, cast(Any, _Asking()))
        except _StopHereError as asked:
            return np.concatenate(asked.vectors)
        raise AssertionError(f"{self.method.name} made a step without a message")

    def answer(
        self,
        sent: Array,
        heard: dict[str, tuple[float, Array]],
        repairs: dict[str, Array],
        jumps: Collection[str] = (),
    ) -> Array:
        """Run the second half of the step; return the answer of this agent.

        Parameters
        ----------
        sent : (vectors, width) array
            As `ask` returned it.
        heard : dict
            For each neighbour whose link counts in this round: its weight and its vectors.
        repairs : dict
            For each neighbour that sent it: its entry before this round.
        jumps : collection of str
            Neighbours whose repairs are not just late, such as those of one that was restarted.
        """
        late, jump = np.zeros((2, self.parts, self.width))
        for name, part in repairs.items():
            (jump if name in jumps else late)[:] += -part - self.entry(name)
            self.entries[name] = -part
        for name in heard:
            self.entries.setdefault(name, np.zeros((self.parts, self.width)))
        names = sorted(self.entries)
        exchanges = np.zeros((len(names), *sent.shape))
        for i, name in enumerate(names):
            if name in heard:
                weight, vectors = heard[name]
                exchanges[i] = weight * (sent - vectors)
        self.run.again()
        network: Any = _Answering(exchanges.sum(axis=0))
        self.state, x = self.method.step(self.state, self.oracle, network)
        if names:
            entries = np.stack([self.entries[name] for name in names])
            self.entries = dict(zip(names, self.rule.after(entries, exchanges), strict=True))
        if repairs:
            nothing = np.zeros_like(sent)
            self.state = self.rule.change(self.state, self.rule.after(late, nothing)[None])
            if jump.any():
                self._jump(self.rule.after(jump, nothing))
        return np.array(x[0])

    def alone(self, k: int) -> Array:
        """Run step k without a network; return the answer."""
        self.renew(k)
        return self.answer(self.ask(), {}, {})

    def plant(self, first: int, seeds: Array) -> None:
        """Restart the columns from `first` on, moved by `seeds` in the parts that the method does not conserve."""
        rule = Healing(*(part[..., first:] if part.shape[-1] > 1 else part for part in self.rule))
        off = self._fields(self.method.init(np.zeros((1, self.width)), self.oracle))[:, first:] + seeds
        off -= (rule.lift * (rule.kept * off[None]).sum(axis=1)[None]).sum(axis=1)
        self._set(off, first)
        self.entries = {name: entry.copy() for name, entry in self.entries.items()}
        for entry in self.entries.values():
            entry[:, first:] = 0.0

    def rest(self) -> None:
        """Restart the method's momentum, in the state and in the entries of all links alike."""
        at_rest = type(self.method).at_rest
        self.state = at_rest(self.state)
        if self.entries:
            fields = self.rule.fields(np.stack(list(self.entries.values())))
            due = at_rest(type(self.state)(*(fields[:, i] for i in range(fields.shape[1]))))
            self.entries = dict(zip(self.entries, self.rule.of(due), strict=True))

    def settle(self) -> None:
        """Set the conserved part of the state to the sum of all entries, correct to the last bit or two.

        Each round rounds both. After numbers much larger than usual, what that leaves would stay for ever.
        """
        total, lost = np.zeros((self.parts, self.width)), np.zeros((self.parts, self.width))
        with np.errstate(over="ignore", invalid="ignore"):
            for entry in self.entries.values():  # a sum in twice the precision
                grown = total + entry
                part = grown - total
                lost += (total - (grown - part)) + (entry - part)
                total = grown
            total += lost
            for _ in range(PASSES):
                difference = total - self.rule.of(self.state)[0]
                if difference.any() and np.isfinite(difference).all():
                    self.state = self.rule.change(self.state, difference[None])

    def conserved(self, dim: int) -> float:
        """Return the largest number in the conserved part of the state, in the first `dim` columns."""
        return float(np.abs(self.rule.of(self.state)[..., :dim]).max(initial=0.0))

    def _jump(self, difference: Array) -> None:
        """Add to L state, (parts, width), and hold the answer."""
        dim, held = self._dim, self._holding
        self.tilt(held.tilt @ difference[:, :dim])
        values = self._values() + held.change @ difference[:, :dim]
        self.state = self.rule.change(self.state, difference[None])  # for the canaries, which hold nothing
        self._set(values)

    # The ledger

    def entry(self, name: str) -> Array:
        """Return the entry of a link."""
        return self.entries.get(name, np.zeros((self.parts, self.width)))

    def digest(self, name: str, sign: int) -> int:
        """Return a checksum of `sign` times an entry, so that two ends can see whether theirs are opposite."""
        return zlib.crc32((sign * self.entry(name) + 0.0).tobytes())  # + 0.0 removes the sign of zeros

    def forget(self, name: str) -> None:
        """Take an entry out of the state, and forget the link."""
        self._jump(-self.entries.pop(name))


def _first(method: Method) -> Method:
    """Return the method with the parameters of the first column, those of the run."""
    return type(method)(**{name: np.ravel(value)[0] for name, value in method.parameters().items()})


def _rule(method: Method) -> Healing:
    """Return the healing rule of a method; columns with equal parameters share the work."""
    parameters = method.parameters()
    wide = {name: np.atleast_1d(value) for name, value in parameters.items()}
    table = np.stack(np.broadcast_arrays(*wide.values()))
    if table.shape[1] == 1:
        return healing(method)
    unique, back = np.unique(table, axis=1, return_inverse=True)
    few = healing(type(method)(**dict(zip(wide, unique, strict=True))))
    return Healing(*(array[..., back.reshape(-1)] for array in few))
