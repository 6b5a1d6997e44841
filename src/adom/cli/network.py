"""`adom network`: describe and draw a network."""

from pathlib import Path
from typing import Any

from .exit_codes import Exit
from .options import AsJson, ConfigFile, OutFolder, with_settings
from .settings import USUAL, Tables


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

    from ..plot.graphs import network_picture
    from ..plot.style import save

    with output.busy("building the network"):
        built = build.network(settings)
        described = built.describe()
        chis = _chi_summary(built)
        picture = save(network_picture(built), out / "network.png")
    if json:
        more = {"chi_rests_on": _rests_on(built), "chi_rounds": chis, "recipe": built.recipe}
        output.as_json({**described, **more, "files": {"picture": picture}})
        return Exit.DONE
    show = output.number
    spans = [
        (
            name,
            f"{show(described[f'{name}_min'])} to {show(described[f'{name}_max'])}, "
            f"mean {show(described[f'{name}_mean'])}",
        )
        for name in ("edges", "degree")
    ]
    output.table(
        str(settings.network.kind),
        ("", ""),
        [
            ("nodes", show(described["nodes"])),
            ("graphs", f"{show(described['graphs'])}, repeating after {show(described['period'])} rounds"),
            *spans,
            ("chi", f"{show(described['chi'])} (lambda_max / lambda_min_plus {_rests_on(built)})"),
            ("chi by round", ", ".join(f"{name} {show(value)}" for name, value in chis.items())),
        ],
    )
    output.wrote(picture)
    return Exit.DONE


def _rests_on(built: Any) -> str:
    """Return which graphs chi was computed from."""
    if built.held:
        return "over all rounds"
    return f"over {len(built.examined)} of its graphs: an estimate" if len(built.examined) else "as it was given"


def _chi_summary(built: Any) -> dict[str, float]:
    """Summarise chi over the rounds of a period, each graph by itself."""
    import numpy as np

    low, high = built.spectrum[built.order].T
    chis = (high / low)[np.isfinite(low)]  # all of them, or some of a network that is too large
    best, median, worst = np.quantile(chis, [0, 0.5, 1]) if chis.size else (built.chi,) * 3
    return {"best": float(best), "median": float(median), "worst": float(worst)}
