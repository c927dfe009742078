"""Tenants."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from goqueue.wire.rest.common import Body, Count, Query, Reply

TenantId = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,31}\Z", max_length=32, examples=["acme"])]
TenantName = Annotated[
    str, Meta(min_length=1, max_length=200, examples=["Acme Ltd"], description="What people call it")
]
Description = Annotated[str, Meta(max_length=1000, description="What it is for")]
Reason = Annotated[str, Meta(min_length=1, max_length=1000, examples=["the bill is not paid"])]
Metadata = Annotated[
    dict[str, str], Meta(max_length=32, examples=[{"plan": "free"}], description="What else is kept with it")
]


class TenantPath(Query):
    tenant: Annotated[TenantId, Meta(description="Id of the tenant")]


class TenantQuery(Query):
    status: Annotated[str | None, Meta(description="active, suspended, disabled or deleting; default: all")] = None


class NewTenant(Body):
    id: Annotated[TenantId, Meta(description="It stays, and is part of no name that the tenant sees")]
    name: TenantName
    description: Description = ""
    metadata: Metadata = msgspec.field(default_factory=dict)


class TenantChange(Body):
    name: TenantName | None = None
    description: Description | None = None
    metadata: Metadata | None = None


class Suspension(Body):
    reason: Annotated[Reason, Meta(description="Told to whoever is refused")]


class TenantDeletion(Query):
    force: Annotated[bool, Meta(description="With all that it has; without, a tenant that is not empty stays")] = False


class TenantGoing(Reply):
    tenant_id: Annotated[str, Meta(description="Id of the tenant")]
    status: Annotated[str, Meta(description="deleting: what it has is being removed, and nobody of it comes in")]


Rate = Annotated[
    Annotated[int, Meta(ge=1, le=2**53)] | UnsetType | None,
    Meta(examples=[1048576], description="Bytes a second, of each node; null: no limit"),
]
MessageRate = Annotated[
    Annotated[int, Meta(ge=1, le=2**53)] | UnsetType | None,
    Meta(examples=[1000], description="Messages a second, of each node; null: no limit"),
]
PartitionRate = Annotated[
    Annotated[int, Meta(ge=1, le=2**53)] | UnsetType | None,
    Meta(examples=[10], description="Partitions a second that are made or deleted, of each node; null: no limit"),
]
Number = Annotated[
    Annotated[int, Meta(ge=0, le=10**6)] | UnsetType | None, Meta(examples=[100], description="null: no limit")
]
Shared = Annotated[
    Annotated[int, Meta(ge=0, le=10**6)] | UnsetType | None,
    Meta(examples=[1000], description="null: a quarter of what there is for all tenants together"),
]
Size = Annotated[
    Annotated[int, Meta(ge=0, le=2**60)] | UnsetType | None,
    Meta(examples=[1048576], description="In bytes; null: no limit"),
]
Hours = Annotated[
    Annotated[int, Meta(ge=0, le=10**6)] | UnsetType | None,
    Meta(examples=[168], description="In hours; null: no limit"),
]


class TenantQuotaChange(Body):
    publish_rate_limit: MessageRate = UNSET
    consume_rate_limit: MessageRate = UNSET
    publish_bytes_rate_limit: Rate = UNSET
    consume_bytes_rate_limit: Rate = UNSET
    max_topics: Number = UNSET
    max_total_partitions: Shared = UNSET
    max_partitions_per_topic: Number = UNSET
    max_storage_bytes: Size = UNSET
    max_message_size_bytes: Size = UNSET
    max_delay_hours: Hours = UNSET
    max_retention_hours: Hours = UNSET
    max_consumer_groups: Number = UNSET
    max_consumers_per_group: Number = UNSET
    max_connections: Shared = UNSET
    max_recurring_schedules: Shared = UNSET
    max_schemas: Shared = UNSET
    max_accounts: Shared = UNSET
    max_open_transactions: Shared = UNSET
    max_share_sessions: Shared = UNSET
    max_fetch_sessions: Shared = UNSET
    controller_mutation_rate: PartitionRate = UNSET


class TenantQuotas(Reply):
    tenant_id: Annotated[str, Meta(description="Id of the tenant")]
    publish_rate_limit: Annotated[int | None, Meta(description="Messages a second that may be published")]
    consume_rate_limit: Annotated[int | None, Meta(description="Messages a second that may be read")]
    publish_bytes_rate_limit: Annotated[int | None, Meta(description="Bytes a second that may be published")]
    consume_bytes_rate_limit: Annotated[int | None, Meta(description="Bytes a second that may be read")]
    max_topics: Annotated[int | None, Meta(description="Topics, dead letters among them")]
    max_total_partitions: Annotated[int | None, Meta(description="Partitions of all topics")]
    max_partitions_per_topic: Annotated[int | None, Meta(description="Partitions of one topic")]
    max_storage_bytes: Annotated[int | None, Meta(description="Bytes stored, each once however many copies there are")]
    max_message_size_bytes: Annotated[int | None, Meta(description="Key, value and headers of a message")]
    max_delay_hours: Annotated[int | None, Meta(description="How long a message may wait for its time")]
    max_retention_hours: Annotated[int | None, Meta(description="The longest retention.ms of a topic")]
    max_consumer_groups: Annotated[int | None, Meta(description="Groups of all kinds")]
    max_consumers_per_group: Annotated[int | None, Meta(description="Members of one group")]
    max_connections: Annotated[int | None, Meta(description="To each node: of Kafka clients, and requests that last")]
    max_recurring_schedules: Annotated[int | None, Meta(description="Schedules that recur")]
    max_schemas: Annotated[int | None, Meta(description="Versions of all subjects")]
    max_accounts: Annotated[int | None, Meta(description="Users, keys and rules: of each so many")]
    max_open_transactions: Annotated[int | None, Meta(description="At each node: begun over HTTP or gRPC and not used")]
    max_share_sessions: Annotated[int | None, Meta(description="To each node: of members of share groups over Kafka")]
    max_fetch_sessions: Annotated[int | None, Meta(description="To each node: of consumers over Kafka")]
    controller_mutation_rate: Annotated[int | None, Meta(description="Partitions a second, made or deleted")]


class TenantUsage(Reply):
    tenant_id: Annotated[str, Meta(description="Id of the tenant")]
    topics: Annotated[Count, Meta(description="Those that are being deleted among them")]
    partitions: Annotated[Count, Meta(description="Of all topics")]
    stored_bytes: Annotated[Count, Meta(description="Of each partition the copy of its leader, with what waits there")]
    groups: Annotated[Count, Meta(description="Of all kinds")]
    connections: Annotated[Count, Meta(description="Of Kafka clients, with requests and calls of others that last")]
    users: Annotated[Count, Meta(description="Users")]
    keys: Annotated[Count, Meta(description="API keys")]


class TenantFacts(Reply):
    id: Annotated[str, Meta(description="Id of the tenant")]
    name: TenantName
    description: Description
    status: Annotated[str, Meta(description="active, suspended, disabled or deleting")]
    reason: Annotated[str, Meta(description="Why it is suspended")]
    metadata: Metadata
    created_at: Annotated[Count, Meta(description="When it was made, in milliseconds since 1970")]


class Tenants(Reply):
    tenants: Annotated[list[TenantFacts], Meta(description="By id")]
    count: Count
