"""An agent as a process: it listens, makes rounds, writes its files, follows its data, and ends on request.

Its log is JSON, one object a line, with `time`, `agent`, `event` and the event's details.
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import numpy as np

from .. import __version__
from ..data.node_shards import NodeShard, open_shard
from ..data.preparing import Agreed
from ..errors import InputError
from ..util import files
from .agent import Agent
from .board import MAGIC as BOARD
from .board import Board
from .certificate import Checks
from .configuration import AgentConfig
from .functions import Function, from_prepared
from .making import largest_message, make_agent, prepare, read_function
from .members import agree
from .publishing import Publisher, bound_of, restore, restore_agreement, save, save_agreement
from .wire import Member, most_bytes
from .zenoh_links import ZenohLinks

STRICT = "ADOM_STRICT"
"""A variable of the environment, for tests: if set, an error while a message is heard is raised, not logged."""
BETTER = 0.1
"""A model is published before it is due if its bound is below this part of the last one's."""
LINGER = 5
"""How often an agent sends its last messages, since nobody confirms them."""
GREETING = 0.02
"""Seconds to wait for messages at a time, before the first round and at the end."""
AGAIN = 1
"""Seconds from a request to end after which another one ends the process at once; some programs send two together."""
NOT_WRITTEN, INCOMPLETE = "not written", "incomplete"
"""Why an agent ended: it could not write its last files; its rounds or seconds are over, and its quorum is not in."""


class _AskedError(Exception):
    """A request to end before the first round."""


