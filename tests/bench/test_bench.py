"""The benchmark: the suite, the file of results, a run that goes on, methods of one's own, the page."""

import importlib
import json
import re
import sys
from collections import Counter
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

import adom
from adom import page
from adom.bench import records, suite
from adom.bench import run as running
from adom.bench.page import content, tables
from adom.bench.records import Record, Submission
from adom.bench.run import SuiteRun, check_own, code_of, do_job
from adom.study.execute import read_outcome

PAIR = ("quadratic-10", "geometric")
COSTS = ("rounds_to_target", "gradients_to_target", "floats_sent_to_target")
REFUSED = {"status": "refused", "rounds": 0, "relative_error": None, **dict.fromkeys(COSTS)}
MINE = Path(__file__).parents[1] / "support" / "own_method.py"


def record(**changes):
    known = {"problem": PAIR[0], "network": PAIR[1], "method": "mine", "protocol": "auto", "status": "converged"}
    known |= {"rounds": 50, "relative_error": 1e-7, "rounds_to_target": 50.0, "gradients_to_target": 50.0}
    return Record(**{**known, "floats_sent_to_target": 9.0, **changes})


def outcome(job, folder):
    return read_outcome(job, folder, "bench")


def submission(*runs, **changes):
    scale = suite.SCALES["quick"]
    known = {"suite": suite.VERSION, "quick": True, "rounds": scale.rounds, "target": scale.target, "software": "x 1"}
    return Submission(**{**known, "runs": list(runs) or [record()], **changes})


def test_the_suite_is_twelve_problems_and_networks_twice_each():
    pairs = suite.SCALES["full"].pairs
    assert len(set(pairs)) == 24
    assert Counter(problem for problem, _ in pairs) == dict.fromkeys(suite.PROBLEMS, 2)
    assert Counter(network for _, network in pairs) == dict.fromkeys(suite.NETWORKS, 2)
    assert len(suite.PROBLEMS) == len(suite.NETWORKS) == 12
    networks = {name: suite.network(name) for name in suite.NETWORKS}
    assert {network.nodes for network in networks.values()} == {suite.NODES}
    assert len({json.dumps(network.recipe) for network in networks.values()}) == 12
    problems = [suite.problem(name) for name in suite.PROBLEMS if name not in suite.DATA]
    assert {problem.nodes for problem in problems} == {suite.NODES}


def test_a_file_of_results_is_read_as_it_was_written(tmp_path):
    given = submission(record(), record(method="other", **REFUSED))
    assert records.read(records.write(given, tmp_path / "results.json")) == given
    assert json.loads(records.schema())["properties"]["runs"]["items"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"suite": "0"}, "suite 0 differs from"),
        ({"rounds": 5}, "the budget must be 1000 rounds"),
        ({"quick": False}, "the budget must be 3000 rounds"),
        ({"runs": []}, "at least 1 item"),
        ({"more": 1}, "Extra inputs"),
        ({"runs": [{"problem": "quadratic-10", "network": "ring"}]}, "Field required"),
    ],
)
def test_other_files_are_refused(tmp_path, change, message):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({**submission().model_dump(), **change}))
    with pytest.raises(adom.InputError, match=message):
        records.read(path)
    with pytest.raises(adom.InputError, match="cannot read"):
        records.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network": "nowhere"}, "is not in suite"),
        ({"network": "ring"}, "not in this version"),
        ({"rounds_to_target": 51.0}, "exceeds rounds"),
        ({"rounds_to_target": None}, "has reached the target"),
        ({"relative_error": float("nan")}, "finite"),
        ({"status": "fine"}, "Input should be"),
        ({"rounds": 5000, "rounds_to_target": 5000.0}, "rounds 5000 exceeds the budget of 1000"),
        ({**REFUSED, "rounds_to_target": 1.0}, "refused has no rounds, no error and no costs"),
        ({**REFUSED, "rounds": 1}, "refused has no rounds, no error and no costs"),
        ({"relative_error": 10.0}, "rounds_to_target is given, and the error at the end is 10.0, not 1e-06"),
        ({"relative_error": None}, "the error at the end is None"),
        ({"status": "stalled", **dict.fromkeys(COSTS)}, "the error at the end is 1e-07, and rounds_to_target is miss"),
        ({"status": "stalled", "rounds_to_target": None}, "floats_sent_to_target is given and rounds_to_target is not"),
        ({"gradients_to_target": None}, "rounds_to_target is given and gradients_to_target is not"),
        ({"status": "diverged"}, "a run that ended as diverged has not reached the target"),
        ({"method": " "}, "must be a line of text, without blanks around it, got ' '"),
        ({"method": "a\nb"}, "must be a line of text"),
        ({"rounds_to_target": 0.0}, "greater than or equal to 1"),
        ({"floats_sent_to_target": 0.0}, "greater than or equal to 1"),
    ],
)
def test_runs_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        submission(record(**change))


