"""One operation of the HTTP API, as data: the door serves it, the client asks for it, and all documents tell of it.

    topics = Resource("Topics")
    DESCRIBE_TOPIC = topics.add("describe_topic", "GET /topics/{topic}", TopicDetails, "What it is.", path=TopicPath)

It is here, below both, because a client is installed without the server.
"""

from dataclasses import dataclass
from functools import cached_property
from inspect import cleandoc
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import fields

from goqueue.wire.home import Home
from goqueue.wire.rest.common import ErrorReply

BODY_BYTES_MAX = 1024 * 1024
LARGE_BODY_BYTES_MAX = 16 * 1024 * 1024
"""Of those that carry messages, or receipts of many."""
JSON, TEXT, HTML, EVENTS = "application/json", "text/plain", "text/html", "text/event-stream"

R = TypeVar("R")


class Place(NamedTuple):
    """Where an argument goes, and under which name."""

    part: str
    """path, query or body."""
    name: str


@dataclass(frozen=True, eq=False)
class Operation(Generic[R]):
    name: str
    method: str
    path: str
    reply: type[R]
    """Of an answer that is not JSON: str."""
    summary: str
    description: str
    tag: str
    home: Home
    """Which nodes of a cluster it needs."""
    error_type: type[ErrorReply] = ErrorReply
    """What a refusal looks like."""
    path_type: type[Struct] | None = None
    query_type: type[Struct] | None = None
    body_type: type[Struct] | None = None
    status: int = 200
    errors: tuple[int, ...] = ()
    other_replies: tuple[tuple[int, str], ...] = ()
    """Statuses, and what they mean, under which the usual body comes."""
    waits: bool = False
    """A long poll or a stream: it takes its own time, and ends with its client."""
    body_bytes_max: int = BODY_BYTES_MAX
    media_type: str = JSON
    """Of the answer."""
    header_fields: tuple[tuple[str, str], ...] = ()
    """Headers that are taken as a field of the query, if the query does not say."""
    takes_any_query: bool = False
    """Query parameters that are not known are passed over."""

    @cached_property
    def places(self) -> dict[str, Place]:
        """By the name of the field, in its struct or as it travels. A name that the path has is meant there."""
        parts = {"body": self.body_type, "query": self.query_type, "path": self.path_type}
        return {
            name: Place(part, field.encode_name)
            for part, kind in parts.items()
            if kind is not None
            for field in fields(kind)
            for name in (field.name, field.encode_name)
        }


class Resource:
    """The operations of one kind, in the order in which documents tell of them."""

    def __init__(self, tag: str, error_type: type[ErrorReply] = ErrorReply, *, takes_any_query: bool = False) -> None:
        self.tag = tag
        self._shared: dict[str, Any] = {"tag": tag, "error_type": error_type, "takes_any_query": takes_any_query}
        self.all: list[Operation[Any]] = []

    def add(
        self,
        name: str,
        place: str,
        reply: type[R],
        words: str,
        *,
        home: Home,
        path: type[Struct] | None = None,
        query: type[Struct] | None = None,
        body: type[Struct] | None = None,
        **more: Any,
    ) -> Operation[R]:
        """`place` is a method and a path. The first line of `words` is the summary, and the rest the description."""
        method, _, at = place.partition(" ")
        summary, _, description = cleandoc(words).partition("\n")
        operation = Operation(
            name=name,
            method=method,
            path=at,
            reply=reply,
            summary=summary.rstrip("."),
            description=description.strip(),
            home=home,
            path_type=path,
            query_type=query,
            body_type=body,
            **self._shared,
            **more,
        )
        self.all.append(operation)
        return operation
