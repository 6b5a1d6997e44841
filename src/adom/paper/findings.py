"""Findings beside the ledger, from the same files: where few inner steps fail, who wins, which method to take."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ..util.files import atomic
from . import full_run
from .claims import PROTOCOLS
from .claims_curves import ENOUGH
from .measures import Interval, Runs, cost_to, failed, grouped, measured, target_of, target_within
from .runs import Outcome, load_outcomes, load_plan
from .verdicts import PANELS

LABEL = "split-label"
"""The variant whose data are split over the nodes by label."""
IDEAL = ("pngd",)
"""Methods that no network can run, left out where methods are ranked."""
PRICES = (0.0, 0.01, 0.1, 1.0, 10.0)
"""What a gradient costs, in rounds."""
SMALL_KAPPA, SMALL_CHI = 100.0, 50.0
"""Where the rule of thumb draws its lines."""


@dataclass(frozen=True)
class Section:
    """A table with what it says."""

    title: str
    text: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self) -> Iterator[str]:
        """Yield the section as lines of Markdown."""
        yield from ("", f"## {self.title}", "", self.text)
        if self.rows:
            yield from ("", "| " + " | ".join(self.columns) + " |", "|" + " --- |" * len(self.columns))
            yield from ("| " + " | ".join(row) + " |" for row in self.rows)


def compute(outcomes: Sequence[Outcome], *, quick: bool = False) -> tuple[Section, ...]:
    """Return all sections; those of a miniature say beside their own what the full run says, and recommend nothing."""
    found = (inner_steps(outcomes), winners(outcomes), heterogeneity(outcomes), vectors(outcomes))
    rule = rule_of_thumb(outcomes)
    if not quick:
        return (*found, rule)
    beside = [replace(one, text=f"The full run: {_full(one)} This miniature: {one.text}") for one in found]
    return (*beside, Section(rule.title, f"A miniature cannot tell. The full run: {_full(rule)}", (), ()))


def _full(section: Section) -> str:
    return full_run.finding(section.title)


def write(folder: str | os.PathLike[str], outcomes: Sequence[Outcome] | None = None) -> tuple[Section, ...]:
    """Compute the findings of a reproduction's folder, and write findings.md there."""
    plan, target = load_plan(folder), Path(folder)
    found = compute(load_outcomes(folder) if outcomes is None else outcomes, quick=plan.quick)
    size = "the miniature (`--quick`)" if plan.quick else "the full size"
    top = f"Computed by `adom ledger {target}`; {size}; commit {plan.commit or 'unknown'}."
    about = "Rounds and other costs are medians over seeds, with the least and the greatest in brackets."
    page = ["# Findings", "", top, about, *(line for section in found for line in section.lines())]
    with atomic(target / "findings.md") as partial:
        partial.write_text("\n".join(page) + "\n")
    return found


def inner_steps(outcomes: Sequence[Outcome]) -> Section:
    """Return where the paper's number of inner steps fails, and what `auto` does there.

    It fails in a panel if a seed diverges or takes more than 1.5 times the rounds of the exact oracle, or of `auto`
    where the exact oracle was not run; only panels in which these meet a target in every seed are looked at.
    """
    figures = sorted({one.job.panel.figure for one in outcomes if one.job.variant in ("exact", "auto")})
    rows = []
    seen = fail = mended = tried = 0
    prices: list[float] = []
    for protocol in PROTOCOLS:
        own, exacts, autos = (grouped(outcomes, protocol, figures, variant) for variant in ("", "exact", "auto"))
        for place in dict.fromkeys([*exacts, *autos]):
            mine, exact, safe = (cells.get(place, {}).get("adom", {}) for cells in (own, exacts, autos))
            base = exact or safe
            allowed = min((one.job.rounds for one in mine.values()), default=0) / ENOUGH
            target = target_within(base, allowed) if mine else float("nan")
            if not np.isfinite([cost_to(one, target) for one in base.values()]).all():
                continue
            seen += 1
            prices += [
                cost_to(safe[seed], target, "gradients") / cost_to(mine[seed], target, "gradients")
                for seed in mine.keys() & safe.keys()
                if np.isfinite(cost_to(mine[seed], target)) and np.isfinite(cost_to(safe[seed], target))
            ]
            bad = sum(
                cost_to(one, target) > ENOUGH * cost_to(base[seed], target)
                for seed, one in mine.items()
                if seed in base
            )
            if not bad:
                continue
            fail += 1
            tried += bool(safe)
            mended += bool(safe) and all(np.isfinite(cost_to(one, target)) for one in safe.values())
            some = next(iter(base.values()))
            lost = sum(failed(one) for one in mine.values())
            rows.append(
                (
                    protocol,
                    " ".join(place),
                    f"{measured(some, 'kappa'):.4g}",
                    f"{measured(some, 'chi'):.4g}",
                    next(iter(mine.values())).job.oracle,
                    f"{bad} of {len(mine)} seeds ({lost} diverge)",
                    *(_cost(runs, target, "rounds") for runs in (mine, safe, exact)),
                    *(_cost(runs, target, "gradients") for runs in (mine, safe)),
                )
            )
    text = f"Of {seen} panels in which ADOM meets a target with the exact oracle or `auto`, the paper's T diverges or "
    text += f"takes more than 1.5 times the rounds in {fail}"
    text += f"; `auto` was run in {tried} of these and meets the target in {mended}." if fail else "."
    if prices:
        text += f" Where both meet it, `auto` takes {Interval.of(prices)} times the gradients of the paper's T."
    columns = ("protocol", "panel", "kappa", "chi", "T", "fails in", "rounds", "rounds, auto", "rounds, exact")
    return Section("Where few inner steps fail", text, (*columns, "gradients", "gradients, auto"), tuple(rows))