def test_names_that_are_taken_are_told_apart():
    both = records.together(submission(), [("theirs", submission()), ("more", submission(record(method="new")))])
    assert [each.method for each in both] == ["mine", "mine (theirs)", "new"]
    thrice = records.together(submission(), [("theirs", submission())] * 2)
    assert [each.method for each in thrice] == ["mine", "mine (theirs)", "mine (theirs 2)"]
    with pytest.raises(ValueError, match="two runs"):
        submission(record(), record())


def test_results_of_others_are_called_after_their_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (Path("anna/results.json"), Path("berta/results.json"), Path("theirs.json"), tmp_path / "results.json"):
        assert records.called(path) in ("anna", "berta", "theirs", tmp_path.name)
    shown = [(records.called(Path(name) / "results.json"), submission()) for name in ("anna", "berta")]
    assert [each.method for each in records.together(submission(), shown)] == ["mine", "mine (anna)", "mine (berta)"]


def test_a_smaller_benchmark_does_not_take_the_place_of_a_larger_one(tmp_path, monkeypatch):
    small = replace(suite.SCALES["quick"], pairs=(PAIR,), rounds=60, target=1e-3)
    monkeypatch.setitem(suite.SCALES, "quick", small)
    monkeypatch.setitem(suite.SCALES, "full", replace(small, rounds=70))
    asked = {"folder": tmp_path, "workers": 1, "progress": False}
    running.bench(["nids", "diging"], quick=True, protocols=["theory", "unit"], **asked)
    before = (tmp_path / "results.json").read_bytes()
    for methods, protocols, count in ((["nids"], ["theory", "unit"], 2), (["nids", "diging"], ["theory"], 2)):
        with pytest.raises(adom.InputError, match=f"holds results of {count} runs that are not among these, e.g. "):
            running.bench(methods, quick=True, protocols=protocols, **asked)
    assert (tmp_path / "results.json").read_bytes() == before
    running.bench(["nids", "diging", "extra"], quick=True, protocols=["theory", "unit"], **asked)
    running.bench(["nids"], quick=True, protocols=["theory"], fresh=True, **asked)
    assert len(list((tmp_path / "results").iterdir())) == 1
    running.bench(["extra"], protocols=["theory"], **asked)  # the whole suite, after a quick try
    with pytest.raises(adom.InputError, match="extra with theory on quadratic-10 on geometric; name those too, take"):
        running.bench(["extra"], quick=True, protocols=["theory"], **asked)


