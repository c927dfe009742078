"""Tenants, and whose a name is. A name of the tenant `acme` is kept as `acme~orders`; names of the tenant `default` are
kept as they are, so that a node with one tenant has no other names than before.
"""

import re
from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec

from goqueue.model.codes import Code
from goqueue.model.refusal import Refused

DEFAULT_TENANT = "default"
"""The one that there always is. Its admins are those of the cluster."""
RESERVED = frozenset({DEFAULT_TENANT, "system"})
MARK = "~"
ACTS = "tenant/"
"""How whoever acts for a tenant says so where only a name can be said: `tenant/acme`."""
TENANT_HEADER = "x-goqueue-tenant"
"""The same over HTTP; and over gRPC, in the metadata of a call:"""
TENANT_METADATA = "goqueue-tenant"
TENANT_ID = r"[a-z0-9][a-z0-9-]{0,31}"
TENANT_METADATA_MAX = 32
RETENTION = "retention.ms"
HOUR_MS = 60 * 60 * 1000

_ID = re.compile(TENANT_ID)


class TenantLimit(StrEnum):
    """What a tenant has at most. Rates are of each node, as those of users are."""

    PUBLISH_RATE = "publish_rate_limit"
    """Messages."""
    CONSUME_RATE = "consume_rate_limit"
    PUBLISH_BYTES_RATE = "publish_bytes_rate_limit"
    CONSUME_BYTES_RATE = "consume_bytes_rate_limit"
    MUTATION_RATE = "controller_mutation_rate"
    """Partitions that are made or deleted, as Kafka calls it for users."""
    TOPICS = "max_topics"
    PARTITIONS = "max_total_partitions"
    PARTITIONS_OF_TOPIC = "max_partitions_per_topic"
    STORAGE_BYTES = "max_storage_bytes"
    MESSAGE_BYTES = "max_message_size_bytes"
    DELAY_HOURS = "max_delay_hours"
    RETENTION_HOURS = "max_retention_hours"
    GROUPS = "max_consumer_groups"
    MEMBERS = "max_consumers_per_group"
    CONNECTIONS = "max_connections"
    """To each node."""
    SCHEDULES = "max_recurring_schedules"
    SCHEMAS = "max_schemas"
    """Versions of all subjects."""
    ACCOUNTS = "max_accounts"
    """Of users, of keys and of rules each."""
    OPEN_TRANSACTIONS = "max_open_transactions"
    """At each node: begun over HTTP or gRPC, and not written to yet."""
    SHARE_SESSIONS = "max_share_sessions"
    """To each node."""
    FETCH_SESSIONS = "max_fetch_sessions"
    """Likewise."""


COUNTS = (
    TenantLimit.TOPICS,
    TenantLimit.PARTITIONS,
    TenantLimit.PARTITIONS_OF_TOPIC,
    TenantLimit.SCHEDULES,
    TenantLimit.ACCOUNTS,
)
SHARE = 4
"""Of what there is for all together, a tenant without a limit of its own may take one part of so many."""


class TenantStatus(StrEnum):
    ACTIVE = "active"
    SUSPENDED = "suspended"
    """Nothing is read or written; its users and keys still log in, to be told that."""
    DISABLED = "disabled"
    """The same, and nobody of it logs in."""
    DELETING = "deleting"
    """What it had goes step by step; then it does."""


