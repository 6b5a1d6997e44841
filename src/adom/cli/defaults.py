"""Defaults for settings that were not given, and refusals of those that contradict each other or have no effect."""

from collections.abc import Collection
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import InputError, nearest
from ..util.settings import Tables
from .settings import NAMED, SETTINGS, Config, kinds_of_network


class UserSettings(NamedTuple):
    """The user's settings: those from options and a file together, and those from options."""

    tables: Tables
    flags: Tables

    def describe(self, table: str, name: str) -> str:
        """Return a setting as it was given: "--chi 30" on the command line, "chi = 30.0" in a file."""
        value, flag = self.tables[table][name], SETTINGS[table, name].flag
        if name not in self.flags.get(table, {}):
            return f"{name} = {value!r}"
        return flag if value is True else f"{flag} {value:.15g}" if isinstance(value, float) else f"{flag} {value}"


def kinds(text: str) -> list[str]:
    """Return the kinds of network that `--network` names.

    Examples
    --------
    >>> kinds("ring, star")
    ['ring', 'star']
    """
    names = [part.strip().lower().replace("_", "-") for part in text.split(",")]
    for name in names:
        if name not in kinds_of_network():
            raise InputError(f"unknown network {name!r}; {nearest(name, kinds_of_network())}")
    return names


def common() -> set[str]:
    """Return the settings that every kind of network has."""
    return {name for table, name in SETTINGS if table == "network"}.difference(*kinds_of_network().values())


def belonging(text: str) -> set[str]:
    """Return the settings of the kinds that `--network` names."""
    return {name for kind in kinds(text) for name in kinds_of_network()[kind]}


def allowed(text: str, *, failing: bool) -> set[str]:
    """Return the settings that networks of these kinds take; `failing` says whether links may fail."""
    return common() | belonging(text) | ({"graphs", "repair"} if failing else set())


def check_network(given: UserSettings, text: str, names: Collection[str]) -> None:
    """Refuse settings that none of the kinds of network takes."""
    takes = allowed(text, failing="failing" in given.tables["network"])
    for name in names:
        if name not in takes:
            owners = ", ".join(owner for owner, own in kinds_of_network().items() if name in own)
            flag = "--networks" if given.tables["compare"].get("networks") == text else "--network"
            raise InputError(
                f"{given.describe('network', name)} has no effect on network {text}; "
                f"it belongs to {owners}: leave it out, or change {flag}"
            )


def check_lists(settings: Config, flags: Tables) -> None:
    """Refuse options that have no effect beside the lists of a comparison."""
    tables = {table: {name: v for name, v in each.items() if v is not None} for table, each in asdict(settings).items()}
    given, lists = UserSettings(tables, flags), tables["compare"]
    for listed, table, name in (("networks", "network", "kind"), ("splits", "problem", "split")):
        if name in flags.get(table, {}) and listed in lists:
            beside, flag = given.describe("compare", listed), SETTINGS["compare", listed].flag
            raise InputError(
                f"{given.describe(table, name)} has no effect beside {beside}; leave it out, or name it in {flag}"
            )
    if "networks" in lists:
        check_network(given, lists["networks"], flags.get("network", {}))