class Service:
    """One running agent.

    Parameters
    ----------
    config : AgentConfig
    log : file, optional
        Where the log goes; stdout by default.
    """

    def __init__(self, config: AgentConfig, log: IO[str] | None = None) -> None:
        self.config, self._log = config, log or sys.stdout
        self.agent: Agent
        self.resumed, self._ready = False, False
        self._checks: Checks
        self._publisher: Publisher
        self._unpublished: str | None = None  # why there is no newer model, as the log has it
        self._missing: str | None = None  # who is missing for the quorum, as the log has it
        self.agreed: Agreed | None = None
        self._certificate = None
        if config.keys is not None:
            from .keys import KeyCertificate  # late, because it needs a package that only TLS does

            self._certificate = KeyCertificate(config.name, config.keys)
        self.unwritten, self.not_written = 0, dict[str, str]()  # failed attempts; files still to write, and why
        self.unlogged = 0  # lines of the log that could not be written
        self._shard = None if config.shard is None else open_shard(config.shard)
        self._stamp = self._data_stamp()  # before they are read, so that later changes are seen
        own = Member(config.name, time.time_ns(), 0, 1.0, 1.0)
        self.board = Board(own, config.neighbours, config.problem, config.gone)
        if self._shard is None:
            self._start_with(read_function(config))
            largest = 2 * most_bytes(self.agent.form)
        else:
            largest = largest_message(config.kind, self._shard)
            restore_agreement(self.board, config.out / "agreement.npz")
        self.began = time.monotonic()
        self.status: dict[str, Any] = {}
        self.events: list[str] = []
        self._due = dict.fromkeys(("report", "every", "watch"), self.began)
        self._asked, self._asked_at, self._reread = "", self.began, False
        self._rate = (self.began, 0)
        self._commands: SimpleQueue[str] = SimpleQueue()
        self.links = ZenohLinks(config.name, config.listen, config.neighbours, config.keys, config.loss, largest)

    def tell(self, event: str, **more: Any) -> None:
        """Write a line to the log; go on without if that fails, since the work matters more."""
        if event != "status":
            self.events = [*self.events[-99:], " ".join([time.strftime("%H:%M:%S"), event, str(more.get("why", ""))])]
        line = {"time": round(time.time(), 3), "agent": self.config.name, "event": event, **more}
        try:
            self._log.flush()  # what a full disk held up goes first, so that lines stay whole
            print(json.dumps(line), file=self._log, flush=True)
        except OSError as error:  # a full disk, or a pipe that nobody reads any more
            self.unlogged += 1
            if self.unlogged == 1:
                words = f"agent {self.config.name} cannot write its log ({files.reason(error)}) and goes on without"
                with suppress(OSError):
                    print(f"adom: {words}", file=sys.stderr, flush=True)

    def _start_with(self, function: Function) -> None:
        """Make the agent; continue from its checkpoint if there is one."""
        self.agent = make_agent(self.config, function, self.agreed, self.board.group)
        self.resumed, self._ready = restore(self.agent, self.config.out / "checkpoint.npz"), True
        self._checks = Checks(self.agent, self.board)
        self._publisher = Publisher(self.config, self.agreed)

    # Signals

    @contextmanager
    def listen_to_signals(self) -> Iterator[None]:
        """End the agent on SIGTERM and SIGINT, at once when asked again later; read its data again on SIGHUP."""
        handlers: dict[int, Callable[..., None]] = {
            signal.SIGTERM: lambda number, _: self._end_on(number, "asked to"),
            signal.SIGINT: lambda number, _: self._end_on(number, "interrupted"),
        }
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = lambda *_: self.ask_to_reread()
        if threading.current_thread() is not threading.main_thread():
            handlers = {}  # only the main thread may
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)

    def _end_on(self, number: int, why: str) -> None:
        if self._asked and time.monotonic() > self._asked_at + AGAIN:  # it hangs, perhaps in a write
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.ask_to_stop(why)

    def ask_to_stop(self, why: str) -> None:
        """End the agent at the next pause."""
        if not self._asked:
            self._asked, self._asked_at = why, time.monotonic()
        self.links.wake()

    def ask_to_reread(self) -> None:
        """Read the data again at the next pause."""
        self._reread = True

    def listen_to_commands(self, stream: IO[str]) -> None:
        """Obey lines of JSON, {"deaf": [names]} or {"answer": true}, which `adom swarm` sends; end when they do."""

        def read() -> None:
            for line in stream:
                self._commands.put(line)
            self.ask_to_stop("no more commands")  # the swarm is gone

        threading.Thread(target=read, daemon=True).start()

    def _obey(self) -> None:
        while not self._commands.empty():
            command = json.loads(self._commands.get())
            if "deaf" in command:
                self.links.deaf = set(command["deaf"])
            if "answer" in command:
                rows, dim = self.agent.rows, self.agent.form.dim
                conserved = rows.rule.of(rows.state)[0, :, :dim].tolist()
                self.tell("answer", x=self.agent.x.tolist(), conserved=conserved, round=self.agent.round)

    # The run

    def run(self) -> str:
        """Run until the end; return why it ended: agreed, rounds, seconds, asked to, interrupted, not written."""
        try:
            if self._shard is not None:
                self._prepare(self._shard)
            self.tell("start", version=__version__, listen=self.config.listen, resumed=self.resumed, pid=os.getpid())
            self._gather()
            ending = self._rounds()
            self._end(ending)
        except _AskedError:
            ending = self._asked
            self.tell("end", why=ending)
        finally:
            self.links.close()
        if self.not_written:
            return NOT_WRITTEN
        return INCOMPLETE if ending in ("rounds", "seconds") and self._missing else ending

    def _prepare(self, shard: NodeShard) -> None:
        """Agree with the others on classes, scales and penalty; make the agent."""
        board, facts, nodes = self.board, shard.facts, self.config.nodes or 1
        self.tell("shard", samples=facts.samples, features=len(facts.features), target=facts.target, nodes=nodes)
        self.agreed = agreed = prepare(self.config.wanted, shard, board, nodes, time.monotonic, self._wait)
        self._write("agreement.npz", partial(save_agreement, board))
        self._start_with(from_prepared(agreed, shard))
        about = {"classes": agreed.classes, "penalty": agreed.about()["penalty"], "nodes": agreed.names}
        self.tell("prepared", kind=agreed.kind, samples=agreed.samples, **about)

    def _wait(self) -> None:
        """Exchange messages about the data for a moment."""
        now = time.monotonic()
        self._send(self.board.greet(now))
        self._listen(GREETING)
        if self._is_due("report", now) and not self.board.group:
            self.tell("waiting", present=[member.name for member in self.board.members.present(now)])
        if self._asked:
            raise _AskedError

    def _send(self, messages: list[tuple[str, bytes]]) -> None:
        for to, data in messages:
            self.links.send(to, data)

    def _listen(self, seconds: float) -> None:
        """Take in all messages; wait up to `seconds` for the first."""
        heard = self.links.receive(seconds)
        while heard is not None:
            self._hear(*heard)
            heard = self.links.receive(0.0)

    def _hear(self, sender: str, data: bytes) -> None:
        """Take in a message; log what goes wrong, once for each kind, and go on: no message ends an agent."""
        try:
            self._take_in(sender, data)
        except Exception as error:
            if STRICT in os.environ:
                raise
            place = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}"
            counts = self.agent.counters.refused if self._ready else self.board.refused
            counts[kind] = counts.get(kind, 0) + 1
            if counts[kind] == 1:
                self.tell("fault", why=f"{sender}: {kind}: {error}; this is a bug of adom: please report it")

    def _take_in(self, sender: str, data: bytes) -> None:
        if data.startswith(BOARD):
            self._send(self.board.hear(sender, data, time.monotonic()))
            refusals = self.board.refusals
        elif not self._ready:
            return  # a message of a round, before this agent has prepared its data
        else:
            self.agent.hear(sender, data, time.monotonic())
            refusals = self.agent.refusals
        for line in refusals:
            self.tell("refused", why=line)
        refusals.clear()

    def _gather(self) -> None:
        """Wait a while for the neighbours, so that they are linked in the first round."""
        agent, end = self.agent, time.monotonic() + self.config.gather
        names = [name for name, _ in self.board.group]
        while not self._asked and time.monotonic() < end and not agent.met(time.monotonic(), names):
            self._send(agent.greet(time.monotonic()))
            self._send(self.board.greet(time.monotonic()))  # who has answers posts them
            self._listen(GREETING)
        found = self._checks.latest()
        if found is not None and not self.resumed:  # far from the answer of the others, it would drag them along
            agent.start(found)
            self.tell("joins", why="begins at the answer of those who are there")
        self._send(agent.last_words(time.monotonic()))  # so that those who wait for this agent have heard it too
        agent.count_all(time.monotonic())

    def _rounds(self) -> str:
        agent, config = self.agent, self.config
        while not self._asked:
            began = time.monotonic()
            self._send(agent.begin(began))
            self._listen(0.0)
            while not agent.ready(time.monotonic()):
                now = time.monotonic()
                self._listen(min(max(agent.deadline() - now, 0.0), 0.3 * config.patience))
                self._send(agent.still_waiting(time.monotonic()))
                self._obey()
                if self._asked or self._agreed(now):
                    return self._asked or "agreed"
            agent.finish(time.monotonic())
            ending = self._asked or self._between(time.monotonic())
            if ending:
                return ending
            if config.pace:
                while time.monotonic() < began + config.pace and not self._asked:
                    self._listen(began + config.pace - time.monotonic())
        return self._asked

    def _between(self, now: float) -> str:
        """Do what is due after a round; return why to end, or "" to go on."""
        agent, config = self.agent, self.config
        self._obey()
        if config.rounds is not None and agent.has_made(config.rounds):
            return "rounds"
        if config.seconds is not None and now - self.began >= config.seconds:
            return "seconds"
        before = agent.certificate
        self._send(self._checks.step(now))
        self._watch_quorum(now)
        if self._agreed(now):
            return "agreed"
        if agent.certificate is not before and self._news(now):
            self._keep()
        if self._is_due("report", now):
            self._report(now)
        if self._is_due("every", now):
            self._keep()
        if self._reread or (self._is_due("watch", now) and self._data_stamp() != self._stamp):
            self._follow()
        return ""

    def _agreed(self, now: float) -> bool:
        members, tol = self.agent.members, self.config.tol
        some = self.agent.counters.rounds > 0
        distance = self.agent.distance(now) if not self._lacking(now) else np.inf
        return tol is not None and some and agree(members.own, members.present(now), distance, tol)

    def _lacking(self, now: float) -> str:
        """Return who is missing for the quorum; "" if nobody is."""
        return self.config.quorum.missing({member.name: member for member in self.agent.members.present(now)})

    def _watch_quorum(self, now: float) -> None:
        """Tell when the quorum is lost, and when it is there again."""
        missing = self._lacking(now)
        if missing != self._missing:
            told = {"missing": missing, "why": f"without {missing}: no end and no new model"} if missing else {}
            self.tell("quorum lost" if missing else "quorum complete", **told)
            self._missing = missing

    def _news(self, now: float) -> bool:
        """Return whether the new bound allows a model of other agents or data, or a much better one."""
        known, published = self.agent.certain(now), self._publisher
        if known is None or published.judge(known):
            return False
        return (
            known.data != published.names or bound_of(known, self.agreed).relative < BETTER * published.bound.relative
        )

    def _is_due(self, what: str, now: float) -> bool:
        if now < self._due[what]:
            return False
        self._due[what] = now + float(getattr(self.config, what))
        return True

    def _end(self, ending: str) -> None:
        agent = self.agent
        if ending == "agreed" and agent.certificate is not None:
            agent.x = agent.certificate.answer
        for _ in range(LINGER):
            now = time.monotonic()
            self._send(agent.last_words(now) if ending in ("agreed", "rounds") else agent.farewell(now))
            self._listen(GREETING)
        self._keep(self.config.tol if ending == "agreed" else None)
        self._report(time.monotonic())
        missing: dict[str, Any] = {"missing": self._missing} if self._missing else {}
        missing |= {"not_written": self.not_written} if self.not_written else {}
        self.tell("end", why=ending, round=agent.round, **missing)

    # Its files

    def _keep(self, tol: float | None = None) -> None:
        """Write the model, or a candidate, and a checkpoint; `tol` is what the agents have agreed to have met."""
        agent, now = self.agent, time.monotonic()
        if not agent.counters.rounds or not np.isfinite(agent.x).all():
            return
        names = [member.name for member in agent.members.present(now)]
        about: dict[str, Any] = {"agent": agent.name, "method": agent.form.method, "problem": agent.form.problem}
        about |= {"nodes": names, "round": agent.round, "rounds": agent.counters.rounds}
        certificate = agent.certain(now) if tol is None else agent.certificate
        if "agreement.npz" in self.not_written:
            self._write("agreement.npz", partial(save_agreement, self.board))
        self._write("model.json", lambda _: self._publish(certificate, about, tol))
        self._write("checkpoint.npz", partial(save, agent))

    def _publish(self, certificate: Any, about: dict[str, Any], tol: float | None) -> None:
        why = self._publisher.write(self.agent.x, certificate, about, tol)
        if why != self._unpublished:
            self._unpublished = why
            self.tell("model kept back" if why else "model published", why=why)

    def _write(self, name: str, write: Callable[[Path], object]) -> None:
        """Write a file into the folder `out`; if that fails, say so and go on: it is tried again when it is due."""
        try:
            write(self.config.out / name)
        except (InputError, OSError) as error:
            self.unwritten += 1
            self.not_written[name] = str(error)
            self.tell(NOT_WRITTEN, file=name, why=str(error))
        else:
            self.not_written.pop(name, None)

    def _data_stamp(self) -> list[tuple[int, int]]:
        """Return modification times and sizes of the data files."""
        found = []
        with suppress(OSError):  # a file or the folder is not there, or cannot be read now
            for path in [self.config.data] if self._shard is None else sorted(self._shard.folder.glob("*")):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size))
        return found

    def _read_again(self) -> Function:
        """Read the data again; refuse data with other features or classes."""
        if self._shard is None or self.agreed is None:
            function = read_function(self.config)
            if function.dim != self.agent.form.dim:
                raise InputError(
                    f"the data now have {function.dim} features, before {self.agent.form.dim}; restore the columns"
                )
            return function
        shard = open_shard(self._shard.folder)
        self.agreed.check(shard)
        return from_prepared(self.agreed, shard)

    def _follow(self) -> None:
        """Read the data again; keep the old ones if the new ones cannot be used."""
        self._reread, self._stamp = False, self._data_stamp()
        try:
            function = self._read_again()
        except (InputError, OSError, MemoryError) as error:
            self.tell("data refused", why=str(error) or "there is not enough memory for them")
            return
        self.agent.replace(function)
        self.tell("data read", mu=function.mu, L=function.L)

    def picture(self) -> dict[str, Any]:
        """Return what the page shows: this agent and those it knows."""
        status, name = dict(self.status), self.config.name
        linked = status.get("links", [])
        others = [m for m in status.get("present", []) if m != name]
        agents = [{**status, "name": name, "state": "runs"}, *({"name": m, "state": "runs"} for m in others)]
        known = [other for other in self.config.neighbours if other in others]
        return {
            "agents": agents,
            "links": [[name, other, "up" if other in linked else "down"] for other in known],
            "events": list(self.events),
        }

    def _report(self, now: float) -> None:
        """Update the status and write it to the log."""
        agent, (before, rounds) = self.agent, self._rate
        present = agent.members.present(now)
        self._rate = (now, agent.counters.rounds)
        known = agent.certain(now)
        error = np.inf if known is None else bound_of(known, self.agreed).relative
        self.status = {
            "round": agent.round,
            "rounds_per_second": round((agent.counters.rounds - rounds) / max(now - before, 1e-9), 1),
            "links": sorted(n.name for n in agent.neighbours.values() if n.counted),
            "present": [member.name for member in present],
            "bound": _finite(len(present) * agent.distance(now) ** 2),
            "model_bound": _finite(error),
            "published": _finite(self._publisher.bound.relative),
            "published_nodes": sorted(self._publisher.names),
            "missing": self._lacking(now),
            "required": self.config.quorum.number,
            "lacking": self.config.quorum.lacking([member.name for member in present]),
            "chi": _finite(round(agent.settings.chi, 6)),
            "why": agent.settings.why,
            "dropped": self.links.dropped,
            **asdict(agent.counters),
            "unwritten": self.unwritten,
            "not_written": dict(self.not_written),
            "unlogged": self.unlogged,
        }
        if self._certificate is not None:
            self.status["certificate_days"] = round(self._certificate.days(time.time()), 2)
            if warning := self._certificate.warning(time.time()):
                self.tell(warning[0], why=warning[1])
        if agent.members.impostor:
            self.status["warning"] = "another agent uses this name"
        self.tell("status", **self.status)


