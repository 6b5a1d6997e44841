"""Made-up content of a page, with names that would do harm if they got through."""

from dataclasses import replace
from typing import Any

import numpy as np

from adom.page.content import Content, Figure, Line, Panel, Run
from adom.paper.findings import Section
from adom.paper.ledger import Ledger, as_html
from adom.paper.verdicts import Entry
from adom.run.result import Result
from adom.study.replay import Motion
from adom.util.table import Table
from support.drawn import made

EVIL = "<img src=x onerror=alert(1)>"
WORSE = "</script><script>alert(2)</script><!-- \u2028 ' \" & {{data}} $$x$$"
START = 4.0


def run(relative: Any, *, every: int = 10, status: str = "max_rounds", name: str = "adom") -> Result:
    """A run whose relative errors are given."""
    errors = START * np.asarray(relative, dtype=float)
    return made(errors, errors / 10, status, start=START, step=every, name=name)


def falling(rate: float, count: int = 40) -> np.ndarray:
    return 10.0 ** (-rate * np.arange(1, count + 1))


def line(label: str, method: str, rate: float, **more: Any) -> Line:
    """Three seeds that fall at nearly the same rate."""
    return Line(label, method, [run(falling(rate * part), name=method) for part in (0.9, 1.0, 1.1)], **more)


def panel(name: str, place: tuple[int, int] = (0, 0), rate: float = 0.2) -> Panel:
    lines = [
        line("ADOM", "adom", rate),
        line("ADOM, oracle exact", "adom", 1.2 * rate, variant="oracle exact", shown=False),
        Line("DNM", "dnm", [run([10.0, 1e3, 1e6], status="diverged", name="dnm")]),
        line(EVIL, "apm", 0.5 * rate),
    ]
    return Panel(name, f"panel {name} {EVIL}", lines, WORSE, *place)


def motion() -> Motion:
    """A path of four nodes whose links turn into those of a ring and back, node by node nearer."""
    path, ring = np.array([[0, 1], [1, 2], [2, 3]]), np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    distances = np.array([[1.0, 2.0, 3.0, 4.0]]) * 10.0 ** -np.arange(4.0)[:, None]
    return Motion(
        f"moving {EVIL}", np.array([0, 5, 10, 15]), np.array([0, 1, 0, 1]), [path, ring], [corners], distances
    )


def ledger() -> str:
    panels = [{"figure": "kappa", "panel": "two", "outcome": EVIL}]
    about = ("best-over-kappa", "ADOM is best", "Figure kappa")
    entries = (
        Entry(*about, "theory", "partly", 1, 2, evidence={"summary": WORSE, "panels": panels}, full_run=EVIL),
        Entry(*about, EVIL, "not tested", notes=(WORSE,)),
    )
    sections = [Section(EVIL, WORSE, Table([EVIL], [[WORSE]]))]
    return as_html(Ledger(entries), sections, name=EVIL, drawn={("kappa", "theory", "two")})


def content() -> Content:
    """Two figures under two protocols, one of them with a panel that has no runs."""
    empty = Panel("empty", "empty", [], "", 0, 2, f"a6a is not there {EVIL}")
    pages = {
        "theory": [panel("one"), panel("two", (0, 1), 0.1), empty],
        "unit": [panel("one", rate=0.3), panel("two", (0, 1), 0.25), empty],
    }
    figures = [
        Figure("kappa", f"kappa {EVIL}", WORSE, pages),
        Figure("chi", "chi", "", {"unit": [replace(panel("only"), reason="1 run missing: not run yet")]}),
    ]
    cells = {"figure": "kappa", "panel": EVIL, "protocol": "unit", "status": "converged"}
    runs = [
        Run(
            {**cells, "method": f"method {number}", "seed": number, "rounds": 1000 - number},
            {"commit": WORSE, EVIL: EVIL},
        )
        for number in range(250)
    ]
    return Content(f"A page {EVIL}", [WORSE], figures, runs, [ledger()], motion())
