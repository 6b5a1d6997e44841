"""The benchmark: the suite, the file of results, a run that goes on, methods of one's own, the page."""

import json
from collections import Counter
from dataclasses import replace

import pytest

import adom
from adom import page
from adom.bench import records, suite
from adom.bench import run as running
from adom.bench.page import content, tables
from adom.bench.records import Record, Submission
from adom.bench.work import Job, code_of, do_job, outcome

PAIR = ("quadratic-10", "geometric")


def record(**changes):
    known = {"problem": PAIR[0], "network": PAIR[1], "method": "mine", "protocol": "auto", "status": "converged"}
    known |= {"rounds": 50, "relative_error": 1e-7, "rounds_to_target": 50.0, "gradients_to_target": 50.0}
    return Record(**{**known, "floats_sent_to_target": 9.0, **changes})


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
    given = submission(record(), record(method="other", status="refused", rounds=0, rounds_to_target=None))
    assert records.read(records.write(given, tmp_path / "results.json")) == given
    assert json.loads(records.schema())["properties"]["runs"]["items"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"suite": "0"}, "suite 0 is another than"),
        ({"rounds": 5}, "the budget is 1000 rounds"),
        ({"quick": False}, "the budget is 3000 rounds"),
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
    ],
)
def test_runs_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        submission(record(**change))


def test_names_that_are_taken_are_told_apart():
    both = records.together(submission(), [("theirs", submission()), ("more", submission(record(method="new")))])
    assert [each.method for each in both] == ["mine", "mine (theirs)", "new"]
    with pytest.raises(ValueError, match="two runs"):
        submission(record(), record())


def test_a_job_is_a_run_of_solve_and_its_file_is_found_again(tmp_path):
    (tmp_path / "results").mkdir()
    job = Job(*PAIR, "support.own_method:Mine", "theory", 400, 1e-6, code_of("support.own_method:Mine"))
    assert not outcome(job, tmp_path).done
    do_job(job, tmp_path)
    found = outcome(job, tmp_path)
    problem, network = suite.problem(PAIR[0]), suite.network(PAIR[1])
    from support.own_method import Mine

    errors = adom.solve(problem, network, Mine, "theory", rounds=400).history
    reached = errors["error"].to_numpy() <= 1e-6 * suite.NODES * (problem.solution() ** 2).sum()
    assert found.record.status == "converged"
    assert found.record.rounds_to_target == errors["round"][reached.argmax()] == found.record.rounds
    assert found.record.method == "Mine"
    assert not outcome(replace(job, code="changed"), tmp_path).done
    (path,) = (tmp_path / "results").glob("*.npz")
    path.write_bytes(path.read_bytes()[:100])
    assert not outcome(job, tmp_path).done
    assert not path.exists()  # so that it is made again


def test_a_job_that_cannot_run_says_why(tmp_path):
    (tmp_path / "results").mkdir()
    job = Job("softmax", "lossy", "mudag", "auto", 100, 1e-6)
    do_job(job, tmp_path)
    assert outcome(job, tmp_path).record.status == "refused"
    assert "messages are lost" in outcome(job, tmp_path).record.reason


def test_the_benchmark_goes_on_where_it_was_left_and_ranks_others_too(tmp_path, monkeypatch):
    small = replace(suite.SCALES["quick"], pairs=(PAIR,), rounds=60, target=1e-3)
    monkeypatch.setitem(suite.SCALES, "quick", small)
    asked = {"quick": True, "folder": tmp_path, "protocols": ["theory"], "workers": 1, "progress": False}
    first = running.bench(["nids"], **asked)
    (run,) = (tmp_path / "results").iterdir()
    written = run.stat().st_mtime_ns
    theirs = record(method="theirs", protocol="theory", rounds=1, rounds_to_target=1.0)
    other = records.write(submission(theirs), tmp_path / "other.json")
    again = running.bench(["nids"], add=[other], **asked)
    assert run.stat().st_mtime_ns == written
    assert first.ranks["theory"].rows[0][0] == "nids"
    assert [row[0] for row in again.ranks["theory"].rows] == ["theirs", "nids"]
    assert [each.method for each in records.read(tmp_path / "results.json").runs] == ["nids"]  # one's own alone
    text = (tmp_path / "bench.html").read_text()
    for words in ("Ranks", "data:image/svg+xml;base64", "quadratic-10 on geometric", "made by x 1", "theirs"):
        assert words in text
    made = content(submission(theirs).runs, again.outcomes, small, again.notes)
    assert page.render(made).count("<img") == 2  # rounds and floats
    assert page.render(made) == page.render(content(submission(theirs).runs, again.outcomes, small, again.notes))
    assert list(tables(submission(theirs).runs)) == ["theory"]
