"""Findings besides the claims, from the same files: where few inner steps fail, who wins, which method to take."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ..util.table import Table
from .evidence import (
    UNDECIDED,
    Interval,
    best_of,
    by_seed,
    cells,
    costs,
    lead,
    measured,
    scores,
    target_of,
    target_within,
)
from .growth import SLACK, exponents
from .judges import ENOUGH, adom_cells
from .plan import OTHERS
from .runs import PROTOCOLS, ReproductionPlan
from .verdicts import PANELS, full_finding

LABEL = "split-label"
"""The variant whose data are split over the nodes by label."""
IDEAL = ("pngd",)
"""Idealised methods, left out of rankings."""
PRICES = (0.0, 0.01, 0.1, 1.0, 10.0)
"""The cost of a gradient, in rounds."""
FEW = ("adom", "mudag", "acc-dngd", "apm")
"""The largest set of methods in a figure of the paper."""
SMALL_KAPPA, SMALL_CHI = 100.0, 50.0
"""The largest kappa and chi that count as small in the rule of thumb."""
NOTHING = Table((), ())


@dataclass(frozen=True)
class Section:
    """A table with a text above it."""

    title: str
    text: str
    table: Table


def compute(runs: pd.DataFrame, *, quick: bool = False) -> tuple[Section, ...]:
    """Return all sections; a miniature shows the full run's texts beside its sections, and makes no recommendation."""
    parts = (inner_steps, winners, growing_rounds, nothing_known, heterogeneity, vectors)
    sections = [part(runs) for part in parts]
    rule = rule_of_thumb(runs)
    if not quick:
        return (*sections, rule)
    beside = [
        replace(section, text=f"The full run: {told} This miniature: {section.text}") if told else section
        for section in sections
        for told in [full_finding(section.title)]
    ]
    text = f"A miniature cannot tell. The full run: {full_finding(rule.title)}"
    return (*beside, Section(rule.title, text, NOTHING))


def markdown(sections: Iterable[Section], plan: ReproductionPlan, command: str) -> str:
    """Return the findings as a page."""
    size = "the miniature (`--quick`)" if plan.quick else "the full size"
    page = ["# Findings", "", f"Computed by `{command}`; {size}; commit {plan.commit or 'unknown'}."]
    page.append("Rounds and other costs are medians over seeds, with the least and the greatest in brackets.")
    for section in sections:
        page += ["", f"## {section.title}", "", section.text]
        page += ["", section.table.markdown()] if section.table.rows else []
    return "\n".join(page) + "\n"


def inner_steps(runs: pd.DataFrame) -> Section:
    """Return the panels in which the paper's number of inner steps fails, and the costs of `auto` there.

    It fails in a panel if a seed diverges or takes more than 1.5 times the rounds of the exact oracle, or of `auto` if
    the exact oracle was not run. Panels in which that oracle misses the target in some seed are left out.
    """
    figures = sorted(set(runs.loc[runs["variant"].isin(["exact", "auto"]), "figure"]))
    rows = []
    seen = tried = mended = 0
    prices: list[float] = []
    for protocol in PROTOCOLS:
        papers, exacts, autos = (adom_cells(runs, protocol, figures, variant) for variant in ("", "exact", "auto"))
        for key in dict.fromkeys([*exacts, *autos]):
            if key not in papers:
                continue
            few, exact, auto = papers[key], exacts.get(key), autos.get(key)
            base = auto if exact is None else exact
            assert base is not None
            target = target_within(base, few["budget"].min() / ENOUGH)
            reference, rounds = costs(base, target), costs(few, target)
            if not np.isfinite(reference).all():
                continue
            seen += 1
            if auto is not None:
                times = costs(auto, target, "gradients") / costs(few, target, "gradients")
                met = np.isfinite(rounds) & np.isfinite(costs(auto, target).reindex(rounds.index))
                prices += list(times.reindex(rounds.index)[met])
            bad = int((rounds > ENOUGH * reference.reindex(rounds.index)).sum())
            if not bad:
                continue
            tried += auto is not None
            mended += auto is not None and bool(np.isfinite(costs(auto, target)).all())
            rows.append(
                (
                    protocol,
                    " ".join(key),
                    *(f"{measured(base, name).iloc[0]:.4g}" for name in ("kappa", "chi")),
                    few["oracle"].iloc[0],
                    f"{bad} of {len(few)} seeds ({few['failed'].sum()} diverge)",
                    *(_cost(some, target, "rounds") for some in (few, auto, exact)),
                    *(_cost(some, target, "gradients") for some in (few, auto)),
                )
            )
    text = f"Of {seen} panels in which ADOM meets a target with the exact oracle or `auto`, the paper's T diverges or "
    text += f"takes more than 1.5 times the rounds in {len(rows)}"
    text += f"; `auto` was run in {tried} of these and meets the target in {mended}." if rows else "."
    if prices:
        text += f" Where both meet it, `auto` takes {Interval.of(prices)} times the gradients of the paper's T."
    columns = ("protocol", "panel", "kappa", "chi", "T", "fails in", "rounds", "rounds, auto", "rounds, exact")
    return Section("Where few inner steps fail", text, Table((*columns, "gradients", "gradients, auto"), rows))


