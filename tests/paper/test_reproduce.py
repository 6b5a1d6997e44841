"""A whole reproduction, tiny: its files, what is said without data, and going on after a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import adom
from adom.algorithms import method_class
from adom.errors import InputError
from adom.paper.plan import make_jobs
from adom.paper.reproduction import reproduce, seconds, shared
from adom.paper.runs import load_outcomes, read_outcome
from adom.paper.webpage import replay_panel
from adom.paper.work import do_job, problem_of, records_every
from adom.study.execute import work_units
from support.tiny import TINY

HERE = Path(__file__).parents[1]
HOME = Path(adom.__file__).parents[1]
PANELS = ["network", "chi/d4-chi4", "theory/kappa-d4-kappa10"]
SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs would ignore it
import sys
from adom.paper.reproduction import reproduce
from support.tiny import TINY
reproduce(sys.argv[2:], scale=TINY, folder=sys.argv[1], workers=2, progress=False)
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return reproduce(PANELS, scale=TINY, folder=tmp_path_factory.mktemp("whole"), workers=2, progress=False)


def start(folder, *panels):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HOME), str(HERE)])}
    command = [sys.executable, "-c", SCRIPT, str(folder), *panels]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_it_leaves_figures_tables_and_ledger(whole):
    names = {str(path.relative_to(whole.folder)) for path in whole.files}
    assert {"ledger.json", "ledger.md", "tables/runs.csv", "tables/tuning.csv", "tables/theory.csv"} <= names
    assert {f"figures/chi-{p}.{k}" for p in ("theory", "unit", "tuned") for k in ("png", "pdf")} <= names
    assert {"figures/network.png", "figures/network.pdf"} <= names
    assert all(path.stat().st_size > 0 for path in whole.files)
    assert whole.done == len(whole.outcomes)
    assert not list(whole.folder.rglob("*.tmp"))


def test_the_table_has_a_row_for_every_run(whole):
    table = pd.read_csv(whole.folder / "tables" / "runs.csv")
    runs = [one for one in whole.outcomes if one.result is not None]
    assert len(table) == len(runs)
    for row, one in zip(table.to_dict("records"), runs, strict=True):
        assert (row["method"], row["protocol"], row["seed"]) == (one.job.method, one.job.protocol, one.job.seed)
        assert row["relative_error"] == pytest.approx(
            one.result.history["error"].iloc[-1] / one.result.provenance["start_error"]
        )
        assert len(one.result.history) <= one.job.records + 1
    assert not [column for column in table if "second" in column]


def test_runs_are_what_solve_gives(whole):
    one = next(o for o in whole.outcomes if (o.job.method, o.job.protocol, o.job.variant) == ("adom", "unit", ""))
    settings = one.job.panel.settings
    problem = problem_of(one.job)
    network = adom.networks.geometric(settings["nodes"], chi=settings["chi"], graphs=settings["graphs"], seed=1)
    start_error = problem.nodes * float((problem.solution() ** 2).sum())
    every = one.job.rounds // one.job.records
    alone = adom.solve(problem, network, "adom", "unit", "gd:1", one.job.rounds, 1e-10 * start_error, every)
    np.testing.assert_allclose(one.result.history["error"], alone.history["error"], rtol=1e-9)
    np.testing.assert_allclose(one.result.x, alone.x, rtol=1e-9, atol=1e-12)


def test_tuned_parameters_are_carried_over_as_multiples_of_the_constants(whole):
    searches = {one.job.key: one.data for one in whole.outcomes if one.job.variant == "tune"}
    assert {data["candidates"] for data in searches.values()} == {4}
    seen = 0
    for one in whole.outcomes:
        if one.job.protocol == "tuned" and one.result is not None:
            told = one.result.provenance["tuning"]
            assert (told["seed"], one.job.seed > 0) == (0, True)
            chosen = searches[one.job.tuning]["chosen"]
            assert told["chosen"] == chosen
            if one.job.method == "acc-dngd" and chosen["name"] != "theory":
                true = one.result.provenance["problem"] | {"chi": one.result.provenance["network"]["chi"]}
                mu, L, chi = (true[name] * chosen[name] for name in ("mu", "L", "chi"))
                eta = (mu / L) ** (3 / 7) / (L * chi**3)
                assert one.result.provenance["method"]["parameters"]["eta"] == pytest.approx(eta, rel=1e-4)
                seen += 1
    assert seen


def test_verifications_and_searches_leave_data(whole):
    (checked,) = [one.data for one in whole.outcomes if one.job.variant == "verify"]
    assert checked["holds"]
    assert {row["name"] for row in checked["rows"]} == {"Theorem 1", "Lemma 1", "Lemma 2", "Lemma 3", "Lemma 4"}


def test_a_second_call_runs_nothing_and_leaves_the_same_files(whole):
    before = {path: path.read_bytes() for path in whole.files}
    times = {path: path.stat().st_mtime_ns for path in (whole.folder / "results").iterdir()}
    again = reproduce(PANELS, scale=TINY, folder=whole.folder, workers=1, progress=False)
    assert {path: path.read_bytes() for path in again.files} == before
    assert {path: path.stat().st_mtime_ns for path in (whole.folder / "results").iterdir()} == times


def test_killed_twice_and_resumed_it_ends_in_the_same_files(whole, tmp_path, capsys):
    results = tmp_path / "results"
    for least in (2, 6):
        process = start(tmp_path, *PANELS)
        wait_for(lambda least=least: results.exists() and len(list(results.glob("[!.]*"))) >= least)
        process.kill()
        process.communicate()
    damaged = next(results.glob("*.npz"))
    damaged.write_bytes(damaged.read_bytes()[:100])
    again = reproduce(PANELS, scale=TINY, folder=tmp_path, workers=2, progress=False)
    assert f"redoing a damaged result: {damaged} is not a whole result file" in capsys.readouterr().err
    for ours, theirs in zip(again.files, whole.files, strict=True):
        if "ledger" not in ours.name and "findings" not in ours.name:  # these name their folder
            assert ours.read_bytes() == theirs.read_bytes(), ours.name
    ours, theirs = (json.loads((folder / "ledger.json").read_text()) for folder in (tmp_path, whole.folder))
    assert ours["entries"] == theirs["entries"]
    for one, other in zip(load_outcomes(tmp_path), whole.outcomes, strict=True):
        assert one.job == other.job
        if one.result is not None:
            columns = [name for name in one.result.history if name != "seconds"]
            pd.testing.assert_frame_equal(one.result.history[columns], other.result.history[columns])


def test_workers_end_when_the_reproduction_is_killed(tmp_path):
    process = start(tmp_path, "kappa")
    wait_for(lambda: list(tmp_path.glob("results/*.json")))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    if not children.exists():
        process.kill()
        pytest.skip("this system does not list the children of a process")
    workers = [int(pid) for pid in children.read_text().split()]
    process.kill()
    process.communicate()
    assert len(workers) >= 2
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), 20)


def test_ctrl_c_keeps_what_is_done(tmp_path):
    process = start(tmp_path, "kappa")
    wait_for(lambda: list(tmp_path.glob("results/*.json")))
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert "runs are kept in" in said
    assert "the same command goes on" in said
    assert process.returncode != 0


def test_without_data_sets_the_rest_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ADOM_DATA", str(tmp_path / "nothing"))
    found = reproduce(
        ["network", "real_networks/a6a-kappa10"], scale=TINY, folder=tmp_path / "out", workers=1, progress=False
    )
    said = capsys.readouterr().err
    assert said.count("left out") == 1
    assert "they need a6a, infectious: `adom data --download` fetches them, or set ADOM_DATA" in said
    assert all(one.result is None and "is not there; `adom data" in one.reason for one in found.outcomes)
    assert {path.name for path in (tmp_path / "out" / "figures").iterdir()} == {"network.png", "network.pdf"}
    texts = [path for path in (tmp_path / "out").rglob("*.*") if path.suffix in (".csv", ".md", ".json")]
    assert len(texts) > 3
    assert not [path for path in texts if str(tmp_path) in path.read_text()]
    table = pd.read_csv(tmp_path / "out" / "tables" / "runs.csv")
    assert set(table["status"]) == {"missing"}
    assert table["reason"].str.contains("--download").any()


def test_with_data_sets_real_panels_run(tmp_path, monkeypatch):
    data = HERE.parents[1] / "shared" / "data"
    if not data.exists():
        pytest.skip("the data sets are not beside this checkout")
    monkeypatch.setenv("ADOM_DATA", str(data))
    found = reproduce(
        ["real_networks/a6a-kappa10"],
        protocols=["unit"],
        seeds=1,
        scale=TINY,
        folder=tmp_path,
        workers=1,
        progress=False,
    )
    by_method = {one.job.method: one for one in found.outcomes}
    assert by_method["mudag"].reason.startswith("rounds must be at least")
    assert by_method["adom"].result.x.shape == (50, 122)
    assert by_method["adom"].result.provenance["network"]["chi"] == pytest.approx(232, abs=1)


def test_what_a_budget_refuses_leaves_its_reason(tmp_path):
    job = next(one for one in make_jobs(["chi/d4-chi7"], TINY, ["unit"]) if one.method == "mudag")
    short = replace(job, rounds=3)
    do_job(short, tmp_path, stages=TINY.stages)
    found = read_outcome(short, tmp_path)
    assert found.refused
    assert "rounds must be at least" in found.reason


def test_jobs_that_share_data_and_network_go_together_and_searches_first():
    jobs = make_jobs(["kappa"], TINY)
    costs = {job.key: seconds(job) for job in jobs}
    units = work_units(jobs, shared, costs, lambda job: {job.tuning})
    assert sorted(job.key for unit in units for job in unit.jobs) == sorted(job.key for job in jobs)
    kinds = [{bool(job.candidates) for job in unit.jobs} for unit in units]
    assert kinds == sorted(kinds, key=lambda kind: kind != {True})
    for unit in units:
        assert len({(job.seed, job.panel.settings["dim"]) for job in unit.jobs}) == 1
        assert unit.needs == {job.tuning for job in unit.jobs} - {""}
        assert unit.cost == pytest.approx(sum(map(seconds, unit.jobs)))


def test_a_panel_whose_links_change_is_shown_in_motion(whole, tmp_path):
    seen = replay_panel(whole.folder, progress=False)
    assert "Figure chi, panel d4-chi4, seed 1: ADOM, parameters unit" in seen.title
    assert seen.distances.shape[1] == 6
    assert len(seen.edges) > 1
    whole.plan.save(tmp_path)
    with pytest.raises(InputError, match="has no run on synthetic data"):
        replay_panel(tmp_path)


@pytest.mark.parametrize("method", ["adom", "apm", "mudag"])
def test_records_are_about_as_many_as_asked_for(method, whole):
    job = next(one.job for one in whole.outcomes if one.job.method == method and one.job.protocol == "unit")
    constants = adom.Constants(1.0, 100.0, 0.1, 1.0, 6)
    made = method_class(method).unit(constants)
    every = records_every(made, job)
    steps, left = 0, job.rounds
    while left >= made.rounds_of_step(steps):
        left -= int(made.rounds_of_step(steps))
        steps += 1
    assert steps / every <= job.records


def test_bad_input_is_refused_before_anything_is_written(tmp_path):
    folder = tmp_path / "new"
    with pytest.raises(InputError, match="unknown protocol 'best'"):
        reproduce(["kappa"], protocols=["best"], folder=folder)
    with pytest.raises(InputError, match="workers must be a whole number of at least 1, got 0"):
        reproduce(["kappa"], workers=0, folder=folder)
    with pytest.raises(InputError, match="no figure is called"):
        reproduce(["figure1"], folder=folder)
    assert not folder.exists()
