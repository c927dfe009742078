"""A request on a node of a cluster: done here, passed on to the node that has what it is about, or asked of all.

What is passed on goes as it came, and its answer comes back unchanged. A node that is asked by another one does what
is its own, or says that it is not: it never passes anything on, so that nothing goes in circles.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import msgspec
from msgspec.structs import replace

from goqueue.broker.asking import Asking
from goqueue.doors.http.as_json import bytes_of
from goqueue.doors.http.call import Call
from goqueue.doors.http.errors import NOT_FOUND, UNAVAILABLE, HttpError, status_and_code
from goqueue.doors.http.merging import MERGES
from goqueue.doors.http.merging_pages import BY_NUMBER, all_up_to
from goqueue.doors.http.operation import Text, WithStatus
from goqueue.model.errors import GoQueueError
from goqueue.ports.forwarding import Forwarding, NotHere
from goqueue.records.partitioners import Partitioner, partition_for
from goqueue.wire.asgi import Scope
from goqueue.wire.forwarded import (
    HTTP,
    MISSING,
    NOT_MINE,
    PEER,
    PRINCIPAL,
    SECRETS,
    VIA,
    HttpReply,
    HttpRequest,
    decode_reply,
    encode,
)
from goqueue.wire.home import DEAD_LETTER, GROUP, NEW_SCHEDULE, NODE, PARTITION, SCHEMAS, TRANSACTION, Way
from goqueue.wire.rest.operation import Operation

BODY = "goqueue.body"
"""In a scope: the body as it came."""
LOOK_MS_MAX = 2000
WORK_MS_MAX = 30_000
WAIT_MS_MAX = 6 * 60_000

Handle = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""What this node does, given what is to be said otherwise than the request does."""
Find = Callable[[], int | None]


class Raw(NamedTuple):
    """An answer that is sent as it is."""

    reply: HttpReply