def winners(outcomes: Sequence[Outcome]) -> Section:
    """Return who meets the target first, under every protocol and figure, and how far ADOM is behind or ahead."""
    rows = []
    tuned = ""
    for protocol in PROTOCOLS:
        total: Counter[str] = Counter()
        factors: list[float] = []
        for figure in PANELS:
            wins: Counter[str] = Counter()
            leads: list[float] = []
            for runs, rounds in _ranked(outcomes, protocol, [figure], "rounds"):
                wins[min(rounds, key=lambda name: rounds[name])] += 1
                others = [value for name, value in rounds.items() if name != "adom"]
                if "adom" in rounds:
                    budget = max(one.job.rounds for seeds in runs.values() for one in seeds.values())
                    leads.append(min(*others, budget) / min(rounds["adom"], budget))
            if wins:
                rows.append((protocol, figure, str(wins.total()), _tally(wins), _spread(leads)))
            total += wins
            factors += leads
        if protocol == "tuned" and total:
            tuned = f"Under `tuned`, of {total.total()} panels: {_tally(total)}. "
            tuned += f"The best other's rounds over ADOM's: {_spread(factors)}."
    columns = ("protocol", "figure", "panels", "first to the target (panels)", "best other's rounds over ADOM's")
    text = tuned or "There are no runs with tuned parameters."
    text += " A run that misses the target counts with its whole budget."
    return Section("Who wins", text, columns, tuple(rows))


def heterogeneity(outcomes: Sequence[Outcome]) -> Section:
    """Return what becomes of each method when the data are split over the nodes by label."""
    figures = sorted({one.job.panel.figure for one in outcomes if one.job.variant == LABEL})
    rows = []
    said = []
    for protocol in PROTOCOLS:
        even = grouped(outcomes, protocol, figures)
        ratios: dict[str, list[float]] = {}
        for place, split in grouped(outcomes, protocol, figures, LABEL).items():
            if place not in even:
                continue
            target = float(np.maximum(target_of(even[place]), target_of(split)))  # NaN where one of them is
            for method, seeds in split.items():
                both = seeds.keys() & even[place].get(method, {}).keys()
                if not both:
                    continue
                before, after = ({seed: runs[seed] for seed in both} for runs in (even[place][method], seeds))
                costs = [(cost_to(after[s], target), cost_to(before[s], target)) for s in both]
                found = [a / b for a, b in costs if np.isfinite(b)]
                ratios.setdefault(method, []).extend(found)
                title = f"{place[0]} {place[1]}"
                ends = (_cost(before, target, "rounds"), _cost(after, target, "rounds"), _spread(found))
                rows.append((protocol, title, method, f"{target:.0e}", *ends))
        if ratios:
            parts = ", ".join(f"{method} {_spread(found)}" for method, found in ratios.items())
            said.append(
                f"Under `{protocol}`, rounds with data split by label over rounds with data split evenly: {parts}."
            )
    columns = ("protocol", "panel", "method", "target", "rounds, even", "rounds, by label", "ratio")
    return Section("Data split by label", " ".join(said) or "There are no such runs.", columns, tuple(rows))


