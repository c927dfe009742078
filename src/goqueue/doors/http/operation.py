"""One operation of the door: what a handler's signature says is what is checked, and what the document tells.

    topics = Operations("Topics")

    @topics.get("/topics/{topic}", errors=(404,))
    async def describe(call: Call, path: TopicPath) -> TopicDetails:
        \"\"\"What a topic is and holds.\"\"\"

A handler takes `call` and any of `path`, `query` and `body`, each a struct, and returns a struct, `Text` or `Events`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from inspect import cleandoc, signature
from typing import Any, NamedTuple, TypeVar, get_type_hints

from msgspec import Struct

from goqueue.broker.durable import LedgerKind
from goqueue.wire.rest.common import ErrorReply

Handle = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handle)

BODY_BYTES_MAX = 1024 * 1024
SLASH_SIGN = "\x1f"
"""Stands in a path for a slash that is part of a name."""
PARAMETERS = frozenset({"call", "path", "query", "body"})


class Text(NamedTuple):
    """An answer that is not JSON."""

    content: str | bytes
    media_type: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


class WithStatus(NamedTuple):
    """An answer whose status is not the usual one."""

    status: int
    body: Any


class Elsewhere(NamedTuple):
    """What was asked for is at another path."""

    path: str


class Events(NamedTuple):
    """An answer that goes on: server-sent events, as bytes, until the client leaves."""

    stream: AsyncGenerator[bytes, None]


class Operation(NamedTuple):
    method: str
    path: str
    tag: str
    handle: Handle
    summary: str
    description: str
    status: int
    errors: tuple[int, ...]
    path_type: type[Struct] | None
    query_type: type[Struct] | None
    body_type: type[Struct] | None
    reply_type: Any
    waits: bool
    """A long poll or a stream: it takes its own time, and ends with its client."""
    body_bytes_max: int
    other_replies: tuple[tuple[int, str], ...]
    """Statuses, and what they mean, under which the usual body comes."""
    media_type: str
    """Of an answer that is `Text`."""
    header_fields: tuple[tuple[str, str], ...]
    """Headers that are taken as a field of the query, if the query does not say."""
    error_type: type[ErrorReply]
    """What a refusal looks like."""
    takes_any_query: bool
    """Query parameters that are not known are passed over."""
    rests_on: tuple[LedgerKind, ...]
    """What the answer is read from: it is given when that is durable."""

    @property
    def name(self) -> str:
        name: str = self.handle.__name__
        return name


class Operations:
    """The operations of one resource, in the order in which they are matched."""

    def __init__(
        self,
        tag: str,
        error_type: type[ErrorReply] = ErrorReply,
        *,
        takes_any_query: bool = False,
        rests_on: tuple[LedgerKind, ...] = (),
    ) -> None:
        """`rests_on`: what answers to GET are read from."""
        self.tag = tag
        self.error_type = error_type
        self.takes_any_query = takes_any_query
        self.rests_on = rests_on
        self.all: list[Operation] = []

    def get(self, path: str, **more: Any) -> Callable[[H], H]:
        return self._add("GET", path, **more)

    def post(self, path: str, **more: Any) -> Callable[[H], H]:
        return self._add("POST", path, **more)

    def put(self, path: str, **more: Any) -> Callable[[H], H]:
        return self._add("PUT", path, **more)

    def patch(self, path: str, **more: Any) -> Callable[[H], H]:
        return self._add("PATCH", path, **more)

    def delete(self, path: str, **more: Any) -> Callable[[H], H]:
        return self._add("DELETE", path, **more)

    def _add(  # noqa: PLR0913  all that can be said of an operation
        self,
        method: str,
        path: str,
        *,
        status: int = 200,
        errors: tuple[int, ...] = (),
        waits: bool = False,
        body_bytes_max: int = BODY_BYTES_MAX,
        other_replies: tuple[tuple[int, str], ...] = (),
        header_fields: tuple[tuple[str, str], ...] = (),
        media_type: str = "text/plain",
        rests_on: tuple[LedgerKind, ...] | None = None,
    ) -> Callable[[H], H]:
        def add(handle: H) -> H:
            hints = get_type_hints(handle, include_extras=True)
            assert signature(handle).parameters.keys() <= PARAMETERS, f"{handle} takes what the door does not give"
            summary, _, description = cleandoc(handle.__doc__ or "").partition("\n")
            self.all.append(
                Operation(
                    method=method,
                    path=path,
                    tag=self.tag,
                    handle=handle,
                    summary=summary.rstrip("."),
                    description=description.strip(),
                    status=status,
                    errors=errors,
                    path_type=hints.get("path"),
                    query_type=hints.get("query"),
                    body_type=hints.get("body"),
                    reply_type=hints["return"],
                    waits=waits,
                    body_bytes_max=body_bytes_max,
                    other_replies=other_replies,
                    header_fields=header_fields,
                    media_type=media_type,
                    error_type=self.error_type,
                    takes_any_query=self.takes_any_query,
                    rests_on=(self.rests_on if method == "GET" and not waits else ()) if rests_on is None else rests_on,
                )
            )
            return handle

        return add
