"""Paths of every kind as inputs, none of which is waited for; files that are written whole or not at all."""

import errno
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from adom.errors import InputError, shown
from adom.util import files
from adom.util.files import atomic, write_table


@pytest.fixture
def odd(tmp_path):
    """Paths of every kind that holds nothing to be read."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "large").write_bytes(bytes(100))
    names = ("pipe", "loop", "dangling", "large", "", "nowhere", "x" * 300, "large/x", "a\0b", "\ud800")
    return [f"{tmp_path}/{name}" for name in names] + ["/dev/zero"]


def test_whatever_a_path_names_is_read_or_refused_in_one_line(odd):
    for path in odd:
        with pytest.raises(InputError, match=r"cannot read .*; give another$") as caught:
            files.content(path, "give another", most=50)
        assert "\n" not in str(caught.value)
        assert files.kind(path) in ("nothing", "folder", "other") or "large" in path


def test_text_with_and_without_a_byte_order_mark(tmp_path):
    path = tmp_path / "text"
    for raw in ("ü\n".encode(), b"\xef\xbb\xbf" + "ü\n".encode()):
        path.write_bytes(raw)
        assert files.text(path, "") == "ü\n"
    for code in ("latin-1", "utf-16", "utf-16-le"):
        path.write_bytes("ü\n".encode(code))
        with pytest.raises(InputError, match=r"not UTF-8 text.*save it in UTF-8; or so"):
            files.text(path, "or so")


def test_the_longest_name_that_there_is_can_be_written(tmp_path):
    target = tmp_path / ("x" * 255)
    with atomic(target) as partial:
        partial.write_text("all of it")
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    (tmp_path / "plain").touch()
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("x" * 256, "File name too long"),
        ("file/x", "a file stands where a folder is needed"),
        ("folder", "Is a directory"),
        ("a\0b", "it is not a possible file name"),
        ("loop/x", "a file stands where a folder is needed"),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_work(tmp_path, name, why):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match=rf"cannot write .*({why}); choose another place"), atomic(tmp_path / name):
        pytest.fail("the work began")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder", "loop"]


def test_a_disk_that_is_full_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "run").write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for at in ("fsync", "close in the block"):
        with monkeypatch.context() as patch:
            if at == "fsync":
                patch.setattr(os, "fsync", full)
            with pytest.raises(InputError, match=r"cannot write .*run: No space left on device; nothing was changed"):
                write(tmp_path / "run", full if at != "fsync" else None)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (tmp_path / "run").read_text() == "old"


def write(path: Path, fail):
    with atomic(path) as partial:
        partial.write_text("new")
        if fail:
            fail()


def test_what_a_killed_process_left_goes_after_a_day(tmp_path):
    old, new, theirs = (tmp_path / f".sweep.png.{end}.tmp" for end in ("adom-abcd1234", "adom-abcd1235", "abcd1234"))
    for path in (old, new, theirs):
        path.touch()
    for path in (old, theirs):  # the latter is another program's
        os.utime(path, (0, 0))
    write(tmp_path / "sweep.png", None)
    assert {path.name for path in tmp_path.iterdir()} == {"sweep.png", new.name, theirs.name}


def test_an_error_is_one_line_that_can_be_read():
    assert str(InputError("a\nb\r\nc")) == "a b c"
    assert len(str(InputError(f"cannot read {'x' * 5000}: too long; take another"))) < 250
    assert shown(-(10**5000)) == "a number of about 5001 digits"


def test_a_table_is_written_as_pandas_writes_it(tmp_path):
    columns = {"round": np.arange(4), "error": np.array([1 / 3, 1e-300, np.inf, np.nan])}
    write_table(columns, tmp_path / "ours.csv")
    pd.DataFrame(columns).to_csv(tmp_path / "theirs.csv", index=False)
    assert (tmp_path / "ours.csv").read_text() == (tmp_path / "theirs.csv").read_text()
