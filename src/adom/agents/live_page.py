"""A page about one agent or a swarm, served on loopback only: JSON, counters for Prometheus and a live picture."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any, Self

from ..errors import InputError

Picture = dict[str, Any]
"""`agents`: a dict about each; `links`: two names and a state (up, down, cut) each; `events`: lines of text."""
FILES = {
    "/": ("index.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'"
COUNTED = {
    "rounds": "Rounds made.",
    "sent": "Messages sent.",
    "received": "Messages heard.",
    "bytes_sent": "Bytes sent.",
    "lost": "Waits that ended without the message.",
    "repaired": "Link entries made opposite again.",
    "forgotten": "Links given up.",
    "unwritten": "Attempts to write a file that failed.",
    "unlogged": "Lines of the log that could not be written.",
}
MEASURED = {
    "round": "Round.",
    "rounds_per_second": "Rounds a second.",
    "bound": "Bound on the squared error of all answers together; +Inf while none is known.",
    "model_bound": "How far a model of the certified answer may be off; +Inf while no bound is known.",
    "published": "How far the published model may be off; +Inf while there is none.",
    "required": "Agents that must be in before agents end as agreed or publish a model.",
    "lacking": "Of these, those that are missing.",
    "chi": "Assumed condition number of the network.",
    "certificate_days": "Days until the certificate expires.",
}


def metrics(picture: Picture) -> str:
    """Return counters in the text form that Prometheus reads.

    A number that an agent does not tell is left out; one that it tells as None is infinite or unknown, and is +Inf.

    Examples
    --------
    >>> print(metrics({"agents": [{"name": "a", "rounds": 3, "links": ["b"], "refused": {"shape": 1}}]}).strip())
    # HELP adom_rounds_total Rounds made.
    # TYPE adom_rounds_total counter
    adom_rounds_total{agent="a"} 3
    # HELP adom_links Links at present.
    # TYPE adom_links gauge
    adom_links{agent="a"} 1
    # HELP adom_refused_total Messages refused.
    # TYPE adom_refused_total counter
    adom_refused_total{agent="a",kind="shape"} 1
    """
    agents = picture["agents"]
    lines: list[str] = []

    def family(name: str, kind: str, text: str, values: list[tuple[str, Any]]) -> None:
        if values:
            lines.extend([f"# HELP adom_{name} {text}", f"# TYPE adom_{name} {kind}"])
            lines.extend(f"adom_{name}{{{labels}}} {value}" for labels, value in values)

    for table, kind, end in ((COUNTED, "counter", "_total"), (MEASURED, "gauge", "")):
        for key, text in table.items():
            found = [(f'agent="{a["name"]}"', "+Inf" if a[key] is None else a[key]) for a in agents if key in a]
            family(key + end, kind, text, found)
    linked = [(f'agent="{a["name"]}"', len(a["links"])) for a in agents if "links" in a]
    family("links", "gauge", "Links at present.", linked)
    refused = [(f'agent="{a["name"]}",kind="{k}"', v) for a in agents for k, v in a.get("refused", {}).items()]
    family("refused_total", "counter", "Messages refused.", [(labels.replace(" ", "_"), v) for labels, v in refused])
    return "\n".join(lines) + "\n"


class Server:
    """A page served on loopback by a thread; a context manager that serves while it is open.

    The port is taken at once, so that a port in use is refused before anything else happens.

    Parameters
    ----------
    port : int
        0 takes any free port.
    picture : callable
        Returns what the page shows now.
    """

    def __init__(self, port: int, picture: Callable[[], Picture]) -> None:
        try:
            self._http = ThreadingHTTPServer(("127.0.0.1", port), _handler(picture))
        except OSError as error:
            why = f"cannot serve a page on port {port}: {error.strerror}"
            raise InputError(f"{why}; choose another (page), or end what uses it") from None
        self._http.daemon_threads = True
        self.port = int(self._http.server_address[1])
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving, and free the port."""
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()


def _handler(picture: Callable[[], Picture]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that http.server looks for
            host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host")
            if host not in ("127.0.0.1", "localhost"):  # a foreign page gave this machine another name
                self._answer(403, "text/plain", b"only 127.0.0.1 and localhost are served\n")
            elif self.path in FILES:
                name, kind = FILES[self.path]
                self._answer(200, kind, (resources.files(__package__) / "assets" / name).read_bytes())
            elif self.path == "/status.json":
                self._answer(200, "application/json", json.dumps(picture()).encode())
            elif self.path == "/metrics":
                self._answer(200, "text/plain; version=0.0.4", metrics(picture()).encode())
            else:
                self._answer(404, "text/plain", b"there are /, /status.json and /metrics\n")

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind if "version" in kind else f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing: the log is for the agent's own lines."""

    return Handler
