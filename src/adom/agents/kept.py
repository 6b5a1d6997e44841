"""The checkpoint of an agent, written whole or not at all: its answer, its round and the centre of its intercepts.

The ledgers of its links are not in it. Whoever comes back begins at its answer, without links; its neighbours do the
same with their ends of the links, and nothing of a stale or damaged ledger can come back to life.
"""

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..util.checked_json import Damaged
from ..util.checked_npz import read_npz, write_npz
from .agent import Agent

FORMAT = "adom-agent-2"


def save(agent: Agent, path: Path) -> None:
    """Write a checkpoint."""
    arrays = {"x": agent.x}
    if agent.intercepts is not None:
        arrays["centre"] = agent.intercepts.centre
    about = {"format": FORMAT, "name": agent.name, "round": agent.round, "form": list(_form(agent))}
    write_npz(path, arrays, about)


def restore(agent: Agent, path: Path) -> bool:
    """Restore a checkpoint, if there is one; refuse one with other settings; return whether there was one."""
    try:
        arrays, about = read_npz(path)
        if about["format"] != FORMAT or about["name"] != agent.name or about["form"] != list(_form(agent)):
            raise InputError(f"{path} belongs to another agent, problem or method; remove it, or choose another folder")
        vectors = [arrays["x"]] if agent.intercepts is None else [arrays["x"], arrays["centre"]]
        if any(vector.shape != (agent.form.dim,) or not np.isfinite(vector).all() for vector in vectors):
            raise Damaged("its arrays do not fit")
        agent.check(int(about["round"]), *vectors)
        agent.round = int(about["round"])
        if agent.intercepts is not None:
            agent.intercepts.centre = vectors[1]
        agent.start(vectors[0])
    except FileNotFoundError:
        return False
    except (Damaged, LookupError, TypeError, ValueError, OSError) as error:
        raise InputError(f"{path} is not a valid checkpoint of an agent ({error}); remove it to start anew") from None
    return True


def _form(agent: Agent) -> tuple[Any, ...]:
    form = agent.form
    return form.problem, form.method, form.dim
