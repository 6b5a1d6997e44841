"""A comparison is its members' own runs, and its table says what they cost."""

import math
import os
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import adom
from adom.algorithms import COMPARED, METHODS, method_class
from adom.errors import InputError, InputTypeError
from adom.run.progress import Progress
from adom.study.compare import Comparison
from adom.study.saved import file_names
from support.compared import instead
from support.drawn import made
from support.reference import quadratics

COSTS = ("rounds", "gradients", "floats_sent", "seconds")


@pytest.fixture(scope="module")
def problem():
    return adom.Quadratic(*quadratics(6, 2, 10.0))


@pytest.fixture(scope="module")
def network():
    return adom.networks.alternate([adom.networks.ring(6), adom.networks.star(6)], every=3)


@pytest.fixture(scope="module")
def everything(problem, network):
    return adom.compare(problem, network, parameters="unit", oracle=("gd", 2), rounds=120)


def test_every_row_is_a_run_of_its_own(everything, problem, network):
    assert list(everything.results) == list(everything.table["label"])
    assert {*everything.results, *everything.skipped} == set(COMPARED)
    for name, row in zip(everything.results, everything.table.to_dict("records"), strict=True):
        oracle = {"oracle": ("gd", 2)} if method_class(name).oracle == "dual" else {}
        alone = adom.solve(problem, network, name, "unit", rounds=120, **oracle)
        timeless = alone.history.drop(columns="seconds")
        pd.testing.assert_frame_equal(everything.results[name].history.drop(columns="seconds"), timeless)
        np.testing.assert_array_equal(everything.results[name].x, alone.x)
        last = alone.history.iloc[-1]
        assert (row["status"], row["protocol"]) == (alone.status, "unit")
        assert row["oracle"] == "gd:2" if oracle else pd.isna(row["oracle"])
        assert (row["rounds"], row["floats_sent"]) == (last["round"], last["floats_sent"])
        assert (row["gradients"], row["error"]) == (last["gradients"], last["error"])
        assert row["relative_error"] == last["error"] / alone.provenance["start_error"]
        assert row["seconds"] > 0


def test_targets_on_histories_made_up():
    runs = {
        "fast": made([8.0, 0.3, 0.004, 0.02, 0.004], start=4.0),
        "slow": made([4.0, 3.0, 0.4, 0.04], start=4.0, step=10),
        "wild": made([4.0, 8.0, np.inf], status="diverged", start=4.0),
    }
    found = Comparison(runs)
    assert found.target == 1e-3  # 0.004 / 4 exactly
    table = found.table.set_index("label")
    assert table.loc["fast", [f"{cost}_to_target" for cost in COSTS]].tolist() == pytest.approx([3, 9, 3000, 0.3])
    for label in ("slow", "wild"):
        assert table.loc[label, [f"{cost}_to_target" for cost in COSTS]].isna().all()
    assert table.loc["wild", "status"] == "diverged"
    assert table.loc["wild", "relative_error"] == np.inf

    given = Comparison(runs, tol=0.4).table.set_index("label")
    assert given["target"].tolist() == [0.1] * 3
    assert given["rounds_to_target"].tolist()[:2] == [2, 30]
    assert given["gradients_to_target"].tolist()[:2] == [6, 90]
    out_of_reach = Comparison(runs, tol=1e-9)
    assert out_of_reach.target == 2.5e-10
    assert out_of_reach.table["rounds_to_target"].isna().all()


@pytest.mark.parametrize(
    ("error", "start", "target", "rounds", "said"),
    [
        ([1e-9], 1.0, 1e-9, 1, "a relative error of 1e-09"),
        ([1.0000001e-9], 1.0, 1e-8, 1, "a relative error of 1e-08"),
        ([0.0], 1.0, 1e-30, 1, "a relative error of 1e-30"),
        ([0.5], 1.0, 0.1, math.nan, "a relative error of 0.1, which no run reached"),  # never 1, which is the start
        ([1.5, np.nan], 1.0, 0.1, math.nan, "a relative error of 0.1, which no run reached"),
        ([np.nan, np.inf], 1.0, 0.1, math.nan, "a relative error of 0.1, which no run reached"),
        ([0.5], 0.0, math.nan, 0, "the start, which is the solution"),
    ],
)
def test_targets_at_the_edge(error, start, target, rounds, said):
    found = Comparison({"a": made(error, start=start)})
    np.testing.assert_equal(found.target, target)
    np.testing.assert_equal(found.table["rounds_to_target"].tolist(), [rounds])
    assert str(found).startswith(f"cost to reach {said}\n")
    assert "a" in repr(found)


