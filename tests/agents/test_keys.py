"""Keys: an authority, certificates that it signed, and links that only their owners can use."""

import time

import pytest

pytest.importorskip("zenoh")
x509 = pytest.importorskip("cryptography.x509")

from adom.agents.keys import make_keys  # noqa: E402  # after what may be missing
from adom.agents.zenoh_links import KeyFiles, ZenohLinks  # noqa: E402  # after what may be missing
from adom.errors import InputError  # noqa: E402  # after what may be missing
from support.agents_made import free_ports  # noqa: E402  # after what may be missing


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    ours, theirs = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    make_keys(ours, ["a", "b", "c"])
    make_keys(theirs, ["a", "b"])
    return ours, theirs


def keys(folder, name):
    return KeyFiles(folder / "ca.pem", folder / f"{name}.pem", folder / f"{name}.key")


def test_certificates_are_signed_and_private_keys_are_private(folders):
    ours, _ = folders
    authority, own = (x509.load_pem_x509_certificate((ours / f"{n}.pem").read_bytes()) for n in ("ca", "b"))
    own.verify_directly_issued_by(authority)
    assert own.subject.rfc4514_string() == "CN=b"
    assert (ours / "b.key").stat().st_mode & 0o077 == 0
    assert (ours / "ca.key").stat().st_mode & 0o077 == 0


def test_keys_are_not_overwritten_and_more_can_be_made(folders):
    ours, _ = folders
    with pytest.raises(InputError, match=r"b.key exists already"):
        make_keys(ours, ["b"])
    before = (ours / "ca.pem").read_bytes()
    assert [path.name for path in make_keys(ours, ["later"])] == ["later.key", "later.pem"]
    assert (ours / "ca.pem").read_bytes() == before


def heard(links, seconds):
    """Return all that is heard in some time, ending with the first message."""
    end, found = time.monotonic() + seconds, []
    while time.monotonic() < end and not found:
        message = links.receive(0.05)
        found += [message] if message else []
    return found


def talk(sender, to, reader, seconds):
    """Send until something is heard, or time is up."""
    end, found = time.monotonic() + seconds, []
    while time.monotonic() < end and not found:
        sender.send(to, b"hello")
        found = heard(reader, 0.1)
    return found


def test_only_the_owner_of_a_certificate_speaks_in_its_name(folders):
    ours, theirs = folders
    ports = free_ports(4)
    where = {name: f"tls/127.0.0.1:{port}" for name, port in zip(["a", "b", "forger", "foreign"], ports, strict=True)}
    a = ZenohLinks("a", where["a"], {"b": "", "c": ""}, keys(ours, "a"))
    b = ZenohLinks("b", where["b"], {"a": where["a"]}, keys(ours, "b"))
    forger = ZenohLinks(
        "b", where["forger"], {"a": where["a"]}, keys(ours, "c")
    )  # has a certificate of c, says it is b
    foreign = ZenohLinks("b", where["foreign"], {"a": where["a"]}, keys(theirs, "b"))  # of another authority
    try:
        assert talk(b, "a", a, 10.0) == [("b", b"hello")]
        assert talk(a, "b", b, 10.0) == [("a", b"hello")]
        while a.receive(0.1):
            pass
        end = time.monotonic() + 5
        while forger.connected() == 0 and time.monotonic() < end:
            time.sleep(0.02)
        assert forger.connected() == 1  # it is let in, and not believed
        assert talk(forger, "a", a, 0.7) == []
        assert foreign.connected() == 0
        assert talk(foreign, "a", a, 0.3) == []
    finally:
        for links in (a, b, forger, foreign):
            links.close()