def complete(given: UserSettings, usual: Tables) -> None:
    """Fill in defaults in place; refuse settings that would have no effect."""
    problem, network, run = (given.tables[table] for table in ("problem", "network", "run"))
    _check_rivals(given)
    _check_engine(given)
    for name, value in usual.get("run", {}).items():
        run.setdefault(name, value)
    defaults = dict(usual.get("problem", {}))
    apart = "shards" in problem and lie_apart(problem["shards"])
    if apart:
        _fill_from_nodes(given)
        defaults = {}
    elif "shards" in problem:
        _fill_from_shards(given)
        defaults = {"kappa": defaults["kappa"]} if "kappa" in defaults else {}
    for name in APART if not apart else ():
        if name in problem:
            raise InputError(
                f"{given.describe('problem', name)} is for shards that `adom shard` made; make them, or leave it out"
            )
    defaults = _fitting(problem, defaults)
    kind = network.setdefault("kind", "contacts" if "contacts" in network else "geometric")
    chosen = kinds(kind)
    network["kind"] = ",".join(chosen)
    if "contacts" in chosen:
        defaults.pop("nodes", None)
        if "contacts" not in network:
            raise InputError("network contacts needs a contact list; give one with --contacts FILE")
    if "infectious" in chosen:
        from ..data.paper_data import NODES

        if problem.setdefault("nodes", NODES) != NODES:
            raise InputError(
                f"{given.describe('problem', 'nodes')} does not fit network infectious, which has {NODES} nodes; "
                "leave it out"
            )
    listed, failing = given.tables["compare"].get("networks"), "failing" in network
    check_network(given, listed or kind, network.keys() - allowed(kind, failing=failing))
    for name, value in defaults.items():
        problem.setdefault(name, value)
    if "graphs" in allowed(kind, failing=failing):
        network.setdefault("graphs", _affordable(usual["network"]["graphs"], problem.get("nodes")))
    if "contacts" in chosen:
        network.setdefault("window", 1)
    _fill_by_size(network, chosen, problem.get("nodes") or 0)
    ranks, nodes = given.tables["mpi"].get("ranks"), problem.get("nodes")
    if ranks and nodes and ranks > nodes:
        raise InputError(
            f"{given.describe('mpi', 'ranks')} cannot share {nodes} nodes: each rank needs one at least; "
            f"take --ranks {nodes} or fewer"
        )


