"""Files of an agent, each written whole or not at all: its model, and a checkpoint to restart from."""

from pathlib import Path
from typing import Any

import numpy as np

from ..data.model import Model, model_from, unnamed
from ..data.preparing import Agreed
from ..errors import InputError
from ..util.checked_json import Damaged
from ..util.checked_npz import read_npz, write_npz
from .agent import Agent
from .config import Config
from .wire import check_name

Array = np.ndarray
FORMAT = "adom-agent-1"


def save(agent: Agent, path: Path) -> None:
    """Write a checkpoint."""
    rows, form = agent.rows, agent.form
    fields = {f"state{i}": np.asarray(part, dtype=float) for i, part in enumerate(rows.state)}
    names = list(rows.entries)
    entries = np.stack([rows.entries[name] for name in names]) if names else np.zeros((0, rows.parts, rows.width))
    if agent.intercepts is not None:
        fields["centre"] = agent.intercepts.centre
    about = {"format": FORMAT, "name": agent.name, "round": agent.round, "names": names, "form": list(_form(agent))}
    write_npz(path, {**fields, "entries": entries, "x": agent.x, "shape": np.array([form.dim, form.width])}, about)


def restore(agent: Agent, path: Path) -> bool:
    """Restore a checkpoint, if there is one; refuse one with other settings; return whether there was one."""
    try:
        arrays, about = read_npz(path)
        if about["format"] != FORMAT or about["name"] != agent.name or about["form"] != list(_form(agent)):
            raise InputError(f"{path} belongs to another agent, problem or method; remove it, or choose another folder")
        rows, names = agent.rows, [check_name(name) for name in about["names"]]
        parts = [arrays[f"state{i}"] for i in range(len(rows.state))]
        fits = [part.shape == np.shape(mine) for part, mine in zip(parts, rows.state, strict=True)]
        if not all(fits) or arrays["entries"].shape != (len(names), rows.parts, rows.width):
            raise Damaged("its arrays do not fit")
        rows.state = type(rows.state)(*parts)
        listed = {n: e for n, e in zip(names, arrays["entries"], strict=True) if n in agent.neighbours}
        rows.entries = dict(zip(names, arrays["entries"], strict=True))
        for name in set(names) - set(listed):
            rows.forget(name)
        agent.round, agent.x = int(about["round"]), arrays["x"]
        if agent.intercepts is not None:
            agent.intercepts.centre = arrays["centre"]
            agent.replace(agent.intercepts.function)
        agent.counters.rounds = 2  # not a new agent: it makes up for rounds that it missed
    except FileNotFoundError:
        return False
    except (Damaged, LookupError, TypeError, ValueError, OSError) as error:
        raise InputError(f"{path} is not a valid checkpoint of an agent ({error}); remove it to start anew") from None
    return True


def _form(agent: Agent) -> tuple[Any, ...]:
    form = agent.form
    return form.problem, form.method, form.dim, form.width, form.parts


def write_model(agent: Agent, path: Path, config: Config, agreed: Agreed | None, provenance: dict[str, Any]) -> None:
    """Write the answer of an agent as a model, in the form that `adom.load_model` reads."""
    if agreed is not None:
        about = {**provenance, "samples": agreed.samples, "nodes": agreed.names, "problem": {"type": agreed.kind}}
        model_from(agreed.model_rows(agent.x[None]), agreed.about(), about).save(path)
        return
    names = tuple(unnamed(agent.form.dim))
    classes = config.classes if config.kind == "logistic" else ()
    penalty = {"l2": config.l2_of_file}
    kind: Any = config.kind  # it has been checked
    Model(kind, agent.x[None], np.zeros(1), names, classes, penalty=penalty, provenance=provenance).save(path)
