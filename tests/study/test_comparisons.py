"""A comparison over seeds, problems and networks: its parts, what it tunes on, what it keeps and what it prints."""

import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import partial
from html import unescape
from typing import NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import adom
from adom.algorithms.base import Array, Method, Number
from adom.errors import InputError, InputTypeError
from adom.plot.medians import over_seeds
from adom.run.calls import tuning
from adom.run.calls.tuning import transferred
from adom.run.progress import Interrupt
from adom.study import compare as module
from adom.study import jobs as running
from adom.study.compare import INTERRUPTED, Comparison
from adom.study.instances import Instance
from adom.study.over_seeds import ranked
from adom.util.columns import TO_TARGET
from support.compared import instead, together
from support.drawn import made
from support.reference import close, logistic_data, quadratics

NODES = 5


def quadratic(seed):
    return adom.Quadratic(*quadratics(NODES, 2, 8.0, seed=seed))


@pytest.fixture(scope="module")
def drawn():
    return adom.networks.geometric(NODES, 0.6, graphs=3, seed=0)


@pytest.fixture(scope="module")
def both(drawn):
    """Two methods on three seeds, which draw the problem and the network."""
    return adom.compare(quadratic, drawn, ["diging", ("bold", "diging")], {"bold": "unit"}, rounds=60, seeds=3)


def test_every_part_is_a_run_of_its_own(both):
    assert list(both.parts) == [Instance("quadratic", "geometric", seed) for seed in range(3)]
    assert both.drawn == {("quadratic", "geometric"): ["problem", "network"]}
    for at, part in both.parts.items():
        network = adom.networks.geometric(NODES, 0.6, graphs=3, seed=at.seed)
        for label, parameters in {"diging": "auto", "bold": "unit"}.items():
            alone = adom.solve(quadratic(at.seed), network, "diging", parameters, rounds=60)
            np.testing.assert_array_equal(part.results[label].x, alone.x)
            timeless = part.results[label].history.drop(columns="seconds")
            pd.testing.assert_frame_equal(timeless, alone.history.drop(columns="seconds"))
            assert part.results[label].protocol == parameters
            assert part.results[label].provenance["compare"]["seed"] == at.seed


def test_what_is_given_stays_and_what_is_drawn_changes(drawn):
    given = adom.networks.from_graphs([nx.path_graph(NODES), nx.star_graph(NODES - 1)])
    found = adom.compare(quadratic, given, ["diging"], "unit", rounds=2, seeds=[4, 7])
    assert {at.seed for at in found.parts} == {4, 7}
    assert found.drawn == {("quadratic", "from_graphs"): ["problem"]}
    kept = adom.compare(quadratic(0), drawn, ["diging"], "unit", rounds=2, seeds=[4, 7])
    assert kept.drawn == {("Quadratic", "geometric"): ["network"]}
    named = adom.compare(
        {"easy": quadratic(0), "hard": quadratic(1)}, networks={"line": given, "drawn": drawn}, methods=["diging"],
        parameters="unit", rounds=2,
    )  # fmt: skip
    assert [at[:2] for at in named.parts] == [
        ("easy", "line"), ("easy", "drawn"), ("hard", "line"), ("hard", "drawn")
    ]  # fmt: skip
    assert named.table["seed"].isna().all()
    assert list(adom.compare(quadratic(0), [given, drawn, drawn], ["diging"], rounds=2).parts) == [
        Instance("Quadratic", name) for name in ("from_graphs", "geometric #1", "geometric #2")
    ]


