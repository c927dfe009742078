"""Which handler serves which operation. What a handler's signature says must be what the table says of the operation.

    topics = Handlers()

    @topics.handles(DESCRIBE_TOPIC, DESCRIBES_TOPIC)
    async def describe_topic(call: Call, path: TopicPath) -> TopicDetails: ...

A handler takes `call` and any of `path`, `query` and `body`, each a struct, and returns a struct, `Text` or `Events`.
Those of sessions take `visit`, too.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from inspect import signature
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

from goqueue.model.access import OPEN, Permission
from goqueue.model.ledgers import LedgerKind
from goqueue.wire.rest.operation import JSON, Operation

Handle = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handle)

SLASH_SIGN = "\x1f"
"""Stands in a path for a slash that is part of a name."""
PARAMETERS = frozenset({"call", "visit", "path", "query", "body"})


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
    headers: tuple[tuple[bytes, bytes], ...] = ()


class WithHeaders(NamedTuple):
    """An answer with headers of its own."""

    body: Any
    headers: tuple[tuple[bytes, bytes], ...]


class Events(NamedTuple):
    """An answer that goes on: server-sent events, as bytes, until the client leaves."""

    stream: AsyncGenerator[bytes, None]


WRAPPERS = (Text, WithStatus, WithHeaders, Elsewhere, Events)


class Route(NamedTuple):
    operation: Operation[Any]
    handle: Handle
    permission: Permission
    """What its client must be allowed."""
    rests_on: tuple[LedgerKind, ...] = ()
    """What the answer is read from: it is given when that is durable."""
    is_open: bool = False
    """Who shows nothing is let in as well, without any right."""
    takes_visit: bool = False
    """It is about the session of whoever asks."""


class Handlers:
    """Those of one resource. `rests_on`: what answers to GET are read from."""

    def __init__(self, *, rests_on: tuple[LedgerKind, ...] = ()) -> None:
        self.rests_on = rests_on
        self.all: list[Route] = []

    def handles(
        self,
        operation: Operation[Any],
        permission: Permission,
        *,
        rests_on: tuple[LedgerKind, ...] | None = None,
        is_open: bool = False,
    ) -> Callable[[H], H]:
        def add(handle: H) -> H:
            _check(operation, handle)
            of_get = self.rests_on if operation.method == "GET" and not operation.waits else ()
            rests = of_get if rests_on is None else rests_on
            takes_visit = "visit" in signature(handle).parameters
            self.all.append(Route(operation, handle, permission, rests, is_open or permission is OPEN, takes_visit))
            return handle

        return add


def _check(operation: Operation[Any], handle: Handle) -> None:
    """A handler that takes or gives something else than the table says is found at the first import."""
    assert signature(handle).parameters.keys() <= PARAMETERS, f"{handle} takes what the door does not give"
    hints = get_type_hints(handle)
    for part in ("path", "query", "body"):
        assert hints.get(part) is getattr(operation, f"{part}_type"), f"{operation.name}: {part} is not as in the table"
    given = hints["return"]
    kinds = [kind for kind in _parts(given) if kind not in WRAPPERS]
    expected = [operation.reply] if operation.media_type == JSON else []
    assert kinds == expected, f"{operation.name} returns {given}, not {operation.reply}"


def _parts(kind: Any) -> tuple[Any, ...]:
    return (kind,) if getattr(kind, "__origin__", None) in (list, dict) else get_args(kind) or (kind,)
