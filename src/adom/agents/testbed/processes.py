"""Many agents on one machine, for experiments: cut and restore links; kill, pause and restart agents.

Loopback or network namespaces join them: on loopback, the two ends of a cut link drop each other's messages; in
namespaces the link itself is down. Events happen to agents at random or by a script.

A script has one event a line: seconds since the start, event, names. `#` begins a comment.

    2.0 cut n0 n1
    3.5 restore n0 n1
    4.0 kill n2
    6.0 start n2
    5.0 pause n3
    5.8 continue n3
    7.0 data n0
    9.0 leave n1

`kill` ends an agent without warning, `leave` lets it say goodbye, and `data` gives it other samples.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import networkx as nx
import numpy as np

from ...errors import InputError, nearest
from ...util import files
from ..configuration import TABLES, as_toml
from ..functions import AgentOracle, from_samples

Array = np.ndarray
Link = tuple[str, str]
PORT = 7447
"""Where an agent in a namespace listens."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

ENDS = {"cut": 2, "restore": 2, "kill": 1, "start": 1, "pause": 1, "continue": 1, "leave": 1, "data": 1}
"""Events, and how many agents they name."""
EVERY = 0.5
"""Seconds from one random event to the next."""


# What joins the agents


class Loopback:
    """Where agents run and how they are linked: on 127.0.0.1, a port each."""

    def __init__(self, names: Sequence[str], ports: Sequence[int]) -> None:
        self._ports = dict(zip(names, ports, strict=True))

    def address(self, name: str, seen_by: str | None = None) -> str:
        """Return HOST:PORT where an agent listens, or where agent `seen_by` reaches it."""
        return f"127.0.0.1:{self._ports[name]}"

    def command(self, name: str, call: list[str]) -> list[str]:
        """Return the command line that runs `call` where the agent lives."""
        return call

    def cut(self, link: Link, down: bool) -> bool:
        """Cut or restore a link; return False if the agents must drop its messages."""
        return False

    def close(self) -> None:
        """Take everything down."""


def missing() -> str:
    """Return why namespaces cannot be made here; "" if they can."""
    if not shutil.which("ip"):
        return "the command ip is missing (package iproute2)"
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "only root may create network namespaces"
    try:
        probe = f"adom-probe-{os.getpid()}"
        _ip("netns", "add", probe)
        _ip("netns", "delete", probe)
    except InputError as error:
        return str(error)
    return ""


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"ip {' '.join(words)} failed: {done.stderr.strip()}; run as root, or on loopback instead")


class Namespaces(Loopback):
    """A network inside this kernel: a namespace per agent, a virtual cable (veth pair) per link; needs root and `ip`.

    Nothing leaves the namespaces. Cutting a link takes its cable down, as if a switch had lost power.
    """

    def __init__(self, names: Sequence[str], links: Sequence[Link]) -> None:
        self._names, self._links = list(names), list(links)
        self._made: list[str] = []
        try:
            for name in names:
                _ip("netns", "add", self._space(name))
                self._made.append(self._space(name))
                _ip("-n", self._space(name), "link", "set", "lo", "up")
            for link in links:
                self._join(link)
        except InputError:
            self.close()
            raise

    @staticmethod
    def _space(name: str) -> str:
        return f"adom-{os.getpid()}-{name}"

    def _ends(self, link: Link) -> list[tuple[str, str, str]]:
        """Return namespace, device and address of both ends."""
        number = self._links.index(link)
        net, low = f"10.77.{number // 64}", 4 * (number % 64)
        return [(self._space(name), f"l{number}{'ab'[i]}", f"{net}.{low + 1 + i}") for i, name in enumerate(link)]

    def _join(self, link: Link) -> None:
        (space_a, a, _), (space_b, b, _) = self._ends(link)
        _ip("link", "add", a, "netns", space_a, "type", "veth", "peer", "name", b, "netns", space_b)
        for space, device, address in self._ends(link):
            _ip("-n", space, "addr", "add", f"{address}/30", "dev", device)
            _ip("-n", space, "link", "set", device, "up")

    def address(self, name: str, seen_by: str | None = None) -> str:
        """Return HOST:PORT where an agent listens, or where agent `seen_by` reaches it."""
        if seen_by is None:
            return f"0.0.0.0:{PORT}"
        link = next(link for link in self._links if set(link) == {name, seen_by})
        return f"{self._ends(link)[link.index(name)][2]}:{PORT}"

    def command(self, name: str, call: list[str]) -> list[str]:
        """Return the command line that runs `call` in the agent's namespace."""
        return ["ip", "netns", "exec", self._space(name), *call]

    def cut(self, link: Link, down: bool) -> bool:
        """Take the cable of a link down or up."""
        for space, device, _ in self._ends(link):
            _ip("-n", space, "link", "set", device, "down" if down else "up")
        return True

    def close(self) -> None:
        """Remove all namespaces, and the cables with them."""
        for space in self._made:
            with suppress(InputError):
                _ip("netns", "delete", space)
        self._made.clear()