def test_splits_are_drawn_with_the_seed(drawn):
    rng = np.random.default_rng(0)
    features, labels = rng.standard_normal((40, 2)), rng.integers(0, 2, 40)
    seen = []

    def make(seed, split):
        seen.append((seed, split))
        return adom.LogisticRegression.from_nodes(
            adom.data.split(features, labels, NODES, split, seed=seed), kappa=5.0
        )  # fmt: skip

    still = adom.networks.ring(NODES)
    found = adom.compare(make, still, ["diging"], rounds=2, seeds=2, splits=["shuffled", "dirichlet"])
    assert seen == [(0, "shuffled"), (1, "shuffled"), (0, "dirichlet"), (1, "dirichlet")]
    assert [at.problem for at in found.parts] == ["shuffled", "shuffled", "dirichlet", "dirichlet"]
    with pytest.raises(InputError, match="seeds change neither 'label' nor 'ring'"):
        adom.compare(make, still, ["diging"], rounds=2, seeds=2, splits="label")  # by label there is one way
    (once,) = adom.compare(make, drawn.reseeded(7), ["diging"], rounds=2, splits="label").results.items()
    assert once[0] == (Instance("label", "geometric", 0), "diging")
    assert once[1].provenance["network"]["seed"] == 7  # without seeds a network stays as it was given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seeds": 3}, "the seeds change neither 'Quadratic' nor 'ring': all runs would be the same"),
        ({"seeds": 0}, "seeds must be a whole number of at least 1, got 0; e.g. seeds=5 for 0 to 4"),
        ({"seeds": [1, 1]}, r"seeds must be at least one number, all different, got \[1, 1\]"),
        ({"seeds": [-1]}, "seeds must be a whole number of at least 0, got -1"),
        ({"problem": quadratic}, "'quadratic' is a function of a seed, but no seeds were given; e.g. seeds=5"),
        ({"splits": ["label"]}, "splits cannot split 'Quadratic' again: .*problem=lambda seed, split"),
        ({"problem": quadratic, "splits": []}, "got no splits"),
        ({"networks": 5}, "networks must be networks in a list, or by name in a dict, got 5; .*seeds=5 draws each"),
        ({"networks": {"ring": adom.networks.ring(4)}}, "network and networks both have 'ring'"),
        ({"network": None}, "network must be an adom network"),
        ({"network": {}}, "got no networks to compare on"),
        ({"problem": lambda seed: 3, "seeds": 2}, "problem must be an adom problem .* got int"),
        ({"networks": {"more": adom.networks.ring(4)}}, "the problem has 5 nodes and the network 4"),
        (
            {"problem": quadratic, "splits": ["label"]},
            r"'quadratic' is called with a seed and a split",
        ),
        ({"problem": lambda seed, split: quadratic(seed), "seeds": 2}, r"'problem' is called with a seed, and "),
        ({"problem": lambda seed, split: quadratic(seed), "splits": ["label"] * 2}, "splits names 'label' twice"),
        ({"folder": "somewhere"}, "folder='somewhere' keeps the runs of several seeds; give seeds"),
        ({"problem": quadratic, "seeds": 2, "batch": 0}, "batch must be a whole number of at least 1"),
        ({"problem": quadratic, "seeds": 2, "methods": ["digging"]}, "unknown method 'digging'"),
    ],
)
def test_what_cannot_be_drawn_is_refused_before_anything_runs(monkeypatch, given, message):
    instead(monkeypatch, lambda *_: pytest.fail("it ran"))
    with pytest.raises(InputError, match=message) as caught:
        adom.compare(**{"problem": quadratic(0), "network": adom.networks.ring(NODES), **given})
    assert "\n" not in str(caught.value)


def test_tuned_on_one_seed_and_judged_on_others(drawn, monkeypatch):
    stages = ((2, 4.0), (2, 2.0))
    monkeypatch.setattr(tuning, "tune", partial(tuning.tune, stages=stages))
    found = adom.compare(quadratic, drawn, ["diging"], "tuned", rounds=40, rtol=1e-3, seeds=2)
    other = found.tuning_seed
    assert {at.seed for at in found.parts} == {0, 1}
    easy, near = quadratic(other), drawn.reseeded(other)
    search = adom.solve(easy, near, "diging", "tuned", rounds=40, tol=_tol(easy, 1e-3))
    chosen = search.provenance["tuning"]["chosen"]
    for at, part in found.parts.items():
        run = part.results["diging"]
        assert run.protocol == "tuned"
        assert run.provenance["tuning"]["seed"] == other
        assert run.provenance["tuning"]["chosen"] == chosen
        method = transferred(quadratic(at.seed), drawn.reseeded(at.seed), adom.DIGing, chosen)
        assert run.provenance["method"]["parameters"] == method.parameters()
        assert run.provenance["tol"] == _tol(quadratic(at.seed), 1e-3)
    assert f"tuned on seed {other}, which is not among them" in str(found)
    more = adom.compare(quadratic, drawn, ["diging"], "tuned", rounds=40, rtol=1e-3, seeds=[1, 2])
    assert more.tuning_seed == other  # so seed 1 runs as before
    at = Instance("quadratic", "geometric", 1)
    assert more.parts[at].results["diging"].x.tobytes() == found.parts[at].results["diging"].x.tobytes()
    assert adom.compare(quadratic, drawn, ["diging"], "tuned", rounds=40, rtol=1e-3, seeds=[other]).tuning_seed > other


