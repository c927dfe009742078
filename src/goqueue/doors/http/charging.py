"""Requests over HTTP and the quotas of whoever sends them: one that comes while a quota is used up is refused with 429,
before anything is done. Where answers are streams, what was read too fast comes later.
"""

import math

from goqueue.broker.gate import Access, Allowance, Gate
from goqueue.doors.http.asgi import Header, header
from goqueue.model.quotas import CONSUMED, PRODUCED, QuotaExceeded, QuotaKey
from goqueue.wire.asgi import Message, Scope, Send
from goqueue.wire.forwarded import VIA
from goqueue.wire.rest.operation import Operation
from goqueue.wire.rest.operations import dead_letters, delays, groups, leases, messages, transactions

CLIENT_ID = b"x-client-id"
"""What a client calls itself, as Kafka's clients do in each request."""

_PRODUCE = frozenset({messages.PUBLISH.name, transactions.PUBLISH_IN_TRANSACTION.name})
_CONSUME = frozenset(
    {
        messages.READ_MESSAGES.name,
        messages.FOLLOW_TOPIC.name,
        groups.POLL_GROUP.name,
        groups.RECEIVE_MESSAGES.name,
        leases.TAKE_LEASES.name,
        dead_letters.LIST_DEAD_LETTERS.name,
        dead_letters.LOOK_AT_DEAD_LETTER.name,
        delays.LIST_DELAYED.name,
        delays.FIND_DELAYED.name,
        delays.LOOK_AT_DELAYED.name,
    }
)
"""What tells the content of messages. Acknowledging them is no reading: who owes something may still do it."""


def charged(operation: Operation) -> QuotaKey | None:  # type: ignore[type-arg]  # whatever it answers
    """Which bytes of an operation count: of its body, or of its answer."""
    return PRODUCED if operation.name in _PRODUCE else CONSUMED if operation.name in _CONSUME else None


def allowance_of(access: Access, scope: Scope) -> Allowance | None:
    """None: nothing is limited, or the node that passed this on has counted it."""
    if scope.get(VIA):
        return None
    return access.allowance((header(scope, CLIENT_ID) or b"").decode("latin-1"))


def counting(gate: Gate, allowance: Allowance, send: Send) -> Send:
    async def send_counted(message: Message) -> None:
        await send(message)
        if message["type"] == "http.response.body":
            delay_ms = allowance.use(CONSUMED, len(message.get("body", b"")))
            if delay_ms and message.get("more_body", False):
                await gate.pause(delay_ms)

    return send_counted


def retry_headers(error: QuotaExceeded) -> tuple[Header, ...]:
    return (
        (b"retry-after", b"%d" % max(1, math.ceil(error.retry_ms / 1000))),
        (b"x-ratelimit-limit", f"{error.rate:g}".encode()),
        (b"x-ratelimit-remaining", b"0"),
    )
