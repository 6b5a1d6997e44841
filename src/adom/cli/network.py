"""`adom network`: describe and draw a network."""

from pathlib import Path
from typing import Any

from ..util.settings import Tables
from .exit_codes import Exit
from .options import AsJson, ConfigFile, OutFolder, with_settings
from .settings import USUAL

SPANS = ("edges", "degree")


@with_settings("network", "problem.nodes", "problem.seed", usual=USUAL)
def network(flags: Tables, config: ConfigFile = None, out: OutFolder = Path("out"), json: AsJson = False) -> int:
    """Describe a network and draw it: some rounds, chi by round, degrees.

    chi is the condition number that the methods' rates depend on. Writes
    network.png.
    """
    from . import build, output
    from .config import settle

    settings = settle(config, flags, USUAL)
    output.folder(out)

    from ..plot.networks import network_picture
    from ..plot.style import save

    with output.busy("building the network"):
        net = build.network(settings)
        described, chis = net.describe(), _chi_summary(net)
        picture = save(network_picture(net), out / "network.png")
    if json:
        more = {"chi_rests_on": _rests_on(net), "chi_rounds": chis, "recipe": net.recipe}
        output.as_json({**described, **more, "files": {"picture": picture}})
        return Exit.DONE
    text = {name: output.number(value) for name, value in described.items()}
    spans = {name: f"{text[f'{name}_min']} to {text[f'{name}_max']}, mean {text[f'{name}_mean']}" for name in SPANS}
    rows = {
        "nodes": text["nodes"],
        "graphs": f"{text['graphs']}, repeating after {text['period']} rounds",
        **spans,
        **_connectivity(net),
        "chi": f"{text['chi']} ({_kind(net)} {_rests_on(net)})",
        f"chi by {'round' if net.window == 1 else 'window'}": ", ".join(
            f"{name} {output.number(value)}" for name, value in chis.items()
        ),
    }
    output.table(str(settings.network.kind), ("", ""), rows.items())
    output.wrote(picture)
    return Exit.DONE


def _connectivity(net: Any) -> dict[str, str]:
    """Return rows on how many rounds connect the nodes, if not all do, and how many links a repair added."""
    rows = {}
    if net.window > 1:
        whole = int((net.spectrum[net.order, 0] > 0).sum())
        rows["connected"] = f"{whole:,} of {net.period:,} rounds; any {net.window:,} together, a window"
    if "links_added" in net.recipe:
        rows["links added"] = f"{net.recipe['links_added']:,}, by the repair of all rounds"
    return rows


def _kind(net: Any) -> str:
    """Return what chi means, in words."""
    return "lambda_max / lambda_min_plus" if net.window == 1 else f"of windows of {net.window:,} rounds"


def _rests_on(net: Any) -> str:
    """Return which graphs chi was computed from."""
    if net.held:
        return "over all rounds"
    return f"over {len(net.examined)} of its graphs: an estimate" if len(net.examined) else "as it was given"


def _chi_summary(net: Any) -> dict[str, float]:
    """Summarise chi over the rounds of a period: of each graph by itself, or of the window that starts there."""
    import numpy as np

    chis = net.chis[np.isfinite(net.chis)]  # all of them, or some of a network that is too large
    best, median, worst = np.quantile(chis, [0, 0.5, 1]) if chis.size else (net.chi,) * 3
    return {"best": float(best), "median": float(median), "worst": float(worst)}
