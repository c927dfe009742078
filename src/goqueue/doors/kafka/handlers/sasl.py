"""SaslHandshake and SaslAuthenticate."""

from goqueue.doors.kafka.request import Request
from goqueue.doors.kafka.sasl import Answered
from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

CLOSE_MS = 100
"""A refusal has to leave before its connection is closed: else clients report a network that breaks."""


def handle_handshake(request: Request) -> None:
    exchange = request.connection.sasl
    assert exchange is not None
    exchange.connected = exchange.connected._replace(peer=request.connection.peer)
    code = exchange.handshake(request.message.mechanism)
    request.answer(SaslHandshakeResponse(code, exchange.mechanisms))


def handle_authenticate(request: Request) -> None:
    """What comes behind it waits: it may be from somebody else than it says."""
    connection, exchange = request.connection, request.connection.sasl
    assert exchange is not None
    clock = request.broker.clock
    is_answered = is_held = False

    def answered(found: Answered) -> None:
        nonlocal is_answered
        is_answered = True
        if found.code is Code.NONE:
            if found.access is not None:
                exchange.on_admitted(found.access, found.session_lifetime_ms)
            answer(found)
            if is_held:
                connection.go_on()
        else:
            connection.hold()
            clock.call_after(exchange.delay_ms, lambda: refuse(found))

    def answer(found: Answered) -> None:
        request.answer(SaslAuthenticateResponse(found.code, found.message, found.auth_bytes, found.session_lifetime_ms))

    def refuse(found: Answered) -> None:
        if found.is_for_now:  # to a client any error is a wrong password, for good: without one it dials again
            connection.close(found.message or "")
            return
        answer(found)
        clock.call_after(CLOSE_MS, lambda: connection.close("authentication failed"))

    exchange.authenticate(bytes(request.message.auth_bytes), answered)
    if not is_answered:
        is_held = True
        connection.hold()
