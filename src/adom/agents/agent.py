"""One agent: rounds without a clock or a coordinator, free of sockets and threads.

The caller passes in messages and the time, and sends the messages returned. In round k an agent sends each neighbour
the vectors of the method's step, and waits until it has heard all neighbours that it counts as linked, or has lost
patience with them. An edge counts in a round if both ends count and hear each other. Its weight is
1 / (2 max of both degrees), so lambda_max is at most 1. An agent that hears of a round two or more ahead catches up.

Neighbours may say false things, by a fault or on purpose, for a moment or for long. No message ends an agent, and what
is false leaves nothing behind once it is no longer said:

- Rounds are only numbers to meet at. An agent follows one at once if that many rounds can have passed since the
  neighbour was last linked, else after it has been told so for `gone` seconds. After the last round comes round 0.
- Vectors beside which all that this agent knows would be lost in rounding do not count; an agent that would send such
  vectors restarts from nothing. Smaller false vectors are as good as lost messages: the ledgers make up for them.
- Where an entry has become so large beside the answer that its rounding matters, both ends of the link start it anew.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import Damaged
from ..problems.minimiser import ULP
from .auto import Settings
from .certificate import Certificate, Place
from .functions import Function, Intercepts
from .members import LEFT, Members
from .rows import LONGEST, SHORTEST, AgentRows
from .wire import (
    ASIDE,
    COUNTED,
    HEARS,
    LAST_ROUND,
    STRANGER,
    WAITING,
    Form,
    Member,
    Message,
    RefusedError,
    check_name,
    note_refusal,
    pack,
    parse,
)

Array = np.ndarray
TILTED = 8
"""Rounds in which an agent lets go of a tilt, beyond the fewest and in units of the square root of L / mu."""
NEWCOMING = 3
"""Rounds in which one that joins others listens to them first."""
FORGET = 10
"""An edge unused for this many times `gone` is forgotten, even if its other end lives."""
LONGEST_SILENCE = 0.1
"""The most seconds between two greetings."""
TABLE_EVERY = 0.05
"""Time between two lists of members to one neighbour, as a part of `gone`."""
MOST_AHEAD = 4
"""The most messages to keep of one neighbour, of this round and later."""
MOST_ALONE = 20_000
"""The most missed steps that an agent makes up for."""
ALONE = 0.1
"""Length of a round without links, in units of patience."""
PACE = 4
"""How many times as fast as this agent others may have been, if their rounds are to be followed at once."""
AHEAD = 64
"""Rounds that others may be ahead in any case."""
SETTLE = 16
"""Rounds after which the conserved part of the state is set to the sum of the entries."""
LARGE = 1e6
"""An entry this much larger than the answer's gradients starts anew: its rounding would cost as many digits."""
CANARY = 1e200
"""The largest number that counts in columns of canaries, which are ended at 1e100, and in any other."""
MOST_PATIENCE = 4
"""The most patience with a neighbour that says that it is waiting too, in units of the usual patience."""


def span(mu: float, L: float) -> int:
    """Return the rounds in which an agent lets go of a tilt: a multiple of the method's own time."""
    return int(min(SHORTEST + TILTED * np.sqrt(L / mu), LONGEST))


@dataclass
class Neighbour:
    """Another agent, and the link to it."""

    name: str
    counted: bool = False  # whether it is a link of the present round
    heard: float = -np.inf  # when it was last heard
    agreed: float = -np.inf  # when the edge last counted
    boot: int = 0  # of the process at its other end, when it last counted
    hears: bool = False  # whether it says that it hears us
    round: int = -1  # the last round that it spoke of, if that can be
    claim: tuple[float, int, float] = (np.inf, 0, 0.0)  # one that cannot be: told since when; the last, and when
    digest: int = 0  # checksum of our entry of the link, before this round
    mend: bool = False  # whether that entry must be sent
    anew: bool = False  # whether it is zero from the end of this round on
    told: float = -np.inf  # when it was last sent the list of members
    knows: Any = None  # the news in that list
    greeted: float = -np.inf
    until: float = np.inf  # when patience with it ends
    inbox: dict[int, Message] = field(default_factory=dict)


