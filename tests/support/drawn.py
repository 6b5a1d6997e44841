"""Made-up runs and tables to draw."""

from typing import Any

import numpy as np
import pandas as pd

from adom.run.result import Result


def made(
    error: Any,
    consensus: Any = None,
    status: str = "max_rounds",
    protocol: Any = "unit",
    start: float = 1.0,
    title: str = "ADOM",
    oracle: str | None = "gd:1",
    name: str = "adom",
    step: int = 1,
    **more: Any,
) -> Result:
    """A run with a record every `step` rounds."""
    k = step * np.arange(1, len(error) + 1)
    costs = {"iteration": k // step, "round": k, "gradients": 3.0 * k, "floats_sent": 1000 * k, "seconds": 0.1 * k}
    history = pd.DataFrame({**costs, "error": error, "consensus": error if consensus is None else consensus})
    method = {"name": name, "title": title, "parameters": {}}
    provenance = {"method": method, "oracle": oracle, "protocol": protocol, "start_error": start, **more}
    return Result(np.zeros((2, 1)), history, status, provenance)


def legend(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def table(**columns: Any) -> pd.DataFrame:
    rows = len(next(iter(columns.values())))
    usual = {"label": ["adom"] * rows, "status": ["converged"] * rows, "setting": range(rows)}
    costs = {f"{cost}_to_target": np.arange(1.0, rows + 1) for cost in ("gradients", "floats_sent", "seconds")}
    return pd.DataFrame({**usual, **costs, **columns})
