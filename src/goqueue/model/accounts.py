"""Users and API keys, as they are stored: nobody who reads them learns a password or a secret."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from goqueue.model.access import EVERYBODY, PREFIXED_ROLES, ROLES, Rule
from goqueue.model.codes import Code
from goqueue.model.quotas import Quota
from goqueue.model.refusal import Refused
from goqueue.model.secret import Secret, hides
from goqueue.model.sessions import EndedSessions
from goqueue.model.tenancy import DEFAULT_TENANT, Tenant

USER, KEY = "User", "Key"
"""Kinds of principals: `User:alice`, `Key:k7f3...`."""
ANONYMOUS = "User:ANONYMOUS"
"""Kafka's name of whoever has shown nothing."""
NAME_MAX = 200
FOREIGN_NAME_MAX = 1000
SECRETS_MAX = 2
"""Of a key: the one in use, and the one before it, while clients change over."""
KEY_PREFIX = "gqk"
METADATA_MAX = 32
DIGEST_BYTES = 32

_NAME = re.compile(r"[^\x00-\x1f\x7f:/]+")
_FOREIGN_NAME = re.compile(r"[^\x00-\x1f\x7f]+")
_PREFIX = re.compile(r"[^\x00-\x1f\x7f*?\[]{1,249}\*")
_KEY_ID = re.compile(r"k[0-9a-f]{16}")
_KEY_TEXT = re.compile(rf"{KEY_PREFIX}_(k[0-9a-f]{{16}})_([0-9a-f]{{64}})")


@hides("scram")
class User(msgspec.Struct, frozen=True):
    """Somebody with a password."""

    name: str
    scram: dict[str, bytes]
    """By mechanism: what a password is checked by, sealed where there is a master key."""
    roles: tuple[str, ...] = ()
    created_ms: int = 0

    @property
    def principal(self) -> str:
        return f"{USER}:{self.name}"


@hides("digest", "sealed")
class KeySecret(msgspec.Struct, frozen=True):
    digest: bytes
    """SHA-256 of 32 random bytes: there is nothing to guess, so nothing slower is needed."""
    ends_ms: int = 0
    """0: it does not."""
    sealed: bytes = b""
    """The secret itself, under the master key: signatures of AWS are made with it. Empty: it is not for SQS."""


class ApiKey(msgspec.Struct, frozen=True):
    """A program's."""

    key_id: str
    name: str
    secrets: tuple[KeySecret, ...]
    """The newest first."""
    roles: tuple[str, ...] = ()
    created_ms: int = 0
    expires_ms: int = 0
    """0: it does not."""
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    is_bootstrap: bool = False
    """It ends when there is another admin."""
    tenant: str = DEFAULT_TENANT

    @property
    def principal(self) -> str:
        return f"{KEY}:{self.key_id}"

    @property
    def is_for_sqs(self) -> bool:
        return bool(self.secrets[0].sealed)

    def is_over(self, now_ms: int) -> bool:
        return bool(self.expires_ms) and now_ms >= self.expires_ms


@dataclass(frozen=True)
class AccessImage:
    """Everybody and what they may do, at one moment."""

    revision: int = 0
    users: Mapping[str, User] = field(default_factory=lambda: MappingProxyType({}))
    keys: Mapping[str, ApiKey] = field(default_factory=lambda: MappingProxyType({}))
    """By id."""
    rules: Mapping[str, Rule] = field(default_factory=lambda: MappingProxyType({}))
    """By id."""
    quotas: Mapping[str, Quota] = field(default_factory=lambda: MappingProxyType({}))
    """By id."""
    tenants: Mapping[str, Tenant] = field(default_factory=lambda: MappingProxyType({}))
    """By id; all but the default one."""
    ended_sessions: Mapping[str, EndedSessions] = field(default_factory=lambda: MappingProxyType({}))
    """By principal."""


class KeyText(NamedTuple):
    """An API key as its owner has it: `gqk_<id>_<secret>`."""

    key_id: str
    secret: Secret[str]

    def reveal(self) -> str:
        return f"{KEY_PREFIX}_{self.key_id}_{self.secret.reveal()}"


def parse_key(text: str) -> KeyText | None:
    """None: this is no API key."""
    found = _KEY_TEXT.fullmatch(text)
    return None if found is None else KeyText(found[1], Secret(found[2]))


def is_key_id(text: str) -> bool:
    return _KEY_ID.fullmatch(text) is not None


def check_name(what: str, name: str) -> None:
    """Of a user or a key. No colon, which parts a principal and Basic credentials, and no slash."""
    if not _NAME.fullmatch(name) or len(name.encode()) > NAME_MAX:
        words = f"a {what}'s name has 1 to {NAME_MAX} bytes, and no colon, slash or control character"
        raise Refused(Code.UNACCEPTABLE_CREDENTIAL, f"{words}: {name[:NAME_MAX]!r}")
    if f"{USER}:{name}" == ANONYMOUS:
        raise Refused(Code.UNACCEPTABLE_CREDENTIAL, f"{name} is the name of those who have shown nothing")


def check_foreign_name(name: str) -> None:
    """Of somebody whom a certificate or a token names. Nothing is stored of them, so most of what others call their own
    may be in it."""
    if not _FOREIGN_NAME.fullmatch(name) or len(name.encode()) > FOREIGN_NAME_MAX:
        words = f"a name has 1 to {FOREIGN_NAME_MAX} bytes, and no control character"
        raise Refused(Code.UNACCEPTABLE_CREDENTIAL, words)
    if f"{USER}:{name}" in (ANONYMOUS, EVERYBODY):
        raise Refused(Code.UNACCEPTABLE_CREDENTIAL, f"{name} stands for others than one user")


def check_roles(roles: tuple[str, ...]) -> tuple[str, ...]:
    """Each once, by its own name."""
    known = dict.fromkeys(_role(each) for each in roles)
    return tuple(known)


def _role(text: str) -> str:
    word, colon, pattern = text.partition(":")
    word = "viewer" if word == "readonly" else word
    if word not in ROLES:
        raise Refused(Code.INVALID_REQUEST, f"no such role: {text[:100]!r}; there are {', '.join(ROLES)}")
    if not colon:
        return word
    if word not in PREFIXED_ROLES:
        words = f"{word} is a role for all names; those of {', '.join(PREFIXED_ROLES)} may have a prefix"
        raise Refused(Code.INVALID_REQUEST, words)
    if not _PREFIX.fullmatch(pattern):
        words = "what names begin with, and a *, such as producer:orders-*"
        raise Refused(Code.INVALID_REQUEST, f"behind the colon of a role is {words}; not {pattern[:100]!r}")
    return f"{word}:{pattern}"


def check_principal(principal: str) -> None:
    """Of a rule: somebody who may not be there yet."""
    kind, colon, name = principal.partition(":")
    if kind not in (USER, KEY) or not colon or not name:
        raise Refused(Code.INVALID_REQUEST, f"a principal is User:<name>, Key:<id> or User:*, not {principal[:100]!r}")