@dataclass
class Counters:
    """Counts of what happened, for logs and pages."""

    rounds: int = 0
    sent: int = 0
    received: int = 0
    bytes_sent: int = 0
    lost: int = 0  # waits that ended without a message
    repaired: int = 0  # entries that were made opposite again
    forgotten: int = 0  # edges given up
    renewed: int = 0  # entries that had become too large
    jumps: int = 0
    doubted: int = 0  # messages of a round in which the neighbour cannot be
    restarts: int = 0  # from nothing, after numbers that were not finite, or beside which all else was lost
    refused: dict[str, int] = field(default_factory=dict)  # by kind


class Agent:
    """The state and the rounds of one agent.

    Parameters
    ----------
    own : Member
        Its name and constants.
    rows : AgentRows
    form : Form
    settings : Settings
        Chooses the method's parameters.
    function : Function
    neighbours : iterable of str
        Names of agents that it may be linked to; others are refused.
    patience, gone : float
        Seconds to wait for a message of a round, and of silence until an agent is gone.
    intercepts : Intercepts, optional
        Intercepts of the function, if they are not penalised.
    """

    def __init__(
        self,
        own: Member,
        rows: AgentRows,
        form: Form,
        settings: Settings,
        function: Function,
        neighbours: Any,
        patience: float,
        gone: float,
        intercepts: Intercepts | None = None,
    ) -> None:
        self.name, self.rows, self.form, self.settings = check_name(own.name), rows, form, settings
        self.function, self.members, self.intercepts = function, Members(own, gone), intercepts
        i = intercepts
        self.place = Place(form.dim) if i is None else Place(form.dim, i.free, i.idle, i.l2)
        self.certificate: Certificate | None = None
        own.data = self.aim.data
        self.patience, self.gone = patience, gone
        self.neighbours = {name: Neighbour(check_name(name)) for name in neighbours if name != own.name}
        self.round = 0
        self.x = np.zeros(form.dim)
        self.counters = Counters()
        self._first: int | None = None  # the number of its first round: 0, or that of the checkpoint
        self._joined = -np.inf  # when the first round with a link ended
        self._length = 0.0  # seconds that such rounds take; 0 before the first
        self._leaps = False  # whether others may be in a round that they cannot have reached since they were linked
        self._slope = 0.0  # of the function at 0
        self._most = np.full(form.width, CANARY)
        self._measure()
        self.refusals: list[str] = []  # lines for the log
        self._sent = np.zeros((form.vectors, form.width))
        self._ahead = 0  # a round that others have reached
        self._began, self._waited = 0.0, False
        self._linked: float | None = None  # when a link last counted, or when this agent began
        self._new = True  # until a link has counted
        self._listens = 0  # rounds for which this agent only listens

    # Its function, and the answer

    @property
    def aim(self) -> Function:
        """The function whose sum over all agents is to be least: without the penalty on intercepts."""
        return self.function if self.intercepts is None else self.intercepts.without(self.function)

    def replace(self, function: Function) -> None:
        """Continue with another function, after the data have changed; conserved sums and the answer stay the same."""
        self.function = function
        self._measure()
        self.rows.replace(function, self.x)
        self.settings.excuse()
        own = self.members.own
        own.mu, own.L, own.data, own.level, own.beat = function.mu, function.L, self.aim.data, 0, own.beat + 1

    def start(self, x: Array) -> None:
        """Begin anew at an answer, without links."""
        self.x = np.array(x)
        self.rows.span = span(self.function.mu, self.function.L)
        self.rows.lean = np.zeros(self.form.dim) if self.intercepts is None else self.intercepts.lean
        self.rows.start(self.x)
        self.settings.excuse()

    def about(self, y: Array) -> Array:
        """Return what a check asks of this agent about a point."""
        return self.place.row(y, self.aim, self.function, self.rows.lean)

    def certify(self, certificate: Certificate) -> None:
        """Take in a bound; move the centre of the intercepts if it is due."""
        self.certificate = certificate
        intercepts, level = self.intercepts, self.members.own.level
        if intercepts is not None and not level and intercepts.follow(certificate.answer, certificate.held):
            self.rows.lean = intercepts.lean

    def certain(self, now: float) -> Certificate | None:
        """Return the bound, if it is about the agents present and their present data."""
        known = self.certificate
        present = {member.name: member.data for member in self.members.present(now)}
        return known if known is not None and known.data == present else None

    def distance(self, now: float) -> float:
        """Return a bound on how far the certified answer is from the exact one of all agents present."""
        known = self.certain(now)
        return np.inf if known is None else known.distance

    # Speaking

    def greet(self, now: float) -> list[tuple[str, bytes]]:
        """Return greetings to all neighbours that were not sent anything lately."""
        self.members.beat(now)
        pause = min(self.patience, self.gone / 20, LONGEST_SILENCE)
        quiet = [n for n in self.neighbours.values() if now - n.greeted >= pause]
        return [self._say(n, Message(self.round, flags=ASIDE), now) for n in quiet]

    def begin(self, now: float) -> list[tuple[str, bytes]]:
        """Begin a round; return the messages to send."""
        self._first = self.round if self._first is None else self._first
        self.members.beat(now)
        self._give_up(now)
        self._renew_large()
        mu, L, nodes = self.members.extremes(now)
        self.rows.span = span(mu, L)
        self.settings.prepare(self.rows, self.round, mu, L, nodes)
        with np.errstate(over="ignore", invalid="ignore"):
            self._sent = self.rows.ask()
            fine = np.abs(self._sent) <= self._most
            if not fine.all():
                self.rows.start(self.x if fine[:, : self.form.dim].all() else np.zeros(self.form.dim))
                self.counters.restarts += 1
                self._sent = self.rows.ask()
        linked = [n for n in self.neighbours.values() if n.counted]
        self.members.own.degree = len(linked)
        self._began, self._waited = now, False
        self._linked = now if self._linked is None else self._linked
        for n in linked:
            n.until = now + self.patience
        recent = [n for n in self.neighbours.values() if n.counted or now - n.heard <= 2 * self.patience]
        return [self._say(n, self._words(n, len(linked)), now) for n in recent] + self.greet(now)

    def _words(self, n: Neighbour, degree: int) -> Message:
        """Return the message of this round to a neighbour."""
        if not n.counted:
            return Message(self.round, degree)
        if self._listens:
            return Message(self.round, degree, seen=self.settings.seen())
        owner, entry = self.name < n.name, self.rows.entry(n.name)
        n.digest = self.rows.digest(n.name, 1 if owner else -1)
        return Message(
            self.round,
            degree,
            COUNTED,
            n.digest,
            self._sent,
            edge=(np.zeros_like(entry) if n.anew else entry) if owner and (n.mend or n.anew) else None,
            seen=self.settings.seen(),
        )

    def _say(self, n: Neighbour, message: Message, now: float) -> tuple[str, bytes]:
        n.greeted = now
        message.flags |= HEARS if now - n.heard <= 2 * self.patience else 0
        own = self.members.own
        novelties = (self.members.novelties, own.level, own.mu, own.data)
        if novelties != n.knows or now - n.told >= TABLE_EVERY * self.gone or message.vectors is None:
            n.told, n.knows, message.members = now, novelties, self.members.news(now, n.name)
        data = pack(message, self.form)
        self.counters.sent += 1
        self.counters.bytes_sent += len(data)
        return n.name, data

    def still_waiting(self, now: float) -> list[tuple[str, bytes]]:
        """Return messages to all links that this agent waits too, once a round has lasted for a while."""
        linked = [n for n in self.neighbours.values() if n.counted]
        if self._waited or not linked or now < min(n.until for n in linked) - 0.7 * self.patience:
            return []
        self._waited = True
        return [self._say(n, Message(self.round, len(linked), WAITING), now) for n in linked]

    def farewell(self, now: float) -> list[tuple[str, bytes]]:
        """Return goodbyes to all neighbours, which then forget their links to this agent."""
        self.members.own.level = LEFT
        return self.last_words(now)

    def last_words(self, now: float) -> list[tuple[str, bytes]]:
        """Return the list of members for all neighbours."""
        self.members.own.beat += 1
        return [self._say(n, Message(self.round, flags=ASIDE), now) for n in self.neighbours.values()]

    # Hearing

    def hear(self, sender: str, data: bytes, now: float) -> bool:
        """Take in a message; return False if it was refused."""
        try:
            n = self._neighbour(sender)
            message = parse(data, self.form)
            self._check_constants(sender, message)
        except RefusedError as error:
            self._refuse(sender, error)
            return False
        self.counters.received += 1
        if self.members.learn(message.members, now, sender):
            self._refuse(sender, RefusedError("hearsay", "told of agents that cannot be, or of more than can be kept"))
        if not self.members.here(sender, now):
            return True  # it has left, or has yet to say who it is
        n.heard, n.hears = now, bool(message.flags & HEARS)
        n.round = message.round if self._believes(n, message.round, now) else -1
        if n.round < 0:
            return True
        if message.flags & WAITING:
            n.until = min(now + self.patience, self._began + MOST_PATIENCE * self.patience)
            return True
        if message.round >= self.round and not message.flags & ASIDE:
            self._weigh(sender, message)
            n.inbox[message.round] = message
            if len(n.inbox) > MOST_AHEAD:
                del n.inbox[min(n.inbox)]
        if message.round >= self.round + 2:
            self._ahead = max(self._ahead, message.round)
        return True

    def _refuse(self, sender: str, error: RefusedError) -> None:
        note_refusal(error, sender, self.counters.refused, self.refusals)

    def _check_constants(self, sender: str, message: Message) -> None:
        """Refuse a neighbour whose constants and this agent's are beyond double precision."""
        own = self.members.own
        for entry in message.members:
            if entry.name == sender and not self.members.fits(entry):
                raise RefusedError(
                    "constants",
                    f"a neighbour with mu = {entry.mu:g} and L = {entry.L:g}, but this agent has {own.mu:g} and "
                    f"{own.L:g}: no computation in double precision gets across; scale the data",
                )

    def _believes(self, n: Neighbour, number: int, now: float) -> bool:
        """Return whether a neighbour can be in a round, or has said so steadily for `gone` seconds."""
        apart = now - max(n.agreed, self._joined)  # seconds in which it may have gone its own way
        if not self._length or number <= self.round + self._rounds_in(apart):
            n.claim = (np.inf, 0, 0.0)
            return True
        since, last, at = n.claim
        steady = since < np.inf and last <= number <= last + self._rounds_in(now - at)
        n.claim = (since if steady else now, number, now)
        self.counters.doubted += 1
        believed = now - n.claim[0] > self.gone
        self._leaps |= believed
        return believed

    def _rounds_in(self, seconds: float) -> float:
        """Return the most rounds that others can have made in some time, judged by this agent's own."""
        return AHEAD + PACE * max(seconds, 0.0) / self._length

    def _weigh(self, sender: str, message: Message) -> None:
        """Take numbers out of a message if they are too large to count; the link then does not count in its round."""
        for array in (message.vectors, message.edge):
            if array is not None and not (np.abs(array) <= self._most).all():
                text = f"numbers of up to {_largest(array):.1e}, beside which all of this agent's would be lost"
                self._refuse(sender, RefusedError("magnitude", text))
                message.vectors = message.edge = None
                return

    def _measure(self) -> None:
        """Find the largest numbers that count: beside them, all that this agent knows would be lost in rounding."""
        f = self.function
        self._slope = _largest(f.gradient(np.zeros(f.dim)))
        self._most[: f.dim] = min(max(1.0, f.L, self._slope, self._slope / f.mu) / ULP, CANARY)

    def _neighbour(self, name: str) -> Neighbour:
        if name == self.name:
            raise RefusedError("name", "another agent with the name of this one: rename one of them")
        if name not in self.neighbours:
            raise RefusedError("stranger", STRANGER)
        return self.neighbours[name]

    def has_made(self, rounds: int) -> bool:
        """Return whether a number of rounds is reached, and not only because another agent has said so."""
        return self.round >= rounds and (self._first or 0) + self.counters.rounds >= rounds - AHEAD

    def met(self, now: float, names: Collection[str] = ()) -> bool:
        """Return whether all neighbours, or those in `names`, were heard lately and hear this agent."""
        waited = [n for n in self.neighbours.values() if not names or n.name in names]
        return all(now - n.heard <= self.gone and n.hears for n in waited)

    def count_all(self, now: float) -> None:
        """Count as links all neighbours heard lately that hear this agent, before the first round."""
        for n in self.neighbours.values():
            n.counted = n.hears and now - n.heard <= self.gone

    # Waiting and going on

    def ready(self, now: float) -> bool:
        """Return whether the round can end: nothing is missing, or others are ahead."""
        return bool(self._ahead) or now >= self.deadline()

    def deadline(self) -> float:
        """Return when the wait for missing messages ends; a round without links has a fixed length."""
        if not self.members.own.degree:
            return self._began + ALONE * self.patience
        return max((n.until for n in self._missing()), default=-np.inf)

    def _missing(self) -> list[Neighbour]:
        k = self.round
        return [n for n in self.neighbours.values() if n.counted and k not in n.inbox and n.round <= k]

    def finish(self, now: float) -> None:
        """End the round with what was heard; make up for rounds that others have finished meanwhile."""
        heard, repairs, jumps = self._applied(now)
        if heard:
            length = now - self._began
            usual = self._length or length
            self._length = max(usual + 0.1 * (min(length, PACE * usual) - usual), 1e-9)
            self._joined = self._joined if self._joined > -np.inf else now
        if self._listens:
            self._listen(heard)
            heard, repairs = {}, {}
        elif heard:
            self._linked, self._new = now, False
        with np.errstate(over="ignore", invalid="ignore"):
            wide = self.rows.answer(self._sent, heard, repairs, jumps)
        for n in self._missing():
            n.counted = False
            self.counters.lost += 1
        self.counters.repaired += len(repairs)
        self._note(wide)
        if heard or (not self._listens and self._alone(now)):
            self.rows.let_go()
        self._catch_up(now)
        self._relink(now)

    def _alone(self, now: float) -> bool:
        """Return whether no link has counted for so long that the others have given this agent up."""
        return self._linked is None or now - self._linked > self.gone

    def _listen(self, heard: dict[str, tuple[float, Array]]) -> None:
        """Take over from the others what does not change the answer, such as momentum; then take part."""
        self._listens -= 1
        if heard:
            others = np.mean([vectors for _, vectors in heard.values()], axis=0)
            self.rows.match(others, self._sent)
            self._listens = 0

    def _note(self, wide: Array) -> None:
        self.x = wide[: self.form.dim]
        self.settings.look(wide, self.round)
        self.counters.rounds += 1
        self.round += 1
        if self.round > LAST_ROUND:
            self.round = 0
            for n in self.neighbours.values():
                n.inbox.clear()

    def _catch_up(self, now: float) -> None:
        """Run the rounds that neighbours have finished already, without links.

        An agent that has just come, or comes back after the others have given it up, skips them and begins anew at its
        answer; one that leaps skips them, too; any other runs the last `MOST_ALONE` at most.
        """
        gap, fresh = self._ahead - self.round, self._new or self._alone(now)
        if gap > 0:
            self.counters.jumps += 1
            if fresh:
                if self.counters.rounds > 1:
                    self.start(self.x)
                self._listens = NEWCOMING
            self.round += gap - (0 if fresh or self._leaps else min(gap, MOST_ALONE))
            with np.errstate(over="ignore", invalid="ignore"):
                while self.round < self._ahead:
                    self._note(self.rows.alone(self.round))
        self._ahead, self._leaps = 0, False

    def _applied(self, now: float) -> tuple[dict[str, tuple[float, Array]], dict[str, Array], set[str]]:
        """Return weights and vectors of the edges that count in this round, entries sent to repair links, and jumps.

        Jumps are the links that have not counted for long, or not since the other end was restarted.
        """
        heard, jumps = {}, set()
        repairs = {n.name: np.zeros_like(self.rows.entry(n.name)) for n in self.neighbours.values() if n.anew}
        linked = [n for n in self.neighbours.values() if n.counted]
        for n in linked:
            message = n.inbox.get(self.round)
            if message is None or not message.flags & COUNTED or message.vectors is None:
                continue
            heard[n.name] = (1 / (2 * max(len(linked), message.degree)), message.vectors)
            boot = self.members.boot(n.name)
            if n.boot != boot or now - n.agreed > 2 * self.patience:
                jumps.add(n.name)
            n.agreed, n.boot = now, boot
            if self.name < n.name:
                n.mend = message.digest != n.digest
            elif message.edge is not None:
                repairs[n.name] = message.edge
            self.settings.hear(message.seen)
        return heard, repairs, jumps

    def _relink(self, now: float) -> None:
        """Count as links the neighbours heard lately in about this round; drop messages of earlier rounds."""
        for n in self.neighbours.values():
            for k in [k for k in n.inbox if k < self.round]:
                del n.inbox[k]
            here = self.members.here(n.name, now)
            near = here and n.hears and n.round >= self.round - 2
            n.counted = near and (n.counted or now - n.heard <= self.patience)

    def _give_up(self, now: float) -> None:
        """Forget the edges to agents that are gone or have left, and edges unused for very long."""
        for name in list(self.rows.entries):
            n = self._neighbour(name)
            n.agreed = now if n.agreed == -np.inf else n.agreed  # a link from a checkpoint
            silent = now - n.agreed
            gone = silent > self.gone and not self.members.here(name, now)
            if gone or self.members.left(name) or silent > FORGET * self.gone:
                self.rows.forget(name)
                n.counted = n.mend = False
                self.counters.forgotten += 1
        self.members.tidy(now)

    def check(self, number: int, *vectors: Array) -> None:
        """Refuse a round, an answer and a centre from a file if no agent can have written them."""
        if not 0 <= number <= LAST_ROUND:
            raise Damaged(f"round {number} is not one of 0 to {LAST_ROUND}")
        largest = max(map(_largest, vectors))
        if largest > self._most[0]:
            raise Damaged(f"numbers of up to {largest:.1e}, larger than any of an agent with these data")

    def _renew_large(self) -> None:
        """From time to time, drop rounding from the state, and start large entries anew; the other ends hear of it."""
        for n in self.neighbours.values():
            n.anew = False
        if self.round % SETTLE:
            return
        dim = self.form.dim
        self.rows.settle()
        usual = max(self._slope, self.members.own.L * _largest(self.x), self.rows.conserved(dim))
        for n in self.neighbours.values():
            own = n.counted and self.name < n.name and not self._listens
            n.anew = own and not _largest(self.rows.entry(n.name)[:, :dim]) <= LARGE * usual
            self.counters.renewed += n.anew


def _largest(array: Array) -> float:
    """Return the largest absolute value; infinity if one is not a number."""
    value = float(np.abs(array).max(initial=0.0))
    return value if value >= 0 else np.inf
