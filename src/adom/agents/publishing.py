"""The files that an agent writes: `model.json`, or `model.candidate.json`; its checkpoint; and what was agreed.

A published model, `model.json`, is an answer with a certificate (`adom.agents.certificate`): it names the agents whose
data it is the model of, and says how far it may be from their exact model. It is replaced only by one that is certain
to be good enough, and, if it is of the same agents and data, no worse. So it stays as it is while agents join, leave or
fail.

A checkpoint holds the agent's answer and the centre of its intercepts. The ledgers of its links are not in it. Whoever
comes back begins at its answer, without links; its neighbours do the same with their ends of the links, and nothing of
a stale or damaged ledger can come back to life. The agreement lets an agent start again without asking the others.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..data.model import Model, load_model, model_from, unnamed
from ..data.preparing import Agreed
from ..errors import Damaged, InputError
from ..problems.losses import LOSSES
from ..util import files
from ..util.checked_npz import read_npz, write_npz
from .agent import Agent
from .board import Board, topic_of
from .certificate import Certificate
from .configuration import AgentConfig

Array = np.ndarray
MODEL, CANDIDATE = "model.json", "model.candidate.json"
CHECKPOINT, AGREEMENT = "adom-agent-2", "adom-agreement-1"
"""Formats of these files."""


class ModelBound(NamedTuple):
    """How far a model may be off, in its own units."""

    coefficients: float  # each coefficient and intercept
    scores: float  # each score of a sample like those of the agents
    relative: float  # the greater of both, beside the largest coefficient and the unit of the target

    @property
    def words(self) -> dict[str, float | None]:
        """The bound for JSON: None where none is known."""
        return {name: float(value) if np.isfinite(value) else None for name, value in self._asdict().items()}


UNKNOWN = ModelBound(np.inf, np.inf, np.inf)


def bound_of(certificate: Certificate, agreed: Agreed | None) -> ModelBound:
    """Return how far the model of a certified answer may be off."""
    rows = coefficients_of(certificate.answer, agreed)
    stretch, unit = (1.0, 1.0) if agreed is None else (agreed.stretch, agreed.unit)
    coefficients = stretch * certificate.distance
    scores = unit * certificate.reach * certificate.distance
    size = max(1.0, float(np.abs(rows).max(initial=0.0)))
    return ModelBound(coefficients, scores, max(coefficients / size, scores / (unit * certificate.unit)))


def coefficients_of(x: Array, agreed: Agreed | None) -> Array:
    """Return the row of a model for an answer."""
    return x if agreed is None else agreed.model_rows(x[None])[0]


class Publisher:
    """The model files of one agent.

    Parameters
    ----------
    config : AgentConfig
    agreed : Agreed, optional
        Of shards that were prepared with others.
    """

    def __init__(self, config: AgentConfig, agreed: Agreed | None) -> None:
        self._config, self._agreed = config, agreed
        self.bound = UNKNOWN  # of the published model
        self.names: dict[str, int] = {}  # those it is of, and the fingerprints of their data
        self._recall()

    def _recall(self) -> None:
        """Take over what is known of a model that an earlier process of this agent published."""
        try:
            about = load_model(self._config.out / MODEL).provenance
            names = {str(name): int(data) for name, data in about["data"].items()}
            bound = {key: float(about["bound"][key]) for key in ModelBound._fields}
        except (InputError, LookupError, TypeError, ValueError, AttributeError):
            return
        self.names, self.bound = names, ModelBound(**bound)

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


# Files to begin from again


def save(agent: Agent, path: Path) -> None:
    """Write a checkpoint."""
    arrays = {"x": agent.x}
    if agent.intercepts is not None:
        arrays["centre"] = agent.intercepts.centre
    write_npz(path, arrays, {**_whose(agent), "round": agent.round})


def restore(agent: Agent, path: Path) -> bool:
    """Restore a checkpoint, if there is one; refuse one with other settings; return whether there was one."""
    with _reading(path, "checkpoint", _whose(agent)) as (arrays, about):
        if not about:
            return False
        vectors = [arrays["x"]] if agent.intercepts is None else [arrays["x"], arrays["centre"]]
        if any(vector.shape != (agent.form.dim,) or not np.isfinite(vector).all() for vector in vectors):
            raise Damaged("its arrays do not fit")
        agent.check(int(about["round"]), *vectors)
        agent.round = int(about["round"])
        if agent.intercepts is not None:
            agent.intercepts.centre = vectors[1]
        agent.start(vectors[0])
    return True


def _whose(agent: Agent) -> dict[str, Any]:
    form = agent.form
    return {"format": CHECKPOINT, "name": agent.name, "form": [form.problem, form.method, form.dim]}


def save_agreement(board: Board, path: Path) -> None:
    """Write the agreement to a file."""
    prefix = topic_of(board.group, 0).removesuffix("0")
    rows = [(t, name, row) for t, named in board.rows.items() if t.startswith(prefix) for name, row in named.items()]
    about: dict[str, Any] = {"format": AGREEMENT, "settings": board.settings}
    about |= {"group": [list(each) for each in board.group], "rows": [[topic, name] for topic, name, _ in rows]}
    write_npz(path, {f"row{i}": row for i, (_, _, row) in enumerate(rows)}, about)


def restore_agreement(board: Board, path: Path) -> None:
    """Load an earlier agreement, if there is one."""
    with _reading(path, "agreement", {"format": AGREEMENT, "settings": board.settings}) as (arrays, about):
        if about:
            for i, (topic, name) in enumerate(about["rows"]):
                board.post(topic, name, arrays[f"row{i}"])
            board.group = tuple((str(name), int(boot)) for name, boot in about["group"])
            board.settled = True


@contextmanager
def _reading(path: Path, what: str, expected: dict[str, Any]) -> Iterator[tuple[dict[str, Array], dict[str, Any]]]:
    """Give arrays and facts of a file, none if there is no file; refuse one with other facts, or a damaged one."""
    try:
        arrays, about = ({}, {}) if files.kind(path) == "nothing" else read_npz(path)
        if about and any(about[name] != value for name, value in expected.items()):
            raise InputError(f"{path} belongs to another agent, problem or method; remove it, or choose another folder")
        yield arrays, about
    except InputError:
        raise
    except (Damaged, LookupError, TypeError, ValueError, OSError) as error:
        raise InputError(f"{path} is not a valid {what} of an agent ({error}); remove it to begin anew") from None
