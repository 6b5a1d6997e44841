"""Links over Zenoh: peers without a broker, which speak only to peers that they are connected to.

A message from a to b has the key `adom/a/b`. With TLS, both ends show a certificate of the same authority, and an agent
can send only under the name in its certificate.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from random import Random
from threading import Lock
from typing import Any

from ..errors import InputError, how_to_install

NEEDS = f"agents need Eclipse Zenoh: {how_to_install('agents')}"
MOST_WAITING = 4096
"""The most messages that wait to be heard; more are dropped."""
MOST_BYTES = 2**26
"""The most bytes of them, which neighbours share equally; two messages of each may wait in any case."""
LEASE = 2000
"""Milliseconds of silence after which a connection counts as lost."""


@dataclass(frozen=True)
class KeyFiles:
    """Files of one agent: the authority's certificate, its own, and its private key."""

    authority: Path
    certificate: Path
    private: Path


class ZenohLinks:
    """The links of one agent.

    Parameters
    ----------
    name : str
    listen : str
        Where it listens, such as tcp/127.0.0.1:7447 or tls/0.0.0.0:7447.
    neighbours : dict
        Names and addresses; empty for one that connects to this agent.
    keys : KeyFiles, optional
        For TLS; else plain text.
    loss : float
        Share of heard messages to drop, for experiments.
    largest : int
        The most bytes of a message; a larger one is discarded.
    """

    def __init__(
        self,
        name: str,
        listen: str,
        neighbours: Mapping[str, str],
        keys: KeyFiles | None = None,
        loss: float = 0.0,
        largest: int = 2**24,
    ) -> None:
        try:
            import zenoh
        except ImportError as error:
            raise InputError(f"{NEEDS} ({error})") from None
        self.name, self.loss = name, loss
        self.dropped = 0
        self.deaf: set[str] = set()  # names whose messages are dropped, as if the link were cut
        self._random = Random(name)
        self._heard: SimpleQueue[tuple[str, bytes] | None] = SimpleQueue()
        self._waiting = dict.fromkeys((*neighbours, ""), 0)  # bytes that wait, of each neighbour and of all strangers
        self._share = max(2 * largest, MOST_BYTES // max(1, len(neighbours)))
        self._lock = Lock()  # several threads of Zenoh take messages
        config = zenoh.Config.from_json5(json.dumps(zenoh_config(name, listen, neighbours, keys, largest)))
        try:
            self._session = zenoh.open(config)
        except zenoh.ZError as error:
            raise InputError(
                f"cannot listen on {listen} ({str(error).splitlines()[0][:200]}); choose another port or address"
            ) from None
        remote = zenoh.Locality.REMOTE
        try:
            self._publishers = {
                to: self._session.declare_publisher(
                    f"adom/{name}/{to}",
                    congestion_control=zenoh.CongestionControl.DROP,
                    express=True,
                    allowed_destination=remote,
                )
                for to in neighbours
            }
            self._subscriber = self._session.declare_subscriber(f"adom/*/{name}", self._take, allowed_origin=remote)
        except BaseException:
            self._session.close()  # its threads would keep the process alive
            raise

    def _take(self, sample: Any) -> None:
        """Queue a message; a thread of Zenoh calls this and must not block."""
        sender = str(sample.key_expr).split("/")[1]
        lost = sender in self.deaf or (self.loss and self._random.random() < self.loss)
        data, known = sample.payload.to_bytes(), sender if sender in self._waiting else ""
        with self._lock:
            waiting = self._waiting[known] + len(data)
            if lost or self._heard.qsize() >= MOST_WAITING or waiting > self._share:
                self.dropped += 1
                return
            self._waiting[known] = waiting
        self._heard.put((sender, data))

    def send(self, to: str, data: bytes) -> None:
        """Send a message, which may be lost."""
        self._publishers[to].put(data)

    def receive(self, seconds: float) -> tuple[str, bytes] | None:
        """Return the next message and its sender; None if none comes in time, or after `wake`."""
        try:
            heard = self._heard.get(timeout=seconds) if seconds > 0 else self._heard.get_nowait()
        except Empty:
            return None
        if heard is not None:
            sender, data = heard
            with self._lock:
                self._waiting[sender if sender in self._waiting else ""] -= len(data)
        return heard

    def wake(self) -> None:
        """End the present wait for a message, or else the next; a signal handler may call this."""
        self._heard.put(None)

    def connected(self) -> int:
        """Return the number of agents that this one is connected to."""
        return len(self._session.info.peers_zid())

    def close(self) -> None:
        """End all connections; until then the threads of Zenoh keep the process alive."""
        with suppress(Exception):  # some of it may be closed already
            self._subscriber.undeclare()
            for publisher in self._publishers.values():
                publisher.undeclare()
        with suppress(Exception):
            self._session.close()


def zenoh_config(
    name: str, listen: str, neighbours: Mapping[str, str], keys: KeyFiles | None, largest: int
) -> dict[str, Any]:
    """Return the configuration of Zenoh."""
    config: dict[str, Any] = {
        "mode": "peer",
        "listen": {"endpoints": [listen]},
        "connect": {
            "endpoints": [where for where in neighbours.values() if where],
            "timeout_ms": -1,
            "exit_on_failure": False,
            "retry": {"period_init_ms": 100, "period_max_ms": 1000, "period_increase_factor": 1.5},
        },
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}},
        "open": {"return_conditions": {"connect_scouted": False}},  # else it waits half a second for scouting
        "transport": {
            "link": {
                "tx": {"lease": LEASE, "keep_alive": 4, "queue": {"size": {"data": 16}}},
                "rx": {"max_message_size": largest},
            },
            "shared_memory": {"enabled": False},
            "unicast": {"open_timeout": 2000, "accept_timeout": 2000},
        },
    }
    if keys is not None:
        config["transport"]["link"]["tls"] = {
            "root_ca_certificate": str(keys.authority),
            "enable_mtls": True,
            "listen_certificate": str(keys.certificate),
            "listen_private_key": str(keys.private),
            "connect_certificate": str(keys.certificate),
            "connect_private_key": str(keys.private),
            "verify_name_on_connect": False,  # `_rules` bind agents' names to certificates, on any host
        }
        config["access_control"] = _rules(name, neighbours)
    return config


def _rules(name: str, neighbours: Mapping[str, str]) -> dict[str, Any]:
    """Return the access rules: a neighbour may only send its own messages to this agent and subscribe to its own."""

    def rule(which: str, flow: str, messages: list[str], keys: list[str]) -> dict[str, Any]:
        return {"id": which, "permission": "allow", "flows": [flow], "messages": messages, "key_exprs": keys}

    rules = [rule("own", "egress", ["put", "declare_subscriber"], [f"adom/{name}/*", f"adom/*/{name}"])]
    for other in neighbours:
        rules.append(rule(f"from-{other}", "ingress", ["put"], [f"adom/{other}/{name}"]))
        rules.append(rule(f"listens-{other}", "ingress", ["declare_subscriber"], [f"adom/*/{other}"]))
    return {
        "enabled": True,
        "default_permission": "deny",
        "rules": rules,
        "subjects": [{"id": other, "cert_common_names": [other]} for other in neighbours],
        "policies": [{"rules": [f"from-{o}", f"listens-{o}", "own"], "subjects": [o]} for o in neighbours],
    }