def winners(runs: pd.DataFrame) -> Section:
    """Return the winners of every protocol and figure by the ledger's rule, and how far ADOM is behind or ahead."""
    rows = []
    tuned = ""
    for protocol in PROTOCOLS:
        total: Counter[str] = Counter()
        factors: list[float] = []
        for figure in PANELS:
            wins: Counter[str] = Counter()
            leads: list[float] = []
            for cell, target in _ranked(runs, protocol, [figure]):
                ranked = scores(cell, target)
                wins[best_of(ranked)] += 1
                ahead = lead(ranked, "adom") if "adom" in ranked else ()
                leads += [float(np.median(ahead))] if len(ahead) else []
            if wins:
                rows.append((protocol, figure, str(wins.total()), _tally(wins), _spread(leads)))
            total += wins
            factors += leads
        if protocol == "tuned" and total:
            tuned = f"Under `tuned`, of {total.total()} panels: {_tally(total)}. "
            tuned += f"The best other's rounds over ADOM's: {_spread(factors)}."
    columns = ("protocol", "figure", "panels", "best in (panels)", "best other's rounds over ADOM's")
    text = tuned or "There are no runs with tuned parameters."
    text += (
        " As in the ledger, a method is best in a panel if its rounds to the target are fewest in every seed; a run "
    )
    text += "that misses it counts with its whole budget, and where nobody meets 1e-2 last errors are compared."
    return Section("Who wins", text, Table(columns, rows))


def growing_rounds(runs: pd.DataFrame) -> Section:
    """Return how rounds grow with kappa and chi, beside Table 1, by the fits of claim `rates`."""
    rows = []
    texts = []
    for protocol in PROTOCOLS:
        fits, _ = exponents(runs, protocol)
        by_method: dict[str, list[str]] = {}
        for fit in fits:
            exponent = f"{fit['exponent']:.2f} [{fit['low']:.2f}, {fit['high']:.2f}]"
            about = (f"{fit['table']:.3g}", fit["outcome"], f"{fit['target']:.0e}", str(fit["points"]))
            rows.append((protocol, fit["method"], fit["against"], exponent, *about))
            by_method.setdefault(fit["method"], []).append(f"{fit['against']}^{fit['exponent']:.2f}")
        if fits:
            holding = sum(fit["outcome"] == "holds" for fit in fits)
            each = ", ".join(f"{method} {' '.join(powers)}" for method, powers in by_method.items())
            texts.append(f"Under `{protocol}` rounds grow like: {each}; {holding} of {len(fits)} exponents hold.")
    if texts:
        texts.append(f"An exponent holds if its 95 % interval lies below Table 1's + {SLACK:g}.")
        texts.append("Mudag's rounds are divided by log(kappa) first.")
    columns = ("protocol", "method", "against", "exponent", "Table 1", "outcome", "target", "points")
    return Section("How rounds grow", " ".join(texts) or "There are no such runs.", Table(columns, rows))