def _fitting(problem: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the defaults that a problem takes; for the user's own problem, those that it requires."""
    fit = ("nodes", "kappa") if "data" in problem else tuple(defaults)
    if "own" in problem:
        from .own_code import required

        defaults = {**defaults, "split": "contiguous"}
        fit = ("nodes", *required(problem["own"]))
    others = ("kappa",) if {"l2", "C"} & problem.keys() else ()
    return {name: value for name, value in defaults.items() if name in fit and name not in others}


def _check_rivals(given: UserSettings) -> None:
    """Refuse settings that exclude each other, and settings that need a missing one."""
    problem, network = given.tables["problem"], given.tables["network"]
    rivals = [("problem", *pair, problem) for pair in combinations(("kappa", "l2", "C", "alpha"), 2)]
    rivals += [("run", "tol", "rtol", given.flags.get("run", {}))]
    if "waypoint" not in str(network.get("kind", "")):  # waypoint takes a radius beside geometric's chi
        rivals.append(("network", "radius", "chi", network))
    for table, name, rival, values in rivals:
        if {name, rival} <= values.keys():
            raise InputError(
                f"{given.describe(table, name)} and {given.describe(table, rival)} exclude each other; give one"
            )
    beside = next((name for name in problem if name in NOT_OWN), None)
    if "own" in problem and beside:
        raise InputError(
            f"{given.describe('problem', beside)} has no effect on {given.describe('problem', 'own')}; leave it out"
        )
    if "C" in problem and problem.get("count") == "nodes":
        raise InputError(
            f"{given.describe('problem', 'C')} weighs single samples, but here nodes count equally; give --l2, or "
            "leave --count out"
        )
    listed = given.tables["compare"].get("splits")
    split = listed or problem.get("split", "contiguous")
    if "concentration" in problem and "dirichlet" not in split:
        raise InputError(
            f"{given.describe('problem', 'concentration')} has no effect on split {split}; it belongs to dirichlet: "
            f"leave it out, or give {'--splits' if listed else '--split'} dirichlet"
        )
    if "label" in problem and not {"data", "shards"} & problem.keys():
        raise InputError(f"{given.describe('problem', 'label')} names a column of a file; give the file with --data")


def _check_engine(given: UserSettings) -> None:
    """Refuse settings of engine mpi with another engine, and settings that need a missing one."""
    mpi, run = given.tables["mpi"], given.tables["run"]
    engine = run.get("engine", "local")
    if mpi and engine != "mpi":
        raise InputError(f"{SETTINGS['mpi', next(iter(mpi))].flag} has no effect on engine {engine}; give --engine mpi")
    for name in ("every_rounds", "every_seconds", "resume"):
        if name in mpi and "checkpoints" not in mpi:
            raise InputError(f"{SETTINGS['mpi', name].flag} needs a folder; give one with --checkpoints DIR")
    if mpi.get("unwatched") and "shards" not in given.tables["problem"]:
        raise InputError("--no-monitor has no effect without --shards; leave it out")
    if engine == "mpi" and run.get("parameters") == "tuned":
        raise InputError("--parameters tuned runs many settings, which engine mpi does not; tune with --engine local")


NOT_OWN = ("data", "shards", "label", "C", "count", "model", "scale", "memory", "bare", "alpha")
"""Settings that the user's own problems do not take."""
APART = ("model", "scale", "memory", "bare", "alpha")
"""Settings that only shards of `adom shard` take."""
LONG: dict[str, Any] = {"rounds": 200_000, "record_every": 10}
"""Defaults for runs on such shards, which end when the nodes agree."""


def lie_apart(folder: str) -> bool:
    """Return whether a folder holds shards that `adom shard` made, and no manifest of `adom split`."""
    from ..data.node_shards import shard_names
    from ..data.shards import MANIFEST

    return not (Path(folder) / MANIFEST).exists() and bool(shard_names(Path(folder)))


def _fill_from_nodes(given: UserSettings) -> None:
    """Fill in the number of nodes from the shards here, unless it is given, and `LONG`."""
    from ..data.node_data import NodeData

    problem, run = given.tables["problem"], given.tables["run"]
    for name in ("data", "label", "samples", "split", "concentration", "dim"):
        if name in problem:
            raise InputError(
                f"{given.describe('problem', name)} has no effect on shards, which have their own; leave it out"
            )
    nodes = NodeData(problem["shards"], nodes=problem.get("nodes")).nodes
    if nodes < 2:
        raise InputError(
            f"{problem['shards']} holds one shard; say how many nodes there are on all machines, e.g. --nodes 4"
        )
    problem["nodes"] = nodes
    for name, value in LONG.items():
        run.setdefault(name, value)


def _fill_from_shards(given: UserSettings) -> None:
    """Set the number of nodes from the shards of `adom split`; refuse settings that these shards fix."""
    from ..data.shards import Shards

    problem = given.tables["problem"]
    for name in ("data", "label", "samples", "split", "concentration", "dim"):
        if name in problem:
            raise InputError(
                f"{given.describe('problem', name)} has no effect on shards, which have their own; leave it out"
            )
    nodes = Shards(problem["shards"], l2=1.0).nodes
    if problem.setdefault("nodes", nodes) != nodes:
        raise InputError(
            f"{given.describe('problem', 'nodes')} does not fit {problem['shards']}, which has {nodes}; leave it out"
        )


def _affordable(graphs: int, nodes: int | None) -> int:
    """Return fewer graphs than usual for large networks, whose spectra take seconds each."""
    return graphs if not nodes else min(graphs, max(10, int(graphs * (150 / nodes) ** 3)))


def _fill_by_size(network: dict[str, Any], chosen: list[str], nodes: int) -> None:
    """Fill in arguments of generators that suit the number of nodes; a given radius stands for geometric's chi."""
    from ..networks.recipes import SUITED

    given = set(network)
    for usual in (SUITED[name] for name in (kind.replace("-", "_") for kind in chosen) if name in SUITED):
        for argument, value in usual(nodes).items():
            if argument != "chi" or "radius" not in given:
                network.setdefault(NAMED.get(argument, argument), value)
