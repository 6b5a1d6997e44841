"""A sweep is its members' own runs: batched, kept apart, resumed, and told in one table."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import adom
from adom.errors import InputError
from adom.page import reading
from adom.page.reading import read
from adom.study import jobs as module
from adom.study.expand import SweepMember
from adom.study.instances import Instance
from adom.study.sweep import Sweep
from support.drawn import made
from support.reference import close, logistic_data, quadratics


@pytest.fixture(scope="module")
def problem():
    A, b = logistic_data(5, 6, 3)
    return adom.LogisticRegression.from_nodes(list(zip(A, b, strict=True)), kappa=20.0)


@pytest.fixture(scope="module")
def network():
    return adom.networks.geometric(5, 0.5, graphs=4, seed=0)


@pytest.fixture(scope="module")
def wide(problem, network):
    """Two methods, factors, two oracles, two kappas and two seeds; some members diverge."""
    return adom.sweep(
        problem,
        network,
        ["adom", "diging"],
        factors={"eta": [0.5, 40.0], "a": [1, 3]},
        oracles=["gd:2", ("agd", 3)],
        kappas=[5, 20],
        seeds=[0, 7],
        rounds=60,
    )


def test_every_member_is_a_run_of_its_own(wide, problem):
    assert len(wide.members) == len(wide.table) == 2 * 2 * 2 * 2 + 2 * 2 * 2
    assert not wide.interrupted
    for row in wide.table.to_dict("records"):
        again = problem.with_kappa(row["kappa"])
        drawn = adom.networks.geometric(5, 0.5, graphs=4, seed=row["seed"])
        cls = adom.ADOM if row["method"] == "adom" else adom.DIGing
        base = cls.unit(adom.constants(again, drawn))
        name = "eta" if row["method"] == "adom" else "a"
        method = replace(base, **{name: getattr(base, name) * row[f"factor_{name}"]})
        oracle = {"oracle": row["oracle"]} if row["method"] == "adom" else {}
        alone = adom.solve(again, drawn, method, rounds=60, **oracle)
        assert row["status"] == alone.status
        assert row[name] == pytest.approx(getattr(method, name), rel=1e-14)
        if alone.status != "diverged":  # where rounding itself grows
            close(wide.results[row["member"]], alone)
    assert {"diverged", "max_rounds"} <= set(wide.table["status"])


def test_how_members_are_put_together_does_not_matter(problem, network):
    axes = {"factors": {"eta": [0.5, 1, 2, 1e6], "tau": [0.5, 1]}, "oracles": "gd:2", "rounds": 40}
    whole = adom.sweep(problem, network, **axes)
    for batch in (1, 3):
        parts = adom.sweep(problem, network, batch=batch, **axes)
        for number, one in whole.results.items():
            if one.status != "diverged":
                close(parts.results[number], one)
    assert (whole.table["status"] == "diverged").any()


def test_batches_are_of_one_kind_and_of_steps_of_like_length(problem, network, monkeypatch):
    seen = []
    true = module.solve_many

    def spy(problems, network, methods, oracle, *rest, **extra):
        seen.append(
            (type(methods[0]).name, oracle, len(methods), sorted(one.parameters().get("K", 1) for one in methods))
        )
        return true(problems, network, methods, oracle, *rest, **extra)

    monkeypatch.setattr(module, "solve_many", spy)
    grid = {"mudag": {"K": [1, 2, 3, 4, 9, 8]}, "adom": {"eta": np.linspace(0.1, 0.2, 5)}}
    adom.sweep(problem, network, ["adom", "mudag"], grid=grid, oracles=["gd:1", "gd:2"], rounds=9, batch=4)
    assert [one[:3] for one in seen if one[0] == "adom"] == [
        *(("adom", "gd:1", 2), ("adom", "gd:1", 3)),
        *(("adom", "gd:2", 2), ("adom", "gd:2", 3)),
    ]
    assert [one[3] for one in seen if one[0] == "mudag"] == [[1, 2], [3, 4], [8, 9]]


def test_what_a_result_says_about_itself(problem, network):
    found = adom.sweep(
        *(problem, network, "adom", ["unit", {"protocol": "theory", "sigma": 0.9}]),
        factors={"eta": 2},
        grid={"tau": 0.01},
        oracles="gd:1",
        rounds=5,
    )
    protocols = [one.provenance["protocol"] for one in found.results.values()]
    values = [one.provenance["method"]["parameters"] for one in found.results.values()]
    assert protocols[0] == {"protocol": "unit", "tau": 0.01, "eta": values[0]["eta"]}
    assert protocols[1] == {"protocol": "theory", "sigma": 0.9, "tau": 0.01, "eta": values[1]["eta"]}
    for one in found.results.values():  # what it says can be run
        again = adom.solve(problem, network, "adom", one.provenance["protocol"], "gd:1", rounds=5)
        assert again.provenance["method"] == one.provenance["method"]
    assert found.table["protocol"].tolist() == ["unit", "theory with sigma=0.9"]
    assert found.results[0].provenance["sweep"]["factors"] == {"eta": 2.0}
    assumed = adom.sweep(problem, network, "diging", assume={"L": [2, 4], "chi": 0.9}, rounds=5)
    unit = adom.DIGing.unit(adom.constants(problem, network))
    steps = [one.provenance["protocol"] for one in assumed.results.values()]
    assert steps == [{"protocol": "unit", "a": pytest.approx(unit.a / (L * 0.81))} for L in (2, 4)]
    given = adom.sweep(problem, network, [unit, replace(unit, a=0.1)], factors={"a": [1, 2]}, rounds=5)
    assert given.table["label"].tolist() == ["diging 1", "diging 1", "diging 2", "diging 2"]
    assert given.table["a"].tolist() == pytest.approx([unit.a, 2 * unit.a, 0.1, 0.2])
    assert {one.protocol for one in given.results.values()} == {"given"}


def test_the_table_and_the_best(problem, network):
    found = adom.sweep(
        problem, network, ["adom", "pngd"], factors={"eta": [0.3, 1]}, oracles="exact", rounds=2000, rtol=1e-6
    )
    table = found.table
    columns = "member method label protocol oracle kappa chi network seed alpha eta theta sigma tau factor_eta status"
    assert list(table.columns[:16]) == columns.split()
    assert table["target"].tolist() == pytest.approx([1e-6] * 4)
    for row in table.to_dict("records"):
        last = found.results[row["member"]].history.iloc[-1]
        assert row["rounds"] == row["rounds_to_target"] == last["round"]
        assert row["relative_error"] <= 1e-6
    best = found.best(each="label")
    assert sorted(best["label"]) == ["adom", "pngd"]
    for label, rounds in zip(best["label"], best["rounds_to_target"], strict=True):
        assert rounds == table[table["label"] == label]["rounds_to_target"].min()
    assert found.best()["member"].tolist() == best["member"].tolist()[:1]
    assert found.ranking()["rounds_to_target"].is_monotonic_increasing
    assert "4 converged; best" in repr(found)
    assert found.varied == ["factor_eta", "label"]
    for by in ("rounds", "gradients_to_target"):
        assert found.best(by=by)["member"].tolist() == [
            int(table.set_index("member")[f"{by.split('_')[0]}_to_target"].idxmin())
        ]
    with pytest.raises(InputError, match="by must be one of rounds, gradients, floats_sent, seconds, got 'time'"):
        found.best(by="time")
    with pytest.raises(InputError, match="no column 'color'"):
        found.best(each="color")


def test_ranking_by_error_where_the_target_is_missed_and_lost_runs_last(problem, network):
    factors = {"eta": [1e-6, 0.5, 1, 1e3]}
    ranked = adom.sweep(problem, network, factors=factors, oracles="exact", rounds=200, tol=1e-300).ranking()
    assert ranked["rounds_to_target"].isna().all()
    assert ranked["status"].tolist()[-1] == "diverged"
    assert ranked["error"][:3].is_monotonic_increasing
    base = adom.ADOM.unit(adom.constants(problem, network))
    found = adom.sweep(problem, network, [("wild", base), ("lost", base), ("good", base)], oracles="exact", rounds=60)
    statuses = ("diverged", "growing", "max_rounds")
    results = {number: replace(found.results[number], status=status) for number, status in enumerate(statuses)}
    ranked = replace(found, results=results).ranking()
    assert ranked["rounds_to_target"].nunique() == 1
    assert ranked["label"].tolist() == ["good", "lost", "wild"]


def test_members_that_the_method_refuses_are_left_out(problem, network):
    found = adom.sweep(problem, network, ["adom", "mudag"], factors={"tau": [1, 1000], "K": [1, 10_000]}, rounds=200)
    assert found.table["status"].tolist().count("refused") == 2
    assert len(found.results) == 2
    reasons = list(found.refused.values())
    assert "tau must lie in (0, 1)" in reasons[0]
    assert "rounds must be at least" in reasons[1]
    assert found.table.loc[found.table["status"] == "refused", "error"].isna().all()
    with pytest.raises(InputError, match=r"tau must lie in \(0, 1\)"):
        adom.sweep(problem, network, grid={"tau": [2, 3]})


def test_networks_are_drawn_again_or_given(problem):
    nets = [adom.networks.ring(5), adom.networks.star(5)]
    found = adom.sweep(problem, nets, "diging", rounds=5)
    assert found.table["network"].tolist() == [0, 1]
    assert found.table["chi"].tolist() == [one.chi for one in nets]
    with pytest.raises(InputError, match="the seeds change neither 'LogisticRegression' nor 'ring'"):
        adom.sweep(problem, nets[0], seeds=[1, 2])
    with pytest.raises(InputError, match="seeds must be a whole number of at least 0, got -1"):
        adom.sweep(problem, adom.networks.geometric(5, 0.5), seeds=[-1])


def test_a_seed_draws_what_is_a_function_of_it(tmp_path):
    def drawn(seed):
        features, labels = logistic_data(5, 6, 3, seed)
        return adom.LogisticRegression.from_nodes(list(zip(features, labels, strict=True)), l2=0.1)

    network = adom.networks.geometric(5, 0.5, graphs=4, seed=0)
    found = adom.sweep(drawn, [network, adom.networks.ring(5)], "diging", factors={"a": [1, 2]}, seeds=3, rounds=5)
    assert found.table["seed"].tolist() == [0, 0, 1, 1, 2, 2] * 2
    assert found.table["kappa"].nunique() == 3
    assert found.varied == ["factor_a", "seed"]  # kappa is whatever the seed draws
    for row in found.table.to_dict("records"):
        net = network.reseeded(row["seed"]) if row["network"] < 3 else adom.networks.ring(5)
        member = found.members[row["member"]]
        close(found.results[row["member"]], adom.solve(drawn(row["seed"]), net, member.method, rounds=5))
    lines = reading.runs_by_line(list(found.results.values()), ["diging"] * 12)
    assert sorted(map(sorted, lines)) == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]
    conditioned = adom.sweep(drawn, network, "diging", kappas=[5, 20], seeds=[4, 9], rounds=5)
    assert conditioned.table["kappa"].tolist() == [5, 5, 20, 20]
    assert conditioned.varied == ["kappa", "seed"]
    lines = reading.runs_by_line(list(conditioned.results.values()), ["diging"] * 4)
    assert lines == [[0, 1], [2, 3]]
    with pytest.raises(InputError, match="is a function of a seed, but no seeds were given"):
        adom.sweep(drawn, network)
    with pytest.raises(TypeError, match="a sweep takes one problem, got 2 by name"):
        adom.sweep({"one": drawn, "other": drawn}, network, seeds=2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": "adm"}, "unknown method 'adm'; did you mean 'adom'"),
        ({"methods": []}, "got no methods"),
        ({"parameters": "best"}, "parameters must be one of theory, unit"),
        ({"parameters": "tuned"}, "a sweep cannot start from tuned parameters"),
        ({"parameters": []}, "is empty"),
        ({"factors": {"eat": [1]}}, "factors: adom has no parameter 'eat'; did you mean 'eta'"),
        ({"factors": {"eta": [0]}}, r"factors\['eta'\] must be positive and finite, got 0"),
        ({"factors": {"eta": ["x"]}}, r"factors\['eta'\] must be a number, got 'x'"),
        ({"factors": [1, 2]}, "factors must be a dict of lists"),
        ({"factors": {"eta": []}}, "is empty"),
        ({"factors": {"mudag": {"K": [1]}}}, "factors names 'mudag', which is not among the methods"),
        ({"factors": {"adom": {"K": [1]}}}, "factors: adom has no parameter 'K'"),
        ({"factors": {"eta": 1}, "grid": {"eta": 1}}, "eta is given in two of grid, factors and settings"),
        ({"assume": {"kappa": 1}}, "assume scales the constants mu, L, chi, got 'kappa'"),
        ({"settings": {"eta": 1}}, "settings must be a list of dicts"),
        ({"settings": [{"K": 1}]}, "settings: adom has no parameter 'K'"),
        ({"settings": []}, "settings of the sweep is empty"),
        ({"oracles": ["newton"]}, "unknown oracle 'newton'"),
        ({"kappas": [0.5]}, "kappa must be a finite number above 1"),
        ({"rounds": 0}, "rounds must be a whole number"),
        ({"batch": 0}, "batch must be a whole number"),
        ({"rtol": 0.1, "tol": 0.1}, "^rtol=0.1 and tol=0.1 exclude each other; give one$"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(problem, network, monkeypatch, given, message):
    monkeypatch.setattr(module, "solve_many", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(InputError, match=message) as caught:
        adom.sweep(problem, network, **given)
    assert "\n" not in str(caught.value)


def test_some_methods_and_problems_have_nothing_to_vary(problem, network):
    mine = adom.ADOM.unit(adom.constants(problem, network))
    with pytest.raises(InputError, match="'adom' is an instance that has its own"):
        adom.sweep(problem, network, mine, assume={"chi": 2})
    assert len(adom.sweep(problem, network, mine, ["unit", "theory"], rounds=2).members) == 1  # its own base
    with pytest.raises(InputError, match="kappas needs a problem whose regulariser can be chosen"):
        adom.sweep(adom.Quadratic(*quadratics(5, 2, 10.0)), network, kappas=[10])


def test_saved_files(wide, tmp_path):
    folder = wide.save(tmp_path / "deep")
    assert {path.name for path in folder.iterdir()} == {"table.csv", "sweep.png", "members"}
    kept = {path.stem: adom.load(path) for path in (folder / "members").iterdir()}
    assert len(kept) == len(wide.results)
    for result in wide.results.values():
        assert kept[result.provenance["sweep"]["key"]].history.equals(result.history)
    again = pd.read_csv(folder / "table.csv")
    assert list(again.columns) == [*wide.table.columns, "file"]
    assert set(again["file"]) == {f"{key}.npz" for key in kept}
    np.testing.assert_array_equal(again["error"], wide.table["error"])
    assert (folder / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_a_report_shows_the_sweep_that_was_saved_last_and_nothing_kept_is_lost(wide, tmp_path):
    wide.save(tmp_path)
    (tmp_path / "members" / "notes.txt").touch()
    before = set((tmp_path / "members").iterdir())
    replace(wide, members=wide.members[:1], results={0: wide.results[0]}, tols={0: None}).save(tmp_path)
    assert set((tmp_path / "members").iterdir()) == before
    assert len(pd.read_csv(tmp_path / "table.csv")) == 1
    assert len(read([tmp_path]).runs) == 1


def settings_made_up(seeds):
    """Made-up sweep of the settings "steady" and "lucky" over seeds, and one that most seeds refuse."""
    refused = ["", "no", "no"]
    network = adom.networks.ring(3)
    problem = adom.Quadratic(*quadratics(3, 2, 10.0))
    method = adom.DIGing(0.1)
    runs = {
        "steady": [made([0.5] * 19 + [1e-3]), made([0.5] * 21 + [1e-3]), made([0.5] * 20 + [1e-3])],
        "lucky": [made([0.5, 1e-3]), made([0.5] * 30), made([0.5, 1e-3, 1e9], status="diverged")],
        "refused": [made([1e-3]), None, None],
    }
    members, results = [], {}
    for label, of_label in runs.items():
        for seed in seeds:
            about = {"label": label, "cls": adom.DIGing, "method": method, "protocol": "unit", "oracle": None}
            about |= {"problem": problem, "network": network, "drawn": seed, "at": Instance("p", "n", seed)}
            if of_label[seed] is not None:
                results[len(members)] = of_label[seed]
            said = refused[seed] if label == "refused" else ""
            members.append(SweepMember(number=len(members), refused=said, **about))
    return Sweep(tuple(members), results, dict.fromkeys(range(len(members)), 1e-3))


def test_the_best_is_a_setting_by_its_median_over_seeds_and_no_lucky_run():
    found = settings_made_up([0, 1, 2])
    assert found.table["rounds_to_target"].min() == 1
    ranked = found.ranking()
    assert ranked["label"].tolist() == ["steady", "refused", "lucky"]
    best = found.best().iloc[0]
    assert best[["rounds_to_target", "rounds_to_target_low", "rounds_to_target_high"]].tolist() == [21, 20, 22]
    assert (best["seeds"], best["reached"], best["member"]) == (3, 3, 0)
    assert np.isnan(best["seed"])
    lucky = ranked.set_index("label").loc["lucky"]
    assert np.isnan([lucky["rounds_to_target"], lucky["rounds_to_target_high"]]).all()
    assert (lucky["rounds_to_target_low"], lucky["reached"]) == (2, 1)  # one diverged later, one missed it
    assert lucky["status"] == "2 max_rounds, 1 diverged"
    assert found.best(each="seed")["label"].tolist() == ["refused", "steady", "steady"]
    assert "21 rounds to 0.001, the median of 3 seeds" in repr(found)
    untold = replace(found, tols=dict.fromkeys(found.tols))
    assert untold.table["target"].dropna().unique().tolist() == [1e-3]  # what one setting reached on every seed
    high = replace(found, tols=dict.fromkeys(found.tols, 1e-12))
    assert re.search(r"last error [\d.e-]+, and none reached 1e-12 on most seeds", repr(high))
    alone = settings_made_up([0])
    assert alone.best()[["label", "rounds_to_target", "seed"]].to_numpy().tolist() == [["refused", 1, 0]]
    assert "median" not in repr(alone)


def test_progress_counts_members(problem, network, capfd):
    adom.sweep(problem, network, "diging", factors={"a": [0.5, 1, 2]}, rounds=20, progress=False)
    assert capfd.readouterr().err == ""
    adom.sweep(problem, network, "diging", factors={"a": [0.5, 1, 2]}, rounds=20, progress=True)
    shown = capfd.readouterr().err
    assert "3/3" in shown
    assert "members" in shown
