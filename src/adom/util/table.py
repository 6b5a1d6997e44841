"""A table for the terminal, Markdown and the page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .cards import escaped


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
