"""What all bodies have in common."""

from typing import Annotated, Self

from msgspec import Meta, Struct

INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1
TOPIC_PATTERN = r"^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}\Z"

TopicName = Annotated[
    str, Meta(pattern=TOPIC_PATTERN, min_length=1, max_length=249, description="Name of a topic", examples=["orders"])
]
GroupId = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x1f\x7f/]{1,255}\Z",
        min_length=1,
        max_length=255,
        description="Name of a consumer group",
        examples=["billing"],
    ),
]
PartitionNumber = Annotated[int, Meta(ge=0, le=INT32_MAX, description="Number of a partition", examples=[0])]
Offset = Annotated[int, Meta(ge=0, le=INT64_MAX, description="Offset in a partition", examples=[0])]
Count = Annotated[int, Meta(ge=0, le=INT64_MAX)]
Duration = Annotated[
    str | int, Meta(description="A duration: `30s`, `1h30m`, `3 days`, or milliseconds", examples=["30s"])
]
Moment = Annotated[
    str | int,
    Meta(
        description="A time: RFC 3339 with an offset, milliseconds since 1970, `now`, or relative to now (`-10m`)",
        examples=["2026-11-16T10:00:00Z"],
    ),
]
OldName = Annotated[str | int, Meta(extra_json_schema={"deprecated": True})]
"""A field that is still read under the name that it had."""
Text = Annotated[str, Meta(max_length=1 << 24)]


class Body(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a client sends. A field that we do not know is refused: a delay with a typo must not be sent at once."""


class Query(Struct, kw_only=True):
    """Path or query parameters."""


class Reply(Struct, kw_only=True):
    """What a client gets. Every field is always there, unless its type says that it may be missing."""


class ErrorReply(Reply):
    error: Annotated[str, Meta(description="What is wrong, for a person")]
    status: Annotated[int, Meta(description="The status of the response, again", examples=[404])]
    code: Annotated[str, Meta(description="What is wrong, for a program", examples=["UNKNOWN_TOPIC_OR_PARTITION"])]

    @classmethod
    def of(cls, error: Exception, status: int, code: str) -> Self:
        return cls(error=str(error), status=status, code=code)
