"""Keys: a private certificate authority and one certificate per agent, so that nobody else can join the links."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..util.files import atomic, kind
from .links import NEEDS
from .wire import check_name

DAYS = 3650
AUTHORITY = "adom authority"
Dates = tuple[datetime, datetime]
"""The first and the last moment of a certificate."""


def make_keys(folder: Path, names: Sequence[str], days: float = DAYS, begin: datetime | None = None) -> list[Path]:
    """Make certificates for agents, and an authority to sign them if the folder has none; return the new files.

    They are valid for some `days` from `begin` on, which is now by default, and for a day before. The authority's
    private key, ca.key, signs further agents; no machine that runs an agent needs it. Only the owner can read the
    files of private keys.
    """
    begin = begin or datetime.now(UTC)
    dates = begin - timedelta(days=1), begin + timedelta(days=days)  # a day before, since clocks differ
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError as error:
        raise InputError(f"{NEEDS} ({error})") from None
    names = [check_name(name) for name in names]
    for name in names:
        if name == "ca" or kind(folder / f"{name}.key") != "nothing":
            raise InputError(f"{folder / name}.key exists already; take another name, or remove it to make a new one")
    made: list[Path] = []
    if kind(folder / "ca.key") == "nothing":
        key, certificate = _authority(dates)
        made += _write(folder, "ca", key, certificate)
    try:
        key = load_pem_private_key((folder / "ca.key").read_bytes(), None)
        certificate = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot use ca.key and ca.pem in {folder}: {error}; copy them there again") from None
    for name in names:
        made += _write(folder, name, *_signed(name, key, certificate, dates))
    return made


def _name(text: str) -> Any:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _builder(subject: str, issuer: Any, key: Any, dates: Dates) -> Any:
    from cryptography import x509

    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(dates[0])
        .not_valid_after(dates[1])
    )


def _authority(dates: Dates) -> tuple[Any, Any]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = _builder(AUTHORITY, _name(AUTHORITY), key, dates)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return key, builder.add_extension(usage, critical=True).sign(key, hashes.SHA256())


def _signed(name: str, authority: Any, certificate: Any, dates: Dates) -> tuple[Any, Any]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    key = ec.generate_private_key(ec.SECP256R1())
    roles = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = _builder(name, certificate.subject, key, dates)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage(roles), critical=False)
    return key, builder.sign(authority, hashes.SHA256())


def _write(folder: Path, name: str, key: Any, certificate: Any) -> list[Path]:
    """Write a private key and a certificate."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    paths = [folder / f"{name}.key", folder / f"{name}.pem"]
    before = os.umask(0o077)  # only the owner can read the file, from its first byte on
    try:
        with atomic(paths[0]) as partial:
            partial.write_bytes(private)
    finally:
        os.umask(before)
    with atomic(paths[1]) as partial:
        partial.write_bytes(certificate.public_bytes(Encoding.PEM))
    return paths
