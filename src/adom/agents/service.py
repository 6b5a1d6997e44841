"""An agent as a process: it listens, makes rounds, writes its files, follows its data, and ends when it is asked to.

Its log is JSON, one object a line: `time`, `event`, and what belongs to it.
"""

import json
import os
import signal
import sys
import threading
import time
import zlib
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import numpy as np

from .. import __version__
from ..algorithms import method_class
from ..errors import InputError
from .agent import Agent
from .agreement import agree, error_bound
from .auto import Auto, WideOracle
from .config import Config
from .functions import Function, Oracle, from_samples
from .kept import restore, save, write_model
from .links import Links
from .rows import Rows
from .settings import Settings
from .wire import Form, Member, most_bytes

LINGER = 5
"""Times that last words are said, since nobody confirms them."""
GREETING = 0.02
"""Seconds between two looks at who is there, before the first round."""


def read_function(config: Config) -> Function:
    """Read the samples of an agent."""
    from ..data.sample_files import read

    features, labels = read(config.data, features=config.dim)
    if not hasattr(features, "tocsr") or features.shape[1] <= 2048:
        features = features.toarray() if hasattr(features, "tocsr") else features
    return from_samples(config.kind, features, labels, config.l2, config.weigh, config.classes)


def make_agent(config: Config, function: Function) -> Agent:
    """Return the agent of a configuration."""
    cls = method_class(config.method)
    if config.tol is not None and cls.oracle != "dual":
        raise InputError(f"tol cannot be used with {config.method}, whose error nobody can bound; use adom, or rounds")
    oracle: Any = Oracle(function, config.exact)
    settings: Settings | Auto = Settings(cls, config.chi, config.mu, config.L)
    if config.chi is None:
        settings = Auto(cls, function, zlib.crc32(config.name.encode()))
        oracle = WideOracle(oracle, settings.canaries)
    width = function.dim + settings.canaries
    rows = Rows(settings.method(function.mu, function.L, 1), oracle, width)
    problem = f"{config.kind} l2={config.l2!r} weigh={config.weigh} classes={config.classes}"
    form = Form(problem, config.method, function.dim, width, cls.vectors_per_round, rows.parts)
    own = Member(config.name, time.time_ns(), 0, function.mu, function.L)
    if not config.neighbours:
        own.apart = 0.0  # nobody could differ
    return Agent(own, rows, form, settings, function, config.neighbours, config.patience, config.gone)


class Service:
    """One running agent.

    Parameters
    ----------
    config : Config
    log : file, optional
        Where the log goes.
    """

    def __init__(self, config: Config, log: IO[str] | None = None) -> None:
        self.config, self._log = config, log or sys.stdout
        self.agent = make_agent(config, read_function(config))
        self.resumed = restore(self.agent, self._file("checkpoint.npz"))
        largest = 2 * most_bytes(self.agent.form)
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
        """Write a line of the log."""
        if event != "status":
            self.events = [*self.events[-99:], " ".join([time.strftime("%H:%M:%S"), event, str(more.get("why", ""))])]
        line = {"time": round(time.time(), 3), "agent": self.agent.name, "event": event, **more}
        print(json.dumps(line), file=self._log, flush=True)

    # Signals

    def listen_to_signals(self) -> None:
        """SIGTERM and SIGINT end the agent, SIGHUP reads its data again."""
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
        """Obey lines of JSON, {"deaf": [names]} or {"answer": true}; for those who try out a network."""

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
        self.tell("start", version=__version__, listen=self.config.listen, resumed=self.resumed, pid=os.getpid())
        try:
            self._gather()
            ending = self._rounds()
            self._end(ending)
        finally:
            self.links.close()
        return ending

    def _send(self, messages: list[tuple[str, bytes]]) -> None:
        for to, data in messages:
            self.links.send(to, data)

    def _listen(self, seconds: float) -> None:
        """Take in all that has come; wait for the first of it."""
        heard = self.links.receive(seconds)
        while heard is not None:
            if not self.agent.hear(*heard, time.monotonic()):
                for line in self.agent.refusals:
                    self.tell("refused", why=line)
                self.agent.refusals.clear()
            heard = self.links.receive(0.0)

    def _gather(self) -> None:
        """Wait for the neighbours, for a while, so that the first round finds them linked."""
        agent, end = self.agent, time.monotonic() + self.config.gather
        while not self._asked and time.monotonic() < end and not agent.met(time.monotonic()):
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
        if config.rounds is not None and agent.round >= config.rounds:
            return "rounds"
        if config.seconds is not None and now - self.began >= config.seconds:
            return "seconds"
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
        return tol is not None and some and agree(members.own, members.present(now), tol)

    def _is_due(self, what: str, now: float) -> bool:
        if now < self._due[what]:
            return False
        self._due[what] = now + float(getattr(self.config, what))
        return True

    def _end(self, ending: str) -> None:
        agent = self.agent
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
        write_model(agent, self._file("model.json"), self.config, about)
        save(agent, self._file("checkpoint.npz"))

    def _data_stamp(self) -> tuple[float, int]:
        try:
            found = self.config.data.stat()
        except OSError:
            return 0.0, 0
        return found.st_mtime, found.st_size

    def _follow(self) -> None:
        """Read the data again; go on with the old ones where the new ones cannot be used."""
        self._reread, self._stamp = False, self._data_stamp()
        try:
            function = read_function(self.config)
            if function.dim != self.agent.form.dim:
                raise InputError(
                    f"the data have {function.dim} features now, and had {self.agent.form.dim}; correct them"
                )
        except InputError as error:
            self.tell("data refused", why=str(error))
            return
        self.agent.replace(function)
        self.tell("data read", mu=function.mu, L=function.L)

    def picture(self) -> dict[str, Any]:
        """Return what a page shows of this agent and of those it knows."""
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
        """Take stock, and write it to the log."""
        agent, (before, rounds) = self.agent, self._rate
        present = agent.members.present(now)
        self._rate = (now, agent.counters.rounds)
        bound = error_bound(present) if agent.rows.method.oracle == "dual" and len(present) > 1 else np.inf
        self.status = {
            "round": agent.round,
            "rounds_per_second": round((agent.counters.rounds - rounds) / max(now - before, 1e-9), 1),
            "links": sorted(n.name for n in agent.neighbours.values() if n.counted),
            "present": [member.name for member in present],
            "apart": _finite(agent.members.own.apart),
            "bound": _finite(bound),
            "chi": round(agent.settings.chi, 6),
            "why": agent.settings.why,
            "dropped": self.links.dropped,
            **asdict(agent.counters),
        }
        if agent.members.impostor:
            self.status["warning"] = "another agent uses this name"
        self.tell("status", **self.status)


def _finite(value: float) -> float | None:
    """Return a number as JSON has it: None where it is not finite."""
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
