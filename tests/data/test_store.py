"""Files are found where they may lie, fetched where they are missing, and never used if they are not right."""

import bz2
import gzip
import shutil
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import adom
from adom.data import download, fetch, folder, sets, state
from adom.data.sets import DataSet
from adom.errors import InputError

from .conftest import PARTS, TOY, Page, piece, zipped


def refusal(name: str) -> str:
    """Return why a data set is refused: one line."""
    with pytest.raises(InputError) as caught:
        fetch(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def files(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


def test_the_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADOM_DATA", "/given")
    assert folder() == Path("/given")
    monkeypatch.setenv("ADOM_DATA", "~/given")
    assert folder() == Path.home() / "given"
    monkeypatch.delenv("ADOM_DATA")
    monkeypatch.delenv("ADOM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/user/cache")
    assert folder() == Path("/user/cache/adom/data")
    monkeypatch.setenv("ADOM_CACHE", "/own")
    assert folder() == Path("/own/data")
    monkeypatch.setenv("ADOM_DATA", "~nobody-of-that-name/data")
    with pytest.raises(InputError, match="set ADOM_DATA"):
        folder()


def test_a_download_is_kept_and_not_repeated(home: Path, page: Page, toy: DataSet, capsys: Any) -> None:
    assert state("toy") == ("absent", home / "libsvm" / "toy", "")
    assert fetch("toy") == [home / "libsvm" / "toy"]
    assert capsys.readouterr().err == f"adom: downloaded {toy.url} into {home / 'libsvm'}\n"
    assert (home / "libsvm" / "toy").read_bytes() == TOY
    assert fetch("toy") == [home / "libsvm" / "toy"]
    assert page.asked == 1
    assert state("toy").status == "present"
    assert files(home) == ["libsvm/toy"]
    A, b = adom.data.load("toy")
    assert A.toarray().tolist() == [[0.5, 0, 2], [0, 1, 0], [1, 0, 0], [0, 0, 4]]
    assert b.tolist() == [1, -1, 1, -1]
    assert adom.data.problem("toy", 2, split="label", kappa=5.0).nodes == 2
    assert page.asked == 1


def test_a_packed_file_is_kept_packed_and_checked_unpacked(home: Path, page: Page, packed: DataSet) -> None:
    assert fetch("four") == [home / "libsvm" / "four.bz2"]
    assert bz2.decompress((home / "libsvm" / "four.bz2").read_bytes()) == TOY
    page.files["/four.bz2"] = bz2.compress(TOY + b"-1 1:1\n")
    shutil.rmtree(home)
    assert "four.bz2 is not the four of four: its text must have sha256" in refusal("four")
    assert files(home) == []


def test_an_archive_is_kept_unpacked(home: Path, page: Page, archive: DataSet) -> None:
    assert sorted(fetch("net")) == [home / "net" / name for name in sorted(PARTS)]
    assert files(home) == sorted(f"net/{name}" for name in PARTS)  # not the files that nobody asked for
    assert download.texts(archive) == PARTS
    assert download.texts(archive, ["net_A.txt"]) == {"net_A.txt": PARTS["net_A.txt"]}
    assert state("net") == ("present", home / "net", "")
    assert page.asked == 1


@pytest.mark.parametrize("place", ["libsvm/toy", "toy", "libsvm/toy.bz2", "toy.bz2", "toy.gz"])
def test_files_put_there_by_hand(home: Path, page: Page, toy: DataSet, place: str) -> None:
    pack = {".bz2": bz2.compress, ".gz": gzip.compress}.get(Path(place).suffix, bytes)
    (home / place).parent.mkdir(parents=True)
    (home / place).write_bytes(pack(TOY))
    assert fetch("toy") == [home / place]
    assert state("toy") == ("present", home / place, "")
    assert page.asked == 0
    assert files(home) == [place]


@pytest.mark.parametrize("place", ["net", "."])
def test_an_archive_put_there_by_hand(home: Path, page: Page, archive: DataSet, place: str) -> None:
    (home / place).mkdir(parents=True)
    (home / place / "net.zip").write_bytes(page.files["/net.zip"])
    assert download.texts(archive) == PARTS
    assert fetch("net") == [home / place / "net.zip"]
    assert state("net").status == "present"
    for name, text in PARTS.items():
        (home / place / name).write_bytes(text)
    assert fetch("net") == [home / place / name for name in PARTS]
    assert page.asked == 0


def test_a_wrong_file_is_named_and_left_alone(home: Path, page: Page, toy: DataSet) -> None:
    home.mkdir()
    (home / "toy").write_bytes(TOY.replace(b"0.5", b"0.6"))
    said = refusal("toy")
    assert said.startswith(f"{home / 'toy'} is not the toy of toy: its text must have sha256 {toy.pieces[0].sha256}")
    assert said.endswith("; delete it to have it fetched again")
    assert page.asked == 0
    assert state("toy") == ("wrong", home / "toy", said)
    (home / "toy").write_bytes(TOY * 2)
    assert f"got more than {len(TOY)} bytes" in refusal("toy")
    (home / "toy").write_bytes(bz2.compress(TOY)[:-9])
    assert "cut short or damaged" in refusal("toy")
    (home / "toy").unlink()
    assert fetch("toy") == [home / "libsvm" / "toy"]


def test_a_packed_file_is_not_unpacked_further_than_it_may_be(home: Path, page: Page, packed: DataSet) -> None:
    home.mkdir()
    (home / "four.bz2").write_bytes(bz2.compress(b"0" * 50_000_000))
    assert f"got more than {len(TOY)} bytes" in refusal("four")


def test_a_download_with_the_wrong_content_is_not_kept(home: Path, page: Page, toy: DataSet) -> None:
    page.files["/toy"] = TOY.replace(b"0.5", b"0.6")
    assert f"{toy.url} is not the toy of toy" in refusal("toy")
    page.files["/toy"] = b""
    assert "try again later" in refusal("toy")
    assert files(home) == []
    assert state("toy").status == "absent"


def test_a_truncated_download_is_not_kept(home: Path, page: Page, toy: DataSet) -> None:
    page.files["/toy"] = TOY[:-5]
    page.promised["/toy"] = len(TOY)
    assert "could not be downloaded: the connection broke off; put http" in refusal("toy")
    page.promised["/toy"] = None  # nobody notices but the checksum
    assert "sha256" in refusal("toy")
    assert files(home) == []


def test_an_endless_download_is_stopped(home: Path, page: Page, toy: DataSet) -> None:
    page.files["/toy"] = bytes(3_000_000)
    assert "sends more than the" in refusal("toy")
    assert files(home) == []


def test_without_a_connection(home: Path, page: Page, toy: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/toy"
    monkeypatch.setitem(sets.SETS, "toy", replace(toy, url=url))
    assert refusal("toy") == (
        f"toy is not in {home} and could not be downloaded: no connection; "
        f"put {url} into that folder by hand, or set ADOM_DATA to a folder that has it"
    )
    monkeypatch.setitem(sets.SETS, "toy", replace(toy, url=f"{page.url}/moved"))
    assert "the page answers 404 Not Found" in refusal("toy")


def test_an_interrupted_download_leaves_nothing(
    home: Path, page: Page, toy: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pooch

    def interrupted(self: Any, url: str, content: Any, *_: Any) -> None:
        content.write(TOY[:10])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch("toy")
    assert list((home / "libsvm").iterdir()) == []
    assert fetch("toy") == [home / "libsvm" / "toy"]


def test_a_folder_that_cannot_be_written_to(
    tmp_path: Path, page: Page, toy: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("ADOM_DATA", str(tmp_path / "file"))
    assert "cannot be put there (Not a directory); set ADOM_DATA to a folder that can be written to" in refusal("toy")
    assert page.asked == 0


@pytest.mark.parametrize("name", ["../net_A.txt", "/net_A.txt", "net/../../net_A.txt", "..\\net_A.txt", "C:net_A.txt"])
def test_an_archive_with_paths_that_lead_out(home: Path, page: Page, archive: DataSet, name: str) -> None:
    page.files["/net.zip"] = zipped({**PARTS, name: b"evil"})
    assert "a path out of its folder" in refusal("net")
    assert files(home.parent) == []


def test_archives_that_are_not_right(home: Path, page: Page, archive: DataSet) -> None:
    good = page.files["/net.zip"]
    page.files["/net.zip"] = good[: len(good) // 2]
    assert "is not a whole zip archive" in refusal("net")
    page.files["/net.zip"] = zipped({"net_A.txt": PARTS["net_A.txt"]})
    assert "does not hold net_graph_indicator.txt" in refusal("net")
    page.files["/net.zip"] = zipped({**PARTS, "other/net_A.txt": b"twice"})
    assert "one file too many" in refusal("net")
    page.files["/net.zip"] = zipped({**PARTS, **{str(k): b"" for k in range(100)}})
    assert "one file too many" in refusal("net")
    page.files["/net.zip"] = zipped({**PARTS, "net_A.txt": bytes(10_000_000)})
    assert f"got more than {len(PARTS['net_A.txt'])} bytes" in refusal("net")
    page.files["/net.zip"] = zipped({**PARTS, "net_A.txt": b"1, 2\n2, 2\n"})
    assert "is not the net_A.txt of net: its text must have sha256" in refusal("net")
    assert files(home) == []


def test_a_member_with_a_damaged_body(home: Path, page: Page, archive: DataSet) -> None:
    content = bytearray(page.files["/net.zip"])
    start = content.index(b"net/net_A.txt") + len("net/net_A.txt")
    content[start] ^= 0xFF
    page.files["/net.zip"] = bytes(content)
    assert "is not a whole zip archive" in refusal("net")


def test_names(home: Path) -> None:
    with pytest.raises(InputError, match=r"no data set is called 'a7a'; did you mean 'a6a'\? known: a6a, w6a"):
        fetch("a7a")
    with pytest.raises(InputError, match=r"is a network, not samples; adom.data.infectious\(\) gives it"):
        adom.data.load("infectious_ct1")
    assert all(state(name).status == "absent" for name in ("a6a", "w6a", "ijcnn1", "infectious_ct1"))
    assert not home.exists()


def test_every_set_comes_from_a_secure_page_with_a_checksum_for_each_file() -> None:
    for chosen in sets.SETS.values():
        assert chosen.url.startswith("https://")
        for one in chosen.pieces:
            assert len(bytes.fromhex(one.sha256)) == 32
            assert one.size > 0
    assert piece("x", b"").sha256.startswith("e3b0c442")
