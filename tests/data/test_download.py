"""Files are found where they may lie, fetched if they are missing, and never used if they are not right."""

import bz2
import gzip
import socket
from dataclasses import replace
from pathlib import Path

import pooch
import pytest

import adom
from adom.data import fetch, folder, sets, state
from adom.errors import InputError

from .conftest import PARTS, TOY, refusal, zipped


def files(home):
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


def test_the_data_folder(monkeypatch):
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


def test_a_download_is_kept_and_not_repeated(home, server, small_sets, capsys):
    assert state("toy") == ("absent", home / "libsvm" / "toy", "")
    assert fetch("toy") == [home / "libsvm" / "toy"]
    assert capsys.readouterr().err == f"adom: downloaded {server.url}/toy into {home / 'libsvm'}\n"
    assert (home / "libsvm" / "toy").read_bytes() == TOY
    assert fetch("toy") == [home / "libsvm" / "toy"]
    assert state("toy").status == "present"
    assert files(home) == ["libsvm/toy"]
    A, b = adom.data.load("toy")
    assert A.toarray().tolist() == [[0.5, 0, 2], [0, 1, 0], [1, 0, 0], [0, 0, 4]]
    assert b.tolist() == [1, -1, 1, -1]
    assert adom.data.problem("toy", 2, split="label", kappa=5.0).nodes == 2
    assert server.requests == 1


def test_a_packed_file_is_kept_packed(home, small_sets):
    assert fetch("four") == [home / "libsvm" / "four.bz2"]
    assert bz2.decompress((home / "libsvm" / "four.bz2").read_bytes()) == TOY


def test_an_archive_is_kept_unpacked(home, server, small_sets):
    assert sorted(fetch("net")) == [home / "net" / name for name in sorted(PARTS)]
    assert files(home) == sorted(f"net/{name}" for name in PARTS)  # not the files that nobody asked for
    assert sets.texts(small_sets["net"]) == PARTS
    assert sets.texts(small_sets["net"], ["net_A.txt"]) == {"net_A.txt": PARTS["net_A.txt"]}
    assert state("net") == ("present", home / "net", "")
    assert server.requests == 1


@pytest.mark.parametrize("place", ["libsvm/toy", "toy", "libsvm/toy.bz2", "toy.bz2", "toy.gz"])
def test_files_put_there_by_hand(home, server, small_sets, place):
    pack = {".bz2": bz2.compress, ".gz": gzip.compress}.get(Path(place).suffix, bytes)
    (home / place).parent.mkdir(parents=True)
    (home / place).write_bytes(pack(TOY))
    assert fetch("toy") == [home / place]
    assert state("toy") == ("present", home / place, "")
    assert server.requests == 0
    assert files(home) == [place]


@pytest.mark.parametrize("place", ["net", "."])
def test_an_archive_put_there_by_hand(home, server, small_sets, place):
    (home / place).mkdir(parents=True)
    (home / place / "net.zip").write_bytes(server.files["/net.zip"])
    assert sets.texts(small_sets["net"]) == PARTS
    assert fetch("net") == [home / place / "net.zip"]
    assert state("net").status == "present"
    for name, text in PARTS.items():
        (home / place / name).write_bytes(text)
    assert fetch("net") == [home / place / name for name in PARTS]
    assert server.requests == 0


def test_a_wrong_file_is_named_and_left_alone(home, server, small_sets):
    home.mkdir()
    path = home / "toy"
    path.write_bytes(TOY.replace(b"0.5", b"0.6"))
    message = refusal(fetch, "toy")
    sha256 = small_sets["toy"].pieces[0].sha256
    assert message.startswith(f"{path} is not the toy of toy: its text must have sha256 {sha256}")
    assert message.endswith("; delete it to have it fetched again")
    assert state("toy") == ("wrong", path, message)
    for content, reason in (
        (TOY * 2, f"got more than {len(TOY)} bytes"),
        (bz2.compress(b"0" * 50_000_000), f"got more than {len(TOY)} bytes"),
        (bz2.compress(TOY)[:-9], "cut short or damaged"),
    ):
        path.write_bytes(content)
        assert reason in refusal(fetch, "toy")
    assert server.requests == 0
    path.unlink()
    assert fetch("toy") == [home / "libsvm" / "toy"]


GOOD_ZIP = zipped(PARTS)


def damaged_body():
    content = bytearray(GOOD_ZIP)
    content[content.index(b"net_A.txt") + len("net_A.txt")] ^= 0xFF
    return bytes(content)