def test_a_folder_that_cannot_be_written_to_is_refused_before_the_first_run(tmp_path, monkeypatch):
    def closed(*_, **__):  # as in a folder of another user's
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", closed)
    instead(monkeypatch, lambda *_: pytest.fail("it ran"))
    with pytest.raises(InputError, match=f"^cannot write to the folder {tmp_path}: permission denied; choose another$"):
        adom.compare(quadratic, adom.networks.ring(NODES), ["diging"], "unit", rounds=5, seeds=2, folder=tmp_path)


def _tol(problem, rtol):
    return rtol * problem.nodes * float((problem.solution() ** 2).sum())


def logistic(seed):
    samples = zip(*logistic_data(NODES, 6, 3, seed), strict=True)
    return adom.LogisticRegression.from_nodes(list(samples), l2=0.1)


@pytest.mark.parametrize("problem", [quadratic, logistic])
def test_seeds_of_one_network_may_run_as_one_batch(problem):
    ring = adom.networks.ring(NODES)
    one, many = (adom.compare(problem, ring, ["diging"], "unit", rounds=60, seeds=3, batch=batch) for batch in (1, 3))
    for at, part in one.parts.items():
        close(many.parts[at].results["diging"], part.results["diging"])


def test_runs_are_kept_and_found_again(tmp_path, drawn, monkeypatch):
    arguments = {"parameters": {"bold": "unit"}, "rounds": 60, "seeds": 2, "folder": tmp_path}
    methods = ["diging", ("bold", "diging")]
    first = adom.compare(quadratic, drawn, methods, **arguments)
    assert len(list(tmp_path.glob("*.npz"))) == 4
    next(tmp_path.glob("*.npz")).unlink()
    ran = []
    for name in ("solve", "solve_many"):
        true = getattr(running, name)
        monkeypatch.setattr(running, name, lambda *a, true=true, **k: ran.append(1) or true(*a, **k))
    again = adom.compare(quadratic, drawn, methods, **arguments)
    assert len(ran) == 1
    assert again.table.drop(columns=["seconds", "seconds_to_target"]).equals(
        first.table.drop(columns=["seconds", "seconds_to_target"])
    )
    adom.compare(quadratic, drawn, [("other", "diging")], **{**arguments, "parameters": "unit"})
    assert len(ran) == 1  # a label is not part of a run
    kept = [adom.load(path).provenance["compare"]["label"] for path in tmp_path.glob("*.npz")]
    assert sorted(kept) == ["diging", "diging", "other", "other"]  # and a file has the one that was asked for last
    adom.compare(quadratic, drawn, methods, **{**arguments, "rounds": 61})
    assert len(ran) == 5


def test_ctrl_c_keeps_what_there_is(drawn, monkeypatch):
    true, count = running.solve_many, []

    def press(*given, **more):
        count.append(1)
        if len(count) == 3:
            raise KeyboardInterrupt
        return true(*given, **more)

    monkeypatch.setattr(running, "solve_many", press)
    methods = ["diging", ("same", "diging")]
    found = adom.compare(quadratic, drawn, methods, "unit", rounds=60, seeds=2)
    assert found.interrupted
    assert repr(found).endswith("1 seed, interrupted: 2 of 4 runs are done)")
    first, second = found.parts.values()
    assert list(first.results) == ["diging", "same"]
    assert second.skipped == dict.fromkeys(["diging", "same"], "the comparison was interrupted")
    assert found.skipped == {}  # both did run
    assert "did not run" not in str(found)
    assert "\ninterrupted: 2 of 4 runs are done\n" in str(found)
    assert set(found.ranks()["instances"]) == {1}  # what was not run is no failure
    del count[:]
    apart = {"one": drawn, "other": drawn}
    half = adom.compare(quadratic, None, ["diging"], "unit", rounds=60, tol=1e-9, seeds=2, networks=apart)
    assert not half.runs(network="other")
    check_latex(half.to_latex())
    assert len(half.plot().axes) == 2
    assert str(half).count("to a relative error of") == 1
    del count[1:]
    count.append(1)
    with pytest.raises(KeyboardInterrupt):
        adom.compare(quadratic, drawn, methods, "unit", rounds=60, seeds=2)


