"""Trouble at the start and on the way: ports and folders in use, full disks, lost logs, bad certificates, signals."""

import errno
import io
import json
import os
import shutil
import signal
import socket
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("zenoh")
pytest.importorskip("cryptography")

from typer.testing import CliRunner

import adom
from adom.agents import service as module
from adom.agents.configuration import as_toml, make_config
from adom.agents.keys import KeyCertificate, make_keys
from adom.agents.live_page import metrics
from adom.agents.service import Service, run_agent
from adom.agents.zenoh_links import KeyFiles
from adom.cli.main import app
from adom.data.node_shards import write_shard
from adom.errors import InputError
from support.agents_made import free_ports
from support.agents_running import process_of, start, stop, told, wait_for

SAFE = 30
"""Seconds after which a test gives up on a service."""


@pytest.fixture
def config(tmp_path):
    """Return a function that makes settings of an agent without neighbours."""
    rng = np.random.default_rng(5)
    np.savez(tmp_path / "a.npz", features=rng.standard_normal((9, 3)), labels=np.sign(rng.standard_normal(9)))

    def make(neighbours=None, **more):
        usual = {"name": "a", "data": str(tmp_path / "a.npz"), "out": str(tmp_path / "out"), "gather": 0.0}
        usual |= {"listen": f"tcp/127.0.0.1:{free_ports(1)[0]}", "patience": 0.02, "rounds": 20, "every": 0.01}
        return make_config({**usual, **more}, neighbours or {})

    return make


def settings_file(folder, listen, rounds=5):
    """Write the settings of an agent without neighbours, with the data of `config`; return the file."""
    agent = {"name": "a", "patience": 0.02, "gather": 0, "listen": listen}
    tables = {"agent": agent, "problem": {"data": "a.npz"}, "run": {"rounds": rounds}, "files": {"out": "out"}}
    (folder / "a.toml").write_text(as_toml(tables))
    return folder / "a.toml"


def between_rounds(service, do):
    """Let something happen each time before the service does what is due between two rounds."""
    between = service._between

    def doing(now):
        do()
        return between(now)

    service._between = doing


def shard_of(folder):
    (folder / "t.csv").write_text("x,y\n" + "".join(f"{i},{i * i % 7}\n" for i in range(20)))
    write_shard(folder / "t.csv", "a", folder / "shards", target="y")
    return folder / "shards" / "a"


