"""What an agent publishes: `model.json` if its bound is good enough, and otherwise `model.candidate.json`.

A published model is an answer with a certificate (`adom.agents.certificate`): it names the agents whose data it is
the model of, and says how far it may be from their exact model. It is replaced only by one that is certain to be good
enough, and, if it is of the same agents and data, no worse. So it stays as it is while agents join, leave or fail.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..data.model import Model, load_model, model_from, unnamed
from ..data.preparing import Agreed
from ..errors import InputError
from ..problems.losses import LOSSES
from .certificate import Certificate

if TYPE_CHECKING:
    from .config import Config

Array = np.ndarray
MODEL, CANDIDATE = "model.json", "model.candidate.json"


@dataclass(frozen=True)
class Quorum:
    """Who must be in before agents end as agreed or publish a model: so many agents, or those named."""

    number: int
    names: tuple[str, ...] = ()

    def missing(self, present: Mapping[str, Any]) -> str:
        """Return who is missing, in words; "" if nobody is.

        Examples
        --------
        >>> Quorum(2).missing({"a": 1}), Quorum(2, ("a", "b")).missing({"a": 1, "c": 2}), Quorum(1).missing({"a": 1})
        ('1 of 2 agents', 'b', '')
        """
        if self.names:
            return ", ".join(name for name in self.names if name not in present)
        return "" if len(present) >= self.number else f"{self.number - len(present)} of {self.number} agents"

    def lacking(self, present: Collection[str]) -> int:
        """Return how many are missing."""
        return len([n for n in self.names if n not in present]) or max(0, self.number - len(present))


class Bound(NamedTuple):
    """How far a model may be off, in its own units."""

    coefficients: float  # each coefficient and intercept
    scores: float  # each score of a sample like those of the agents
    relative: float  # the greater of both, beside the largest coefficient and the unit of the target

    @property
    def words(self) -> dict[str, float | None]:
        """The bound for JSON: None where none is known."""
        return {name: float(value) if np.isfinite(value) else None for name, value in self._asdict().items()}


UNKNOWN = Bound(np.inf, np.inf, np.inf)


def bound_of(certificate: Certificate, agreed: Agreed | None) -> Bound:
    """Return how far the model of a certified answer may be off."""
    rows = coefficients_of(certificate.answer, agreed)
    stretch, unit = (1.0, 1.0) if agreed is None else (agreed.stretch, agreed.unit)
    coefficients = stretch * certificate.distance
    scores = unit * certificate.reach * certificate.distance
    size = max(1.0, float(np.abs(rows).max(initial=0.0)))
    return Bound(coefficients, scores, max(coefficients / size, scores / (unit * certificate.unit)))


def coefficients_of(x: Array, agreed: Agreed | None) -> Array:
    """Return the row of a model for an answer."""
    return x if agreed is None else agreed.model_rows(x[None])[0]


class Publisher:
    """The model files of one agent.

    Parameters
    ----------
    config : Config
    agreed : Agreed, optional
        Of shards that were prepared with others.
    """

    def __init__(self, config: "Config", agreed: Agreed | None) -> None:
        self._config, self._agreed = config, agreed
        self.bound = UNKNOWN  # of the published model
        self.names: dict[str, int] = {}  # those it is of, and the fingerprints of their data
        self._recall()

    def _recall(self) -> None:
        """Take over what is known of a model that an earlier process of this agent published."""
        try:
            about = load_model(self._config.out / MODEL).provenance
            names = {str(name): int(data) for name, data in about["data"].items()}
            bound = {key: float(about["bound"][key]) for key in Bound._fields}
        except (InputError, LookupError, TypeError, ValueError, AttributeError):
            return
        self.names, self.bound = names, Bound(**bound)

    def judge(self, certificate: Certificate | None, tol: float | None = None) -> str:
        """Return why a certified answer may not replace the published model; "" if it may."""
        if certificate is None:
            return "no bound is known for the agents present"
        missing = self._config.quorum.missing(certificate.data)
        if missing:
            return f"without {missing}"
        bound = bound_of(certificate, self._agreed)
        met = tol is not None and len(certificate.data) * certificate.distance**2 <= tol
        if not (bound.relative <= self._config.publish or met):
            return f"the bound of {bound.relative:.3g} is above publish = {self._config.publish:g}"
        if certificate.data == self.names and bound.relative > self.bound.relative:
            return f"the bound of {bound.relative:.3g} is above that of the published model, {self.bound.relative:.3g}"
        return ""

    def write(self, x: Array, certificate: Certificate | None, about: dict[str, Any], tol: float | None = None) -> str:
        """Write the certified answer as the model, or else x as a candidate; return why it is not the model."""
        why = self.judge(certificate, tol)
        if certificate is not None:
            x, bound = certificate.answer, bound_of(certificate, self._agreed)
            about = {**about, "nodes": list(certificate.data), "samples": sum(certificate.samples.values())}
            about |= {"samples_of": certificate.samples, "data": certificate.data}
        else:
            bound = UNKNOWN
        about = {**about, "bound": bound.words, "time": round(time.time(), 3)}
        if why:
            self._model(x, {**about, "not_published": why}).save(self._place(CANDIDATE))
            return why
        self._model(x, about).save(self._place(MODEL))
        self._place(CANDIDATE).unlink(missing_ok=True)
        assert certificate is not None
        self.names, self.bound = certificate.data, bound
        return ""

    def _place(self, name: str) -> Path:
        return self._config.out / name

    def _model(self, x: Array, about: dict[str, Any]) -> Model:
        agreed, config = self._agreed, self._config
        if agreed is not None:
            return model_from(agreed.model_rows(x[None]), agreed.about(), {**about, "problem": {"type": agreed.kind}})
        classes = config.classes if LOSSES[config.kind].classes else ()
        penalty = {"l2": config.l2_of_file}
        return Model(
            config.kind, x[None], np.zeros(1), tuple(unnamed(len(x))), classes, penalty=penalty, provenance=about
        )