def test_a_start_that_is_good_enough_costs_nothing():
    found = Comparison({"a": made([0.9, 0.2], start=1.0)}, tol=1.0)
    assert found.table[[f"{cost}_to_target" for cost in COSTS]].to_numpy().tolist() == [[0.0] * 4]
    assert Comparison({"a": made([0.9, 0.2], start=1.0)}, tol=0.5).table["rounds_to_target"].tolist() == [2]


def test_the_tolerance_stops_each_and_is_the_target(problem, network):
    found = adom.compare(problem, network, ["adom", "pngd"], "theory", "exact", rounds=3000, tol=1e-6)
    start = found.results["adom"].provenance["start_error"]
    assert found.target == 1e-6 / start
    for row in found.table.to_dict("records"):
        assert row["status"] == "converged"
        assert row["error"] <= 1e-6
        assert [row[f"{cost}_to_target"] for cost in COSTS] == [row[cost] for cost in COSTS]


def test_labels_settings_and_instances(problem, network):
    mine = replace(adom.ADOM.theory(adom.constants(problem, network)), theta=0.01)
    found = adom.compare(
        problem,
        network,
        ["ADOM", ("bold", "adom"), ("my own", mine), ("ideal", adom.PNGD)],
        {"bold": {"protocol": "unit", "eta": 0.1}, "pngd": "unit"},
        {"adom": ("agd", 3), "bold": "exact", "pngd": "gd:1"},
        rounds=5,
        record_every=2,
    )
    assert found.table["label"].tolist() == ["adom", "bold", "my own", "ideal"]
    assert found.table["protocol"].tolist() == ["auto", "unit with eta=0.1", "given", "unit"]
    assert found.table["oracle"].tolist() == ["agd:3", "exact", "agd:3", "gd:1"]
    assert found.results["my own"].provenance["method"]["parameters"]["theta"] == 0.01
    assert found.results["bold"].history["round"].tolist() == [2, 4, 5]
    shared = adom.compare(problem, network, ["adom", "pngd"], {"eta": 0.1, "protocol": "unit"}, "gd:1", rounds=2)
    assert shared.table["protocol"].tolist() == ["unit with eta=0.1"] * 2


def test_a_method_that_diverges_is_a_row_like_any_other(problem, network):
    found = adom.compare(problem, network, ["adom", "pngd"], {"adom": {"theta": 500.0}}, ("gd", 1), rounds=400)
    assert found.table["status"].tolist() == ["diverged", "max_rounds"]
    assert not found.interrupted
    assert found.table["rounds_to_target"].isna().tolist() == [True, False]


def refuse(cls, constants):
    raise InputError("no such parameters here; take another network")


def test_what_cannot_run_is_left_out_of_all_but_not_of_a_list(problem, network, monkeypatch):
    monkeypatch.setattr(adom.PNGD, "unit", classmethod(refuse))
    instead(monkeypatch, lambda *_: made([1.0]))
    found = adom.compare(problem, network, parameters="unit")
    assert list(found.results) == [name for name in COMPARED if name != "pngd"]
    assert found.skipped["pngd"] == "no such parameters here; take another network"
    assert "skipped: pngd" in repr(found)
    with pytest.raises(InputError, match="no such parameters here"):
        adom.compare(problem, network, ["adom", "pngd"], "unit")


def test_on_a_directed_network_only_some_can_run(problem):
    network = adom.networks.directed_ring(6)
    found = adom.compare(problem, network, parameters="unit", rounds=5)
    assert list(found.results) == [name for name in COMPARED if method_class(name).directed]
    assert "links that go both ways" in found.skipped["adom"]
    with pytest.raises(InputError, match="ADOM needs links that go both ways"):
        adom.compare(problem, network, ["adom"])


