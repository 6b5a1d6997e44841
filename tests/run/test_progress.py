"""Progress without a terminal: lines now and then; and requests to stop that several runs share."""

import os
import signal

import numpy as np
import pytest

import adom
from adom.run import progress
from adom.run.progress import Interrupt, Pace, Progress
from adom.run.ranks import on_ranks
from support import apart


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets, and a pace of its own."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "FIRST", 5.0)
    monkeypatch.setattr(progress, "PACE", Pace())
    return now


def told(capsys):
    return capsys.readouterr().err.splitlines()


def test_lines_come_ever_more_rarely(clock, capsys):
    with Progress(5000, "ADOM") as shown:
        for second in range(400):
            clock[0] = float(second)
            shown.update(10 * second, "gradient norm 3.25e-05")
    lines = told(capsys)
    assert lines[0] == "ADOM: round 50 of 5,000, gradient norm 3.25e-05, after 5 s"
    rounds = [int(line.split()[2].replace(",", "")) for line in lines]
    gaps = np.diff([0, *rounds]) / 10
    assert (np.diff(gaps) >= 0).all()
    assert gaps[-1] == 60
    assert len(lines) < 12


def test_short_runs_one_after_another_share_a_pace_and_a_pause_starts_anew(clock, capsys):
    for run in range(40):
        with Progress(100, f"run {run}") as shown:
            clock[0] += 2.0
            shown.update(100)
    assert [line.split(":")[0] for line in told(capsys)] == ["run 2", "run 6", "run 17"]  # after 6, 14 and 36 s
    clock[0] += 100.0
    with Progress(12, "sweep", unit="members") as shown:
        clock[0] += 4.0
        shown.update(2)
        clock[0] += 90.0  # a single step may be long
        shown.update(3)
    assert told(capsys) == ["sweep: 3 of 12 members, after 2 min"]


def test_nothing_is_said_on_request_and_a_bar_in_place_of_lines(clock, capsys):
    for shown in (Progress(100, "ADOM", show=False), Progress(100, "ADOM", show=False, plain=True)):
        clock[0] += 50.0
        shown.update(10)
    assert told(capsys) == []
    with Progress(100, "ADOM", show=True) as bar:
        clock[0] += 50.0
        bar.update(10)
        assert bar.bar
        assert not bar.lines
    assert "ADOM: round" not in capsys.readouterr().err


@pytest.mark.parametrize("sent", ["between two runs", "in a run"])
def test_ctrl_c_at_any_time_keeps_the_fit_so_far(tmp_path, monkeypatch, sent):
    apart.write("cancer", [tmp_path])
    data = adom.NodeData(tmp_path / "shards", scale=True, C=0.02)
    whole, runs = on_ranks.run, []

    def run(*given):
        result = whole(*given)
        runs.append(result.status)
        if len(runs) == 2 and sent == "between two runs":
            os.kill(os.getpid(), signal.SIGINT)
        return result

    update = Progress.update

    def pressing(self, done, note=""):
        update(self, done, note)
        if len(runs) == 1 and sent == "in a run":
            monkeypatch.setattr(Progress, "update", update)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(on_ranks, "run", run)
    monkeypatch.setattr(Progress, "update", pressing)
    handler = signal.getsignal(signal.SIGINT)
    result = adom.solve(data, adom.networks.complete(4), "adom+", "unit", rounds=100_000, tol=1e-20)
    assert result.status == runs[-1] == "interrupted"
    assert runs[:-1] == ["converged"] * len(runs[:-1])
    assert len(runs) > 1
    assert result.model().provenance["status"] == "interrupted"
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_request_is_kept_when_an_interrupt_is_entered_again():
    with Interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        with interrupt as again:
            assert again.asked
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