def nothing_known(runs: pd.DataFrame) -> Section:
    """Return which of all methods wins under `auto`, without given network constants and inner steps."""
    found = runs[(runs["protocol"] == "auto") & runs["variant"].isin(["", OTHERS])].assign(variant="")
    rows, wins = [], Counter[str]()
    for cell, target in _ranked(found, "auto", PANELS):
        if cell["method"].nunique() <= len(FEW):
            continue
        rounds = _medians(cell, target, "rounds")
        met = rounds[np.isfinite(rounds)].sort_values()
        wins[best_of(scores(cell, target))] += 1
        order = ", ".join(f"{name} {value:.0f}" for name, value in met.items())
        rest = ", ".join(rounds.index.difference(met.index, sort=False))
        place = (cell["figure"].iloc[0], cell["panel"].iloc[0])
        rows.append((*place, "last error" if np.isnan(target) else f"{target:.0e}", order, rest))
    done = found[found["status"].notna() & (found["status"] != "missing")]
    text = "There are no such runs."
    if rows:
        failed = done[done["failed"].astype(bool)]
        text = f"Under `auto`, with the oracle `auto`, of {wins.total()} panels with all methods: {_tally(wins)}. "
        text += f"Of {len(done)} runs under `auto` {len(failed)} diverged or grew"
        text += f": {_tally(Counter(failed['method']))}." if len(failed) else "."
    columns = ("figure", "panel", "target", "rounds of those that meet it", "the others")
    return Section("When nothing is known", text, Table(columns, rows))


def heterogeneity(runs: pd.DataFrame) -> Section:
    """Return how each method fares when the data are split over the nodes by label."""
    figures = sorted(set(runs.loc[runs["variant"] == LABEL, "figure"]))
    rows = []
    texts = []
    for protocol in PROTOCOLS:
        even = cells(runs, protocol, figures)
        ratios: dict[str, list[float]] = {}
        for key, split in cells(runs, protocol, figures, LABEL).items():
            if key not in even:
                continue
            target = float(np.maximum(target_of(even[key]), target_of(split)))  # NaN where one of them is
            before, after = (by_seed(cell, costs(cell, target)) for cell in (even[key], split))
            for method in after.columns.intersection(before.columns, sort=False):
                pair = pd.DataFrame({"before": before[method], "after": after[method]}).dropna()
                if pair.empty:
                    continue
                pair_ratios = (pair["after"] / pair["before"])[np.isfinite(pair["before"])]
                ratios.setdefault(method, []).extend(pair_ratios)
                spreads = (_spread(pair["before"]), _spread(pair["after"]), _spread(pair_ratios))
                rows.append((protocol, " ".join(key), method, f"{target:.0e}", *spreads))
        if ratios:
            parts = ", ".join(f"{method} {_spread(values)}" for method, values in ratios.items())
            texts.append(
                f"Under `{protocol}`, rounds with data split by label over rounds with data split evenly: {parts}."
            )
    columns = ("protocol", "panel", "method", "target", "rounds, even", "rounds, by label", "ratio")
    return Section("Data split by label", " ".join(texts) or "There are no such runs.", Table(columns, rows))


def vectors(runs: pd.DataFrame) -> Section:
    """Return how the winners change when floats sent or gradients are counted instead of rounds."""
    rows = []
    texts = []
    for protocol in PROTOCOLS:
        wins = {cost: Counter[str]() for cost in ("rounds", "floats_sent", "gradients")}
        changed = 0
        per_round: dict[str, list[float]] = {}
        for cell, target in _ranked(runs, protocol, PANELS, met=True):
            best = {cost: best_of(scores(cell, target, cost)) for cost in wins}
            for cost, method in best.items():
                wins[cost][method] += 1
            changed += best["rounds"] != best["floats_sent"]
            rounds, floats = (_medians(cell, target, cost) for cost in ("rounds", "floats_sent"))
            if np.isfinite(rounds.get("adom", np.inf)):
                for name in rounds.index[np.isfinite(rounds)]:
                    times = floats[name] / rounds[name] / (floats["adom"] / rounds["adom"])
                    per_round.setdefault(name, []).append(times)
        if wins["rounds"]:
            rows.append((protocol, *map(_tally, wins.values())))
            each = ", ".join(f"{name} {np.median(values):.2g}" for name, values in per_round.items())
            texts.append(
                f"Under `{protocol}`, floats instead of rounds change the winner in {changed} of "
                f"{wins['rounds'].total()} panels; floats a round, as multiples of ADOM's: {each}."
            )
    columns = ("protocol", "best by rounds", "best by floats sent", "best by gradients")
    return Section("Rounds, floats sent, gradients", " ".join(texts) or "There are no runs.", Table(columns, rows))


