"""The methods, one file each, and the table of methods that the command line, the tests and the docs read."""

from importlib import import_module

from ..errors import InputError, nearest
from .base import NEEDS, Constants, Gossip, Method, Oracle

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
    "dgd": "dgd:DGD",
    "extra": "extra:EXTRA",
    "nids": "nids:NIDS",
    "exact-diffusion": "exact_diffusion:ExactDiffusion",
    "aug-dgm": "aug_dgm:AugDGM",
    "sonata": "sonata:SONATA",
    "push-diging": "push_diging:PushDIGing",
    "msda": "msda:MSDA",
    "opapc": "opapc:OPAPC",
    "adom+multi": "adom_plus:ADOMPlusMulti",
    "acc-gt-multi": "acc_gt:AccGTMulti",
    "newton": "newton:Newton",
}
"""Name -> file and class. A new method is one file in this folder and one line here."""
COMPARED = ("adom", "pngd", "dnm", "mudag", "acc-dngd", "apm", "diging", "panda", "push-pull", "adom+", "acc-gt")
"""Methods compared by default: those of ADOM's paper, and its successors."""


def method_class(name: str) -> type[Method]:
    """Return the class of a method; an unknown name raises an error that suggests the nearest.

    Examples
    --------
    >>> method_class("adom").title
    'ADOM'
    """
    key = name.lower() if isinstance(name, str) else name
    if key not in METHODS:
        raise InputError(f"unknown method {name!r}; {nearest(name, METHODS)}")
    file, class_name = METHODS[key].split(":")
    cls: type[Method] = getattr(import_module(f".{file}", __package__), class_name)
    return cls


__all__ = ["COMPARED", "METHODS", "NEEDS", "Constants", "Gossip", "Method", "Oracle", "method_class"]