def test_all_methods_run_where_asked_for_and_those_outside_of_their_proofs_are_named(problem, network, monkeypatch):
    ran = []
    instead(monkeypatch, lambda name, _: ran.append(name) or made([1.0]))
    assert not adom.compare(problem, network, "all", "unit").skipped
    assert ran == list(METHODS)
    monkeypatch.undo()
    chosen = ["diging", "extra", "nids"]
    here, fixed = (adom.compare(problem, net, chosen, "unit", rounds=3) for net in (network, adom.networks.ring(6)))
    assert here.outside == "EXTRA, NIDS: proved for networks that do not change"
    assert here.outside in repr(here)
    assert here.results["extra"].outside == "proved for networks that do not change"
    assert here.results["extra"].outside in repr(here.results["extra"])
    assert (here.results["diging"].outside, fixed.outside) == ("", "")
    lossy = adom.networks.lossy(adom.networks.ring(6), 0.1)
    assert adom.solve(problem, lossy, "extra", rounds=3).outside


def test_a_primal_method_takes_no_oracle_and_needs_none(problem, network, monkeypatch):
    seen = []
    instead(monkeypatch, lambda _, oracle: seen.append(oracle) or made([1.0]))
    monkeypatch.setattr(adom.PNGD, "oracle", "primal")
    adom.compare(problem, network, ["adom", "pngd"], oracle="exact")
    assert seen == ["exact", "auto"]
    with pytest.raises(InputError, match="PNGD uses gradients, not a dual oracle"):
        adom.compare(problem, network, ["adom", "pngd"], oracle={"pngd": "exact"})


def test_what_a_lossy_network_cannot_carry_is_left_out_with_its_reason(problem, monkeypatch):
    instead(monkeypatch, lambda *_: made([1.0]))  # tests/run has those that run
    found = adom.compare(problem, adom.networks.lossy(adom.networks.ring(6), one_way=0.2), rounds=30)
    assert found.skipped.keys() == {"pngd", "push-pull", "mudag", "apm"}
    assert "where messages are lost; take 'theory' or 'unit'" in found.skipped["mudag"]


def test_ctrl_c_itself(problem, network, monkeypatch):
    ran = []

    def press(self, done, error):
        if self.title == "PNGD" and not ran:
            ran.append(done)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Progress, "update", press)
    found = adom.compare(problem, network, ["adom", "pngd", ("late", "adom")], "theory", ("gd", 1), rounds=3000)
    assert list(found.results) == ["adom", "pngd"]
    assert found.results["adom"].status == "max_rounds"
    assert found.results["pngd"].status == "interrupted"
    assert found.skipped == {"late": "the comparison was interrupted"}
    assert found.interrupted


