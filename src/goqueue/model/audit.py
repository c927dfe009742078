"""What the audit trail keeps: names, and never a value, a header or a secret."""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from goqueue.model.tenancy import DEFAULT_TENANT

NO_CHANGE = -1


class AuditLevel(StrEnum):
    ADMIN = "admin"
    """Changes, logins that failed, and what was refused."""
    ACCESS = "access"
    """And logins, and reads of messages by users."""
    ALL = "all"
    """And all other requests."""


class Outcome(StrEnum):
    BEGUN = "begun"
    """It is about to be made. Nothing after it: over Kafka, or the node ended meanwhile."""
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"
    """A login; or a fault of ours, so that nobody knows."""


class Asked(NamedTuple):
    """What somebody wants."""

    principal: str
    host: str
    api: str
    operation: str
    resource: str = ""
    fields: tuple[str, ...] = ()
    """Names of what is changed."""
    tenant: str = DEFAULT_TENANT
    """Whose it is: that of who asks, or that they act for."""
    is_operator: bool = False
    """Somebody of the default tenant acts for another one."""


class AuditRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """As it is stored, in JSON: people read it without us."""

    at_ms: int
    node: int
    principal: str
    host: str
    api: str
    operation: str
    resource: str
    outcome: str
    previous: str
    """SHA-256 of the record before it, in hex."""
    fields: tuple[str, ...] = ()
    code: str = ""
    """Why it was refused."""
    count: int = 1
    """How often, in the minute before."""
    change: int = NO_CHANGE
    """Of an outcome: the offset of the record with which the change began."""
    tenant: str = DEFAULT_TENANT
    is_operator: bool = False
    request_id: str = ""
    """Of a change over HTTP or SQS: what its client was told as X-Request-ID."""


class AuditPage(NamedTuple):
    """A part of a trail."""

    start: int
    """Of the oldest record that is kept."""
    end: int
    """Behind the newest."""
    following: int
    """Where those are that come after these."""
    found: list["Recorded"]


class Recorded(NamedTuple):
    offset: int
    record: AuditRecord
    is_chained: bool
    """It has the hash of the one before it."""
