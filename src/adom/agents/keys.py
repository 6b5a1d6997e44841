"""Keys: a private certificate authority and one certificate per agent, so that nobody else can join the links.

Key files are checked before an agent joins the network, since TLS itself refuses bad ones without a word.
"""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..util import files
from .wire import check_name
from .zenoh_links import NEEDS, KeyFiles

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID
except ImportError as error:
    raise InputError(f"{NEEDS} ({error})") from None

DAYS = 3650
AUTHORITY = "adom authority"
MONTH = 30.0
"""Days before the end of a certificate from which on the log warns of it."""
DAY = 86400.0


def make_keys(folder: Path, names: Sequence[str], days: float = DAYS, begin: datetime | None = None) -> list[Path]:
    """Make certificates for agents, and an authority to sign them if the folder has none; return the new files.

    They are valid for some `days` from `begin` on, which is now by default, and for a day before. The authority's
    private key, ca.key, signs further agents; no machine that runs an agent needs it. Only the owner can read the
    files of private keys.
    """
    begin = begin or datetime.now(UTC)
    dates = begin - timedelta(days=1), begin + timedelta(days=days)  # a day before, since clocks differ
    for name in map(check_name, names):
        if name == "ca" or files.kind(folder / f"{name}.key") != "nothing":
            raise InputError(f"{folder / name}.key exists already; take another name, or remove it to make a new one")
    made: list[Path] = []
    if files.kind(folder / "ca.key") == "nothing":
        made += _write(folder, "ca", *_signed(AUTHORITY, dates, None))
    try:
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
        certificate = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot use ca.key and ca.pem in {folder}: {error}; copy them there again") from None
    for name in names:
        made += _write(folder, name, *_signed(name, dates, (key, certificate)))
    return made


def _signed(name: str, dates: tuple[datetime, datetime], by: tuple[Any, Any] | None) -> tuple[Any, Any]:
    """Return a new key and its certificate, signed by an authority's key and certificate; None: a new authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    signing, issuer = (key, subject) if by is None else (by[0], by[1].subject)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(dates[0])
        .not_valid_after(dates[1])
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=0 if by is None else None), critical=True)
    )
    if by is None:
        others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
        forbidden = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
        usage = x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **forbidden)
        builder = builder.add_extension(usage, critical=True)
    else:
        roles = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(roles), critical=False)
    return key, builder.sign(signing, hashes.SHA256())


def _write(folder: Path, name: str, key: Any, certificate: Any) -> list[Path]:
    """Write a private key and a certificate."""
    pem, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(pem, plain, serialization.NoEncryption())
    paths = [folder / f"{name}.key", folder / f"{name}.pem"]
    before = os.umask(0o077)  # only the owner can read the file, from its first byte on
    try:
        with files.atomic(paths[0]) as partial:
            partial.write_bytes(private)
    finally:
        os.umask(before)
    with files.atomic(paths[1]) as partial:
        partial.write_bytes(certificate.public_bytes(pem))
    return paths


class KeyCertificate:
    """The certificate of an agent, found in order.

    Parameters
    ----------
    name : str
        Of the agent.
    keys : KeyFiles
    now : datetime, optional

    Attributes
    ----------
    end : datetime
        When it expires. An authority's own date does not count: TLS ignores it.
    """

    def __init__(self, name: str, keys: KeyFiles, now: datetime | None = None) -> None:
        path, now = keys.certificate, now or datetime.now(UTC)
        _check_mode(keys.private)
        authorities = _loaded(keys.authority, x509.load_pem_x509_certificates, "the certificate of an authority")
        own, *more = _loaded(path, x509.load_pem_x509_certificates, "a certificate")
        load_key = partial(serialization.load_pem_private_key, password=None)
        private = _loaded(keys.private, load_key, "a private key without a password")
        names = [str(each.value) for each in own.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
        if names != [name]:
            raise InputError(
                f"{path} is the certificate of {' '.join(names) or 'nobody'}, but the name of this agent is {name}; "
                f"copy the files of {name} here, or correct the name"
            )
        if private.public_key() != own.public_key():
            raise InputError(f"{keys.private} is not the key of {path.name}; copy both from where they were made")
        chain = _chain(own, more, authorities)
        if not chain:
            raise InputError(
                f"{path} was not signed by the authority in {keys.authority.name}; take ca.pem, {name}.pem and "
                f"{name}.key that were made together, and the same ca.pem on every machine"
            )
        begin = max(each.not_valid_before_utc for each in chain)
        self.end: datetime = min(each.not_valid_after_utc for each in chain)
        if now < begin:
            raise InputError(f"{path} is not valid before {_said(begin)}; set the clock of this machine right")
        if now >= self.end:
            raise InputError(f"{path} expired on {_said(self.end)}; {_renew(name)}")
        self._name, self._warned = name, 2 * MONTH  # days that were left at the last warning

    def days(self, now: float) -> float:
        """Return the days left at a time in seconds since 1970, negative after the end."""
        return (self.end.timestamp() - now) / DAY

    def warning(self, now: float) -> tuple[str, str] | None:
        """Return a line for the log, and its event, in the last month and after the end, once a day."""
        left = self.days(now)
        if left > MONTH or (left > self._warned - 1 and (left > 0) == (self._warned > 0)):
            return None
        self._warned = left
        if left > 0:
            return "warning", f"the certificate expires on {_said(self.end)}; {_renew(self._name)}"
        return "error", f"the certificate expired on {_said(self.end)}: no new link can be made; {_renew(self._name)}"


def _said(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"


def _renew(name: str) -> str:
    return f"remove {name}.key beside ca.key, run adom agent keys {name}, copy the new files, and start the agent again"


def _check_mode(path: Path) -> None:
    """Refuse a private key that others than its owner may read or write."""
    try:
        mode = path.stat().st_mode & 0o777 if os.name == "posix" else 0
    except OSError as error:
        raise InputError(f"cannot read {path}: {files.reason(error)}; copy it there again") from None
    if mode & 0o077:
        raise InputError(f"{path} is open to other users of this machine (mode {mode:o}); run: chmod 600 {path}")


def _loaded(path: Path, load: Callable[[bytes], Any], what: str) -> Any:
    """Return what a PEM file holds."""
    remedy = "copy it again from where adom agent keys wrote it"
    raw = files.content(path, remedy, files.SETTINGS)
    try:
        return load(raw)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # a TypeError if it needs a password
        raise InputError(f"{path} is not {what} in PEM; {remedy}") from None


def _chain(own: Any, more: list[Any], authorities: list[Any]) -> list[Any]:
    """Return the certificates from an agent's own up to one that an authority signed; none if there is no such way."""
    chain = [own]
    while not any(_signed_by(chain[-1], authority) for authority in authorities):
        issuer = next((each for each in more if each not in chain and _signed_by(chain[-1], each)), None)
        if issuer is None:
            return []
        chain.append(issuer)
    return chain


def _signed_by(certificate: Any, issuer: Any) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