def test_ctrl_c_outside_the_loop_keeps_what_there_is(problem, network, monkeypatch):
    def press(name, oracle):
        if name == "pngd":
            raise KeyboardInterrupt
        return made([1.0])

    instead(monkeypatch, press)
    found = adom.compare(problem, network, ["adom", "pngd"])
    assert (list(found.results), list(found.skipped), found.interrupted) == (["adom"], ["pngd"], True)
    with pytest.raises(KeyboardInterrupt):
        adom.compare(problem, network, ["pngd", "adom"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": ["adom", "pgnd"]}, "unknown method 'pgnd'; did you mean 'pngd'"),
        ({"methods": ["adom", "ADOM"]}, r"label 'adom' occurs twice; .* such as \('adom 2', 'adom'\)"),
        ({"methods": [("a", "adom"), ("a", "pngd")]}, "label 'a' occurs twice"),
        ({"methods": []}, "got no methods to compare; name some of adom"),
        ({"methods": 3}, "methods must be a list of names or instances, got 3"),
        ({"methods": [3]}, "a method must be a name, an instance or a pair"),
        ({"methods": [("", "adom")]}, "a label must be text, and not empty, got ''"),
        ({"methods": [(1, "adom")]}, "a label must be text, and not empty, got 1"),
        (
            {"methods": ["adom"], "parameters": {"pgnd": "unit"}},
            "parameters names 'pgnd', which is not among",
        ),
        ({"parameters": {"adom": "unit", "adm": "unit"}}, "parameters names 'adm'.*did you mean 'adom'"),
        ({"oracle": {"adm": "exact"}}, "oracle names 'adm', which is not among the methods; did you mean 'adom'"),
        ({"parameters": "best"}, "parameters must be one of theory, unit"),
        ({"parameters": {"step": 1.0}}, "has no parameter 'step'"),
        ({"oracle": "newton"}, "unknown oracle 'newton'"),
        ({"oracle": {"adom": "newton"}}, "unknown oracle 'newton'"),
        ({"rounds": 0}, "rounds must be a whole number of at least 1"),
        ({"tol": -1.0}, "tol must be a positive number"),
        ({"dtype": "float16"}, "dtype must be one of"),
        ({"rtol": "a"}, "rtol must be a finite number above 0 and at most 1, got 'a'"),
        ({"rtol": True}, "rtol must be a finite number above 0 and at most 1, got True"),
        ({"rtol": math.nan}, "rtol must be a finite number above 0 and at most 1, got nan"),
        ({"rtol": 0.0}, "^rtol must be a finite number above 0 and at most 1, got 0.0; e.g. rtol=1e-6$"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(problem, network, monkeypatch, given, message):
    instead(monkeypatch, lambda *_: pytest.fail("it ran"))
    with pytest.raises(InputError, match=message) as caught:
        adom.compare(problem, network, **given)
    assert "\n" not in str(caught.value)


def test_problem_and_network_belong_together_and_instances_have_their_parameters(problem, network):
    with pytest.raises(InputError, match="the problem has 6 nodes and the network 5"):
        adom.compare(problem, adom.networks.ring(5))
    mine = adom.ADOM.theory(adom.constants(problem, network))
    with pytest.raises(InputError, match=r"parameters names 'a', an instance.*\('a', 'adom'\)"):
        adom.compare(problem, network, [("a", mine)], {"a": "unit"})
    assert list(adom.compare(problem, network, [mine, mine], rounds=1).results) == ["adom 1", "adom 2"]


def test_saved_files_are_the_results_the_table_and_a_picture(everything, tmp_path):
    folder = everything.save(tmp_path / "deep" / "compared")
    names = file_names(everything.results)
    assert {path.name for path in folder.iterdir()} == {*names.values(), "table.csv", "comparison.png"}
    for label, name in names.items():
        assert adom.load(folder / name).history.equals(everything.results[label].history)
    again = pd.read_csv(folder / "table.csv")
    assert list(again.columns) == list(everything.table.columns)
    numbers = everything.table.select_dtypes("number").columns
    np.testing.assert_array_equal(again[numbers], everything.table[numbers])
    assert (folder / "comparison.png").read_bytes().startswith(b"\x89PNG")


def test_a_saved_comparison_makes_room_for_the_next(tmp_path):
    run = made([0.5, 0.1])
    (tmp_path / "mine.npz").write_bytes(b"mine")
    (tmp_path / "notes.txt").touch()
    Comparison({"a": run, "b": run, "c": run}).save(tmp_path)
    Comparison({"c": run, "d": run}).save(tmp_path)
    mine = {"mine.npz", "notes.txt"}
    assert {path.name for path in tmp_path.iterdir()} == {"c.npz", "d.npz", "table.csv", "comparison.png", *mine}


def test_file_names_are_safe_and_distinct():
    labels = ["adom", "ADOM", "../up/adom", "a/b\\c:d", "...", "été", "π", "x" * 300, "adom-2"]
    names = list(file_names(labels).values())
    assert len({name.lower() for name in names}) == len(labels)
    for name in names:
        assert set(name.removesuffix(".npz")) <= set("abcdefghijklmnopqrstuvwxyz0123456789+_-")
        assert len(name) <= 70


def test_plots_show_every_method(everything):
    lone = everything.plot("gradients")
    assert lone.axes[0].get_xlabel() == "gradients per node"
    assert len(lone.axes[0].lines) >= len(everything.results)
    names = [text.get_text() for text in lone.legends[0].get_texts()]
    assert names[:2] == ["ADOM", "PNGD"]
    assert [len(everything.plot(axis).axes) for axis in ("round", "all", None)] == [1, 4, 4]
    labelled = Comparison({"mine": made([1.0, 0.1])}).plot()
    assert labelled.legends[0].get_texts()[0].get_text() == "mine"
    with pytest.raises(InputError, match="unknown axis 'time'"):
        everything.plot("time")
    with pytest.raises(InputTypeError, match=r"ax must be the axes of one panel, got int; e.g. ax=axes\[0\]"):
        everything.plot(ax=3)


def test_it_shows_itself():
    runs = {"adom": made([0.5, 0.01]), "pngd": made([0.5, np.inf], status="diverged")}
    expected = "Comparison(rounds to relative error 0.01: adom 2 (max_rounds), pngd not reached (diverged))"
    assert repr(Comparison(runs)) == expected