def test_a_run_that_ctrl_c_ends_is_no_run(drawn, tmp_path, monkeypatch):
    arguments = {"parameters": "unit", "rounds": 60, "seeds": 2, "folder": tmp_path / "members"}
    entered, calls = Interrupt.__enter__, []

    def third(self):
        calls.append(1)
        entered(self).asked = len(calls) == 3
        return self

    with monkeypatch.context() as patch:
        patch.setattr(Interrupt, "__enter__", third)
        found = adom.compare(quadratic, drawn, ["diging", "nids"], **arguments)
    assert found.interrupted
    assert list(found.results) == [(Instance("quadratic", "geometric", 0), name) for name in ("diging", "nids")]
    assert found.summary["seeds"].tolist() == [1, 1]
    assert len(list((found.save(tmp_path) / "members").iterdir())) == 2
    adom.compare(quadratic, drawn, ["diging", "nids"], **arguments).save(tmp_path)
    kept = [adom.load(path) for path in (tmp_path / "members").iterdir()]
    assert [run.status for run in kept] == ["max_rounds"] * 4


def test_methods_that_cannot_run_somewhere_are_left_out_there(monkeypatch):
    monkeypatch.setattr(module, "COMPARED", ("diging", "push-pull"))
    networks = {"both ways": adom.networks.ring(NODES), "one way": adom.networks.directed_ring(NODES)}
    found = adom.compare(quadratic, networks=networks, parameters="unit", rounds=3, seeds=2)
    for seed in (0, 1):
        assert list(found.parts["quadratic", "both ways", seed].results) == ["diging", "push-pull"]
        assert list(found.parts["quadratic", "one way", seed].results) == ["push-pull"]
    assert "links that go both ways" in found.parts["quadratic", "one way", 0].skipped["diging"]
    assert "diging did not run: DIGing needs links" in str(found)
    ranks = found.ranks().set_index("method")
    assert ranks.loc["diging", "reached"] <= 2  # where it did not run it failed
    assert ranks["instances"].tolist() == [4, 4]


def many(**runs):
    """Made-up comparisons on one problem and network, one list of runs a method."""
    seeds = range(len(next(iter(runs.values()))))
    parts = {
        Instance("p", "n", seed): Comparison({label: each[seed] for label, each in runs.items()}) for seed in seeds
    }
    return together(parts, {("p", "n"): ["problem"]})


def test_medians_and_targets_on_histories_made_up():
    fast = [made([0.5, 1e-3]), made([0.1, 0.1, 1e-4]), made([0.5, 0.1, 0.05, 1e-3])]
    slow = [made([0.5, 0.1, 0.02, 1e-6]), made([0.5, 0.5]), made([9.0, 99.0], status="diverged")]
    found = many(fast=fast, slow=slow)
    assert found.targets == {("p", "n"): 1e-3}  # fast met it on every seed
    summary = found.summary.set_index("method")
    assert summary.loc["fast", ["rounds", "rounds_low", "rounds_high"]].tolist() == [3, 2, 4]
    assert summary.loc["fast", ["reached", "seeds", "lost"]].tolist() == [3, 3, 0]
    assert summary.loc["slow", ["rounds", "rounds_low", "rounds_high"]].tolist() == [np.inf, 4, np.inf]
    assert summary.loc["slow", ["reached", "lost"]].tolist() == [1, 1]
    assert summary.loc["slow", "error"] == 0.5
    assert found.ranks()["method"].tolist() == ["fast", "slow"]
    assert found.profile().loc[1.0].to_dict() == {"fast": 1.0, "slow": 0.0}
    given = replace(found, tol=0.1)
    assert given.targets == {("p", "n"): 0.1}


def test_no_target_lies_below_the_floor_of_rounding():
    runs = {"early": [0.5, 3e-25, 3e-25], "late": [0.5, 1e-3, 1e-30]}
    found = many(**{label: [made(errors, floor=2e-24)] * 2 for label, errors in runs.items()})
    assert found.targets == {("p", "n"): 1e-23}
    assert found.summary["rounds"].tolist() == [2, 3]
    single = Comparison({label: made(errors, floor=2e-24) for label, errors in runs.items()})
    assert single.target == 1e-23


