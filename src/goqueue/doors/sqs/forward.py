"""Actions on a node of a cluster. Most are done by the broker in parts; what one node has is asked of that one, and
counts are asked of all.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from goqueue.doors.sqs.call import Call
from goqueue.doors.sqs.handlers.moves import source_of
from goqueue.doors.sqs.handlers.table import Action
from goqueue.model.errors import GoQueueError
from goqueue.ports.forwarding import Forwarding, NotHere
from goqueue.wire.asgi import Scope
from goqueue.wire.forwarded import (
    HTTP,
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
from goqueue.wire.home import Way
from goqueue.wire.sqs.queue_attributes import COUNTS

LOOK_MS_MAX = 2000
WORK_MS_MAX = 30_000
OK = 200

Answer = dict[str, Any]


class Passed(GoQueueError):
    """Another node has answered."""

    def __init__(self, reply: HttpReply) -> None:
        super().__init__(f"status {reply.status}")
        self.reply = reply


async def spread(
    forwarding: Forwarding,
    scope: Scope,
    body: bytes,
    action: Action,
    call: Call,
    request: Any,
    handle: Callable[[], Awaitable[Answer]],
) -> Answer:
    """Raises `Passed` where the answer of another node is to be told as it is."""
    way = action.home.way
    if way is Way.HOME:
        name = call.broker.kept(source_of(call, request))

        def find() -> int | None:
            return forwarding.homes.partition(name, 0)

        if scope.get(VIA):
            if forwarding.homes.leads(name, 0):
                return await handle()
            scope[NOT_MINE] = True
            return {}
        if find() == forwarding.homes.me:
            return await handle()
        try:
            answer: bytes = await call.ask(
                lambda done: forwarding.ask_home(find, HTTP, _encoded(scope, body), done, WORK_MS_MAX)
            )
        except NotHere:
            return await handle()
        raise Passed(decode_reply(answer))
    if way is not Way.EVERYWHERE or scope.get(VIA):
        return await handle()
    own = await handle()
    others = [_part_of(forwarding, call, each, _encoded(scope, body)) for each in forwarding.homes.others()]
    return merged(own, await asyncio.gather(*others))


async def _part_of(forwarding: Forwarding, call: Call, node_id: int, payload: bytes) -> Answer:
    answer: bytes = await call.ask(lambda done: forwarding.ask(node_id, HTTP, payload, done, LOOK_MS_MAX))
    reply = decode_reply(answer)
    if reply.status != OK:
        raise Passed(reply)
    found: Answer = msgspec.json.decode(reply.body)
    return found


def merged(own: Answer, others: list[Answer]) -> Answer:
    """Counts are added up; all else every node says alike."""
    if "Attributes" not in own:
        return own
    attributes = dict(own["Attributes"])
    for name in COUNTS:
        if name in attributes:
            parts = [int(each.get("Attributes", {}).get(name, 0)) for each in others]
            attributes[name] = str(int(attributes[name]) + sum(parts))
    return {**own, "Attributes": attributes}


def _encoded(scope: Scope, body: bytes) -> bytes:
    path: str = scope["path"]
    raw_path = scope.get("raw_path", path.encode())
    headers = [(bytes(name), bytes(value)) for name, value in scope["headers"] if name not in SECRETS]
    who = scope.get(PRINCIPAL, ""), scope.get(PEER, "")
    return encode(HttpRequest(scope["method"], path, raw_path, scope["query_string"], headers, body, *who))
