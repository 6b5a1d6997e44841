"""The table of columns is the only one: what is recorded, written, drawn and printed follows it."""

from pathlib import Path

import numpy as np
import pytest

import adom
from adom.page.content import data
from adom.plot.curves import convergence
from adom.run.result import Result, load
from adom.util.columns import ADDING, AXES, BY_LINKS, COLUMNS, MEASURES, METRICS, STATES
from support.drawn import made
from support.made_page import content

SOURCE = Path(adom.__file__).parent


def test_a_history_has_the_columns_in_their_order_and_types(tmp_path):
    problem = adom.Quadratic([[[2.0]], [[4.0]]], [[2.0], [0.0]])
    found = adom.solve(problem, adom.networks.path(2), parameters="unit", rounds=20)
    expected = {name: column for name, column in COLUMNS.items() if name not in MEASURES or name == "error"}
    kept = load(found.save(tmp_path / "run.npz"))
    for result in (found, kept):
        assert list(result.columns) == list(expected)
        kinds = {name: "i" if column.whole else "f" for name, column in expected.items()}
        assert {name: values.dtype.kind for name, values in result.columns.items()} == kinds
    text = " ".join(str(Result.__doc__).split())
    assert [name for name in COLUMNS if name not in text] == []


def test_pages_and_figures_read_the_table():
    page = data(content())
    assert list(page["across"]) == list(page["axes"]) == list(AXES)
    assert list(page["up"]) == ["relative", *STATES]
    panels = next(iter(page["figures"][0]["pages"].values()))
    line = panels[0]["lines"][0]
    assert {*line["ends"]} == {*AXES, *line["heights"]}
    assert {*line["heights"]} < {*page["up"]}
    figure = convergence([made(np.array([1.0, 0.1]))], axis="all")
    assert [axes.get_xlabel() for axes in figure.axes] == list(AXES.values())


@pytest.mark.parametrize("count", [2, 3, 4])
def test_there_is_a_panel_for_every_cost(monkeypatch, count):
    costs = dict(list(AXES.items())[:count])
    monkeypatch.setattr("adom.plot.curves.AXES", costs)
    figure = convergence([made(np.array([1.0, 0.1]))], axis="all")
    assert [axes.get_xlabel() for axes in figure.axes] == list(costs.values())


def test_runs_of_a_fit_continue_all_but_the_state():
    assert set(ADDING) == COLUMNS.keys() - STATES.keys()
    assert BY_LINKS == ("round", "floats_sent")  # as `RankGossip` takes them
    assert [column.name for column in METRICS.values()] == list(AXES)


def test_few_files_know_a_column_by_name():
    known = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*")
        if path.suffix in (".py", ".js")
        if "floats_sent" in path.read_text(encoding="utf-8")
    }
    assert "util/columns.py" in known
    assert len(known) <= 8, known
    assert not [name for name in known if name.endswith(".js")]