def rule_of_thumb(runs: pd.DataFrame) -> Section:
    """Return which method is cheapest, by network, kappa, chi and the price of a gradient in rounds.

    The runs are those under `tuned`, else `unit`, else `theory`. A run costs its rounds to the target plus the price
    times its gradients per node. The cheapest method of a panel is the cheapest in every seed.
    """
    title = "Which method to take"
    found = {name: list(_ranked(runs, name, PANELS, met=True)) for name in ("tuned", "unit", "theory")}
    protocol = next((name for name, panels in found.items() if panels), "")
    if not protocol:
        return Section(title, "There are no runs.", NOTHING)
    regions: dict[tuple[str, str, str], dict[float, Counter[str]]] = {}
    overall: dict[float, Counter[str]] = {price: Counter() for price in PRICES}
    for cell, target in found[protocol]:
        network = cell["network"].iloc[0] or "geometric"
        kappa = f"{'up to' if measured(cell, 'kappa').iloc[0] <= SMALL_KAPPA * 1.01 else 'above'} {SMALL_KAPPA:.0f}"
        chi = f"{'up to' if measured(cell, 'chi').iloc[0] <= SMALL_CHI else 'above'} {SMALL_CHI:.0f}"
        rounds, gradients = (scores(cell, target, cost) for cost in ("rounds", "gradients"))
        by_price = regions.setdefault((network, kappa, chi), {price: Counter() for price in PRICES})
        for price in PRICES:
            cheapest = best_of(rounds + price * gradients)
            overall[price][cheapest] += 1
            by_price[price][cheapest] += 1
    rows = [(*region, *map(_tally, by_price.values())) for region, by_price in sorted(regions.items())]
    panels = len(found[protocol])
    firsts = {price: _most(wins) for price, wins in overall.items()}
    text = f"Parameters `{protocol}`. Cheapest in most panels, by the price of a gradient in rounds: "
    text += "; ".join(f"{price:g}: {name} ({count} of {panels})" for price, (name, count) in firsts.items()) + "."
    columns = ("network", "kappa", "chi", *(f"gradient = {price:g} rounds" for price in PRICES))
    return Section(title, text, Table(columns, rows))


def _ranked(
    runs: pd.DataFrame, protocol: str, figures: Iterable[str], *, met: bool = False
) -> Iterator[tuple[pd.DataFrame, float]]:
    """Yield the panels with two methods or more, and their targets; with `met`, only panels that have a target."""
    for whole in cells(runs, protocol, figures).values():
        cell = whole[~whole["method"].isin(IDEAL)]
        if cell["method"].nunique() > 1:
            target = target_of(cell)
            if not met or not np.isnan(target):
                yield cell, target


def _medians(cell: pd.DataFrame, target: float, cost: str) -> "pd.Series[float]":
    """Return each method's cost to reach a target, in the median over seeds."""
    return costs(cell, target, cost).groupby(cell["method"], sort=False).median()


def _cost(cell: pd.DataFrame | None, target: float, cost: str) -> str:
    return "-" if cell is None else _spread(costs(cell, target, cost))


def _tally(wins: "Counter[str]") -> str:
    """Return the wins of each method in words, most first and undecided panels last."""
    order = sorted(wins.most_common(), key=lambda item: item[0] == UNDECIDED)
    return ", ".join(f"{name} {count}" for name, count in order)


def _most(wins: "Counter[str]") -> tuple[str, int]:
    """Return the method with the most wins and their number; "undecided" only if no method wins."""
    decided = Counter({name: count for name, count in wins.items() if name != UNDECIDED})
    return (decided or wins).most_common(1)[0]


def _spread(values: "Sequence[float] | pd.Series[float]") -> str:
    return str(Interval.of(values)) if len(values) else "-"
