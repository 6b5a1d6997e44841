"""Text from any source, made safe and readable for a page."""

import json
import re
from typing import Any
from urllib.parse import quote

from ..util.cards import escaped
from ..util.text import SUPERSCRIPTS

__all__ = ["address", "escaped", "harmless_json", "plain_title"]

SYMBOLS = {"kappa": "κ", "chi": "χ", "mu": "μ", "eta": "η", "tau": "τ", "sigma": "σ", "theta": "θ", "alpha": "α"}
DANGEROUS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""Characters that may end a script or begin a comment or a line, and their escapes in JSON."""


def harmless_json(content: Any) -> str:
    r"""Return JSON that can stand inside a script element: nothing in it can end the element.

    Examples
    --------
    >>> harmless_json({"a": "</script><!--"})
    '{"a":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda match: DANGEROUS[match[0]], text)


def plain_title(text: str) -> str:
    r"""Return the title of a figure without TeX.

    Examples
    --------
    >>> plain_title("$\\kappa$ = $10^{3}$, d = 40"), plain_title("costs $5 and $6")
    ('κ = 10³, d = 40', 'costs $5 and $6')
    """

    def change(match: re.Match[str]) -> str:
        inside = match[1]
        for name, symbol in SYMBOLS.items():
            inside = inside.replace(f"\\{name}", symbol)
        return re.sub(r"\^\{([^}]*)\}", lambda power: power[1].translate(SUPERSCRIPTS), inside)

    return re.sub(r"\$([^$]*[\\^][^$]*)\$", change, text)


def address(*parts: str) -> str:
    """Return the part of an address after the # for a place on the page.

    Examples
    --------
    >>> address("curves", "kappa", "unit", "d40/1")
    'curves/kappa/unit/d40%2F1'
    """
    return "/".join(quote(part, safe="") for part in parts)
