"""Settings of an agent: what is read, what is refused, and that plain text leaves no machine unasked."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import adom
from adom.agents.configuration import make_config, read_config
from adom.agents.zenoh_links import ZenohLinks
from adom.errors import InputError

GIVEN = {"name": "a", "data": "a.npz"}
NEAR, FAR = {"b": "tcp/127.0.0.1:7448"}, {"b": "tcp/10.0.0.2:7447"}


def test_a_file_is_read_with_paths_relative_to_it_and_overrides(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text('[agent]\nname = "a"\n[neighbours]\nb = "tcp/127.0.0.1:7448"\nc = ""\n[problem]\ndata = "a.npz"\n')
    config = read_config(file, {"tol": 1e-6, "out": "here"})
    assert config.data == tmp_path / "a.npz"
    assert config.out == Path("here")
    assert config.neighbours == {"b": "tcp/127.0.0.1:7448", "c": ""}
    assert (config.tol, config.method, config.keys) == (1e-6, "adom", None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[agents]\n", "unknown table"),
        ("[agent]\nnmae = 3\n", "unknown key 'nmae'; did you mean 'name'"),
        ("[agent]\nrequire = 3\n", "unknown key 'require'; it belongs to [run]"),
        ("[agent\n", "not a TOML file"),
        ("[agent]\nname = 'a'\n", "has no data"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, text, words):
    file = tmp_path / "a.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=words.replace("[", "\\[")):
        read_config(file, {})


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "A"}, {"listen": "7447"}, {"listen": "udp/127.0.0.1:7447"}, {"listen": "tcp/127.0.0.1:99999"},
        {"l2": 0.0}, {"l2": "much"}, {"patience": True}, {"rounds": 1.5}, {"kind": "lasso"}, {"count": "all"},
        {"classes": [1]}, {"loss": 1.5}, {"page": 0}, {"require": 0}, {"require": []}, {"require": True},
        {"require": ["A b"]}, {"publish": 0.0},
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused(bad):
    with pytest.raises(InputError, match=r"must be|unknown"):
        make_config({**GIVEN, **bad}, NEAR)


def test_plain_text_beyond_this_machine_must_be_asked_for():
    with pytest.raises(InputError, match="would carry plain text to other machines"):
        make_config(GIVEN, FAR)
    with pytest.raises(InputError, match="would carry plain text"):
        make_config({**GIVEN, "listen": "tcp/0.0.0.0:7447"}, NEAR)
    assert make_config({**GIVEN, "plain": True}, FAR).keys is None


def test_without_zenoh_a_clear_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "zenoh", None)
    with pytest.raises(InputError, match=r"in a clone of adom, pip install '\.\[agents\]'"):
        ZenohLinks("a", "tcp/127.0.0.1:7447", {})
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.delitem(sys.modules, "adom.agents.keys", raising=False)
    with pytest.raises(InputError, match=r"in a clone of adom, pip install '\.\[agents\]'"):
        importlib.import_module("adom.agents.keys")


def test_an_agent_does_not_load_jax():
    code = "import sys, adom.cli.agents, adom.agents.service; sys.exit('jax' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(adom.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", code], check=False, env=environment).returncode == 0


def test_tls_needs_its_files(tmp_path):
    given, far = {**GIVEN, "listen": "tls/0.0.0.0:7447"}, {"b": "tls/10.0.0.2:7447"}
    with pytest.raises(InputError, match="needs keys"):
        make_config(given, far)
    with pytest.raises(InputError, match=r"ca.pem is missing; copy"):
        make_config({**given, "keys": str(tmp_path)}, far)
    with pytest.raises(InputError, match="plain text, but other addresses use TLS"):
        make_config({**given, "keys": str(tmp_path)}, NEAR)
    for name in ("ca.pem", "a.pem", "a.key"):
        (tmp_path / name).write_text("x")
    assert make_config({**given, "keys": str(tmp_path)}, far).keys.private == tmp_path / "a.key"
