"""The thread that answers for a busy rank: as long as the rank works, and not when it is blocked."""

import threading
import time

from adom.run.ranks import watch
from adom.run.ranks.watch import LEFT, RUNNING, Marks


def watched(monkeypatch, answers, ends):
    monkeypatch.setattr(watch, "BEAT", 0.05)
    one = watch.Watch(lambda: answers.append(1), ends.append)
    one.patience = 1.0
    one.start()
    return one


def test_a_rank_that_works_is_answered_for_as_long_as_it_likes(monkeypatch):
    answers, ends = [], []
    one = watched(monkeypatch, answers, ends)
    with one.busy("reading"):
        end = time.monotonic() + 2.5
        while time.monotonic() < end:
            sum(range(1000))
    assert ends == []
    assert len(answers) > 5
    with one.lock, one.busy("talking itself"):  # then the thread keeps out of the way
        count = len(answers)
        sum(range(10**7))
        assert len(answers) == count


def test_a_rank_that_is_blocked_is_given_up_and_what_it_did_is_said(monkeypatch):
    answers, ends, over = [], [], threading.Event()
    one = watched(monkeypatch, answers, ends)
    one.give_up = lambda words: (ends.append(words), over.set())
    with one.busy(lambda: "reading node-00007.svm"):
        assert over.wait(60)
    assert [words.partition(",")[0] for words in ends] == [
        "has done nothing for 1 s while reading node-00007.svm: it is blocked"
    ]
    assert answers


def test_marks_are_seen_by_all_and_stay_when_their_file_is_gone(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    one, other = Marks("job", 3), Marks("job", 3)
    one[1] = RUNNING
    one.forget()
    other.forget()
    assert list(tmp_path.iterdir()) == []
    other[2] = LEFT
    assert [one[rank] for rank in range(3)] == [other[rank] for rank in range(3)] == [0, RUNNING, LEFT]
    assert one.first()
    assert not other.first()
