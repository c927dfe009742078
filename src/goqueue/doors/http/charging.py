"""Requests over HTTP and the quotas of whoever sends them: one that comes while a quota is used up is refused with 429,
before anything is done. Where answers are streams, what was read too fast comes later.
"""

import math
from collections.abc import Callable

from goqueue.broker.access import Access
from goqueue.broker.accounts.quotas import MESSAGES, Allowance
from goqueue.broker.gate import Gate
from goqueue.doors.http.asgi import Header, header
from goqueue.model.quotas import CONSUMED, PRODUCED, QuotaExceeded, QuotaKey
from goqueue.wire.asgi import Message, Scope, Send
from goqueue.wire.forwarded import VIA
from goqueue.wire.message_counts import messages_in
from goqueue.wire.rest.operation import Operation
from goqueue.wire.rest.operations import dead_letters, delays, groups, leases, messages, transactions

CLIENT_ID = b"x-client-id"
"""What a client calls itself, as Kafka's clients do in each request."""

MESSAGE_EVENT = b"event: message\n"
"""In a stream of events; JSON behind it has no line breaks."""

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


STREAMS = frozenset({messages.FOLLOW_TOPIC.name})
"""Those outlive the quotas that there were when they began."""


def charged(operation: Operation) -> QuotaKey | None:  # type: ignore[type-arg]  # whatever it answers
    """Which bytes of an operation count: of its body, or of its answer."""
    return PRODUCED if operation.name in _PRODUCE else CONSUMED if operation.name in _CONSUME else None


def allowance_of(access: Access, scope: Scope) -> Allowance | None:
    """None: nothing is limited, or the node that passed this on has counted it."""
    return None if scope.get(VIA) else limits_of(access, scope)


def limits_of(access: Access, scope: Scope) -> Allowance | None:
    """Whichever node it came to: topics are counted where they are made."""
    return access.allowance((header(scope, CLIENT_ID) or b"").decode("latin-1"))


def count_published(allowance: Allowance, body: bytes) -> None:
    allowance.use(PRODUCED, len(body))
    if allowance.counts(PRODUCED):
        allowance.use(MESSAGES[PRODUCED], messages_in(body))


def counting(gate: Gate, allowance_now: Callable[[], Allowance | None], send: Send) -> Send:
    async def send_counted(message: Message) -> None:
        await send(message)
        allowance = allowance_now() if message["type"] == "http.response.body" else None
        if allowance is not None:
            body, is_stream = message.get("body", b""), message.get("more_body", False)
            delay_ms = allowance.use(CONSUMED, len(body))
            if body and allowance.counts(CONSUMED):
                count = body.count(MESSAGE_EVENT) if is_stream else messages_in(body)
                delay_ms = max(delay_ms, allowance.use(MESSAGES[CONSUMED], count))
            if delay_ms and is_stream:
                await gate.pause(delay_ms)

    return send_counted


def retry_headers(error: QuotaExceeded) -> tuple[Header, ...]:
    return (
        (b"retry-after", b"%d" % max(1, math.ceil(error.retry_ms / 1000))),
        (b"x-ratelimit-limit", f"{error.rate:g}".encode()),
        (b"x-ratelimit-remaining", b"0"),
    )
