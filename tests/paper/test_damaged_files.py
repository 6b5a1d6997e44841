"""Plans, ledgers and what jobs leave, damaged: refused in one line that names the file, or read as it was written."""

import json
from dataclasses import replace

import pytest

from adom.errors import Damaged, InputError
from adom.paper import ledger
from adom.paper.runs import TUNE, VERIFY, PaperJob, ReproductionPlan, load_plan, read_outcome
from adom.util.checked_json import read_checked, write_checked
from support.damage import attempt, mutants, overwrite
from support.made import four, panel

VERIFIED = {"holds": True, "rows": [{"name": "Lemma 1", "statement": "", "worst_ratio": 0.5, "holds": True}]}
CHOSEN = {"name": None, "status": "converged", "mu": 1.0, "L": 2.0, "chi": 1.0, "rounds": 30, "relative_error": 1e-9}
TUNED = {"chosen": CHOSEN, "on": {}, "candidates": 4, "rule": "least rounds", "rounds": 60, "target": 1e-8}


def job(variant=""):
    return PaperJob(panel(), "theory", 0, "adom", "exact", 100, 1e-8, variant)


def test_a_plan_is_read_back_or_refused(tmp_path):
    """The same jobs, or one line; also without the checksum, as somebody else may write it."""
    path = ReproductionPlan(True, [job(), job(VERIFY)], ["kappa"], [(4, 4.0)], {"a6a": "absent"}, "abc").save(tmp_path)
    plan = load_plan(tmp_path)
    assert [one.key for one in plan.jobs] == [job().key, job(VERIFY).key]
    content = path.read_bytes()
    for damaged in mutants(content, 700, seed=13):
        overwrite(path, damaged)
        found, refusal = attempt(lambda: load_plan(tmp_path))
        assert "plan.json" in refusal or found == plan
    bare = json.loads(content)
    del bare["sealed"], bare["sha256"]
    for damaged in mutants(json.dumps(bare).encode(), 700, seed=14):
        overwrite(path, damaged)
        found, refusal = attempt(lambda: load_plan(tmp_path))
        assert "plan.json" in refusal or isinstance(found, ReproductionPlan)
    overwrite(path, json.dumps(bare).encode())
    assert load_plan(tmp_path) == plan
    bare["jobs"][0]["rounds"] = True
    overwrite(path, json.dumps(bare).encode())
    with pytest.raises(InputError, match="rounds is True"):
        load_plan(tmp_path)


@pytest.mark.parametrize(("variant", "data"), [(VERIFY, VERIFIED), (TUNE, TUNED), ("", {"reason": "no budget"})])
def test_what_a_job_leaves_is_read_back_or_is_to_do_again(tmp_path, variant, data):
    one = job(variant)
    path = write_checked(tmp_path / "results" / f"{one.key}.json", data)
    whole = read_outcome(one, tmp_path)
    assert whole.data == (None if variant == "" else data)
    assert not whole.to_do
    for damaged in mutants(path.read_bytes(), 400, seed=13):
        overwrite(path, damaged)
        found = read_outcome(one, tmp_path)
        if found.to_do:
            assert str(path) in found.damaged
            assert found.reason.endswith("the same call makes it again")
        else:
            assert replace(found, data=None) == replace(whole, data=None)
            assert data.items() <= (found.data or data).items()


@pytest.mark.parametrize(
    "text", ["null", "[]", "3", "[" * 100_000, "{}", '{"rows": 3}', '{"rows": [3]}', '{"rows": []}']
)
def test_something_else_is_not_what_a_job_leaves(tmp_path, text):
    one = job(VERIFY)
    path = tmp_path / "results" / f"{one.key}.json"
    path.parent.mkdir()
    path.write_text(text)
    found = read_outcome(one, tmp_path)
    assert found.to_do
    assert f"{path} is not a valid result of a job" in found.damaged


def test_the_run_of_another_job_is_not_taken(tmp_path):
    first, second, *_ = four(panel(), 200, 400, 900, 900)
    path = first.result.save(tmp_path / "results" / f"{first.job.key}.npz")
    assert read_outcome(first.job, tmp_path).result is not None
    path.replace(path.with_stem(second.job.key))
    assert "does not hold the run named in its file name" in read_outcome(second.job, tmp_path).damaged


def test_a_ledger_is_read_back_or_refused(tmp_path):
    ReproductionPlan(False, [job()]).save(tmp_path)
    ledger.write(tmp_path, [])
    path, whole = tmp_path / "ledger.json", ledger.read(tmp_path)
    for damaged in mutants(path.read_bytes(), 300, seed=13):
        overwrite(path, damaged)
        found, refusal = attempt(lambda: ledger.read(tmp_path))
        assert "ledger.json" in refusal or found == whole


def test_a_changed_digit_is_noticed(tmp_path):
    path = write_checked(tmp_path / "one.json", {"a": 0.25, "b": float("nan")})
    assert read_checked(path) == {"a": 0.25, "b": None}
    path.write_text(path.read_text().replace("0.25", "0.75"))
    with pytest.raises(Damaged, match="it was changed: its SHA-256 does not match"):
        read_checked(path)