def test_a_finished_run_keeps_its_last_value():
    curves = [
        (np.array([0, 1, 2]), np.array([1.0, 1e-2, 1e-8])),
        (np.array([0, 1, 2, 4]), np.array([1.0, 1e-1, 1e-2, 1e-8])),
        (np.array([0, 2, 4, 8]), np.array([1.0, 1e-1, 1e-3, 1e-8])),
    ]
    band = over_seeds(curves)
    assert band.at.tolist() == [0, 1, 2, 4, 8]
    assert band.low == pytest.approx([1.0, 1e-2, 1e-8, 1e-8, 1e-8])
    assert band.middle == pytest.approx([1.0, 1e-1, 1e-2, 1e-8, 1e-8])
    assert band.high == pytest.approx([1.0, 10**-0.5, 1e-1, 1e-3, 1e-8])
    long = np.arange(5000.0)
    thinned = over_seeds([(long, np.exp(-long / 500)), (long[:2000], np.exp(-long[:2000] / 500))])
    assert len(thinned.at) <= 500
    assert (np.diff(thinned.middle) <= 1e-15).all()  # no jump where one ends
    np.testing.assert_allclose(thinned.low, np.exp(-thinned.at / 500), rtol=1e-9)


def test_figures_show_medians_bands_and_what_was_lost():
    runs = {
        "a": [made([0.5, 0.1])] * 3,
        "b": [made([2.0, 9e9], status="diverged"), *[made([5.0, 1e9], status="growing")] * 2],
    }
    found = many(**runs)
    figure = found.plot()
    (axes,) = figure.axes
    assert len(axes.collections) == 2  # bands
    crosses = [line for line in axes.lines if line.get_marker() == "X"]
    assert len(crosses) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b", "diverged or growing"]
    import matplotlib.figure

    other = matplotlib.figure.Figure()
    ax = other.subplots()
    assert found.plot("gradients", ax=ax) is other
    assert ax.get_xlabel() == "gradients per node"
    assert found.plot_profile(ax=other.add_subplot()) is other
    every = found.plot("all")
    assert [axes.get_xlabel() for axes in every.axes][::3] == ["communication rounds", "time (s)"]
    with pytest.raises(InputError, match="unknown axis 'time'"):
        found.plot("time")
    with pytest.raises(InputError, match="takes one panel, but axis='all' draws several"):
        found.plot("all", ax=ax)
    with pytest.raises(InputTypeError, match="ax must be the axes of one panel, got ndarray"):
        found.plot(ax=np.array([ax, ax]))
    with pytest.raises(InputTypeError, match="ax must be the axes of one panel, got int"):
        found.plot_profile(ax=3)
    with pytest.raises(InputError, match="must fit one comparison, but fit 0; known: 'p' on 'n'"):
        found.plot(problem="q")
    single = Comparison({"mine": made([1.0, 0.1])})
    assert single.plot(ax=other.add_subplot()) is other
    with pytest.raises(InputError, match="takes one panel, but axis='all' draws several"):
        single.plot("all", ax=ax)


def test_panels_stand_in_a_row_for_each_problem():
    parts = {
        Instance(problem, network, seed): Comparison({"a": made([0.5, 0.1])})
        for problem in ("p", "q") for network in ("ring", "star") for seed in range(2)
    }  # fmt: skip
    every = together(parts).plot("all")
    assert every.axes[0].get_subplotspec().get_geometry()[:2] == (4, 4)
    assert len(together(parts).plot("all", style="column").axes) == 16
    figure = together(parts).plot()
    assert [axes.get_title() for axes in figure.axes] == ["ring", "star", "", ""]
    assert [axes.get_ylabel() for axes in figure.axes[::2]] == ["p\nrelative error", "q\nrelative error"]
    assert figure.axes[0].get_subplotspec().get_geometry()[:2] == (2, 2)
    column = together(parts).plot(style="column")
    assert [axes.get_title() for axes in column.axes] == ["p on ring", "p on star", "q on ring", "q on star"]


LONG = "a method with quite a long name, which says all of its settings, eta = 0.001 and tau = 0.0003"


