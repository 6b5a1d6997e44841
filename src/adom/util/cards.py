"""HTML for notebooks: facts, tables, and small SVG pictures.

All text is escaped. There are no style sheets and no colours: everything takes the notebook's colour, light or
dark. Uses the standard library only.
"""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

from .text import format_number, format_power, format_short

Numbers: TypeAlias = Any  # a list or an array of them

POINTS = 200
"""Most points of a curve."""
DRAWN_NODES, DRAWN_LINKS = 200, 4000
"""The largest graph that is drawn."""
SIDE = 360
"""Units along a side of a drawn graph; two units are one pixel."""
FAINT = "opacity:.65"
TABLE = "border-collapse:collapse;margin:.3em 0;table-layout:auto;font-size:1em;border:none"
CELL = "padding:.1em .9em .1em 0;text-align:left;vertical-align:middle;white-space:nowrap;border:none;background:none"


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def escaped(text: object) -> str:
    """Escape text for HTML, also inside quotes; markup is left alone.

    Examples
    --------
    >>> escaped("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return text if isinstance(text, Markup) else Markup(html.escape(str(text), quote=True))


def card(title: str, about: str, facts: Mapping[str, object], *pictures: str, below: str = "") -> Markup:
    """Return a title with a remark, a table of facts, pictures beside it and further markup below."""
    rows = "".join(
        f'<tr style="background:none"><th scope="row" style="{CELL};font-weight:normal;{FAINT}">{escaped(name)}</th>'
        f'<td style="{CELL};white-space:normal;overflow-wrap:anywhere">{escaped(_shown(value))}</td></tr>'
        for name, value in facts.items()
    )
    head = f'<div><strong>{escaped(title)}</strong>&ensp;<span style="{FAINT}">{escaped(about)}</span></div>'
    table = f'<table style="{TABLE}">{rows}</table>'
    beside = "".join(f"<div>{picture}</div>" for picture in pictures if picture)
    return Markup(
        f'<div style="font-size:.9em;line-height:1.4;max-width:60em">{head}'
        f'<div style="display:flex;flex-wrap:wrap;gap:.5em 2em;align-items:flex-start">'
        f"{table if rows else ''}{beside}</div>{below}</div>"
    )


def grid(columns: Sequence[object], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table with headings."""
    head = "".join(
        f'<th scope="col" style="{CELL};font-weight:normal;white-space:normal;vertical-align:bottom;{FAINT}">'
        f"{escaped(name)}</th>"
        for name in columns
    )
    body = "".join(
        '<tr style="background:none">'
        + "".join(f'<td style="{CELL}">{escaped(_cell(cell))}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    return Markup(
        f'<div style="overflow-x:auto"><table style="{TABLE}">'
        f'<thead><tr style="background:none;border-bottom:1px solid">{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def bold(text: object) -> Markup:
    """Return a cell in bold."""
    return Markup(f"<strong>{escaped(_cell(text))}</strong>")


def _shown(value: object) -> object:
    return value if isinstance(value, Markup) else format_number(value)


def _cell(value: object) -> object:
    """Return a table cell, with numbers in short form and a dash for those that are not finite."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return value
    return format_short(float(value)) if math.isfinite(value) else "–"


def curve(
    across: Numbers,
    heights: Numbers,
    *,
    box: tuple[float, int, int] | None = None,
    labels: bool = True,
    name: str = "error",
) -> Markup:
    """Draw positive values over rounds on a logarithmic scale of whole decades; "" if there is nothing to draw.

    `box` is the last round and the lowest and highest decade to show, by default those of the curve; give curves to be
    compared the same box. `labels` says whether the ends of the axes are labelled, and `name` what the values are.
    """
    known = _logarithms(across, heights)
    if not known:
        return Markup("")
    end, low, high = box or bounds([(across, heights)])
    left, width, tall, foot = (34, 190, 70, 16) if labels else (2, 90, 18, 0)
    spots = [(left + width * x / end, 4 + (tall - 4) * (high - y) / (high - low)) for x, y in known]
    line = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
    dot = f'<circle cx="{spots[-1][0]:.1f}" cy="{spots[-1][1]:.1f}" r="2" fill="currentColor"/>'
    rounds = f"{format_number(int(end))} rounds"
    ends = ""
    if labels:
        ends = (
            f'<g fill="currentColor" opacity=".65" font-size="10">'
            f'<text x="{left - 4}" y="10" text-anchor="end">{format_power(high)}</text>'
            f'<text x="{left - 4}" y="{tall + 2}" text-anchor="end">{format_power(low)}</text>'
            f'<text x="{left}" y="{tall + 14}">0</text>'
            f'<text x="{left + width}" y="{tall + 14}" text-anchor="end">{rounds}</text></g>'
            f'<path d="M{left} 2V{tall + 2}H{left + width}" fill="none" stroke="currentColor" opacity=".3"/>'
        )
    label = escaped(f"{name} over {rounds}, from 10^{known[0][1]:.1f} to 10^{known[-1][1]:.1f}")
    return Markup(
        f'<svg role="img" aria-label="{label}" width="{left + width + 4}" height="{tall + foot + 2}" '
        f'style="display:block;max-width:none;min-width:{left + width + 4}px">{ends}'
        f'<path d="{line}" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round"/>{dot}</svg>'
    )


def bounds(curves: Iterable[tuple[Numbers, Numbers]]) -> tuple[float, int, int]:
    """Return the last round and the decades that curves cover.

    Examples
    --------
    >>> bounds([([1, 5], [2.0, 0.3]), ([1, 9], [1.0, 1e-3])])
    (9.0, -3, 1)
    """
    known = [spot for across, heights in curves for spot in _logarithms(across, heights)]
    if not known:
        return 1.0, 0, 1
    low, high = (math.floor(min(y for _, y in known)), math.ceil(max(y for _, y in known)))
    return max(1.0, *(x for x, _ in known)), low, max(high, low + 1)


def _logarithms(across: Numbers, heights: Numbers) -> list[tuple[float, float]]:
    """Return rounds and logarithms of at most `POINTS` evenly chosen values."""
    last = len(heights) - 1
    chosen = range(last + 1) if last < POINTS else (round(i * last / (POINTS - 1)) for i in range(POINTS))
    return [(float(across[i]), math.log10(heights[i])) for i in chosen if 0 < heights[i] < math.inf]


def drawing(
    positions: Sequence[Sequence[float]] | None, nodes: int, links: Sequence[Sequence[int]], *, arrows: bool = False
) -> Markup:
    """Draw a graph, with `arrows` from the first node of a link to the second; without positions, as a circle."""
    if not all(math.isfinite(part) for position in positions or [] for part in position):
        positions = None
    radius = max(2.0, min(9.0, 60 / math.sqrt(nodes) if positions else 500 / nodes))
    angles = [2 * math.pi * i / nodes for i in range(nodes)]
    spots = _fitted(positions or [(math.sin(angle), math.cos(angle)) for angle in angles], radius + 1)
    lines = "".join("M{:.0f} {:.0f}L{:.0f} {:.0f}".format(*spots[u], *spots[v]) for u, v in links)
    heads = "".join(_head(spots[u], spots[v], radius) for u, v in links) if arrows else ""
    dots = "".join(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{radius:.1f}"/>' for x, y in spots)
    strength = max(0.15, min(0.6, 12 / math.sqrt(len(links) or 1)))
    return Markup(
        f'<svg role="img" aria-label="the graph of round 0" width="{SIDE // 2}" height="{SIDE // 2}" '
        f'viewBox="0 0 {SIDE} {SIDE}" style="display:block;max-width:none"><g fill="currentColor" stroke="none">'
        f'<path d="{lines}" stroke="currentColor" stroke-width="2" fill="none" opacity="{strength:.2f}"/>'
        f'<path d="{heads}" opacity="{strength:.2f}"/>{dots}</g></svg>'
    )


def _fitted(positions: Sequence[Sequence[float]], rim: float) -> list[tuple[float, float]]:
    """Shift and scale positions into the picture, with y upwards."""
    across, up = zip(*positions, strict=True)
    middle = (min(across) + max(across)) / 2, (min(up) + max(up)) / 2
    span = max(max(across) - min(across), max(up) - min(up)) or 1.0
    unit = (SIDE - 2 * rim) / span
    return [(SIDE / 2 + (x - middle[0]) * unit, SIDE / 2 - (y - middle[1]) * unit) for x, y in positions]


def _head(start: tuple[float, float], end: tuple[float, float], gap: float) -> str:
    """Draw the head of an arrow that ends at the rim of a node of radius `gap`."""
    way = math.dist(start, end)
    if way <= 3 * gap:
        return ""
    x, y = (end[0] - start[0]) / way, (end[1] - start[1]) / way
    tip = end[0] - gap * x, end[1] - gap * y
    back, half = 1.6 * gap, 0.7 * gap
    foot = tip[0] - back * x, tip[1] - back * y
    corners = tip[0], tip[1], foot[0] - half * y, foot[1] + half * x, foot[0] + half * y, foot[1] - half * x
    return "M{:.0f} {:.0f}L{:.0f} {:.0f}L{:.0f} {:.0f}Z".format(*corners)