OUT = ("../net_A.txt", "/net_A.txt", "net/../../net_A.txt", "..\\net_A.txt", "C:net_A.txt")
WRONG = {
    "other text": ("toy", TOY.replace(b"0.5", b"0.6"), "/toy is not the toy of toy: its text must have sha256"),
    "no text": ("toy", b"", "try again later"),
    "endless": ("toy", bytes(3_000_000), "sends more than the"),
    "other packed text": ("four.bz2", bz2.compress(TOY + b"-1 1:1\n"), "four.bz2 is not the four of four: its text"),
    "half a zip": ("net.zip", GOOD_ZIP[: len(GOOD_ZIP) // 2], "is not a whole zip archive"),
    "damaged zip": ("net.zip", damaged_body(), "is not a whole zip archive"),
    "missing member": ("net.zip", zipped({"net_A.txt": b"1, 2\n2, 1\n"}), "does not hold net_graph_indicator.txt"),
    "a name twice": ("net.zip", zipped({**PARTS, "other/net_A.txt": b"twice"}), "one file too many"),
    "too many": ("net.zip", zipped({**PARTS, **{str(k): b"" for k in range(100)}}), "one file too many"),
    "large member": ("net.zip", zipped({**PARTS, "net_A.txt": bytes(10_000_000)}), "got more than 10 bytes"),
    "other member": ("net.zip", zipped({**PARTS, "net_A.txt": b"1, 2\n2, 2\n"}), "is not the net_A.txt of net: its"),
    **{name: ("net.zip", zipped({**PARTS, name: b"evil"}), "a path out of its folder") for name in OUT},
}


@pytest.mark.parametrize("case", WRONG)
def test_a_download_that_is_not_right_is_not_kept(home, server, small_sets, case):
    file, content, reason = WRONG[case]
    server.files[f"/{file}"] = content
    name = file.partition(".")[0]
    assert reason in refusal(fetch, name)
    assert files(home.parent) == []
    assert state(name).status == "absent"


def test_a_truncated_download_is_not_kept(home, server, small_sets):
    server.files["/toy"] = TOY[:-5]
    server.promised["/toy"] = len(TOY)
    assert "could not be downloaded: the connection broke off; put http" in refusal(fetch, "toy")
    server.promised["/toy"] = None  # nothing shows it but the checksum
    assert "sha256" in refusal(fetch, "toy")
    assert files(home) == []


def test_without_a_connection(home, server, small_sets, monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/toy"
    toy = small_sets["toy"]
    monkeypatch.setitem(sets.SETS, "toy", replace(toy, url=url))
    assert refusal(fetch, "toy") == (
        f"toy is not in {home} and could not be downloaded: no connection; "
        f"put {url} into that folder by hand, or set ADOM_DATA to a folder that has it"
    )
    monkeypatch.setitem(sets.SETS, "toy", replace(toy, url=f"{server.url}/moved"))
    assert "the page answers 404 Not Found" in refusal(fetch, "toy")


def test_an_interrupted_download_leaves_nothing(home, small_sets, monkeypatch):
    def interrupted(self, url, content, *_):
        content.write(TOY[:10])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fetch("toy")
    assert list((home / "libsvm").iterdir()) == []
    assert fetch("toy") == [home / "libsvm" / "toy"]


def test_a_folder_that_cannot_be_written_to(tmp_path, server, small_sets, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("ADOM_DATA", str(tmp_path / "file"))
    assert "cannot be put there (Not a directory); set ADOM_DATA to a folder that can be written to" in refusal(
        fetch, "toy"
    )
    assert server.requests == 0


def test_names(home):
    with pytest.raises(InputError, match=r"no data set is called 'a7a'; did you mean 'a6a'\? known: a6a, w6a"):
        fetch("a7a")
    with pytest.raises(InputError, match=r"is a network, not samples; adom.data.infectious\(\) gives it"):
        adom.data.load("infectious_ct1")
    assert all(state(name).status == "absent" for name in ("a6a", "w6a", "ijcnn1", "infectious_ct1"))
    assert not home.exists()


def test_every_set_comes_from_a_secure_page_with_a_checksum_for_each_file():
    for data_set in sets.SETS.values():
        assert data_set.url.startswith("https://")
        assert all(len(bytes.fromhex(piece.sha256)) == 32 and piece.size > 0 for piece in data_set.pieces)