def test_print_fits_80_columns_and_leaves_nothing_out(both):
    named = many(**{LONG: [made([0.5, 1e-7])] * 2, "short": [made([0.5] * 12345 + [1e-6])] * 2})
    runs = {LONG: made([0.5, 0.1]), "b": made([0.5, np.inf], status="diverged")}
    single = Comparison(runs, reasons={"c": "no " * 60})
    for shown in (both, named, single):
        assert max(map(len, str(shown).splitlines())) <= 80
        assert "..." not in str(shown)
    for shown in (named, single):
        assert all(word in str(shown).split() for word in LONG.split())
    assert re.search(r"^DIGing +\d+ \[\d+, \d+\] +3/3", str(both), re.MULTILINE)
    assert "3 seeds, which draw the problem and the network" in str(both)
    assert repr(both) == "Comparison(2 methods on 3 instances, 3 seeds)"


def check_latex(text):
    """Check what LaTeX would: environments and braces closed, as many cells in each row, no bare sign."""
    open_ = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            open_.append(name)
        else:
            assert open_.pop() == name
    assert not open_
    plain = re.sub(r"\\[{}]", "", text)
    assert plain.count("{") == plain.count("}")
    assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0
    columns = len(re.search(r"\\begin\{tabular\}\{(\w+)\}", text)[1])
    body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
    rows = [line for line in body.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    for row in rows:
        assert len(re.findall(r"(?<!\\)&", row)) == columns - 1
    outside = re.sub(r"\$[^$]*\$|\\label\{[^}]*\}", "", text)
    assert not re.search(r"(?<!\\)[_^#]", outside)
    assert set(re.findall(r"\\([a-zA-Z]+)", text)) <= {
        *("begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule", "addlinespace"),
        *("multicolumn", "emph", "cdot", "mathbf", "usepackage", "textbackslash", "textasciicircum"),
    }


def test_latex_is_whole_and_says_what_the_table_says(both, tmp_path):
    odd = r"50% of my_method & $co^2$ \o/ #1"
    found = many(**{odd: [made([0.5, 1e-7]), made([0.5, 0.4, 1e-7])], "slow": [made([0.5]), made([0.5])]})
    tables = (
        found.to_latex(), found.to_latex(ranks=True), found.to_latex("gradients", caption="", label="tab:x"),
        both.to_latex(), Comparison({odd: made([0.5, 0.1]), "b": made([0.5, np.inf], status="diverged")}).to_latex(),
    )  # fmt: skip
    for text in tables:
        check_latex(text)
    if shutil.which("pdflatex"):
        whole = ["\\documentclass{article}\\usepackage{booktabs}\\begin{document}", *tables, "\\end{document}"]
        (tmp_path / "tables.tex").write_text("\n".join(whole))
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout
    (row,) = re.findall(r"50.*\\\\$", found.to_latex(), re.MULTILINE)
    assert r"$\mathbf{2.5}$ [$2$, $3$] & $2/2$ & $10^{-7}$ \\" in row
    assert r"slow & -- & $0/2$ & $0.5$ \\" in found.to_latex()
    assert "\\label{tab:x}" in found.to_latex(label="tab:x")
    assert "caption" not in found.to_latex(caption="")
    with pytest.raises(InputError, match="cost must be one of rounds, gradients, floats_sent, seconds, got 'time'"):
        found.to_latex("time")


def test_saved_files_hold_everything(both, tmp_path):
    folder = both.save(tmp_path)
    assert {path.name for path in folder.iterdir()} == {
        *("table.csv", "summary.csv", "table.tex", "comparison.png", "profile.png", "members")
    }
    members = [adom.load(path) for path in sorted((folder / "members").glob("*.npz"))]
    assert {(run.provenance["compare"]["label"], run.provenance["compare"]["seed"]) for run in members} == {
        (label, seed) for label in ("diging", "bold") for seed in range(3)
    }
    assert pd.read_csv(folder / "table.csv")["rounds"].tolist() == both.table["rounds"].tolist()
    assert (folder / "table.tex").read_text() == both.to_latex() + "\n"


def test_saving_replaces_what_was_saved_and_nothing_else(both, tmp_path):
    first = next(iter(both.parts))
    run = both.parts[first].results["diging"]
    search = {"compare": {**run.provenance["compare"], "search": True}}
    both.save(tmp_path)
    members = tmp_path / "members"
    mine = {"own.npz", "searched.npz", "notes.txt"}
    replace(run, provenance={**run.provenance, "compare": None}).save(members / "own.npz")
    replace(run, provenance={**run.provenance, **search}).save(members / "searched.npz")
    (members / "notes.txt").touch()
    assert len(list(members.iterdir())) == 6 + 3
    replace(both, results={key: run for key, run in both.results.items() if key[0] == first}).save(tmp_path)
    left = {path.name for path in members.iterdir()}
    assert mine <= left
    kept = [adom.load(members / name).provenance["compare"] for name in left - mine]
    assert sorted((at["label"], at["seed"]) for at in kept) == [("bold", 0), ("diging", 0)]
    assert not (tmp_path / "profile.png").exists()  # of one instance there is none
    both.parts[first].save(tmp_path)  # one comparison in place of several
    assert {path.name for path in members.iterdir()} == mine
    names = {"diging.npz", "bold.npz", "table.csv", "comparison.png", "members"}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_of_an_interrupted_comparison_the_seeds_are_judged_on_which_all_methods_are_done():
    found = many(a=[made([0.5, 1e-4])] * 3, b=[made([0.5, 0.1, 1e-4])] * 3)
    parts = dict(found.parts)
    last = list(parts)[-1]
    parts[last] = replace(parts[last], results={"a": made([0.5] * 90 + [1e-9])}, reasons={"b": INTERRUPTED})
    cut = together(parts, found.drawn)
    assert cut.summary["seeds"].tolist() == [2, 2]
    assert cut.summary["rounds_high"].tolist() == [2, 3]
    assert set(cut.ranks()["instances"]) == {2}
    assert len(cut.table) == 5
    latex = cut.to_latex()
    assert r"\caption{Interrupted: 5 of 6 runs are done. Rounds to a relative error of $10^{-4}$: median " in latex
    assert "over 2 seeds." in latex
    assert "$2/2$" in latex
    assert r"\caption{Interrupted: 5 of 6 runs are done. Ranks by rounds over 2 instances.}" in cut.to_latex(ranks=True)
    assert str(cut).startswith("2 seeds, which draw the problem\n")


def test_many_places_are_rows_of_one_table():
    parts = {
        Instance("p", f"network {number}", seed): Comparison({"a": made([0.5, 0.1]), LONG: made([0.5] * (number + 3))})
        for number in range(5) for seed in range(2)
    }  # fmt: skip
    found = together(parts)
    text = str(found)
    assert "median rounds to a relative error of 0.1; - where most seeds did not get there" in text
    assert len(re.findall(r"^p on network \d +2", text, re.MULTILINE)) == 5
    assert max(map(len, text.splitlines())) <= 120  # as wide as its longest name
    latex = found.to_latex()
    check_latex(latex)
    assert r"p on network 3 & $\mathbf{2}$ & -- \\" in latex
    assert "median over 2 seeds." in latex
    fewer = together({at: part for at, part in parts.items() if at.network != "network 4"})
    assert str(fewer).count("to a relative error of 0.1") == 4


def test_what_went_wrong_is_told_from_what_is_slow():
    found = many(a=[made([0.5, 1e-4])] * 3, b=[made([9.0, 1.2e12], status="diverged")] * 3)
    assert re.search(r"^b +- +0/3 +- +- +- +diverged$", str(found), re.MULTILINE)
    assert r"b & -- & $0/3$ & diverged \\" in found.to_latex()
    assert "1.2e+12" in str(many(a=[made([9.0, 1.2e12], status="growing")]))


def test_proofs_are_missed_in_few_words():
    fixed, whole = "proved for networks that do not change", "proved for nodes that stay"
    parts = {
        Instance("p", network, seed): Comparison(
            {"mine": made([0.5, 0.1], outside=fixed), "b": made([0.5], title="B", outside=whole if seed else fixed)}
        )
        for network in ("ring", "star") for seed in range(2)
    }  # fmt: skip
    del parts["p", "star", 1]
    assert together(parts).outside == f"mine, ADOM: {fixed}; ADOM: {whole} (on ring)".replace("ADOM", "b")
    assert f"outside of their proofs: mine, b: {fixed}" in str(next(iter(parts.values())))


def test_seeds_whose_start_is_the_solution_are_solved_there():
    runs = {
        "a": [made([0.5, 1e-4]), made([0.1, 0.0], start=0.0)],
        "b": [made([0.5, 0.2, 1e-4]), made([0.1, 1.0], start=0.0)],
    }
    found = many(**runs)
    assert found.targets == {("p", "n"): 1e-4}
    summary = found.summary.set_index("method")
    assert summary["reached"].tolist() == [2, 2]
    assert summary["rounds_low"].tolist() == [0, 0]
    assert summary["rounds"].tolist() == [1, 1.5]
    assert found.ranks()["mean_rank"].tolist() == [1.25, 1.75]
    assert "to the start, which is the solution" in str(many(**{name: each[1:] for name, each in runs.items()}))
    worse = many(a=[made([2.0, 0.9]), made([2.0, 0.9])])
    assert worse.targets == {("p", "n"): 0.1}
    assert "to a relative error of 0.1, which no run reached" in str(worse)


class State(NamedTuple):
    x: Array


@dataclass(frozen=True)
class Own(Method):
    """x^{k+1} = M(k) (x^k - a grad F(x^k))."""

    name, title, oracle, vectors_per_round = "own", "Own", "primal", 1
    complexity, reference = "to a neighbourhood", "nobody"
    a: Number

    @classmethod
    def theory(cls, constants):
        return cls(a=1 / constants.L)

    unit = theory

    def init(self, zeros, oracle):
        return State(zeros)

    def step(self, state, oracle, gossip):
        x = gossip.average(state.x - self.a * oracle.gradient(state.x))
        return State(x), x


def test_a_notebook_shows_the_target_and_keeps_lines_apart(both):
    card = unescape(both._repr_html_())
    assert "which draw the problem and the network<br>medians, and [least, greatest] rounds" in card
    assert f"quadratic on geometric, to a relative error of {both.targets['quadratic', 'geometric']:.3g}" in card


def test_a_method_with_a_new_title_has_it_everywhere_though_nothing_runs_again(tmp_path, drawn, monkeypatch):
    arguments = {"rounds": 20, "seeds": 2, "folder": tmp_path / "members"}
    adom.compare(quadratic, drawn, [Own], **arguments)
    adom.sweep(quadratic(0), drawn, [Own], factors={"a": [0.5, 1]}, rounds=20, folder=tmp_path / "swept")
    monkeypatch.setattr(Own, "title", "Better name")
    for _ in range(2):  # more seeds, and none
        found = adom.compare(quadratic, drawn, [Own], **arguments | {"seeds": 3})
        assert {run.label for run in found.results.values()} == {"Better name"}
        assert {adom.load(path).label for path in (tmp_path / "members").iterdir()} == {"Better name"}
    monkeypatch.setattr(running, "solve_many", None)
    swept = adom.sweep(quadratic(0), drawn, [Own], factors={"a": [0.5, 1]}, rounds=20, folder=tmp_path / "swept")
    assert {run.label for run in swept.results.values()} == {"Better name"}
    assert {adom.load(path).label for path in (tmp_path / "swept").iterdir()} == {"Better name"}


def test_a_changed_formula_of_an_own_method_is_run_again(tmp_path, drawn, monkeypatch):
    arguments = {"rounds": 20, "seeds": 2, "folder": tmp_path}
    instead(monkeypatch, lambda *_: made([1.0], name="own"))
    adom.compare(quadratic, drawn, [Own], **arguments)
    monkeypatch.setattr(Own, "unit", classmethod(lambda cls, constants: cls(a=0.5 / (constants.L * constants.chi))))
    adom.compare(quadratic, drawn, [Own], **arguments)  # with auto, which reads unit's formulas
    assert len(list(tmp_path.glob("*.npz"))) == 4


def test_lost_on_half_of_the_seeds_is_not_mostly_lost():
    runs = pd.DataFrame(
        {
            "member": range(4),
            "label": ["lost", "lost", "slow", "slow"],
            "network": 0,
            "seed": [0, 1] * 2,
            "status": ["diverged", "converged", "max_rounds", "max_rounds"],
            "relative_error": [1e9, 1e-9, 0.5, 0.5],
        }
    ).assign(**{cost: [float("nan"), 5.0, 9.0, float("nan")] for cost in TO_TARGET})
    assert ranked(runs, [runs["label"]], "rounds_to_target_low")["label"].tolist() == ["lost", "slow"]


def test_the_target_of_an_interrupted_comparison_is_from_the_seeds_that_are_done():
    found = many(a=[made([0.5, 1e-4])] * 3, b=[made([0.5, 0.1, 1e-4])] * 3)
    parts = dict(found.parts)
    last = list(parts)[-1]
    begun = {label: made([0.5, 0.4], status="interrupted") for label in "ab"}
    parts[last] = replace(parts[last], results=begun)
    assert together(parts, found.drawn).targets == found.targets == {("p", "n"): 1e-4}
