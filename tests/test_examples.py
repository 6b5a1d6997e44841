"""The examples run, and find what they say they find."""

import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run an example; return its names and the figures that it has shown."""
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)

    def start(name):
        names = runpy.run_path(str(EXAMPLES / f"{name}.py"))
        return names, [plt.figure(number) for number in plt.get_fignums()]

    yield start
    plt.close("all")
    assert list(tmp_path.iterdir()) == []


pytestmark = pytest.mark.filterwarnings("ignore:.*non-interactive")


def test_every_example_is_tested_and_begins_with_a_title():
    files = sorted(EXAMPLES.glob("*.py"))
    assert [f"test_{path.stem}" for path in files] == sorted(name for name in globals() if name.startswith("test_plot"))
    for path in files:
        _, title, rule, *_ = path.read_text().splitlines()
        assert rule == "=" * len(title)


def test_plot_methods_side_by_side(run):
    names, (column, page) = run("plot_methods_side_by_side")
    table = names["comparison"].table.set_index("label")
    assert set(table.index[table["status"] == "converged"]) == {"adom", "adom+"}
    assert names["network"].chi == pytest.approx(10, rel=0.1)
    assert (column.get_size_inches()[0], page.get_size_inches()[0]) == (3.5, 7.0)
    assert len(column.axes[0].lines) == 4


def test_plot_moving_sensors(run):
    names, (links, coloured) = run("plot_moving_sensors")
    result, problem, film = names["result"], names["problem"], names["film"]
    weights = 1 / names["noise"] ** 2
    np.testing.assert_allclose(problem.solution(), (weights * names["measured"]).sum(axis=0) / weights.sum())
    assert names["after"] < 0.15 * names["before"]
    assert result.history["error"].iloc[-1] < 1e-4 * result.provenance["start_error"]
    assert (len(links.axes), len(coloured.axes)) == (3, 7)
    assert len(film) == 20


def test_plot_own_problem(run):
    names, _ = run("plot_own_problem")
    assert names["result"].status == "converged"
    truth = np.array([names["slope"], names["offset"]])
    robust, squares = names["result"].x, names["squares"]
    assert np.ptp(robust, axis=0).max() < 1e-4
    assert np.abs(robust - truth).max() < 0.2
    assert np.abs(squares - truth).max() > 0.8


def test_plot_scikit_learn(run):
    names, _ = run("plot_scikit_learn")
    np.testing.assert_allclose(names["ours"], names["theirs"], atol=1e-5)
    assert names["clinics"].result_.status == "converged"
    X, y = names["X_test"], names["y_test"]
    assert names["together"].score(X, y) == names["central"].score(X, y) > 0.95
