"""How many messages a body of JSON has, of a request or of an answer: for quotas, also where another node made it."""

import msgspec


class _Body(msgspec.Struct):
    """As HTTP names them, and answers of SQS. Requests of SQS may hold fields that nobody knows: they are counted by
    whoever has read them."""

    messages: list[msgspec.Raw] | None = None
    sqs_received: list[msgspec.Raw] | None = msgspec.field(default=None, name="Messages")


_decode = msgspec.json.Decoder(_Body).decode


def messages_in(body: bytes, alone: int = 1) -> int:
    """`alone`: of a body that has no list of them."""
    try:
        read = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # whoever reads it says what is wrong
        return alone
    found = [each for each in (read.messages, read.sqs_received) if each is not None]
    return sum(map(len, found)) if found else alone
