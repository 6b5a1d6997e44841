"""`adom compare` over seeds, splits and networks."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError, nearest
from ..util.settings import Tables
from .compare_lists import once, parts
from .compare_output import end, print_latex
from .config import kinds, settle, taken
from .drawn import networks_by_seed, problem_by_seed
from .members import MEMBERS, runs_kept
from .settings import USUAL, Config, splits

if TYPE_CHECKING:
    from ..study.compare import Comparisons


def compare_many(
    settings: Config,
    flags: Tables,
    config: Path | None,
    methods: list[Any] | str | None,
    out: Path,
    *,
    fresh: bool,
    latex: bool,
    json: bool,
) -> int:
    """Run the methods on every draw, split and network; return the exit code."""
    from . import output

    ways, networks = ways_of(settings), networks_of(settings, flags, config)
    with runs_kept(settings, out, "compare", fresh=fresh):
        found = _run(settings, methods, ways, networks, out)
    if found.table["rounds_to_target"].isna().all():
        found = replace(found, tol=None, rtol=None)  # compare at an error that one of them reached
    found.save(out)
    names = {"table": "table.csv", "summary": "summary.csv", "latex": "table.tex", "figure": "comparison.png"}
    names |= {"profile": "profile.png"} if len(found.parts) > 1 else {}
    files = {kind: str(out / name) for kind, name in {**names, "config": "config.toml", "members": MEMBERS}.items()}
    if latex:
        print_latex(found.to_latex(), out)
    elif json:
        about = {"seeds": sorted({at.seed for at in found.parts if at.seed is not None}), "skipped": found.skipped}
        tables = {"rows": found.table, "summary": found.summary, "ranks": found.ranks()}
        more = {name: table.to_dict("records") for name, table in tables.items()}
        ends = {"tuning_seed": found.tuning_seed, "interrupted": found.interrupted}
        output.as_json({**about, **more, **ends, "files": files})
    else:
        output.lines(found, "")
        output.wrote(*files.values())
    printed = not (json or latex)  # the printed text has the rest
    said = output.INTERRUPTED if found.interrupted else ""
    return end({} if printed else found.skipped, "" if printed else found.outside, said)


def ways_of(settings: Config) -> list[str]:
    """Return the splits to compare on."""
    ways = once("--splits", parts(settings.compare.splits))
    for way in ways:
        if way not in splits():
            raise InputError(f"--splits names {way!r}, which is no split; {nearest(way, splits())}")
    if settings.compare.splits is not None and not ways:
        raise InputError(f"--splits {settings.compare.splits!r} names no split; e.g. --splits shuffled,label")
    return ways


def networks_of(settings: Config, flags: Tables, config: Path | None) -> dict[str, Config]:
    """Return the settings for each network, without those that only other kinds take."""
    if settings.compare.networks is None:
        return {str(settings.network.kind): settings}
    found = {}
    for kind in once("--networks", kinds(settings.compare.networks)):
        takes = taken(kind, failing=settings.network.failing is not None)
        own = {name: value for name, value in flags.get("network", {}).items() if name in takes}
        found[kind] = settle(config, {**flags, "network": {**own, "kind": kind}}, USUAL)
    return found


def _run(
    settings: Config, methods: list[Any] | str | None, ways: list[str], networks: dict[str, Config], out: Path
) -> "Comparisons":
    from .. import Comparisons
    from .. import compare as compare_methods
    from . import build

    run, given, count = settings.run, settings.problem, settings.compare.seeds
    by_name = networks_by_seed(networks, drawn=bool(count))
    problem = problem_by_seed(settings, next(iter(by_name.values())), drawn=bool(count), ways=bool(ways))
    found = compare_methods(
        {given.own or Path(given.data or given.shards or "synthetic").stem: problem},
        by_name,
        methods,
        build.parameters(run.parameters),
        run.oracle,
        run.rounds,
        record_every=run.record_every,
        **vars(run.stop),
        seeds=range(given.seed, given.seed + count) if count else None,
        splits=ways or None,
        dtype=run.dtype,
        folder=out / MEMBERS,
    )
    assert isinstance(found, Comparisons)
    return found
