"""Build an agent from its settings: data, function, method and the form of its messages; keep it in a checkpoint.

A checkpoint holds the agent's answer and the centre of its intercepts. The ledgers of its links are not in it. Whoever
comes back begins at its answer, without links; its neighbours do the same with their ends of the links, and nothing of
a stale or damaged ledger can come back to life.
"""

import json
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ..algorithms import method_class
from ..data.node_shards import MOST_LABELS, NodeShard, open_shard
from ..data.preparing import Agreed
from ..errors import InputError
from ..problems.losses import LOSSES
from ..problems.samples import dense
from ..util.checked_json import Damaged
from ..util.checked_npz import read_npz, write_npz
from .agent import Agent
from .auto import Auto, RidingOracle, Settings
from .board import MOST_WORDS, Group, mark_of
from .config import Config
from .functions import Function, Oracle
from .intercepts import Intercepts
from .rows import Rows
from .sample_functions import HELD, from_samples
from .wire import Form, Member, most_bytes

LARGEST = 2**28
"""The most bytes of any message between agents with shards."""
SHORT = 40
"""Bytes that a label of another shard may have in any case."""
MANY = 8
"""All shards together may have this many times the classes of one."""
VECTORS, WINDOW = 4, 64
"""At least as many as any method sends in a round, and as there are canaries."""
FORMAT = "adom-agent-2"
"""Of a checkpoint."""


def read_function(config: Config) -> Function:
    """Return the function of an agent whose samples are in a file."""
    from ..data.sample_files import read

    features, labels = read(config.data, features=config.dim)
    features = dense(features) if features.shape[1] <= HELD else features
    return from_samples(config.kind, features, labels, config.l2_of_file, config.count, config.classes)


def make_agent(config: Config, function: Function, agreed: Agreed | None = None, group: Group = ()) -> Agent:
    """Return the agent of a configuration; `agreed` and `group` are of a shard that was prepared with other agents."""
    cls = method_class(config.method)
    oracle: Any = Oracle(function, config.exact)
    settings: Settings | Auto = Settings(cls, config.chi, config.mu, config.L)
    if config.chi is None:
        settings = Auto(cls, function, zlib.crc32(config.name.encode()))
        oracle = RidingOracle(oracle, np.ones((1, settings.canaries)))
    width = function.dim + settings.canaries
    rows = Rows(settings.method(function.mu, function.L, 1), oracle, width)
    problem = config.problem
    if agreed is not None:
        problem += f" agreed by {', '.join(agreed.names)} ({mark_of(repr(group)).hex()})"
    form = Form(problem, config.method, function.dim, width, cls.vectors_per_round, rows.parts)
    own = Member(config.name, time.time_ns(), 0, function.mu, function.L)
    intercepts = Intercepts(agreed) if agreed is not None and agreed.column else None
    given = (config.neighbours, config.patience, config.gone, intercepts)
    return Agent(own, rows, form, settings, function, *given)


def largest_message(kind: str, shard: NodeShard) -> int:
    """Return the most bytes of a message between agents with shards, before they know the classes of all."""
    features, labels = len(shard.facts.features), shard.classes() if LOSSES[kind].classes else []
    words = len(json.dumps([shard.facts.features, shard.facts.target]))
    label = max((len(json.dumps(each)) for each in labels), default=0)
    row = max(2 * words, features, (MOST_LABELS + 1) * max(SHORT, 2 * label))  # a letter of a text is a number, too
    coefficients = (features + 1) * max(1, min(MOST_LABELS, MANY * len(labels)))
    rounds = most_bytes(Form("", "", coefficients, coefficients + WINDOW, VECTORS, VECTORS))
    return min(LARGEST, max(MOST_WORDS + 8 * row, 2 * rounds))


def describe(config: Config) -> dict[str, Any]:
    """Read the data of an agent; return the facts that need no other agent."""
    if config.shard is not None:
        shard = open_shard(config.shard)
        classes = {"classes": shard.classes()} if LOSSES[config.kind].classes else {}
        facts = {"samples": shard.facts.samples, "features": len(shard.facts.features), "target": shard.facts.target}
        return {"name": config.name, **facts, **classes}
    made = make_agent(config, read_function(config))
    return {"name": made.name, "mu": made.members.own.mu, "L": made.members.own.L, "dim": made.form.dim}


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