class Spreading(Asking):
    """One operation in a cluster."""

    def __init__(self, operation: Operation[Any], forwarding: Forwarding) -> None:
        self._operation = operation
        self._forwarding = forwarding
        self._merge = MERGES.get(operation.name)
        self._work_ms = WAIT_MS_MAX if operation.waits else WORK_MS_MAX
        self._look_ms = LOOK_MS_MAX if operation.method == "GET" else self._work_ms

    async def reply(self, scope: Scope, call: Call, arguments: Mapping[str, Any], handle: Handle) -> Any:
        way, find = self._way(call, arguments, is_asked=bool(scope.get(VIA)))
        if scope.get(VIA):
            if way is Way.HOME and find() != self._forwarding.homes.me:
                scope[NOT_MINE] = True
                return None
            return await handle({})
        match way:
            case Way.HOME:
                return await self._at_home(scope, find, handle)
            case Way.EVERYWHERE:
                return await self._everywhere(scope, arguments, handle)
            case Way.FIRST:
                return await self._first(scope, handle)
        return await handle({})

    # -- whose it is

    def _way(self, call: Call, arguments: Mapping[str, Any], *, is_asked: bool) -> tuple[Way, Find]:
        """`is_asked`: by another node, which knows of a partition that it asks for."""
        home, homes = self._operation.home, self._forwarding.homes
        if home.way is not Way.HOME:
            return home.way, lambda: homes.me
        named = [_value(arguments, field) for field in home.fields]
        if any(each is None or each == -1 for each in named):
            assert home.otherwise is not None, self._operation.name
            return home.otherwise, lambda: homes.me
        if home.kind == NODE:
            return Way.HOME, lambda: self._node(named[0])
        if home.kind in (PARTITION, DEAD_LETTER, NEW_SCHEDULE):
            topic, partition = _spot(call, home.kind, named, arguments)
            spot = call.broker.kept(topic), partition
            if is_asked:
                return Way.HOME, lambda: homes.me if homes.leads(*spot) else None
            return Way.HOME, lambda: homes.partition(*spot)
        return Way.HOME, self._finder(home.kind, [call.broker.kept(each) for each in named[:1]])

    def _finder(self, kind: str, named: list[Any]) -> Find:
        homes = self._forwarding.homes
        if kind == GROUP:
            return lambda: homes.group(named[0])
        if kind == TRANSACTION:
            return lambda: homes.transaction(named[0])
        assert kind == SCHEMAS, kind
        return homes.schemas

    def _node(self, node_id: int) -> int:
        homes = self._forwarding.homes
        if node_id != homes.me and node_id not in homes.others():
            raise HttpError(NOT_FOUND, "UNKNOWN_NODE", f"no node {node_id} is alive")
        return node_id

    # -- ways

    async def _at_home(self, scope: Scope, find: Find, handle: Handle) -> Any:
        if find() == self._forwarding.homes.me:
            return await handle({})
        payload = encode(_request(scope))
        try:
            answer: bytes = await self.ask(
                lambda done: self._forwarding.ask_home(find, HTTP, payload, done, self._work_ms)
            )
        except NotHere:
            return await handle({})
        return Raw(decode_reply(answer))

    async def _everywhere(self, scope: Scope, arguments: Mapping[str, Any], handle: Handle) -> Any:
        others = self._forwarding.homes.others()
        query = _plain(arguments.get("query"))
        ask: Callable[..., Awaitable[Part]]
        if query.get("skip") and query.get("cursor") is None:
            ask = partial(self._up_to, query["skip"] + query["limit"], scope, arguments, handle)
        else:
            ask = partial(self._once, scope, handle)
        asking = [asyncio.ensure_future(ask(each)) for each in (None, *others)]
        try:
            parts = await asyncio.gather(*asking)
        finally:
            for each in asking:
                each.cancel()
        return self._merged(parts, query, others)

    async def _once(self, scope: Scope, handle: Handle, node_id: int | None) -> "Part":
        """What one node has of it; None: this one."""
        if node_id is None:
            return await self._outcome(handle, {})
        return await self._part_of(node_id, encode(_request(scope, self._operation.home.others)))

    async def _outcome(self, handle: Handle, other: Mapping[str, Any]) -> "Part":
        """What this node has of it."""
        try:
            reply = await handle(other)
        except GoQueueError as error:
            return Part(status_and_code(error)[0], None, error.kept())
        if isinstance(reply, WithStatus):
            return Part(reply.status, msgspec.to_builtins(reply.body), None)
        if isinstance(reply, Text):
            return Part(self._operation.status, msgspec.json.decode(reply.content), None)
        return Part(self._operation.status, msgspec.to_builtins(reply), None)

    async def _up_to(
        self, count: int, scope: Scope, arguments: Mapping[str, Any], handle: Handle, node_id: int | None
    ) -> "Part":
        """Of pages by number: all up to the end of the page, since nobody knows of whom the items before it are."""

        async def ask(skip: int, limit: int) -> "Part":
            if node_id is None:
                return await self._outcome(handle, {"query": replace(arguments["query"], skip=skip, limit=limit)})
            request = _request(scope)
            fields = dict(parse_qsl(request.query.decode("ascii"), keep_blank_values=True))
            request.query = urlencode({**fields, "skip": skip, "limit": limit}).encode()
            return await self._part_of(node_id, encode(request))

        part: Part = await all_up_to(count, BY_NUMBER[self._operation.name], ask)
        return part

    async def _part_of(self, node_id: int, payload: bytes) -> "Part":
        try:
            answer: bytes = await self.ask(
                lambda done: self._forwarding.ask(node_id, HTTP, payload, done, self._look_ms)
            )
        except GoQueueError as error:
            return Part(0, None, error.kept(), node_id)
        reply = decode_reply(answer)
        if reply.status >= 300:
            return Part(reply.status, None, None, node_id, reply)
        return Part(reply.status, msgspec.json.decode(reply.body), None, node_id, reply)

    def _merged(self, parts: "list[Part]", query: Mapping[str, Any], others: list[int]) -> Any:
        missing = [each for each in parts if each.node_id is not None and each.status == 0]
        if missing and self._operation.method != "GET":
            raise _partly_done(missing)
        found = [each for each in parts if each.body is not None]
        if not found:
            return _failure(parts)
        wrong = [each for each in parts if each.body is None and each.status not in (0, NOT_FOUND)]
        if wrong:
            return _failure(wrong)
        assert self._merge is not None, self._operation.name
        body = self._merge([each.body for each in found], query) if others else found[0].body
        headers = [(b"content-type", b"application/json")]
        if missing:
            names = ", ".join(str(each.node_id) for each in missing)
            headers.append((MISSING, names.encode()))
        return Raw(HttpReply(max(each.status for each in found), headers, msgspec.json.encode(body)))

    async def _first(self, scope: Scope, handle: Handle) -> Any:
        try:
            return await handle({})
        except GoQueueError as error:
            if status_and_code(error)[0] != NOT_FOUND:
                raise
            unknown = error.kept()
        payload = encode(_request(scope))
        silent: list[Part] = []
        for node_id in self._forwarding.homes.others():
            part = await self._part_of(node_id, payload)
            if part.reply is not None and part.status != NOT_FOUND:
                return Raw(part.reply)
            if part.reply is None:
                silent.append(part)
        if silent:  # it may be there, and what was asked for may be done
            raise _not_answered(silent)
        raise unknown