# The agents


def random_links(names: Sequence[str], seed: int, extra: float = 0.5) -> list[Link]:
    """Return a ring of all agents, and `extra` random links per agent."""
    rng, n = np.random.default_rng(seed), len(names)
    links = {(names[i], names[(i + 1) % n]) for i in range(n)} if n > 2 else {(names[0], names[-1])}
    across = [(a, b) for i, a in enumerate(names) for b in names[i + 2 :] if (b, a) not in links]
    chosen = rng.permutation(len(across))[: round(extra * n)]
    return sorted(links | {across[i] for i in chosen})


def write_samples(folder: Path, names: Sequence[str], seed: int, dim: int = 10, samples: int = 40) -> None:
    """Write random samples for each agent: two classes, separated by a plane up to noise."""
    rng = np.random.default_rng(seed)
    plane = rng.standard_normal(dim)
    for name in names:
        features = rng.standard_normal((samples, dim)) + 0.5 * rng.standard_normal(dim)
        labels = np.where(features @ plane + rng.standard_normal(samples) > 0, 1.0, -1.0)
        with files.atomic(folder / f"{name}.npz") as partial, partial.open("wb") as file:
            np.savez(file, features=features, labels=labels)


def _close(process: "subprocess.Popen[str]") -> None:
    """Wait for the end of a process, and close its standard input."""
    process.wait()
    if process.stdin is not None:
        with suppress(OSError):  # commands that nobody will read
            process.stdin.close()


