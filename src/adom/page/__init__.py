"""The report as a single HTML file that works without a network.

BokehJS, the style, the script and the data are inside the file. A content security policy forbids it to load anything
else, and allows only these scripts, by digest; so text that slips past the escaping cannot run.
"""

import base64
import hashlib
import json
import os
import re
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import InputError, how_to_install
from ..util.cards import escaped
from ..util.files import atomic
from .content import Content, data

SCRIPTS = ("decode.js", "dom.js", "plots.js", "curves.js", "profiles.js", "motion.js", "runs.js", "main.js")
"""Parts of the page's script, in order."""
DANGEROUS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that may end a script or begin a comment or a line, and their escapes in JSON."""


def write(content: Content, path: str | os.PathLike[str]) -> Path:
    """Write a page, whole or not at all, and return the path; the same content gives the same bytes."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"cannot write a page to {target}: the suffix must be .html; rename it")
    text = render(content)
    with atomic(target) as partial:
        partial.write_text(text, encoding="utf-8")
    return target


def check() -> None:
    """Raise InputError if bokeh is not installed."""
    if find_spec("bokeh") is None:
        raise InputError(f"a report needs bokeh, which is not installed: {how_to_install('report')}")


def render(content: Content) -> str:
    """Return the page as text."""
    check()
    library, script = _library(), f'"use strict";\n(() => {{\n{"".join(_asset(name) for name in SCRIPTS)}}})();\n'
    policy = (
        f"default-src 'none'; script-src {_digest(library)} {_digest(script)}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": escaped(policy),
        "title": escaped(content.title),
        "inputs": "".join(f"<li>{escaped(line)}</li>" for line in content.inputs),
        "version": escaped(__version__),
        "style": _asset("page.css"),
        "ledger": "\n".join(content.ledgers),
        "tab": escaped(content.tab),
        "motionless": escaped(content.motionless),
        "data": harmless_json(data(content)),
        "library": library,
        "script": script,
    }
    # One pass over the template alone: inserted text is never scanned again.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def harmless_json(content: Any) -> str:
    r"""Return JSON that can stand inside a script element: nothing in it can end the element.

    Examples
    --------
    >>> harmless_json({"a": "</script><!--"})
    '{"a":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda match: DANGEROUS[match[0]], text)


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


@cache
def _library() -> str:
    """Return BokehJS: its core and its API, without widgets, tables, WebGL and mathematics."""
    from bokeh.resources import Resources

    core, interface = Resources(mode="inline", components=["bokeh", "bokeh-api"], minified=True).js_raw[:2]
    return f"{core}\n{interface}\n"


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
