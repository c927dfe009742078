"""Quotas of users, clients and addresses."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from goqueue.wire.rest.common import Body, Count, Query, Reply

EntityName = Annotated[str, Meta(min_length=1, max_length=255)]
UserName = Annotated[
    EntityName | None,
    Meta(
        examples=["alice"],
        description="Name of a user, or id of an API key; `<default>`: each user without one of its own; null: anybody",
    ),
]
ClientId = Annotated[
    EntityName | None,
    Meta(
        examples=["billing"],
        description="What a client calls itself; `<default>`: each client without one of its own; null: any client",
    ),
]
Address = Annotated[
    EntityName | None,
    Meta(
        examples=["10.0.0.7"],
        description="An address, with neither user nor client id; `<default>`: each without one of its own",
    ),
]
Rate = Annotated[float, Meta(gt=0, le=2.0**53, examples=[1048576])]
ProducerRate = Annotated[
    Rate | UnsetType | None, Meta(description="Bytes a second that may be published; null: no limit")
]
ConsumerRate = Annotated[Rate | UnsetType | None, Meta(description="Bytes a second that may be read; null: no limit")]
RequestRate = Annotated[Rate | UnsetType | None, Meta(description="Requests a second; null: no limit")]

RequestPercentage = Annotated[
    Annotated[float, Meta(gt=0, le=2.0**53, examples=[50])] | UnsetType | None,
    Meta(description="Of the time of the node's event loop, 100 being all of it; null: no limit"),
]
ConnectionRate = Annotated[
    Rate | UnsetType | None, Meta(description="New connections a second, of an address; null: no limit")
]
MutationRate = Annotated[
    Rate | UnsetType | None, Meta(description="Partitions a second that may be made or deleted; null: no limit")
]


class QuotaChange(Body):
    user: UserName = None
    client_id: ClientId = None
    producer_byte_rate: ProducerRate = UNSET
    consumer_byte_rate: ConsumerRate = UNSET
    request_rate: RequestRate = UNSET
    request_percentage: RequestPercentage = UNSET
    ip: Address = None
    connection_creation_rate: ConnectionRate = UNSET
    controller_mutation_rate: MutationRate = UNSET


class QuotaQuery(Query):
    user: UserName = None
    client_id: ClientId = None
    ip: Address = None


class QuotaFacts(Reply):
    user: UserName
    client_id: ClientId
    producer_byte_rate: Annotated[float | None, Meta(description="Bytes a second that may be published")]
    consumer_byte_rate: Annotated[float | None, Meta(description="Bytes a second that may be read")]
    request_rate: Annotated[float | None, Meta(description="Requests a second")]
    request_percentage: Annotated[float | None, Meta(description="Of the time of the node's event loop")]
    ip: Address
    connection_creation_rate: Annotated[float | None, Meta(description="New connections a second, of an address")]
    controller_mutation_rate: Annotated[float | None, Meta(description="Partitions a second, made or deleted")]


class Quotas(Reply):
    quotas: Annotated[list[QuotaFacts], Meta(description="By user and client id")]
    count: Count


class QuotaDeleted(Reply):
    success: bool
    user: UserName
    client_id: ClientId
    ip: Address