def test_a_job_is_a_run_of_solve_and_its_file_is_found_again(tmp_path):
    (tmp_path / "results").mkdir()
    job = SuiteRun(*PAIR, "support.own_method:Mine", "theory", 400, 1e-6, code_of("support.own_method:Mine"))
    assert outcome(job, tmp_path).to_do
    do_job(job, tmp_path)
    found = running.record(outcome(job, tmp_path))
    problem, network = suite.problem(PAIR[0]), suite.network(PAIR[1])
    from support.own_method import Mine

    errors = adom.solve(problem, network, Mine, "theory", rounds=400).history
    reached = errors["error"].to_numpy() <= 1e-6 * suite.NODES * (problem.solution() ** 2).sum()
    assert found.status == "converged"
    assert found.rounds_to_target == errors["round"][reached.argmax()] == found.rounds
    assert found.method == "Mine"
    assert outcome(replace(job, code="changed"), tmp_path).to_do
    (path,) = (tmp_path / "results").glob("*.npz")
    path.write_bytes(path.read_bytes()[:100])
    assert outcome(job, tmp_path).to_do
    assert path.name in outcome(job, tmp_path).damaged  # so that it is made again


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Write the example of a method with other words in some places, and give its name anew each time."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def write(*changes, helper=""):
        text = MINE.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "changed.py").write_text(text)
        (tmp_path / "helper.py").write_text(helper)
        for name in ("changed", "helper"):
            sys.modules.pop(name, None)
            made.append(name)
        importlib.invalidate_caches()
        return "changed:Mine"

    yield write
    for name in made:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "change",
    [("return cls(a=1 ", "return cls(a=scale() "), ("self.a * state.y", "scale() * self.a * state.y")],
    ids=["theory", "step"],
)
def test_runs_of_a_method_are_not_found_again_where_a_file_that_it_imports_has_changed(own, change, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    use = ("import adom\n", "import adom\nfrom helper import scale\n")
    codes = [
        code_of(own(use, change, helper=f"def scale():\n    return {value}\n{comment}"))
        for value, comment in ((1.0, ""), (0.1, ""), (1.0, "# as at first"))
    ]
    assert codes[0] == codes[2] != codes[1]


def test_a_method_that_fails_is_refused_before_anything_runs(own):
    with pytest.raises(ZeroDivisionError):
        check_own(own(("        x, y = gossip", "        1 / 0\n        x, y = gossip")), ["theory"])
    with pytest.raises(KeyError):
        check_own(own(("        return cls(", "        raise KeyError\n        return cls(")), ["auto"])
    with pytest.raises(adom.InputError, match="needs of the method Mine must be one of fixed, connected"):
        check_own(own(("complexity, reference", 'needs = "banana"\n    complexity, reference')), ["theory"])
    with pytest.raises(adom.InputError, match=r"Mine.step must return \(State\("):
        check_own(own(("return State(x, y + g - state.g, g), x", "return x")), ["theory"])
    with pytest.raises(adom.InputError, match=r"Mine.kind must be a number, as all hyper-parameters are, got 'fast'"):
        check_own(own(("    a: Number\n", "    a: Number\n    kind: str = 'fast'\n")), ["theory"])
    with pytest.raises(adom.InputError, match=r"Mine.step never uses the network"):
        check_own(own(("gossip.average(state.x - self.a * state.y, state.y)", "state[:2]")), ["theory"])
    check_own(own(), ["auto", "theory", "unit"])


def test_a_method_that_fails_on_a_pair_is_one_that_did_not_run_there(own, tmp_path):
    (tmp_path / "results").mkdir()
    broken = own(("        return cls(", "        [0][int(constants.chi > 1)]\n        return cls("))
    job = SuiteRun(*PAIR, broken, "theory", 100, 1e-6)
    do_job(job, tmp_path)
    assert running.record(outcome(job, tmp_path)).reason.startswith(
        "changed:Mine fails: IndexError: list index out of range (ch"
    )


def test_a_method_without_numbers_diverges_also_where_messages_are_lost(own, tmp_path):
    (tmp_path / "results").mkdir()
    lost = own(("return State(x, y + g - state.g, g), x", 'x = x * float("nan")\n        return State(x, y, g), x'))
    job = SuiteRun("softmax", "lossy", lost, "theory", 100, 1e-6)
    do_job(job, tmp_path)
    assert running.record(outcome(job, tmp_path)).status == "diverged"


def test_what_no_table_could_tell_apart_is_refused_at_once(tmp_path):
    asked = {"quick": True, "folder": tmp_path / "none"}
    with pytest.raises(adom.InputError, match="the protocols name 'auto' twice; leave one out"):
        running.bench(["nids"], protocols=["auto", "theory", "auto"], **asked)
    with pytest.raises(adom.InputError, match="one:Mine and two:Mine are both called 'Mine'; leave one out, or rename"):
        running.bench(["one:Mine", "two:Mine"], **asked)
    other = records.write(submission(), tmp_path / "other.json")
    with pytest.raises(adom.InputError, match="other is of the quick version, but these runs are of the other"):
        running.bench(["nids"], quick=False, folder=tmp_path / "none", add=[other])
    assert not (tmp_path / "none").exists()


def test_a_job_that_cannot_run_says_why(tmp_path):
    (tmp_path / "results").mkdir()
    job = SuiteRun("softmax", "lossy", "mudag", "auto", 100, 1e-6)
    do_job(job, tmp_path)
    found = outcome(job, tmp_path)
    row = running.record(found)
    assert row.status == "refused"
    assert "messages are lost" in row.reason
    shown = content([row], [found], suite.SCALES["quick"], [])
    (run,) = shown.runs
    assert (run.cells["method"], run.cells["status"], run.details["message"]) == ("Mudag", "refused", found.reason)
    assert f"mudag did not run: softmax on lossy. {found.reason}" in unescape(shown.ledgers[0])


def test_the_benchmark_goes_on_where_it_was_left_and_ranks_others_too(tmp_path, monkeypatch):
    small = replace(suite.SCALES["quick"], pairs=(PAIR,), rounds=60, target=1e-3)
    monkeypatch.setitem(suite.SCALES, "quick", small)
    asked = {"quick": True, "folder": tmp_path, "protocols": ["theory"], "workers": 1, "progress": False}
    first = running.bench(["nids"], **asked)
    (run,) = (tmp_path / "results").iterdir()
    written = run.stat().st_mtime_ns
    theirs = record(method="$x^{$", protocol="theory", rounds=1, rounds_to_target=1.0)
    other = records.write(submission(theirs), tmp_path / "other.json")
    again = running.bench(["nids"], add=[other], **asked)
    assert run.stat().st_mtime_ns == written
    assert first.ranks["theory"]["method"].iloc[0] == "nids"
    assert again.ranks["theory"]["method"].tolist() == ["$x^{$", "nids"]
    assert [each.method for each in records.read(tmp_path / "results.json").runs] == ["nids"]  # one's own alone
    text = (tmp_path / "bench.html").read_text()
    for words in ("Ranks and profiles", "quadratic-10 on geometric", "made by x 1", "$x^{$", "rounds / best (median)"):
        assert words in text
    made = content(submission(theirs).runs, again.outcomes, small, again.notes)
    assert [re.findall('id="profile-([0-9])"', made.ledgers[0]), len(made.profiles)] == [["0", "1"], 2]  # and floats
    assert made.profiles[0].curves == {"$x^{$": ([1.0], [1.0])}
    assert made.profiles[0].ylabel == "share of pairs solved"
    assert "instances" not in re.sub("<script.*?</script>", "", page.render(made), flags=re.DOTALL)
    assert page.render(made) == page.render(content(submission(theirs).runs, again.outcomes, small, again.notes))
    assert list(tables(submission(theirs).runs)) == ["theory"]