class Swarm:
    """Agents as processes; a context that ends them all.

    Parameters
    ----------
    folder : Path
        For data, settings, logs and models.
    names : sequence of str
    links : list of pairs of names
        All links that may ever be used.
    wires : Loopback or Namespaces
    tls : bool
    settings : dict
        Further settings of every agent, by key of the tables [agent] and [run].
    l2 : float
        Regulariser of the logistic regression.
    """

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        links: Sequence[Link],
        wires: Loopback,
        tls: bool = False,
        settings: dict[str, Any] | None = None,
        l2: float = 0.1,
    ) -> None:
        self.folder, self.names, self.links, self.wires = folder, list(names), list(links), wires
        self.cut: set[Link] = set()
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.status: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, Array] = {}
        self.conserved: dict[str, Array] = {}  # the parts of their states that must sum to zero
        self.stopped: set[str] = set()
        self.events: list[str] = []
        self.began = time.monotonic()
        self._settings, self._protocol = settings or {}, "tls" if tls else "tcp"
        self._l2, self._exact = l2, dict[tuple[str, ...], Array]()
        if tls and not (folder / "keys" / "ca.pem").exists():
            from ..keys import make_keys  # late, because it needs a package that only TLS does

            make_keys(folder / "keys", self.names)
        for name in self.names:
            self._configure(name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            with suppress(OSError):
                process.send_signal(signal.SIGCONT)
            process.kill()
        for process in self.processes.values():
            _close(process)
        self.wires.close()

    def neighbours(self, name: str) -> list[str]:
        """Return the agents that an agent may be linked to."""
        return sorted(b if a == name else a for a, b in self.links if name in (a, b))

    def _configure(self, name: str) -> None:
        p, home, more = self._protocol, self.folder, self._settings
        found = {other: f"{p}/{self.wires.address(other, name)}" for other in self.neighbours(name)}
        agent = {"name": name, "listen": f"{p}/{self.wires.address(name)}", "keys": "keys", "plain": p == "tcp"}
        tables: dict[str, dict[str, Any]] = {
            "agent": {**agent, "control": True, **{k: v for k, v in more.items() if k in TABLES["agent"]}},
            "neighbours": found,
            "problem": {"data": f"{name}.npz", "l2": self._l2},
            "run": {k: v for k, v in more.items() if k in TABLES["run"]},
            "files": {"out": f"out-{name}", "report": 0.25},
        }
        with files.atomic(home / f"{name}.toml") as partial:
            partial.write_text(as_toml(tables), encoding="utf-8")

    def exact(self, names: Sequence[str]) -> Array:
        """Return the exact answer for the data of some agents: that for all their samples together."""
        if tuple(names) not in self._exact:
            found = [self._samples(name) for name in names]
            features, labels = (np.concatenate(parts) for parts in zip(*found, strict=True))
            pooled = from_samples("logistic", features, labels, self._l2, "samples")
            self._exact[tuple(names)] = AgentOracle(pooled, exact=True).dual_gradient(np.zeros((1, pooled.dim)))[0]
        return self._exact[tuple(names)]

    def _samples(self, name: str) -> tuple[Array, Array]:
        with np.load(self.folder / f"{name}.npz", allow_pickle=False) as file:
            return file["features"], file["labels"]

    # Actions on agents

    def note(self, what: str) -> None:
        """Record an event with its time."""
        self.events.append(f"{time.monotonic() - self.began:.1f} s: {what}")

    def start(self, name: str, forget: bool = True) -> None:
        """Start an agent, after removing its checkpoint if `forget`."""
        if self.alive(name):
            return
        if forget:
            (self.folder / f"out-{name}" / "checkpoint.npz").unlink(missing_ok=True)
        call = [sys.executable, "-m", "adom", "agent", str(self.folder / f"{name}.toml")]
        with (self.folder / f"{name}.err").open("ab") as errors:
            process = subprocess.Popen(
                self.wires.command(name, call),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **ONE_THREAD},
            )
        if name in self.processes:
            _close(self.processes[name])
        self.processes[name] = process
        self.answers.pop(name, None)
        threading.Thread(target=self._read, args=(name, process), daemon=True).start()
        self._tell_cuts(name)
        self.note(f"{name} starts")

    def _read(self, name: str, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        with suppress(ValueError):  # closed while it was read
            for line in process.stdout:
                event = json.loads(line)
                if event["event"] == "answer":
                    self.answers[name] = np.array(event["x"])
                    self.conserved[name] = np.array(event["conserved"])
                elif event["event"] in ("status", "end"):
                    self.status[name] = {**self.status.get(name, {}), **event}
        process.stdout.close()

    def alive(self, name: str) -> bool:
        """Return whether the process of an agent runs (it may be paused)."""
        return name in self.processes and self.processes[name].poll() is None

    def present(self) -> list[str]:
        """Return the agents that run and are not paused."""
        return [name for name in self.names if self.alive(name) and name not in self.stopped]

    def kill(self, name: str) -> None:
        """Kill an agent, as kill -9 does."""
        self._end(name, signal.SIGKILL, "is killed")

    def leave(self, name: str) -> None:
        """Ask an agent to end, as systemd does; it says goodbye."""
        self._end(name, signal.SIGTERM, "leaves")

    def _end(self, name: str, how: signal.Signals, words: str) -> None:
        if self.alive(name):
            self.processes[name].send_signal(how)
            _close(self.processes[name])
            self.stopped.discard(name)
            self.note(f"{name} {words}")

    def pause(self, name: str) -> None:
        """Pause the process of an agent, as if it hung."""
        self.processes[name].send_signal(signal.SIGSTOP)
        self.stopped.add(name)
        self.note(f"{name} hangs")

    def go_on(self, name: str) -> None:
        """Let a paused process go on."""
        self.processes[name].send_signal(signal.SIGCONT)
        self.stopped.discard(name)
        self.note(f"{name} goes on")

    def change_data(self, name: str, seed: int | None = None) -> None:
        """Give an agent other samples, and tell it to read them."""
        dim = self._samples(name)[0].shape[1]
        write_samples(self.folder, [name], len(self.events) if seed is None else seed, dim)
        self._exact.clear()
        if self.alive(name):
            self.processes[name].send_signal(signal.SIGHUP)
        self.note(f"{name} has other data")

    def set_link(self, link: Link, down: bool) -> None:
        """Cut a link, or restore it."""
        ends = tuple(sorted(link))
        link = next((known for known in self.links if tuple(sorted(known)) == ends), link)
        if link not in self.links:
            raise InputError(f"{link[0]} and {link[1]} are not linked; cut one of the links of the swarm")
        (self.cut.add if down else self.cut.discard)(link)
        if not self.wires.cut(link, down):
            for name in link:
                self._tell_cuts(name)
        self.note(f"{link[0]} - {link[1]} {'is cut' if down else 'is restored'}")

    def _tell_cuts(self, name: str) -> None:
        deaf = [b if a == name else a for a, b in self.cut if name in (a, b)]
        self._command(name, {"deaf": deaf})

    def _command(self, name: str, command: dict[str, Any]) -> None:
        process = self.processes.get(name)
        if process is not None and process.poll() is None and process.stdin is not None:
            with suppress(OSError):  # it has just died
                process.stdin.write(json.dumps(command) + "\n")
                process.stdin.flush()

    # Observations

    def ask(self) -> None:
        """Ask all agents for their answers; they come a moment later."""
        for name in self.present():
            self._command(name, {"answer": True})

    def errors(self) -> dict[str, float]:
        """Return the relative error of each present agent's last answer, against the exact one for those present."""
        here = self.present()
        if not here:
            return {}
        x = self.exact(here)
        known = {name: self.answers[name] for name in here if name in self.answers}
        return {name: float(np.linalg.norm(a - x) / np.linalg.norm(x)) for name, a in known.items()}

    def sums(self) -> float:
        """Return how far the sums that the method conserves are from zero, relative to the largest summand.

        This is meaningful only once all agents are at rest, since they answer in different rounds.
        """
        parts = [self.conserved[name] for name in self.present() if name in self.conserved]
        return float(np.abs(sum(parts)).max() / max(np.abs(part).max() for part in parts)) if parts else np.nan

    def picture(self) -> dict[str, Any]:
        """Return what the page shows."""
        errors, agents = self.errors(), []
        for name in self.names:
            state = "hangs" if name in self.stopped else "runs" if self.alive(name) else "gone"
            known = self.status.get(name, {}) if state != "gone" else {}
            agents.append({**known, "name": name, "state": state, "error": errors.get(name)})
        heard = {frozenset((a["name"], other)) for a in agents for other in a.get("links", []) if a["state"] == "runs"}
        links = [[a, b, "cut" if (a, b) in self.cut else "up" if {a, b} in heard else "down"] for a, b in self.links]
        return {"agents": agents, "links": links, "events": list(self.events)}

    def wait(self, until: Callable[[], bool], seconds: float) -> bool:
        """Wait until `until()` is true, asking for answers meanwhile; return whether it came true in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.ask()
            time.sleep(0.1)
            if until():
                return True
        return False

    def wait_for_error(self, tol: float, seconds: float) -> bool:
        """Wait until the relative errors of all present agents are at most `tol`."""

        def near() -> bool:
            errors = self.errors()
            return len(errors) == len(self.present()) > 0 and max(errors.values()) <= tol

        return self.wait(near, seconds)


# What happens to them


class Event(NamedTuple):
    """One event."""

    seconds: float
    what: str
    names: tuple[str, ...]


def read_script(path: Path, names: list[str]) -> list[Event]:
    """Read a script; return its events in order of time."""
    events = []
    for number, line in enumerate(files.text(path, "expected a script of events", files.SETTINGS).splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            seconds, what, ends = float(words[0]), words[1], tuple(words[2:])
        except (ValueError, IndexError):
            raise InputError(f"{path}, line {number}: expected SECONDS EVENT NAME..., such as 2.5 kill n1") from None
        if what not in ENDS:
            raise InputError(f"{path}, line {number}: unknown event {what!r}; {nearest(what, ENDS)}")
        if len(ends) != ENDS[what] or not set(ends) <= set(names) or not 0 <= seconds < 1e9:
            raise InputError(
                f"{path}, line {number}: {what} takes {ENDS[what]} of {', '.join(names[:9])}, after 0 s or more; got "
                f"{' '.join(ends) or 'none'}"
            )
        events.append(Event(seconds, what, ends))
    return sorted(events, key=lambda event: event.seconds)


def random_events(names: list[str], links: list[Link], seed: int, seconds: float) -> Iterator[Event]:
    """Yield random events up to a time: links cut and restored, agents killed and restarted, paused and continued.

    The agents not killed stay connected; at the end everything is restored.
    """
    rng, now = np.random.default_rng(seed), 0.0
    cut: list[Link] = []
    dead: list[str] = []
    held: list[str] = []
    while now + 2 * EVERY < seconds:
        now += EVERY * float(rng.uniform(0.5, 1.5))
        choice = rng.random()
        if held and choice < 0.5:
            yield Event(now, "continue", (held.pop(),))
        elif cut and choice < 0.35:
            yield Event(now, "restore", cut.pop(int(rng.integers(len(cut)))))
        elif dead and choice < 0.45:
            yield Event(now, "start", (dead.pop(),))
        elif choice < 0.8:
            link = links[int(rng.integers(len(links)))]
            if link not in cut and _connected(names, links, [*cut, link], dead):
                cut.append(link)
                yield Event(now, "cut", link)
        else:
            name = names[int(rng.integers(len(names)))]
            if name in (*dead, *held) or len(dead) + len(held) >= len(names) // 3:
                continue
            if choice < 0.9 and _connected(names, links, cut, [*dead, name]):
                dead.append(name)
                yield Event(now, "kill", (name,))
            elif choice >= 0.9:
                held.append(name)
                yield Event(now, "pause", (name,))
    yield from (Event(seconds, "continue", (name,)) for name in held)
    yield from (Event(seconds, "restore", link) for link in cut)
    yield from (Event(seconds, "start", (name,)) for name in dead)


def _connected(names: list[str], links: list[Link], cut: list[Link], dead: list[str]) -> bool:
    graph = nx.Graph()
    graph.add_nodes_from(name for name in names if name not in dead)
    graph.add_edges_from(link for link in links if link not in cut and not set(link) & set(dead))
    return len(graph) > 0 and bool(nx.is_connected(graph))


def happen(swarm: Swarm, event: Event) -> None:
    """Apply an event to a swarm."""
    if event.what in ("cut", "restore"):
        swarm.set_link((event.names[0], event.names[1]), down=event.what == "cut")
    else:
        deed = {"continue": "go_on", "data": "change_data"}.get(event.what, event.what)
        getattr(swarm, deed)(event.names[0])
