"""The picture of a run, drawn by a process that loads matplotlib during the run, if there is a second core."""

import os
import signal
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from ..run.result import Result


class Painter:
    """A process that loads matplotlib at once and draws one saved result on request.

    It is forked from this process, before JAX is loaded. Without a second core or fork, or with threads or
    JAX already there, there is no such process, and `finish` draws here.

    Parameters
    ----------
    beside : bool
        Whether a second process may be started.
    """

    def __init__(self, beside: bool) -> None:
        self._child = 0
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        if not (beside and cores > 1 and threading.active_count() == 1 and "jax" not in sys.modules):
            return
        orders, answers = os.pipe(), os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about NumPy's idle threads
            self._child = os.fork()
        if not self._child:
            os.close(orders[1])
            _serve(orders[0], answers[1])
        os.close(orders[0])
        os.close(answers[1])
        self._orders, self._answers = os.fdopen(orders[1], "wb"), os.fdopen(answers[0], "rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._child:
            self._orders.close()
            self._answers.close()
            os.waitpid(self._child, 0)

    def begin(self, saved: Path, target: Path) -> None:
        """Ask the second process to draw a saved result."""
        if self._child:
            with self._orders as orders, suppress(OSError):
                orders.write(os.fsencode(f"{saved.resolve()}\0{target.resolve()}"))

    def finish(self, result: "Result", target: Path) -> None:
        """Wait for the picture, or draw it here."""
        if not (self._child and self._answers.read()):  # drawing here shows an error that the process met
            _draw(result, target)


def _draw(result: "Result", target: Path) -> None:
    from ..plot.curves import convergence
    from ..plot.style import save

    save(convergence([result]), target)


def _serve(orders: int, answers: int) -> None:
    """Load matplotlib, wait for an order, carry it out and end."""
    for asked in (signal.SIGINT, signal.SIGTERM):  # they end the run; this process ends with it
        signal.signal(asked, signal.SIG_IGN)
    try:
        from matplotlib.backends import backend_agg  # noqa: F401  # loaded ahead

        from ..plot import curves, display  # noqa: F401  # loaded ahead
        from ..run.result import load

        with os.fdopen(orders, "rb") as pipe:
            order = os.fsdecode(pipe.read())
        if order:
            saved, target = order.split("\0")
            _draw(load(saved), Path(target))
            os.write(answers, b"drawn")
    finally:
        os._exit(0)  # silently: if nothing was drawn, `finish` draws
