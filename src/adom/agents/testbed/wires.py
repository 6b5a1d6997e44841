"""What joins agents on one machine: loopback, or network namespaces with virtual cables.

On loopback, the two ends of a cut link drop each other's messages. In namespaces the link itself is down.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from ...errors import InputError

Link = tuple[str, str]
PORT = 7447
"""Where an agent in a namespace listens."""


class Wires(Protocol):
    """Where agents run and how they are linked."""

    def address(self, name: str, seen_by: str | None = None) -> str:
        """Return HOST:PORT where an agent listens, or where agent `seen_by` reaches it."""

    def command(self, name: str, call: list[str]) -> list[str]:
        """Return the command line that runs `call` where the agent lives."""

    def cut(self, link: Link, down: bool) -> bool:
        """Cut or restore a link; return False if the agents must drop its messages."""

    def close(self) -> None:
        """Take everything down."""


class Loopback:
    """Agents on 127.0.0.1, a port each."""

    def __init__(self, names: Sequence[str], ports: Sequence[int]) -> None:
        self._ports = dict(zip(names, ports, strict=True))

    def address(self, name: str, seen_by: str | None = None) -> str:
        """Return HOST:PORT."""
        return f"127.0.0.1:{self._ports[name]}"

    def command(self, name: str, call: list[str]) -> list[str]:
        """Return the call unchanged."""
        return call

    def cut(self, link: Link, down: bool) -> bool:
        """Leave it to the agents."""
        return False

    def close(self) -> None:
        """Do nothing."""


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


class Namespaces:
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

    def _ends(self, link: Link) -> tuple[tuple[str, str, str], tuple[str, str, str]]:
        """Return namespace, device and address of both ends."""
        number = self._links.index(link)
        net, low = f"10.77.{number // 64}", 4 * (number % 64)
        return (
            (self._space(link[0]), f"l{number}a", f"{net}.{low + 1}"),
            (self._space(link[1]), f"l{number}b", f"{net}.{low + 2}"),
        )

    def _join(self, link: Link) -> None:
        (space_a, a, at_a), (space_b, b, at_b) = self._ends(link)
        _ip("link", "add", a, "netns", space_a, "type", "veth", "peer", "name", b, "netns", space_b)
        for space, device, address in ((space_a, a, at_a), (space_b, b, at_b)):
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