def listens(config):
    """Return whether somebody listens where the agent of a configuration would."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(config.listen.rpartition(":")[2]))) == 0


# The start


def test_a_port_of_the_page_in_use_is_refused_before_the_network_is_joined(config):
    with socket.create_server(("127.0.0.1", 0)) as used:
        given = config(page=used.getsockname()[1], rounds=10**9)
        with pytest.raises(InputError, match="cannot serve a page on port"):
            run_agent(given, io.StringIO())
    assert not listens(given)


def test_the_process_ends_at_once_with_one_line_if_the_port_of_the_page_is_in_use(tmp_path, config):
    config()
    file = settings_file(tmp_path, f"tcp/127.0.0.1:{free_ports(1)[0]}")
    with socket.create_server(("127.0.0.1", 0)) as used:
        call, environment = process_of(file, "--set", f"page={used.getsockname()[1]}")
        done = subprocess.run(call, check=False, capture_output=True, timeout=SAFE, text=True, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: cannot serve a page on port")
    assert len(done.stderr.splitlines()) == 1


def test_links_are_closed_if_an_agent_fails_between_joining_and_running(config, monkeypatch):
    given = config()
    monkeypatch.setattr(Service, "listen_to_signals", lambda _: (_ for _ in ()).throw(InputError("no signals")))
    with pytest.raises(InputError, match="no signals"):
        run_agent(given, io.StringIO())
    assert not listens(given)


def test_a_folder_that_cannot_be_written_is_refused_before_the_network_is_joined(config, tmp_path):
    (tmp_path / "file").write_text("")
    given = config(out=str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"cannot make the folder .*: it is a file; choose another folder"):
        run_agent(given, io.StringIO())
    assert not listens(given)


def test_one_agent_a_folder(config):
    given = config()
    with module._alone(given.out):
        with pytest.raises(InputError, match=r"another agent uses the folder .*; end it, or give this one"):
            run_agent(given, io.StringIO())
        assert not listens(given)
    assert run_agent(given, io.StringIO()) == "rounds"


def key_files(folder, name="a"):
    return KeyFiles(folder / "ca.pem", folder / f"{name}.pem", folder / f"{name}.key")


def keys_with(folder, *copies):
    """Make keys of two agents; copy some files over others."""
    make_keys(folder, ["a", "b"])
    make_keys(folder / "other", [])
    for source, target in copies:
        shutil.copy(folder / source, folder / target)


BAD = {
    "expired": (lambda folder: make_keys(folder, ["a"], days=-0.5),
                r"a.pem expired on \d{4}-\d\d-\d\d \d\d:\d\d UTC; remove a.key beside ca.key"),
    "early": (lambda folder: make_keys(folder, ["a"], begin=datetime.now(UTC) + timedelta(days=9)),
              r"a.pem is not valid before \d{4}-\d\d-\d\d .*; set the clock"),
    "foreign": (lambda folder: keys_with(folder, ("other/ca.pem", "ca.pem")),
                "a.pem was not signed by the authority in ca.pem; take"),
    "of another agent": (lambda folder: keys_with(folder, ("b.pem", "a.pem"), ("b.key", "a.key")),
                         "is the certificate of b, but the name of this agent is a; copy"),
    "with another key": (lambda folder: keys_with(folder, ("b.key", "a.key")), "a.key is not the key of a.pem; copy"),
    "open to all": (lambda folder: (make_keys(folder, ["a"]), (folder / "a.key").chmod(0o644)),
                    r"a.key is open to other users of this machine \(mode 644\); run: chmod 600"),
    "broken": (lambda folder: (make_keys(folder, ["a"]), (folder / "a.pem").write_text("x")),
               "a.pem is not a certificate in PEM; copy"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "words"), BAD.values(), ids=BAD)
def test_bad_keys_are_refused_at_the_start_and_by_check(tmp_path, config, make, words):
    make(tmp_path)
    given = config(listen=f"tls/127.0.0.1:{free_ports(1)[0]}", keys=str(tmp_path))
    with pytest.raises(InputError, match=words):
        run_agent(given, io.StringIO())
    assert not listens(given)
    agent = f'[agent]\nname = "a"\nkeys = "."\nlisten = "{given.listen}"\n[problem]\ndata = "a.npz"\n'
    (tmp_path / "a.toml").write_text(agent)
    outcome = CliRunner().invoke(app, ["agent", str(tmp_path / "a.toml"), "--check"])
    assert (outcome.exit_code, outcome.stdout, len(outcome.stderr.splitlines())) == (2, "", 1)


def test_a_chain_of_authorities_is_accepted_up_to_its_first_end(tmp_path):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    make_keys(tmp_path / "inner", ["a"])
    make_keys(tmp_path, [])
    root, inner = (x509.load_pem_x509_certificate((f / "ca.pem").read_bytes()) for f in (tmp_path, tmp_path / "inner"))
    end = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
    between = (
        x509.CertificateBuilder()
        .subject_name(inner.subject)
        .issuer_name(root.subject)
        .public_key(inner.public_key())
        .serial_number(7)
        .not_valid_before(root.not_valid_before_utc)
        .not_valid_after(end)
        .sign(load_pem_private_key((tmp_path / "ca.key").read_bytes(), None), hashes.SHA256())
    )
    own = tmp_path / "inner" / "a.pem"
    keys = KeyFiles(tmp_path / "ca.pem", own, own.with_suffix(".key"))
    with pytest.raises(InputError, match="was not signed by the authority"):
        KeyCertificate("a", keys)
    from cryptography.hazmat.primitives.serialization import Encoding

    own.write_bytes(own.read_bytes() + between.public_bytes(Encoding.PEM))
    assert KeyCertificate("a", keys).end == end


# On the way


def test_the_end_of_a_certificate_is_told_ahead_and_each_day(tmp_path, config):
    make_keys(tmp_path, ["a"], days=20)
    given = config(listen=f"tls/127.0.0.1:{free_ports(1)[0]}", keys=str(tmp_path), report=0.01)
    service = Service(given, io.StringIO())
    assert service.run() == "rounds"
    assert 19.9 < service.status["certificate_days"] <= 20
    assert f'adom_certificate_days{{agent="a"}} {service.status["certificate_days"]}' in metrics(service.picture())
    certificate = KeyCertificate("a", key_files(tmp_path))
    (warning,) = told(service, "warning")
    assert warning["why"].startswith(f"the certificate expires on {certificate.end:%Y-%m-%d %H:%M} UTC; remove a.key")
    end = certificate.end.timestamp()
    days = [40, 29, 28.5, 27.9, 0.5, 0.1, -0.1, -0.5, -1.2]
    found = [certificate.warning(end - 86400 * left) for left in days]
    assert [each and each[0] for each in found] == [
        *(None, "warning", None, "warning", "warning", None, "error", None, "error")
    ]
    assert "expired on" in found[6][1]
    assert "no new link can be made" in found[6][1]


def fill_disk(monkeypatch, times):
    """Let the disk be full for the next files that are moved into place."""
    replace, left = Path.replace, iter(range(times))

    def full(path, target):
        if next(left, None) is not None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", full)


def test_a_disk_that_is_full_for_a_moment_is_told_and_does_not_end_the_agent(config, monkeypatch):
    fill_disk(monkeypatch, 3)
    service = Service(config(report=0.01), io.StringIO())
    assert service.run() == "rounds"
    unwritten = told(service, "not written")
    assert [line["file"] for line in unwritten] == ["model.json", "checkpoint.npz", "model.json"]
    assert all("No space left on device" in line["why"] for line in unwritten)
    seen = [status["not_written"] for status in told(service, "status")]
    assert any("No space left" in each.get("model.json", "") for each in seen)
    assert (service.status["unwritten"], service.status["not_written"]) == (3, {})
    assert 'adom_unwritten_total{agent="a"} 3' in metrics(service.picture())
    assert adom.load_model(service.config.out / "model.json").provenance["agent"] == "a"
    assert "not_written" not in told(service, "end")[0]


def test_files_that_are_missing_at_the_end_are_told_by_the_exit_code(config, monkeypatch, tmp_path):
    fill_disk(monkeypatch, 10**9)
    outcome = CliRunner().invoke(app, ["agent", str(settings_file(tmp_path, config().listen))])
    assert outcome.exit_code == 1
    end = json.loads(outcome.stdout.splitlines()[-1])
    assert (end["event"], end["why"], list(end["not_written"])) == ("end", "rounds", ["model.json", "checkpoint.npz"])


def test_an_agreement_that_could_not_be_written_is_written_later(config, monkeypatch, tmp_path):
    config()
    shard = shard_of(tmp_path)
    fill_disk(monkeypatch, 1)
    service = Service(config(data=str(shard), nodes=1, kind="ridge"), io.StringIO())
    assert [agent["name"] for agent in service.picture()["agents"]] == ["a"]  # the page is there before the agent
    assert service.run() == "rounds"
    assert [line["file"] for line in told(service, "not written")] == ["agreement.npz"]
    assert (service.config.out / "agreement.npz").exists()


def test_a_folder_that_was_removed_is_made_again(config):
    service = Service(config(), io.StringIO())
    between_rounds(service, lambda: service.agent.round == 10 and shutil.rmtree(service.config.out))
    assert service.run() == "rounds"
    assert (service.config.out / "model.json").exists()
    assert (service.config.out / "checkpoint.npz").exists()


class Device(io.RawIOBase):
    """A file on a disk that may be full."""

    full = False

    def __init__(self):
        self.written = b""

    def writable(self):
        return True

    def write(self, data):
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.written += bytes(data)
        return len(data)


def test_a_full_disk_under_the_log_costs_lines_and_nothing_else(config, capsys):
    device = Device()
    service = Service(config(), io.TextIOWrapper(io.BufferedWriter(device), encoding="utf-8"))

    def fill():
        device.full = 5 <= service.agent.round < 15
        service.tell("mark", round=service.agent.round)

    between_rounds(service, fill)
    assert service.run() == "rounds"
    whole = [json.loads(line) for line in device.written.splitlines()]
    marks = [line["round"] for line in whole if line["event"] == "mark"]
    assert marks == [1, 2, 3, 4, 5, *range(15, 21)]  # that of round 5 waited in the buffer
    assert [line["unlogged"] for line in whole if line["event"] == "status"][-1] == service.unlogged >= 10
    assert (
        capsys.readouterr().err == "adom: agent a cannot write its log (No space left on device) and goes on without\n"
    )


def test_an_agent_goes_on_when_nobody_reads_its_log(config, capsys):
    reads, writes = os.pipe()
    os.close(reads)
    log = os.fdopen(writes, "w")
    service = Service(config(), log)
    assert service.run() == "rounds"
    assert (service.config.out / "model.json").exists()
    assert 'adom_unlogged_total{agent="a"}' in metrics(service.picture())
    assert "cannot write its log (Broken pipe) and goes on without" in capsys.readouterr().err
    with pytest.raises(BrokenPipeError):
        log.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_the_exit_code_is_about_the_work_not_about_the_log(config, tmp_path):
    call, environment = process_of(settings_file(tmp_path, config().listen))
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            call, check=False, stdout=full, stderr=subprocess.PIPE, timeout=SAFE, text=True, env=environment
        )
    words = "adom: agent a cannot write its log (No space left on device) and goes on without\n"
    assert (done.returncode, done.stderr) == (0, words)
    assert (tmp_path / "out" / "checkpoint.npz").exists()


def test_data_that_cannot_be_read_again_are_told(config, tmp_path, monkeypatch):
    service = Service(config(), io.StringIO())
    deeds = {
        3: (tmp_path / "a.npz").unlink,
        6: lambda: (tmp_path / "a.npz").write_bytes(b"PK half a file"),
        9: lambda: monkeypatch.setattr(module, "read_function", lambda _: (_ for _ in ()).throw(MemoryError)),
    }

    def disturb():
        if service.agent.round in deeds:
            deeds[service.agent.round]()
            service.ask_to_reread()

    between_rounds(service, disturb)
    assert service.run() == "rounds"
    refused = [line["why"] for line in told(service, "data refused")]
    assert len(refused) == 3
    assert "No such file" in refused[0]
    assert refused[2] == "there is not enough memory for them"


# Signals


@pytest.mark.parametrize("slow", [{"pace": 3600.0}, {"patience": 3600.0}, {"gather": 3600.0}])
def test_an_agent_that_waits_for_long_ends_when_asked_to(config, slow):
    neighbours = {"b": f"tcp/127.0.0.1:{free_ports(1)[0]}"} if "gather" in slow else {}
    service = Service(config(neighbours, **slow, rounds=10**9), io.StringIO())
    sent, send = [], service._send
    service._send = lambda messages: (sent.append(messages), send(messages))
    threads, endings = start([service])
    wait_for(lambda: service.agent.counters.rounds if "pace" in slow else len(sent) > 1)
    stop([service], threads)
    assert endings == {"a": "asked to"}


def test_a_second_signal_ends_a_process_that_hangs_and_handlers_are_put_back(config, monkeypatch):
    service, raised = Service(config(), io.StringIO()), []
    monkeypatch.setattr(signal, "raise_signal", raised.append)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with service.listen_to_signals():
            handler = signal.getsignal(signal.SIGTERM)
            handler(signal.SIGTERM, None)
            handler(signal.SIGTERM, None)  # `timeout` sends two together
            assert (service._asked, raised) == ("asked to", [])
            service._asked_at -= 2 * module.AGAIN
            handler(signal.SIGTERM, None)
            assert raised == [signal.SIGTERM]
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) == before
    finally:
        service.links.close()


def test_an_agent_under_control_ends_when_nobody_controls_it(config):
    service = Service(config(rounds=10**9, seconds=float(SAFE)), io.StringIO())
    service.listen_to_commands(io.StringIO(""))
    assert service.run() == "no more commands"


def test_signals_end_the_process_in_good_order(tmp_path, config):
    """A real process: SIGTERM while it waits for others to prepare their data, with a page."""
    config()
    ports = free_ports(2)
    problem = {"data": str(shard_of(tmp_path)), "kind": "ridge", "nodes": 2}
    tables = {"agent": {"name": "a", "listen": f"tcp/127.0.0.1:{ports[0]}"}, "neighbours": {"b": ""}}
    (tmp_path / "a.toml").write_text(as_toml({**tables, "problem": problem, "files": {"page": ports[1]}}))
    call, environment = process_of(tmp_path / "a.toml")
    agent = subprocess.Popen(call, stdout=subprocess.PIPE, cwd=tmp_path, text=True, env=environment)
    try:
        assert '"waiting"' in agent.stdout.readline() + agent.stdout.readline()
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(SAFE) == 0
        assert json.loads(agent.stdout.read().splitlines()[-1])["why"] == "asked to"
    finally:
        agent.kill()
        agent.wait()
        agent.stdout.close()
