"""What Sphinx does not do by itself for this site: formulas without a script, links to names, the sidebar."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes
from sphinx.errors import ExtensionError

SIDEBAR = {
    "Start": ["quick-start", "choosing", "gallery/index"],
    "Guides": [
        "own-problem",
        "own-data",
        "apart",
        "models",
        "own-network",
        "loss",
        "links",
        "sklearn",
        "comparing",
        "benchmark",
        "sweeps",
        "cluster",
        "agents",
        "report",
    ],
    "Reference": ["methods", "newton", "auto", "notation", "command-line", "api/index"],
    "Results": ["reproduction", "ledger", "findings", "data", "performance"],
    "Project": ["add-a-method", "other-tools"],
}
"""The pages in the order of the sidebar. They stand here, so that index.md is plain Markdown."""


def prepare(app: Any, name: str, content: list[str]) -> None:
    """Lead links to examples to the gallery, and append the tables of contents to the start page."""
    content[0] = re.sub(r"\]\(\.\./examples/(plot_\w+)\.py\)", r"](gallery/\1.rst)", content[0])
    content[0] = content[0].replace("](../examples)", "](gallery/index.rst)")
    if name == "index":
        for caption, pages in SIDEBAR.items():
            listed = "\n".join(pages)
            content[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n"


def drawn(node: nodes.Node, tex: str, **how: bool) -> str:
    """Return a formula as MathML, or say which one cannot be drawn, and why."""
    try:
        return str(tex2mathml(tex, **how))
    except MathError as error:
        raise ExtensionError(f"{node.source}: {error} in the formula {tex!r}; write it without") from None


def inline_mathematics(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line as MathML, which browsers draw themselves."""
    translator.body.append(drawn(node, node.astext()))
    raise nodes.SkipNode


def display_mathematics(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own as MathML; several lines are aligned at their &."""
    tex = node.astext().strip()
    if r"\\" in tex and not tex.startswith(r"\begin"):
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    translator.body.append(f'<div class="math">{drawn(node, tex, as_block=True)}</div>\n')
    raise nodes.SkipNode


def link_names(app: Any, tree: nodes.document, page: str) -> None:
    """Make `adom.solve` and the like in the text links to where they are documented; the Markdown stays plain."""
    known = app.env.domains.python_domain.objects
    for literal in list(tree.findall(nodes.literal)):
        found = known.get(literal.astext().partition("(")[0])
        if found is not None and not isinstance(literal.parent, nodes.reference | nodes.title | addnodes.pending_xref):
            place = f"{app.builder.get_relative_uri(page, found.docname)}#{found.node_id}"
            link = nodes.reference(internal=True, refuri=place)
            literal.replace_self(link)
            link.append(literal)


def drop_backlinks(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Take the links back to the documentation out of pages of source code: they hold if a file has one name only."""
    if page.startswith("_modules/"):
        context["body"] = re.sub(r'<a class="viewcode-back".*?</a>', "", context["body"])


def setup(app: Any) -> dict[str, bool]:
    """Add all of it to Sphinx."""
    app.connect("source-read", prepare)
    app.connect("doctree-resolved", link_names)
    app.connect("html-page-context", drop_backlinks)
    app.add_html_math_renderer("mathml", (inline_mathematics, None), (display_mathematics, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
