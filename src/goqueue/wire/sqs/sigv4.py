"""Signatures of AWS, version 4: what was signed, and what its signature has to be."""

import hashlib
import hmac
import posixpath
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from goqueue.model.secret import Secret
from goqueue.wire.sqs.errors import SqsError

ALGORITHM = "AWS4-HMAC-SHA256"
SERVICE, END = "sqs", "aws4_request"
MUST_BE_SIGNED = frozenset({"host", "x-amz-date", "x-amz-target"})
"""Else who listens could send the same signature to another place, later, or with another action."""
SKEW_S_MAX = 300
DATE_HEADER = "x-amz-date"

Headers = Iterable[tuple[bytes, bytes]]


class Signature(NamedTuple):
    """As the header `Authorization` says it."""

    key_id: str
    date: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    signature: str

    @property
    def scope(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/{END}"


def read_signature(authorization: str) -> Signature:
    algorithm, _, rest = authorization.strip().partition(" ")
    fields = dict(each.strip().partition("=")[::2] for each in rest.split(","))
    credential = fields.get("Credential", "").split("/")
    if algorithm != ALGORITHM or len(credential) != 5 or credential[4] != END:
        raise SqsError("IncompleteSignature", f"Authorization has to be {ALGORITHM} with a Credential of five parts.")
    names = tuple(fields.get("SignedHeaders", "").lower().split(";"))
    missing = sorted(MUST_BE_SIGNED.difference(names))
    if missing or not fields.get("Signature"):
        raise SqsError("IncompleteSignature", f"These have to be signed: {', '.join(sorted(MUST_BE_SIGNED))}.")
    key_id, date, region, service, _ = credential
    if service != SERVICE:
        raise SqsError("SignatureDoesNotMatch", f"Credential should be scoped to correct service: '{SERVICE}'.")
    return Signature(key_id, date, region, service, names, fields["Signature"])


class Signed(NamedTuple):
    """A request, as far as it is signed."""

    method: str
    path: bytes
    """As it came: percent-encoded."""
    query: bytes
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: str) -> str:
        found = [value.decode("latin-1") for key, value in self.headers if key.decode("latin-1").lower() == name]
        return ",".join(" ".join(value.split()) for value in found)

    def check_date(self, signature: Signature, now_ms: int) -> None:
        """SqsError: it was signed too long ago, or will be."""
        text = self.header(DATE_HEADER)
        try:
            at = datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError:
            raise SqsError("IncompleteSignature", "Date must be in ISO-8601 'basic format'.") from None
        if not text.startswith(signature.date):
            raise SqsError("SignatureDoesNotMatch", "Date in Credential scope does not match YYYYMMDD from X-Amz-Date.")
        if abs(at.timestamp() - now_ms / 1000) > SKEW_S_MAX:
            raise SqsError("RequestExpired", f"Signature expired or not yet valid: {text}; the clocks differ too much.")

    def signature_with(self, secret: Secret[str], signature: Signature) -> str:
        """What it has to be."""
        digest = hashlib.sha256(self._canonical(signature.signed_headers)).hexdigest()
        text = "\n".join((ALGORITHM, self.header(DATE_HEADER), signature.scope, digest))
        key = _signing_key(secret, signature.date, signature.region, signature.service)
        return hmac.new(key, text.encode("latin-1"), "sha256").hexdigest()

    def _canonical(self, names: Sequence[str]) -> bytes:
        path = self.path.decode("latin-1")
        normal = posixpath.normpath(path).replace("//", "/") + ("/" if path.endswith("/") and path != "/" else "")
        pairs = (each for each in self.query.decode("latin-1").split("&") if each)
        query = "&".join(sorted(each if "=" in each else f"{each}=" for each in pairs))
        lines = [f"{name}:{self.header(name)}" for name in names]
        parts = (self.method, quote(normal, safe="/~"), query, *lines, "", ";".join(names))
        return "\n".join((*parts, hashlib.sha256(self.body).hexdigest())).encode("latin-1")


@lru_cache(maxsize=1000)
def _signing_key(secret: Secret[str], date: str, region: str, service: str) -> bytes:
    """Good for a day; making it costs more than all else."""
    key = f"AWS4{secret.reveal()}".encode()
    for part in (date, region, service, END):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