def vectors(outcomes: Sequence[Outcome]) -> Section:
    """Return how the ranking changes when numbers sent, or gradients, are counted instead of rounds."""
    rows = []
    said = []
    for protocol in PROTOCOLS:
        wins = {cost: Counter[str]() for cost in ("rounds", "floats_sent", "gradients")}
        changed = 0
        per_round: dict[str, list[float]] = {}
        for runs, rounds in _ranked(outcomes, protocol, list(PANELS), "rounds"):
            target = target_of(runs)
            found = {cost: _medians(runs, target, cost) for cost in wins}
            first = {cost: min(values, key=values.__getitem__) for cost, values in found.items()}
            for cost, name in first.items():
                wins[cost][name] += 1
            changed += first["rounds"] != first["floats_sent"]
            for name, value in rounds.items():
                if np.isfinite(value) and np.isfinite(rounds.get("adom", np.inf)):
                    floats = found["floats_sent"]
                    per_round.setdefault(name, []).append(floats[name] / value / (floats["adom"] / rounds["adom"]))
        if wins["rounds"]:
            rows.append((protocol, *(_tally(found) for found in wins.values())))
            each = ", ".join(f"{name} {median(values):.2g}" for name, values in per_round.items())
            said.append(
                f"Under `{protocol}`, floats instead of rounds change the winner in {changed} of "
                f"{wins['rounds'].total()} panels; floats a round, as multiples of ADOM's: {each}."
            )
    columns = ("protocol", "first by rounds", "first by floats sent", "first by gradients")
    return Section("Rounds, floats sent, gradients", " ".join(said) or "There are no runs.", columns, tuple(rows))


def rule_of_thumb(outcomes: Sequence[Outcome]) -> Section:
    """Return which method is cheapest, by network, kappa, chi and the price of a gradient in rounds.

    Taken are the runs under `tuned`, else `unit`, else `theory`. The cost of a run is its rounds to the target plus
    the price times its gradients a node.
    """
    protocol = next((name for name in ("tuned", "unit", "theory") if _ranked(outcomes, name, list(PANELS))), "")
    if not protocol:
        return Section("Which method to take", "There are no runs.", (), ())
    regions: dict[tuple[str, str, str], dict[float, Counter[str]]] = {}
    overall: dict[float, Counter[str]] = {price: Counter() for price in PRICES}
    for runs, rounds in _ranked(outcomes, protocol, list(PANELS), "rounds"):
        some = next(iter(next(iter(runs.values())).values()))
        network = str(some.job.panel.settings.get("network", "geometric"))
        kappa = f"{'up to' if measured(some, 'kappa') <= SMALL_KAPPA * 1.01 else 'above'} {SMALL_KAPPA:.0f}"
        chi = f"{'up to' if measured(some, 'chi') <= SMALL_CHI else 'above'} {SMALL_CHI:.0f}"
        gradients = _medians(runs, target_of(runs), "gradients")
        for price in PRICES:
            total = {name: value + price * gradients[name] for name, value in rounds.items() if np.isfinite(value)}
            cheapest = min(total, key=lambda name: total[name])
            overall[price][cheapest] += 1
            by_price = regions.setdefault((network, kappa, chi), {one: Counter() for one in PRICES})
            by_price[price][cheapest] += 1
    rows = tuple((*region, *(_tally(found[price]) for price in PRICES)) for region, found in sorted(regions.items()))
    firsts = {price: found.most_common(1)[0] for price, found in overall.items()}
    panels = overall[PRICES[0]].total()
    text = f"Parameters `{protocol}`. Cheapest in most panels, by the price of a gradient in rounds: "
    text += "; ".join(f"{price:g}: {name} ({count} of {panels})" for price, (name, count) in firsts.items()) + "."
    columns = ("network", "kappa", "chi", *(f"gradient = {price:g} rounds" for price in PRICES))
    return Section("Which method to take", text, columns, rows)


def _ranked(
    outcomes: Sequence[Outcome], protocol: str, figures: Sequence[str], cost: str = "rounds"
) -> list[tuple[Runs, dict[str, float]]]:
    """Return the panels in which some method meets a target, and what each method cost to it."""
    found = []
    for cell in grouped(outcomes, protocol, figures).values():
        runs = {method: seeds for method, seeds in cell.items() if method not in IDEAL}
        costs = _medians(runs, target_of(runs), cost) if len(runs) > 1 else {}
        if any(map(np.isfinite, costs.values())):
            found.append((runs, costs))
    return found


def _medians(runs: Runs, target: float, cost: str) -> dict[str, float]:
    return {name: median(cost_to(one, target, cost) for one in seeds.values()) for name, seeds in runs.items()}


def _cost(runs: dict[int, Outcome], target: float, cost: str) -> str:
    return str(Interval.of(cost_to(one, target, cost) for one in runs.values())) if runs else "-"


def _tally(wins: "Counter[str]") -> str:
    return ", ".join(f"{name} {count}" for name, count in wins.most_common())


def _spread(values: Iterable[Any]) -> str:
    found = list(values)
    return str(Interval.of(found)) if found else "-"
