"""A headless Chromium that tests talk to over a pipe, by its DevTools protocol; no driver is needed."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 60.0
"""Seconds after which a browser that says nothing is given up."""
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync"),
    *("--disable-extensions", "--no-default-browser-check", "--mute-audio", "--hide-scrollbars"),
    *("--force-color-profile=srgb", "--remote-debugging-pipe"),
)


def program() -> str | None:
    """Return where a Chromium lies, if there is one."""
    return next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )


class Browser:
    """A running browser.

    It reads commands from its file 3 and writes answers to its file 4, each ended by a zero byte.
    """

    def __init__(self, folder: Path) -> None:
        path = program()
        assert path is not None
        theirs_in, self._out = _pipe()
        self._in, theirs_out = _pipe()
        log = os.open(folder / "browser.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        null = os.open(os.devnull, os.O_RDONLY)
        # Spawned, not forked: a fork of a process with threads is a warning, and warnings are errors here.
        self.pid = os.posix_spawn(
            path,
            [path, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
            {**os.environ, "HOME": str(folder)},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
                (os.POSIX_SPAWN_DUP2, theirs_in, 3),
                (os.POSIX_SPAWN_DUP2, theirs_out, 4),
            ],
            setpgroup=0,
        )
        for handle in (theirs_in, theirs_out, log, null):
            os.close(handle)
        self._number, self._rest = 0, b""
        self._events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer; what else arrives meanwhile is kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        os.write(self._out, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            said = self._next(until)
            if said.get("id") == self._number:
                if "error" in said:
                    raise AssertionError(f"{method}: {said['error']}")
                answer: dict[str, Any] = said["result"]
                return answer
            if "method" in said:
                self._events.append(said)

    def events(self, session: str) -> list[dict[str, Any]]:
        """Return what a page has said by itself so far."""
        return [one for one in self._events if one.get("sessionId") == session]

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise AssertionError(f"the browser said nothing for {PATIENCE:.0f} s")
            got = os.read(self._in, 1 << 20)
            if not got:
                raise AssertionError("the browser has ended")
            self._rest += got
        first, _, self._rest = self._rest.partition(b"\0")
        said: dict[str, Any] = json.loads(first)
        return said

    @contextmanager
    def page(self, file: Path, *, width: int = 1200, height: int = 900, dark: bool = False) -> "Iterator[Page]":
        """Open a file in a page of its own."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        opened = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            opened.call(f"{domain}.enable")
        opened.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        opened.call("Emulation.setEmulatedMedia", features=[scheme])
        opened.call("Page.navigate", url=file.resolve().as_uri())
        try:
            yield opened
        finally:
            self.call("Target.closeTarget", targetId=target)

    def close(self) -> None:
        """End the browser and all that it started."""
        for handle in (self._out, self._in):
            os.close(handle)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return
            time.sleep(0.05)
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Page:
    """One page of a browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command of the protocol."""
        return self._browser.call(method, self._session, **parameters)

    def run(self, script: str) -> Any:
        """Return the value of an expression, after waiting for it if it is a promise."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise AssertionError(f"{script}: {details.get('exception', details).get('description', details)}")
        return answer["result"].get("value")

    def wait(self, script: str, met: Callable[[Any], bool] = bool) -> Any:
        """Wait until an expression is true, and return its value."""
        until = time.monotonic() + PATIENCE
        while not met(value := self.run(script)):
            if time.monotonic() > until:
                raise AssertionError(f"waited for {script}, which stayed {value!r}; {self.troubles()}")
            time.sleep(0.05)
        return value

    def press(self, key: str, code: int) -> None:
        """Press a key where the focus is."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        shared = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **shared, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def troubles(self) -> list[str]:
        """Return everything that should not have happened: errors, warnings, dialogues, requests beyond the file."""
        found = []
        for one in self._browser.events(self._session):
            about = one["params"]
            if one["method"] == "Runtime.exceptionThrown":
                details = about["exceptionDetails"]
                found.append(details.get("exception", {}).get("description") or details["text"])
            elif one["method"] == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
                found.append(f"console {about['type']}: {[part.get('value') for part in about['args']]}")
            elif one["method"] == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {about['entry']['text']}")
            elif one["method"] == "Page.javascriptDialogOpening":
                found.append(f"dialogue: {about['message']}")
            elif one["method"] == "Network.requestWillBeSent" and not _harmless(about["request"]["url"]):
                found.append(f"request: {about['request']['url'][:200]}")
        return found

    def picture(self, path: Path, *, whole: bool = False) -> Path:
        """Save what is seen, or the whole page, as a PNG file."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))
        return path


def _harmless(url: str) -> bool:
    """Return whether a request stays on the machine: the page itself, and what it carries inside."""
    return url.startswith(("file:", "data:", "blob:", "about:"))


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are out of the way of files 0 to 9, and of which a child inherits none by itself."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
