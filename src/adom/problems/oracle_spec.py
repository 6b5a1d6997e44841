"""Parser of `oracle=` and `--oracle`; it does not import JAX, so the command line can check values early."""

from dataclasses import dataclass
from typing import Any

from ..errors import InputError


@dataclass(frozen=True)
class OracleSpec:
    """The kind of oracle and its number of inner steps, 0 if the oracle decides itself."""

    kind: str
    steps: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.steps}" if self.steps else self.kind


def parse_oracle(oracle: Any) -> OracleSpec:
    """Read "exact", "auto", ("gd", T), ("agd", T) or the text forms "gd:T", "agd:T".

    Examples
    --------
    >>> parse_oracle(("gd", 1)), str(parse_oracle("agd:3"))
    (OracleSpec(kind='gd', steps=1), 'agd:3')
    """
    if isinstance(oracle, OracleSpec):
        return oracle
    kind, steps = oracle, None
    if isinstance(oracle, str) and ":" in oracle:
        kind, _, text = oracle.partition(":")
        steps = int(text) if text.isdecimal() and len(text) < 10 else text
    elif isinstance(oracle, tuple | list) and len(oracle) == 2:
        kind, steps = oracle
    if kind in ("exact", "auto") and steps is None:
        return OracleSpec(kind)
    if kind in ("gd", "agd") and isinstance(steps, int) and not isinstance(steps, bool) and steps >= 1:
        return OracleSpec(kind, steps)
    raise InputError(
        f"unknown oracle {oracle!r}; use 'exact', 'auto', ('gd', T) or ('agd', T) with a whole number T >= 1; "
        "on the command line exact, auto, gd:T or agd:T"
    )
