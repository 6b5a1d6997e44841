"""The methods, one file each, and the one table that the command line, the tests and the docs read."""

from difflib import get_close_matches
from importlib import import_module

from ..errors import InputError
from .base import Constants, Gossip, Method, Oracle

METHODS = {
    "adom": "adom:ADOM",
    "pngd": "pngd:PNGD",
    "dnm": "dnm:DNM",
    "mudag": "mudag:Mudag",
    "acc-dngd": "acc_dngd:AccDNGD",
    "apm": "apm:APM",
    "diging": "diging:DIGing",
    "panda": "panda:PANDA",
    "push-pull": "push_pull:PushPull",
    "adom+": "adom_plus:ADOMPlus",
    "acc-gt": "acc_gt:AccGT",
}
"""Name -> file and class. A new method is one file in this folder and one line here."""


def method_class(name: str) -> type[Method]:
    """Return the method of that name; an unknown one is an error that suggests the nearest.

    Examples
    --------
    >>> method_class("adom").title
    'ADOM'
    """
    key = name.lower() if isinstance(name, str) else name
    if key not in METHODS:
        close = get_close_matches(str(key), METHODS, n=1, cutoff=0.5)
        nearest = f"did you mean {close[0]!r}? " if close else ""
        raise InputError(f"unknown method {name!r}; {nearest}known: {', '.join(METHODS)}")
    file, class_name = METHODS[key].split(":")
    cls: type[Method] = getattr(import_module(f".{file}", __package__), class_name)
    return cls


__all__ = ["METHODS", "Constants", "Gossip", "Method", "Oracle", "method_class"]
