"""Processes: units in order of need, a process that dies, a job that kills every process."""

import json
import os
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from adom.study import execute as executing
from adom.study.execute import JobProgress, Runner, WorkUnit, default_workers, gpu_wanted
from support.deadly import Numbered, do, draw

DOCS = Path(__file__).parents[2] / "docs"
JOBS = [Numbered(number) for number in range(5)]
KEYS = [job.key for job in JOBS]


def unit(*numbers, needs=(), page=None):
    return WorkUnit([JOBS[number] for number in numbers], page, {KEYS[number] for number in needs})


def run(folder, units, deadly=None, gpu=False):
    """Return the jobs that are done, the runner, and the attempts in order."""
    (folder / "results").mkdir()
    (folder / "deadly.json").write_text(json.dumps(deadly or {}))
    (folder / "tried").touch()
    told = []
    runner = Runner(folder, 2, do, draw, gpu)
    runner.run(units, told.append)
    tried = [int(line.split()[0]) for line in (folder / "tried").read_text().splitlines()]
    return sorted(KEYS.index(key) for key in told[-1]), runner, tried


def test_units_wait_for_what_they_need(tmp_path, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/nowhere")
    before = dict(os.environ)
    units = [unit(3, 4, needs=(0, 2)), unit(0), unit(1, 2), unit(needs=(3, 4), page="kappa")]
    done, runner, tried = run(tmp_path, units)
    assert done == [0, 1, 2, 3, 4]
    assert tried.index(3) > max(tried.index(0), tried.index(2))
    assert (tmp_path / "drawn").read_text() == "kappa"
    assert not runner.lost
    assert sorted(tried) == [0, 1, 2, 3, 4]
    assert set((tmp_path / "tried").read_text().split()[1::2]) == {"1"}  # one thread each
    assert dict(os.environ) == before


def test_what_a_process_that_dies_has_left_is_done(tmp_path):
    done, runner, tried = run(tmp_path, [unit(0, 1, 2), unit(3, 4)], {1: 1})
    assert done == [0, 1, 2, 3, 4]
    assert not runner.lost
    assert tried.count(1) == 2


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_a_unit_that_meets_dead_processes_is_not_forgotten(tmp_path, monkeypatch, attempt):
    """Handing over work fails where a process has died since the last look, also while suspects run alone."""
    submit, attempts = Runner._submit, []

    def broken(self, executor, unit):
        attempts.append(unit)
        if len(attempts) in (attempt, attempt + 1):
            raise BrokenProcessPool
        return submit(self, executor, unit)

    monkeypatch.setattr(Runner, "_submit", broken)
    done, runner, _ = run(tmp_path, [unit(0), unit(1), unit(2)])
    assert done == [0, 1, 2]
    assert not runner.lost


def test_a_job_that_kills_its_process_twice_is_given_up_and_the_rest_done(tmp_path):
    done, runner, tried = run(tmp_path, [unit(0, 1, 2), unit(3, needs=(1,)), unit(4)], {1: 9})
    assert done == [0, 2, 3, 4]
    assert runner.lost == {KEYS[1]: "ended abruptly; about to die"}
    assert tried.count(1) == 2


def test_a_job_that_raises_is_given_up_at_once(tmp_path):
    done, runner, tried = run(tmp_path, [unit(0, 1, 2)], {1: "fail"}, gpu=True)
    assert done == [0, 2]
    assert runner.lost == {KEYS[1]: "ValueError: no such luck"}
    assert tried == [0, 1, 2]
    assert set((tmp_path / "tried").read_text().split()[1::2]) == {str(os.environ.get("NPROC"))}  # a GPU's threads


def test_a_process_that_dies_while_drawing_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match=r"died while drawing deadly: ended abruptly, as it does"):
        run(tmp_path, [unit(0), unit(page="deadly")])


@pytest.mark.parametrize(
    ("asked", "gpu"), [(None, False), ("", False), ("cpu", False), ("cuda", True), ("rocm,cpu", True)]
)
def test_a_gpu_is_used_only_where_it_is_asked_for(monkeypatch, asked, gpu):
    monkeypatch.delenv("JAX_PLATFORMS") if asked is None else monkeypatch.setenv("JAX_PLATFORMS", asked)
    assert gpu_wanted() is gpu
    assert default_workers() == 1 or not gpu


def test_time_left_falls_to_nothing():
    progress = JobProgress({"a": 1.0, "b": 3.0}, 0, 1, show=False, name="reproduce")
    left = [progress.left()]
    for done in ({"a", "other"}, {"a", "b"}):
        progress.tell(done)
        left.append(progress.left())
    assert left[0] == pytest.approx(4.0, rel=0.2)
    assert left == sorted(left, reverse=True)
    assert (left[-1], progress.count) == (0, 2)


def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is(monkeypatch, capsys):
    assert f"every {executing.TELL_SECONDS:.0f} seconds" in (DOCS / "command-line.md").read_text()
    with JobProgress({"a": 1.0, "b": 3.0}, 5, 1, show=None, name="bench") as progress:
        progress.tell({"a"})
        monkeypatch.setattr(executing, "TELL_SECONDS", 0.0)
        progress.tell({"a"})
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in said] == ["adom: 5 of 7 runs", "adom: 6 of 7 runs"]
