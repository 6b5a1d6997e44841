"""Tables as text of at most 80 columns, in Markdown, in HTML and in LaTeX; and the numbers in them."""

import math
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .cards import escaped
from .columns import HEADS
from .text import format_short

WIDTH = 80
"""Maximum width of a printed table."""
GAP = "  "
LEAST_NAME = 12
"""Minimum width of the column of names."""
SPARE = HEADS[:0:-1]
"""Costs to drop from a printed table that is too wide, in this order."""
GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lamda mu nu xi pi rho sigma tau phi chi psi omega"
"""Unicode names of Greek letters, which are LaTeX's except for lamda."""
SPECIAL = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{unicodedata.lookup(f"GREEK SMALL LETTER {name}"): f"$\\{name}$" for name in GREEK.split()},
    "\N{GREEK SMALL LETTER LAMDA}": r"$\lambda$",
}
"""Characters that LaTeX reads as commands or does not know -> LaTeX for them."""


@dataclass(frozen=True)
class Table:
    """Columns and rows of text; cells of type `Markup` are HTML already.

    Examples
    --------
    >>> table = Table.of([{"panel": "one", "holds": True}, {"panel": "two", "ratio": 0.123456}])
    >>> print(table.markdown())
    | panel | holds | ratio |
    | --- | --- | --- |
    | one | yes |  |
    | two |  | 0.1235 |
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]]) -> "Table":
        """Return a table of records, with every column that occurs in one of them."""
        columns = list(dict.fromkeys(name for record in records for name in record))
        return cls(columns, [[in_words(record.get(name, "")) for name in columns] for record in records])

    def markdown(self) -> str:
        """Return the table in Markdown."""
        return "\n".join(map(_markdown_row, (self.columns, ["---"] * len(self.columns), *self.rows)))

    def html(self, name: str, links: Sequence[str] = (), *, row_heads: bool = False) -> str:
        """Return the table as HTML, in a region that scrolls, by keyboard too.

        Parameters
        ----------
        name : str
            Name of the region, for screen readers.
        links : sequence of str
            For each row, the page address that its cell in column "panel" links to, or "".
        row_heads : bool
            Whether the first column has row headers and the others numbers.
        """
        first, other = ('<th scope="row">{}</th>', '<td class="number">{}</td>') if row_heads else ("<td>{}</td>",) * 2
        body = []
        for number, row in enumerate(self.rows):
            cells = [escaped(cell) for cell in row]
            if links and links[number] and "panel" in self.columns:
                panel = list(self.columns).index("panel")
                cells[panel] = f'<a href="#{escaped(links[number])}">{cells[panel]}</a>'
            texts = [(other if index else first).format(cell) for index, cell in enumerate(cells)]
            body.append(f"<tr>{''.join(texts)}</tr>")
        region = f'<div class="scroll" tabindex="0" role="region" aria-label="{escaped(name)}">'
        heads = (f'<th scope="col">{escaped(column)}</th>' for column in self.columns)
        return "\n".join(
            [f"{region}<table><thead><tr>", *heads, "</tr></thead><tbody>", *body, "</tbody></table></div>"]
        )


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def in_words(value: Any) -> str:
    """Return a piece of evidence as readable text.

    Examples
    --------
    >>> in_words({"median": 2.0, "low": 0.123456, "high": "inf"}), in_words([True, 3])
    ('2 [0.1235, inf]', 'yes, 3')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict) and value.keys() == {"median", "low", "high"}:
        return f"{in_words(value['median'])} [{in_words(value['low'])}, {in_words(value['high'])}]"
    if isinstance(value, dict):
        return ", ".join(f"{name} {in_words(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(map(in_words, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[str] = ()) -> str:
    """Return a table with numbers aligned right and long names wrapped.

    If it is too wide, columns whose heads are in `spare` are dropped, in the order of `spare`.

    Examples
    --------
    >>> print(text_table(["method", "rounds"], [["ADOM", "1069"], ["DIGing", "-"]]))
    method  rounds
    ADOM      1069
    DIGing       -
    >>> print(text_table(["method", "rounds"], [["方法", "7"]]))
    method  rounds
    方法         7
    """
    columns = list(zip(heads, *rows, strict=True))
    widths = [max(map(_columns, column)) for column in columns]
    room = WIDTH - sum(len(GAP) + width for width in widths[1:])
    least = min(widths[0], LEAST_NAME)
    if room < least and (known := [name for name in spare if name in heads]):
        keep = [number for number, head in enumerate(heads) if head != known[0]]
        return text_table([heads[i] for i in keep], [[row[i] for i in keep] for row in rows], known[1:])
    widths[0] = min(widths[0], max(least, room))
    lines = []
    for name, *cells in (heads, *rows):
        first, *rest = textwrap.wrap(name, widths[0]) or [""]
        numbers = "".join(f"{GAP}{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        lines += [f"{first}{' ' * (widths[0] - _columns(first))}{numbers}".rstrip(), *rest]
    return "\n".join(lines)


def _columns(text: str) -> int:
    """Return the width of a text in a terminal: two columns for a Chinese, Japanese or Korean character."""
    return sum(1 + (unicodedata.east_asian_width(sign) in "WF") for sign in text)


def latex_table(
    heads: Sequence[str],
    blocks: Sequence[tuple[str, Sequence[Sequence[str]]]],
    caption: str = "",
    label: str = "",
) -> str:
    r"""Return a LaTeX table for a document with ``\usepackage{booktabs}``; the cells must be LaTeX already.

    Examples
    --------
    >>> print(latex_table(["method", "rounds"], [("", [["ADOM", "1069"]])]))
    % needs \usepackage{booktabs}
    \begin{table}
      \centering
      \begin{tabular}{lr}
        \toprule
        method & rounds \\
        \midrule
        ADOM & 1069 \\
        \bottomrule
      \end{tabular}
    \end{table}
    """
    lines = [f"{' & '.join(heads)} \\\\"]
    for number, (title, rows) in enumerate(blocks):
        lines.append(r"\midrule" if not number else r"\addlinespace")
        if title:
            lines.append(f"\\multicolumn{{{len(heads)}}}{{l}}{{\\emph{{{title}}}}} \\\\")
        lines += [f"{' & '.join(row)} \\\\" for row in rows]
    inside = "\n".join(f"    {line}" for line in (r"\toprule", *lines, r"\bottomrule"))
    about = [f"  \\caption{{{caption}}}"] if caption else []
    about += [f"  \\label{{{label}}}"] if label else []
    begin = f"  \\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}"
    parts = [r"% needs \usepackage{booktabs}", r"\begin{table}", r"  \centering", *about, begin, inside]
    return "\n".join([*parts, r"  \end{tabular}", r"\end{table}"])


def latex_text(text: str) -> str:
    r"""Return a text as LaTeX, with special characters replaced.

    Examples
    --------
    >>> print(latex_text("50% of my_method & co, κ = 3"))
    50\% of my\_method \& co, $\kappa$ = 3
    """
    return "".join(SPECIAL.get(sign, sign) for sign in text)


def error_text(error: float, status: str = "") -> str:
    """Return the last error of runs as a cell of a table; "diverged" if that is their status.

    Examples
    --------
    >>> error_text(9.3e-9), error_text(1.2e12), error_text(1.2e12, "diverged")
    ('9.3e-09', '1.2e+12', 'diverged')
    """
    if status == "diverged":
        return status
    return f"{error:.1e}" if 1e4 <= error < math.inf else format_short(error)


def latex_number(value: float, bold: bool = False, power: bool = False) -> str:
    r"""Return a number in LaTeX, with `power` always as a power of ten; a dash if it is not finite.

    Examples
    --------
    >>> print(latex_number(12345.0), latex_number(3.2e-11), latex_number(1e-8), latex_number(1.5, bold=True))
    $12\,345$ $3.2 \cdot 10^{-11}$ $10^{-8}$ $\mathbf{1.5}$
    >>> print(latex_number(12345.0, power=True))
    $1.23 \cdot 10^{4}$
    """
    if not math.isfinite(value):
        return "--"
    if value == 0 or (not power and value == round(value) and abs(value) < 1e7):
        text = f"{int(value):,}".replace(",", r"\,")
    elif not power and 1e-2 <= abs(value) < 1e7:
        text = f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}".replace(",", r"\,")
    else:
        digits, exponent = f"{value:.{2 if power else 1}e}".split("e")
        ten = f"10^{{{int(exponent)}}}"
        text = ten if digits == "1.0" else rf"{digits} \cdot {ten}"
    return rf"$\mathbf{{{text}}}$" if bold else f"${text}$"


def spread(middle: float, low: float, high: float) -> str:
    """Return a median with minimum and maximum in short form; a dash if the median is not finite.

    Examples
    --------
    >>> spread(1069, 1020, 12345), spread(5, 5, 5), spread(70, 60, float("inf")), spread(float("inf"), 2, float("inf"))
    ('1069 [1020, 12.3k]', '5', '70 [60, -]', '-')
    """
    if not math.isfinite(middle):
        return "-"
    if low == high:
        return format_short(middle)
    return f"{format_short(middle)} [{format_short(low)}, {format_short(high)}]"


def latex_spread(middle: float, low: float, high: float, bold: bool = False, power: bool = False) -> str:
    r"""Return a median with minimum and maximum in LaTeX; see `spread`.

    Examples
    --------
    >>> print(latex_spread(1069, 1020, float("inf")))
    $1\,069$ [$1\,020$, --]
    """
    if not math.isfinite(middle) or low == high:
        return latex_number(middle, bold, power)
    ends = ", ".join(latex_number(end, power=power) for end in (low, high))
    return f"{latex_number(middle, bold, power)} [{ends}]"
