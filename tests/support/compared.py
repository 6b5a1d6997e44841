"""Comparisons of made-up runs, and runs that are made up in place of those that a comparison would make."""

from collections.abc import Callable
from typing import Any

import pytest

from adom.run.result import Result
from adom.study import jobs
from adom.study.compare import Comparison


def together(parts: dict[Any, Comparison], drawn: dict[Any, Any] | None = None) -> Comparison:
    """Comparisons on single instances as one."""
    results = {(at, label): run for at, part in parts.items() for label, run in part.results.items()}
    reasons = {(at, label): why for at, part in parts.items() for label, why in part.reasons.items()}
    return Comparison(results, reasons=reasons, drawn=drawn or {})


def instead(monkeypatch: pytest.MonkeyPatch, make: Callable[[str, str], Result]) -> None:
    """Let `make` give the result of each run, from the name of its method and its oracle."""

    def solve(problem: Any, network: Any, method: Any, protocol: Any, oracle: Any, *_: Any, **__: Any) -> Result:
        return make(method.name, oracle)

    def solve_many(problems: Any, network: Any, methods: Any, oracle: Any, *_: Any, **more: Any) -> list[Result]:
        results = [make(method.name, oracle) for method in methods]
        for number, result in enumerate(results):
            more["finished"](number, result)
        return results

    monkeypatch.setattr(jobs, "solve", solve)
    monkeypatch.setattr(jobs, "solve_many", solve_many)
