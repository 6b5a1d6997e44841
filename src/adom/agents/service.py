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
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import numpy as np

from .. import __version__
from ..data.node_shards import NodeShard, open_shard
from ..data.preparing import Agreed
from ..errors import InputError
from .agent import Agent
from .agreement import agree
from .board import MAGIC as BOARD
from .board import Board
from .certificate import Checks
from .config import Config
from .functions import Function
from .kept import restore, save, write_model
from .links import Links
from .making import largest_message, make_agent, read_function
from .preparation import prepare, restore_agreement, save_agreement
from .sample_functions import from_prepared
from .wire import Member, most_bytes

STRICT = "ADOM_STRICT"
"""A variable of the environment, for tests: if set, an error while a message is heard is raised, not logged."""
LINGER = 5
"""How often an agent sends its last messages, since nobody confirms them."""
GREETING = 0.02
"""Seconds to wait for messages at a time, before the first round and at the end."""


class _AskedError(Exception):
    """A request to end before the first round."""


class Service:
    """One running agent.

    Parameters
    ----------
    config : Config
    log : file, optional
        Where the log goes; stdout by default.
    """

    def __init__(self, config: Config, log: IO[str] | None = None) -> None:
        self.config, self._log = config, log or sys.stdout
        self.agent: Agent
        self.resumed, self._ready = False, False
        self._checks: Checks | None = None
        self.agreed: Agreed | None = None
        self._shard = None if config.shard is None else open_shard(config.shard)
        own = Member(config.name, time.time_ns(), 0, 1.0, 1.0)
        self.board = Board(own, config.neighbours, config.problem, config.gone)
        if self._shard is None:
            self._start_with(read_function(config))
            largest = 2 * most_bytes(self.agent.form)
        else:
            largest = largest_message(config.kind, self._shard)
            restore_agreement(self.board, self._file("agreement.npz"))
        self.links = Links(config.name, config.listen, config.neighbours, config.keys, config.loss, largest)
        self.began = time.monotonic()
        self.status: dict[str, Any] = {}
        self.events: list[str] = []
        self._due = dict.fromkeys(("report", "every", "watch"), self.began)
        self._asked, self._reread = "", False
        self._stamp = self._data_stamp()
        self._rate = (self.began, 0)
        self._commands: SimpleQueue[str] = SimpleQueue()

    def _file(self, name: str) -> Path:
        return self.config.out / name

    def tell(self, event: str, **more: Any) -> None:
        """Write a line to the log."""
        if event != "status":
            self.events = [*self.events[-99:], " ".join([time.strftime("%H:%M:%S"), event, str(more.get("why", ""))])]
        line = {"time": round(time.time(), 3), "agent": self.config.name, "event": event, **more}
        print(json.dumps(line), file=self._log, flush=True)

    def _start_with(self, function: Function) -> None:
        """Make the agent; continue from its checkpoint if there is one."""
        self.agent = make_agent(self.config, function, self.agreed, self.board.group)
        self.resumed, self._ready = restore(self.agent, self._file("checkpoint.npz")), True
        if self.agent.rows.method.oracle != "dual":
            self._checks = Checks(self.agent, self.board)

    # Signals

    def listen_to_signals(self) -> None:
        """End the agent on SIGTERM and SIGINT; read its data again on SIGHUP."""
        if threading.current_thread() is not threading.main_thread():
            return
        signal.signal(signal.SIGTERM, lambda *_: self.ask_to_stop("asked to"))
        signal.signal(signal.SIGINT, lambda *_: self.ask_to_stop("interrupted"))
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, lambda *_: self.ask_to_reread())

    def ask_to_stop(self, why: str) -> None:
        """End the agent at the next pause."""
        self._asked = self._asked or why

    def ask_to_reread(self) -> None:
        """Read the data again at the next pause."""
        self._reread = True

    def listen_to_commands(self, stream: IO[str]) -> None:
        """Obey lines of JSON, {"deaf": [names]} or {"answer": true}, which `adom swarm` sends."""

        def read() -> None:
            for line in stream:
                self._commands.put(line)

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
        """Run until the end; return why it ended: agreed, rounds, seconds, asked to, interrupted."""
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
        return ending

    def _prepare(self, shard: NodeShard) -> None:
        """Agree with the others on classes, scales and penalty; make the agent."""
        board, facts, nodes = self.board, shard.facts, self.config.nodes or 1
        self.tell("shard", samples=facts.samples, features=len(facts.features), target=facts.target, nodes=nodes)
        self.agreed = agreed = prepare(self.config.wanted, shard, board, nodes, time.monotonic, self._wait)
        save_agreement(board, self._file("agreement.npz"))
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
            self._listen(GREETING)
        self._send(agent.last_words(time.monotonic()))  # so that those who wait for this agent have heard it too
        agent.count_all(time.monotonic())

    def _rounds(self) -> str:
        agent, config = self.agent, self.config
        while True:
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
                while time.monotonic() < began + config.pace:
                    self._listen(began + config.pace - time.monotonic())

    def _between(self, now: float) -> str:
        """Do what is due after a round; return why to end, or "" to go on."""
        agent, config = self.agent, self.config
        self._obey()
        if config.rounds is not None and agent.has_made(config.rounds):
            return "rounds"
        if config.seconds is not None and now - self.began >= config.seconds:
            return "seconds"
        if self._checks is not None:
            self._send(self._checks.step(now))
        if self._agreed(now):
            return "agreed"
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
        intercepts = self.agent.intercepts
        left = 0.0 if intercepts is None else intercepts.left(self.agent.x)
        distance = self.agent.distance(now) + left
        return tol is not None and some and agree(members.own, members.present(now), distance, tol)

    def _is_due(self, what: str, now: float) -> bool:
        if now < self._due[what]:
            return False
        self._due[what] = now + float(getattr(self.config, what))
        return True

    def _end(self, ending: str) -> None:
        agent = self.agent
        if self._checks is not None and ending == "agreed":
            agent.x = self._checks.answer
        for _ in range(LINGER):
            now = time.monotonic()
            self._send(agent.last_words(now) if ending in ("agreed", "rounds") else agent.farewell(now))
            self._listen(GREETING)
        self._report(time.monotonic())
        self._keep()
        self.tell("end", why=ending, round=agent.round)

    # Its files

    def _keep(self) -> None:
        """Write the model and a checkpoint."""
        if not np.isfinite(self.agent.x).all():
            return
        agent = self.agent
        about = {"agent": agent.name, "method": agent.form.method, "problem": agent.form.problem, **self.status}
        write_model(agent, self._file("model.json"), self.config, self.agreed, about)
        save(agent, self._file("checkpoint.npz"))

    def _data_stamp(self) -> list[tuple[int, int]]:
        """Return modification times and sizes of the data files."""
        files = [self.config.data] if self._shard is None else sorted(self._shard.folder.glob("*"))
        found = []
        for path in files:
            with suppress(OSError):
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
        except InputError as error:
            self.tell("data refused", why=str(error))
            return
        intercepts = self.agent.intercepts
        if intercepts is not None:
            intercepts.inner = function
        self.agent.replace(function if intercepts is None else intercepts.function)
        self.tell("data read", mu=function.mu, L=function.L)

    def picture(self) -> dict[str, Any]:
        """Return what the page shows: this agent and those it knows."""
        status, name = dict(self.status), self.agent.name
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
        bound = len(present) * agent.distance(now) ** 2
        self.status = {
            "round": agent.round,
            "rounds_per_second": round((agent.counters.rounds - rounds) / max(now - before, 1e-9), 1),
            "links": sorted(n.name for n in agent.neighbours.values() if n.counted),
            "present": [member.name for member in present],
            "apart": _finite(agent.members.own.apart),
            "bound": _finite(bound),
            "chi": _finite(round(agent.settings.chi, 6)),
            "why": agent.settings.why,
            "dropped": self.links.dropped,
            **asdict(agent.counters),
        }
        if agent.members.impostor:
            self.status["warning"] = "another agent uses this name"
        self.tell("status", **self.status)


def _finite(value: float) -> float | None:
    """Return a number for JSON: None if it is not finite."""
    return float(value) if np.isfinite(value) else None


def run_agent(config: Config, log: IO[str] | None = None) -> str:
    """Run an agent in this process; return why it ended."""
    service = Service(config, log)
    service.listen_to_signals()
    if config.control:
        service.listen_to_commands(sys.stdin)
    if config.page is None:
        return service.run()
    from .page import Server

    with Server(config.page, service.picture):
        return service.run()