class Part(NamedTuple):
    """What one node answered."""

    status: int
    """0: nothing."""
    body: Any
    error: GoQueueError | None
    node_id: int | None = None
    """None: this node."""
    reply: HttpReply | None = None


def _failure(parts: list[Part]) -> Any:
    """Why there is no answer: what somebody says for a reason other than that it knows nothing goes first."""
    worst = max(parts, key=lambda each: (each.status not in (0, NOT_FOUND), each.node_id is None))
    if worst.reply is not None:
        return Raw(worst.reply)
    assert worst.error is not None
    raise worst.error


def _partly_done(missing: list[Part]) -> HttpError:
    names = ", ".join(f"node-{each.node_id}" for each in missing)
    message = f"{names} did not answer: it may have been done there or not, and was done on the others; try again"
    return HttpError(UNAVAILABLE, "PARTLY_DONE", message)


def _not_answered(silent: list[Part]) -> HttpError:
    names = ", ".join(f"node-{each.node_id}" for each in silent)
    message = f"{names} did not answer, and no other node knows it: look whether it was done before you try again"
    return HttpError(UNAVAILABLE, "NODE_NOT_REACHED", message)


def _request(scope: Scope, method: str = "") -> HttpRequest:
    body = b"" if method else scope.get(BODY, b"")
    path: str = scope["path"]
    left_out = SECRETS | {b"content-length"} if method else SECRETS
    headers = [(name, value) for name, value in scope["headers"] if name not in left_out]
    raw_path, who = scope.get("raw_path", path.encode()), (scope[PRINCIPAL], scope.get(PEER, ""))
    return HttpRequest(method or scope["method"], path, raw_path, scope["query_string"], headers, body, *who)


def _value(arguments: Mapping[str, Any], field: str) -> Any:
    part, _, name = field.partition(".")
    found = getattr(arguments[part], name)
    return None if found is msgspec.UNSET else found


def _plain(query: Any) -> dict[str, Any]:
    return {} if query is None else msgspec.structs.asdict(query)


def _spot(call: Call, kind: str, named: list[Any], arguments: Mapping[str, Any]) -> tuple[str, int]:
    """The partition that it is about."""
    if kind == PARTITION:
        return named[0], named[1]
    if kind == DEAD_LETTER:
        return call.broker.dead_letters.name_of(named[0]), named[1]
    return named[0], _schedule_partition(call, named[0], arguments["body"])


def _schedule_partition(call: Call, topic: str, body: Any) -> int:
    """Where `broker/delays/recurring.py` will put it."""
    known = call.broker.topics.image.topics.get(topic)
    key = bytes_of("key", body.key, body.key_base64)
    if known is None or key is None:
        return 0
    partitioner = call.broker.topics.partitioner(known)
    return 0 if partitioner is Partitioner.ROUND_ROBIN else partition_for(key, known.partitions, partitioner)