class Tenant(msgspec.Struct, frozen=True):
    """A cluster of its own, to those who belong to it."""

    tenant_id: str
    name: str
    description: str = ""
    status: TenantStatus = TenantStatus.ACTIVE
    reason: str = ""
    """Why it is suspended."""
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    created_ms: int = 0
    quotas: dict[str, int] = msgspec.field(default_factory=dict)
    """By `TenantLimit`."""

    @property
    def is_counted(self) -> bool:
        """How many topics, partitions, recurring schedules or accounts it has is limited."""
        return any(each in self.quotas for each in COUNTS)

    def most(self, key: TenantLimit, bound: int) -> int:
        """How many it may have of what there are `bound` for all together."""
        return self.quotas.get(key, bound // SHARE)

    def full_words(self, key: TenantLimit, bound: int) -> str:
        """What whoever wants one more is told."""
        return f"the quota {key} of the tenant is {self.most(key, bound)}, and it has as many"

    def retention(self, overrides: Mapping[str, str], default_ms: int, *, is_asked: bool) -> str | None:
        """What the option retention.ms of a topic has to be, where nobody says; None: as it is. Refused: it is asked
        for, and longer than this tenant may have."""
        hours = self.quotas.get(TenantLimit.RETENTION_HOURS)
        if hours is None:
            return None
        limit_ms, text = hours * HOUR_MS, overrides.get(RETENTION)
        wanted_ms = default_ms if text is None else int(text)
        if 0 <= wanted_ms <= limit_ms:
            return None
        if text is not None and is_asked:
            words = f"the quota {TenantLimit.RETENTION_HOURS} of the tenant is {hours}, which is {limit_ms} ms"
            raise Refused(Code.POLICY_VIOLATION, f"{words}; {RETENTION} would be {wanted_ms}")
        return str(limit_ms) if text is None else None

    def refusal(self, sizes: Collection[int], partitions: int, bound: int, *, is_new: bool) -> str:
        """Why it cannot have one more topic with so many partitions, or one that it has cannot get as many; empty: it
        can. `sizes`: of the others that it has. `bound`: of partitions of all together."""
        wanted = {
            TenantLimit.TOPICS: len(sizes) + 1 if is_new else 0,
            TenantLimit.PARTITIONS: sum(sizes) + partitions,
            TenantLimit.PARTITIONS_OF_TOPIC: partitions,
        }
        limits = {**self.quotas, TenantLimit.PARTITIONS: self.most(TenantLimit.PARTITIONS, bound)}
        for key, count in wanted.items():
            limit = limits.get(key)
            if limit is not None and count > limit:
                return f"the quota {key} of the tenant is {limit}, and it would be {count}"
        return ""


class TenantSuspended(Refused):
    """What is asked for would be refused to everybody of this tenant."""


def full(tenant: str, plain: str) -> str:
    """The name as it is kept."""
    return plain if tenant == DEFAULT_TENANT else f"{tenant}{MARK}{plain}"


def tenant_of(name: str, tenants: Mapping[str, object]) -> str:
    """Whose a name is that is kept. What only looks like a tenant's is the default tenant's."""
    before, mark, _ = name.partition(MARK)
    return before if mark and before in tenants else DEFAULT_TENANT


def tenant_said(name: str) -> str:
    """Whose a name says that it is, of a kind of which nobody's has the mark inside it."""
    before, mark, _ = name.partition(MARK)
    return before if mark else DEFAULT_TENANT


def tenant_named(name: str) -> str:
    """Whose somebody with this name is, of whom nothing is stored. What cannot be an id is a part of the name."""
    said = tenant_said(name)
    return said if is_tenant_id(said) else DEFAULT_TENANT


def are_of_one_tenant(name: str, topic: str) -> bool:
    """Whether a name that is kept is of the tenant of a topic, of which only tenants' have the mark. Somebody may have
    named the topic before there was its tenant."""
    return MARK not in topic or name.startswith(full(tenant_said(topic), ""))


def is_tenant_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def check_tenant_id(tenant_id: str) -> None:
    if not is_tenant_id(tenant_id):
        words = "a tenant's id has 1 to 32 of the characters a-z 0-9 -, and does not begin with -"
        raise Refused(Code.INVALID_REQUEST, f"{words}: {tenant_id[:40]!r}")


class Tenancy:
    """Whose names somebody sees: decided once for each access."""

    __slots__ = ("is_all", "others", "prefix", "tenant")

    def __init__(self, tenant: str, tenants: Mapping[str, object]) -> None:
        self.tenant = tenant
        self.prefix = full(tenant, "")
        self.others = frozenset(tenants)
        """Whose names those of the default tenant must not take."""
        self.is_all = tenant == DEFAULT_TENANT and not tenants
        """There is nobody else: every name is as it is kept, and nothing needs to be looked at."""

    @property
    def is_default(self) -> bool:
        return not self.prefix

    def full(self, plain: str) -> str:
        return self.prefix + plain

    def may_be_called(self, plain: str) -> bool:
        """Whether a plain name is no other tenant's once it is kept."""
        return bool(self.prefix) or MARK not in plain or plain.partition(MARK)[0] not in self.others

    def owns(self, name: str) -> bool:
        """A name that is kept."""
        return name.startswith(self.prefix) if self.prefix else self.may_be_called(name)

    def plain(self, name: str) -> str:
        """A name that is kept and ours, as its owner knows it."""
        return name[len(self.prefix) :]


ONE_TENANT = Tenancy(DEFAULT_TENANT, {})
