"""One job a folder: also after kills, without the file system's locks, and where other machines see the folder."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from adom.errors import InputError
from adom.run.ranks import checkpoints as lock
from adom.run.ranks.checkpoints import FolderLock

HOME = str(Path(lock.__file__).parents[3])
HOLD = """
import sys
from pathlib import Path
from adom.run.ranks.checkpoints import FolderLock
with FolderLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def taken(folder):
    with FolderLock(folder):
        return json.loads((folder / lock.LOCK).read_bytes())


def hold(folder):
    """Hold the lock in another process, until its stdin ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": HOME},
    )  # fmt: skip
    assert process.stdout.readline() == "held\n"
    return process


@pytest.fixture(params=["flock", "no flock"])
def kind(request, monkeypatch):
    if request.param == "no flock":  # as on some network file systems
        monkeypatch.setattr(lock, "fcntl", None)
    return request.param


def test_one_at_a_time_and_a_kill_frees_it(tmp_path, kind, monkeypatch):
    process = hold(tmp_path)
    with pytest.raises(InputError, match=rf"is in use by process {process.pid} on .* \(since .*\); wait until it has"):
        taken(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    monkeypatch.setattr(lock, "LOOK", 0.5)
    assert (tmp_path / lock.LOCK).exists()
    assert taken(tmp_path)["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_of_many_at_once_one_gets_it(tmp_path):
    begin, end, got, refused = threading.Barrier(8), threading.Event(), [], []

    def take():
        begin.wait()
        try:
            with FolderLock(tmp_path):
                got.append(1)
                end.wait(30)
        except InputError as error:
            refused.append(str(error))
            if len(refused) == 7:
                end.set()

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert (len(got), len(refused)) == (1, 7)


def elsewhere(folder, beat):
    text = json.dumps({"host": "elsewhere", "pid": 7, "since": "then", "beat": beat, "token": "x"})
    (folder / lock.LOCK).write_text(text)


def test_a_job_on_another_machine_is_known_by_its_signs_of_life(tmp_path, kind, monkeypatch, capfd):
    monkeypatch.setattr(lock, "LOOK", 0.5)
    elsewhere(tmp_path, 1)
    assert taken(tmp_path)["pid"] == os.getpid()  # it gave none
    assert "is marked as in use by process 7 on elsewhere (since then); checking for 0.5 s" in capfd.readouterr().err
    monkeypatch.setattr(lock, "LOOK", 30.0)
    elsewhere(tmp_path, 1)
    alive = threading.Timer(0.2, elsewhere, (tmp_path, 2))
    alive.start()
    with pytest.raises(InputError, match="is in use by process 7 on elsewhere"):
        taken(tmp_path)
    alive.join()


def test_signs_of_life_are_given(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "BEAT", 0.02)
    with FolderLock(tmp_path):
        seen = set()
        while len(seen) < 3:  # for ever, where none are
            seen.add(json.loads((tmp_path / lock.LOCK).read_bytes())["beat"])


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff" * 600, b"[" * 600])
def test_what_names_nobody_is_in_nobodys_way(tmp_path, content):
    (tmp_path / lock.LOCK).write_bytes(content)
    assert taken(tmp_path)["pid"] == os.getpid()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*file.*; choose another place"):
        taken(tmp_path / "file")
