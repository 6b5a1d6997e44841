"""A server on this machine with small data sets, the real files where they are at hand, and shards."""

import bz2
import hashlib
import io
import os
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from adom.data import sets, state, write_shards
from adom.data.sets import DataSet, Piece
from adom.errors import InputError

BESIDE = Path(__file__).parents[3] / "shared" / "data"
TOY = b"+1 1:0.5 3:2\n-1 2:1\n+1 1:1\n-1 3:4\n"
PARTS = {"net_A.txt": b"1, 2\n2, 1\n", "net_graph_indicator.txt": b"1\n1\n"}


@pytest.fixture
def server(monkeypatch):
    """A server: its files, other lengths that it promises, and the number of requests."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            served.requests += 1
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

        def log_message(self, *_):
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = SimpleNamespace(url=f"http://127.0.0.1:{listener.server_address[1]}", files={}, promised={}, requests=0)
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    listener.shutdown()
    thread.join()
    listener.server_close()


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty data folder."""
    folder = tmp_path / "kept"
    monkeypatch.setenv("ADOM_DATA", str(folder))
    return folder


def zipped(files):
    """Return an archive, with more in it than is wanted."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in {"net/": b"", "other/net/": b"", "net/README.txt": b"read me", **files}.items():
            archive.writestr(name, text)
    return content.getvalue()


@pytest.fixture
def small_sets(server, monkeypatch):
    """Small data sets on the server: toy plain, four packed by bzip2, net in a zip archive."""
    server.files |= {"/toy": TOY, "/four.bz2": bz2.compress(TOY)}
    server.files["/net.zip"] = zipped({f"net/{name}": text for name, text in PARTS.items()})
    for file, folder, texts in (
        ("toy", "libsvm", {"toy": TOY}),
        ("four.bz2", "libsvm", {"four": TOY}),
        ("net.zip", "net", PARTS),
    ):
        pieces = tuple(Piece(name, hashlib.sha256(text).hexdigest(), len(text)) for name, text in texts.items())
        name = file.partition(".")[0]
        data_set = DataSet(name, "", f"{server.url}/{file}", folder, pieces, "", None if name == "net" else 3)
        monkeypatch.setitem(sets.SETS, name, data_set)
    return sets.SETS


@pytest.fixture
def real(monkeypatch):
    """Point at the real files of a data set, or skip the test."""

    def find(*names):
        folder = Path(os.environ.get("ADOM_DATA") or BESIDE)
        monkeypatch.setenv("ADOM_DATA", str(folder))
        missing = [name for name in names if state(name).status == "absent"]
        if missing:
            pytest.skip(f"{', '.join(missing)} not at hand: neither ADOM_DATA nor ../shared/data has it")
        return folder

    return find


def samples(count=31, dim=5, density=1.0, seed=0):
    """Samples of classes 0 and 2.5, with numbers of all magnitudes."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((count, dim))
    values[rng.random(values.shape) >= density] = 0.0
    values[0, 0], values[-1, -1] = 1 / 3, 5e-324
    return sp.csr_array(values), np.where(rng.random(count) < 0.4, 2.5, 0.0)


@pytest.fixture
def write(tmp_path):
    """Write samples to a file, split it, and return the folder."""

    def run(features, labels, nodes=6, by="rows", **more):
        source = tmp_path / "data.npz"
        np.savez(source, features=sp.csr_array(features).toarray(), labels=labels)
        return write_shards(source, nodes, tmp_path / "shards", by, **more)

    return run


def refusal(call, *arguments, **options):
    """Return the one line by which a call is refused."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)
