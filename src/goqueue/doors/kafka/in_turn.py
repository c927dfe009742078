"""Answers about where things are, given when they can leave. Replies leave in the order of the requests, so one that is
made at once would wait behind a fetch that waits for records, half a second long, and be old when it is read: a client
that asks because a leader has just died would be sent to it again, and would ask next a second later.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import dropwhile

from goqueue.doors.kafka.reply import Reply
from goqueue.doors.kafka.request import Request
from goqueue.wire.kafka.frames import decode_request

METADATA, FIND_COORDINATOR = 3, 10
IN_TURN = frozenset({METADATA, FIND_COORDINATOR})

CarryOut = Callable[[Request, memoryview], None]


def waits_for_turn(request: Request, frame: memoryview, carry_out: CarryOut) -> bool:
    """Whether it is carried out later, when all requests before it have been answered. For those that are `IN_TURN`."""
    if _first_unanswered(request.connection.replies) is request.reply:
        return False
    kept = memoryview(bytes(frame))  # by then others have read into the memory that it came in
    request.message, _ = decode_request(request.header, kept)
    _wait(request, partial(carry_out, request, kept))
    return True


def _wait(request: Request, carry_out: Callable[[], None]) -> None:
    line = request.connection.replies
    first = _first_unanswered(line)
    if first is None:
        return  # the connection is lost
    if first is not request.reply:
        # One request at most waits for each: however many there are, they are carried out one in a turn of the loop.
        again = partial(request.broker.clock.call_soon, partial(_wait, request, carry_out))
        before = dropwhile(lambda each: each is not request.reply, reversed(line))
        last_before = next(each for each in before if each.buffers is None and each is not request.reply)
        last_before.on_sent = again
        return
    try:
        carry_out()
    except Exception as error:  # noqa: BLE001  as for any other request
        request.fail(error)


def _first_unanswered(line: Iterable[Reply]) -> Reply | None:
    return next((reply for reply in line if reply.buffers is None), None)
