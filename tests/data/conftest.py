"""A page on this machine, small data sets that live on it, the real files where they are at hand, and shards."""

import bz2
import hashlib
import io
import os
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from adom.data import sets, write_shards
from adom.data.sets import DataSet, Piece
from adom.errors import InputError

BESIDE = Path(__file__).parents[3] / "shared" / "data"
TOY = b"+1 1:0.5 3:2\n-1 2:1\n+1 1:1\n-1 3:4\n"
Write = Callable[..., Path]
PARTS = {"net_A.txt": b"1, 2\n2, 1\n", "net_graph_indicator.txt": b"1\n1\n"}


class Page:
    """What a server on this machine has to give; `asked` counts the requests."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.files: dict[str, bytes] = {}
        self.promised: dict[str, int | None] = {}  # another Content-Length, or none
        self.asked = 0


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked += 1
            content = served.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            length = served.promised.get(self.path, len(content))
            if length is not None:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Page(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    folder = tmp_path / "kept"
    monkeypatch.setenv("ADOM_DATA", str(folder))
    return folder


def piece(name: str, text: bytes) -> Piece:
    return Piece(name, hashlib.sha256(text).hexdigest(), len(text))


def add(monkeypatch: pytest.MonkeyPatch, chosen: DataSet) -> DataSet:
    monkeypatch.setitem(sets.SETS, chosen.name, chosen)
    return chosen


@pytest.fixture
def toy(page: Page, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """Four samples in a plain file."""
    page.files["/toy"] = TOY
    return add(monkeypatch, DataSet("toy", "", f"{page.url}/toy", "libsvm", (piece("toy", TOY),), "", 3))


@pytest.fixture
def packed(page: Page, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """The same, packed by bzip2; the checksum is of the text."""
    page.files["/four.bz2"] = bz2.compress(TOY)
    return add(monkeypatch, DataSet("four", "", f"{page.url}/four.bz2", "libsvm", (piece("four", TOY),), "", 3))


def zipped(files: dict[str, bytes]) -> bytes:
    """Return an archive, with more in it than is wanted."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {"net/": b"", "other/net/": b"", "net/README.txt": b"read me", **files}.items():
            archive.writestr(name, text)
    return content.getvalue()


@pytest.fixture
def archive(page: Page, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """Two files in a zip archive."""
    page.files["/net.zip"] = zipped({f"net/{name}": text for name, text in PARTS.items()})
    pieces = tuple(piece(name, text) for name, text in PARTS.items())
    return add(monkeypatch, DataSet("net", "", f"{page.url}/net.zip", "net", pieces, ""))


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Point at the real files of a data set, or skip the test."""

    def find(*names: str) -> Path:
        folder = Path(os.environ.get("ADOM_DATA") or BESIDE)
        monkeypatch.setenv("ADOM_DATA", str(folder))
        from adom.data import state

        missing = [name for name in names if state(name).status == "absent"]
        if missing:
            pytest.skip(f"{', '.join(missing)} not at hand: neither ADOM_DATA nor ../shared/data has it")
        return folder

    return find


def made(samples: int = 31, dim: int = 5, density: float = 1.0, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Samples of classes 0 and 2.5, with numbers of all magnitudes."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((samples, dim))
    values[rng.random(values.shape) >= density] = 0.0
    values[0, 0], values[-1, -1] = 1 / 3, 5e-324
    return sp.csr_array(values), np.where(rng.random(samples) < 0.4, 2.5, 0.0)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write samples to a file, split it, and return the folder."""

    def run(features: Any, labels: Any, nodes: int = 6, by: str = "rows", **more: Any) -> Path:
        source = tmp_path / "data.npz"
        np.savez(source, features=sp.csr_array(features).toarray(), labels=labels)
        return write_shards(source, nodes, tmp_path / "shards", by, **more)

    return run


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(InputError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)
