"""The audit trail."""

from typing import Annotated

from msgspec import Meta

from goqueue.wire.rest.common import Count, Query, Reply


class AuditQuery(Query):
    offset: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="The first to be told; without it the newest are")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    principal: Annotated[Annotated[str, Meta(max_length=1000)] | None, Meta(description="Of these only")] = None
    node: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="The trail of this node only; offsets are of one trail")
    ] = None


class AuditEntry(Reply):
    offset: Annotated[int, Meta(description="In the trail of its node; to a tenant a number without an order")]
    at_ms: Annotated[int, Meta(description="Milliseconds since 1970")]
    node: int
    tenant: Annotated[str, Meta(description="Whose it is: of who asked, or that they acted for")]
    principal: Annotated[
        str,
        Meta(
            description="Who; of a login that failed, the name that was given; `operator`, to a tenant, if it was "
            "somebody of the tenant default who acted for it"
        ),
    ]
    host: Annotated[str, Meta(description="The address that it came from")]
    api: Annotated[str, Meta(description="kafka, http, sqs or grpc; empty where it was any")]
    operation: Annotated[str, Meta(description="As its API calls it, or `login`")]
    resource: Annotated[str, Meta(description="What it was about: names, or a path")]
    outcome: Annotated[str, Meta(description="begun, done, refused or failed")]
    code: Annotated[str, Meta(description="Why it was refused")]
    count: Annotated[int, Meta(description="How often in a minute; of changes always 1")]
    change: Annotated[int, Meta(description="Of an outcome: the offset at which the change began; else -1")]
    fields: Annotated[list[str], Meta(description="Names of what was changed")]
    request_id: Annotated[
        str, Meta(description="Of a change over HTTP or SQS: the X-Request-ID that its client was told; else empty")
    ]
    hash_ok: Annotated[bool, Meta(description="Whether it has the hash of the record before it")]


class NodeTrail(Reply):
    node: int
    start_offset: Annotated[int, Meta(description="Of the oldest that is kept; 0, to a tenant")]
    end_offset: Annotated[int, Meta(description="Behind the newest; to a tenant the same as `next_offset`")]
    next_offset: Annotated[int, Meta(description="As `offset`, with `node`, it gives those that come after these")]


class AuditTrail(Reply):
    entries: Annotated[list[AuditEntry], Meta(description="The oldest first")]
    count: Count
    start_offset: Annotated[int, Meta(description="Of the oldest that is kept by the first of `trails`")]
    end_offset: Annotated[int, Meta(description="Behind the newest of it")]
    trails: Annotated[list[NodeTrail], Meta(description="Of the nodes that answered")]
    not_answered: Annotated[list[int], Meta(description="Nodes that did not answer; their trails are not told")]
