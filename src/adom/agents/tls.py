"""Key files are checked before an agent joins the network, since TLS itself refuses bad ones without a word."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..util import files
from .links import NEEDS, Keys

MONTH = 30.0
"""Days before the end of a certificate from which on the log warns of it."""
DAY = 86400.0


class Certificate:
    """The certificate of an agent, found in order.

    Parameters
    ----------
    name : str
        Of the agent.
    keys : Keys
    now : datetime, optional

    Attributes
    ----------
    end : datetime
        When it expires. An authority's own date does not count: TLS ignores it.
    """

    def __init__(self, name: str, keys: Keys, now: datetime | None = None) -> None:
        try:
            from cryptography import x509
            from cryptography.hazmat.primitives.serialization import load_pem_private_key
        except ImportError as error:
            raise InputError(f"{NEEDS} ({error})") from None
        path, now = keys.certificate, now or datetime.now(UTC)
        _check_mode(keys.private)
        authorities = _loaded(keys.authority, x509.load_pem_x509_certificates, "the certificate of an authority")
        own, *more = _loaded(path, x509.load_pem_x509_certificates, "a certificate")
        private = _loaded(keys.private, lambda raw: load_pem_private_key(raw, None), "a private key without a password")
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
    from cryptography.exceptions import UnsupportedAlgorithm

    remedy = "copy it again from where adom agent keys wrote it"
    raw = files.content(path, remedy, files.SETTINGS)
    try:
        return load(raw)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # a TypeError if it needs a password
        raise InputError(f"{path} is not {what} in PEM; {remedy}") from None


def _chain(own: Any, more: list[Any], authorities: list[Any]) -> list[Any]:
    """Return the certificates from an agent's own up to one that an authority signed; none if there is no such way."""
    chain = [own]
    while not any(_signed(chain[-1], authority) for authority in authorities):
        issuer = next((each for each in more if each not in chain and _signed(chain[-1], each)), None)
        if issuer is None:
            return []
        chain.append(issuer)
    return chain


def _signed(certificate: Any, issuer: Any) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
