"""Saving a run on one rank to a checkpoint, and resuming from one written by any number of ranks."""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ...errors import InputError
from ...util.programs import array_digest
from ..recorder import COLUMNS
from . import checkpoints
from .peers import RankError, at_rank_0, rank_errors

if TYPE_CHECKING:
    from .backend import RankBackend

Array = np.ndarray


def save(run: "RankBackend", seconds: float) -> None:
    """Write this rank's part of a checkpoint; when all ranks have, remove older generations."""
    kept, world = run.task.checkpoints, run.world
    assert kept is not None
    carry = run.session.carry
    arrays = {"rows/x": run.x, "rows/data": _data_digests(run)}
    for number, leaf in enumerate(jax.tree.leaves(_arrays(run))):
        array = np.asarray(leaf)
        arrays[f"rows/{number}" if array.ndim else f"one/{number}"] = array
    if world.rank == 0:
        arrays["one/table"] = run.history.table
        if run.history.first is not None:
            arrays["one/first"] = np.asarray(run.history.first)
    about = {
        "settings": run.task.settings,
        "clock": run.clock,
        "floats": int(carry.floats),
        "seconds": seconds,
        "look": run.task.stop.next if run.task.stop is not None else None,
        **({} if run.task.pilot is None else {"pilot": run.task.pilot.facts}),
    }
    with rank_errors(), world.busy(f"writing a checkpoint to {kept.path}"):
        checkpoints.write(kept.path, run.iteration, world.rank, world.partition, arrays, about)
    world.meet()  # nothing older is removed before all have written
    if world.rank == 0:
        checkpoints.forget(kept.path)


def restore(run: "RankBackend", generation: Path) -> float:
    """Resume from a checkpoint written by any number of ranks; return the seconds spent before."""
    task, world = run.task, run.world
    first, end = world.partition.of(world.rank)
    with rank_errors(), world.busy(f"reading {generation}"):
        arrays, about = checkpoints.read(generation, first, end)
    _compare_settings(about["settings"], task.settings, generation)
    _compare_data(run, arrays, generation)
    if about["clock"] > task.plan.rounds:
        raise InputError(
            f"{generation} is at round {about['clock']}, beyond the budget of rounds={task.plan.rounds}; "
            "give more rounds, or another folder to start afresh"
        )
    carry = run.session.carry
    leaves, structure = jax.tree.flatten(_arrays(run))
    restored = []
    for number, leaf in enumerate(leaves):
        array = _array(arrays, f"rows/{number}" if leaf.ndim else f"one/{number}", np.asarray(leaf), generation)
        # Keep weak types, which numbers from Python have: the compiled step accepts no others.
        restored.append(jnp.asarray(array.item() if jax.typeof(leaf).weak_type else array.astype(leaf.dtype)))
    (state, memory), found = jax.tree.unflatten(structure, restored)
    run.session.carry = carry._replace(
        state=state,
        memory=memory,
        x=jnp.asarray(_array(arrays, "rows/x", run.x, generation)),
        iteration=jnp.asarray(int(generation.name.rpartition("-")[2]), jnp.int64),
        clock=jnp.asarray(about["clock"], jnp.int64),
        floats=jnp.asarray(about["floats"], jnp.int64),
    )
    if task.pilot is not None:
        try:
            task.pilot.recall(found, about["pilot"])
        except (KeyError, TypeError, ValueError) as error:
            raise RankError(f"{generation} has no valid state of parameters='auto' ({error!r}); remove it") from None
    if task.stop is not None and about["look"] is not None:
        task.stop.next = about["look"]
    if world.rank == 0:
        known = checkpoints.of_rank_0(generation)
        table = known.get("one/table", np.empty(0))
        if table.ndim != 2 or table.shape[1] != len(COLUMNS) or table.dtype != np.float64:
            raise RankError(f"{generation} has no table of {len(COLUMNS)} columns; remove it to use the one before")
        run.history.tables = [table] if len(table) else []
        run.history.first = float(known["one/first"]) if "one/first" in known else None
    return float(about["seconds"])


def _arrays(run: "RankBackend") -> tuple[Any, ...]:
    """Return all arrays that a run needs to resume, and those of its pilot."""
    carry, pilot = run.session.carry, run.task.pilot
    return (carry.state, carry.memory), () if pilot is None else pilot.arrays


def _data_digests(run: "RankBackend") -> Array:
    """Return digests of the nodes' data, one row each, which do not depend on the partition into ranks."""
    if run.digests is None:
        nodes = (run.task.block.block(node, node + 1) for node in range(run.task.block.nodes))
        texts = ["".join(map(array_digest, jax.tree.leaves(node))).encode() for node in nodes]
        run.digests = np.stack([np.frombuffer(hashlib.sha256(text).digest(), dtype=np.uint8) for text in texts])
    return run.digests


def _compare_data(run: "RankBackend", arrays: dict[str, Array], generation: Path) -> None:
    """Refuse, on all ranks, data that differs at any node."""
    now = _data_digests(run)
    differs = (_array(arrays, "rows/data", now, generation) != now).any(axis=1)
    parts = run.world.collect(differs.astype(np.float64)[None])

    def check() -> int:
        assert parts is not None
        nodes = np.flatnonzero(np.concatenate(parts, axis=1)[0])
        if nodes.size:
            raise InputError(
                f"{generation.parent} was written with other data of node {nodes[0]}; "
                "give the same data to go on, or another folder to start afresh"
            )
        return 0

    at_rank_0(run.world, check)


def _compare_settings(before: dict[str, Any], now: dict[str, Any], generation: Path) -> None:
    """Refuse to resume with other settings."""
    now = json.loads(json.dumps(now))
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            raise InputError(
                f"{generation.parent} was written with {name} = {before.get(name)!r}, now it is {now.get(name)!r}; "
                "give the same settings to go on, or another folder to start afresh"
            )


def _array(arrays: dict[str, Array], name: str, like: Array, generation: Path) -> Array:
    """Return an array of a checkpoint; refuse one with another shape or type than `like`."""
    array = arrays.get(name)
    fits = array is not None and array.shape == like.shape and array.dtype.kind in "fiub"
    if array is None or not fits or (array.ndim and array.dtype != like.dtype):
        kind = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
        raise RankError(f"{generation} has {kind} as {name}, not {like.dtype} of shape {like.shape}; remove it")
    return array