def _finite(value: float) -> float | None:
    """Return a number for JSON: None if it is not finite."""
    return float(value) if np.isfinite(value) else None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder that can be written to; refuse one that another agent holds."""
    from filelock import FileLock, Timeout

    files.make_folder(folder, "choose another folder, e.g. --out DIR")
    with ExitStack() as held:
        try:
            with suppress(NotImplementedError):  # a file system without locks
                held.enter_context(FileLock(folder / ".lock").acquire(blocking=False))
        except Timeout:
            raise InputError(
                f"another agent uses the folder {folder}; end it, or give this one a folder of its own, e.g. --out DIR"
            ) from None
        except OSError as error:
            raise InputError(f"cannot lock {folder / '.lock'}: {files.reason(error)}; choose another folder") from None
        yield


def run_agent(config: AgentConfig, log: IO[str] | None = None) -> str:
    """Run an agent in this process; return why it ended.

    That is `INCOMPLETE` if its rounds or seconds are over and its quorum was not there.
    """
    with ExitStack() as held:  # first all that may be refused, then the links
        held.enter_context(_alone(config.out))
        page = None
        if config.page is not None:
            from .live_page import Server

            page = Server(config.page, lambda: service.picture())  # noqa: PLW0108  # the service comes later
            held.callback(page.close)
        service = Service(config, log)
        held.callback(service.links.close)
        if page is not None:
            held.enter_context(page)
        held.enter_context(service.listen_to_signals())
        if config.control:
            service.listen_to_commands(sys.stdin)
        return service.run()
