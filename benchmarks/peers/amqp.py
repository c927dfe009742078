"""AMQP 0-9-1, as much as a publisher with confirms and a consumer with acknowledgements need. Incomplete input is left
where it is."""

from struct import Struct
from typing import NamedTuple

HELLO = b"AMQP\x00\x00\x09\x01"
METHOD, HEADER, BODY = 1, 2, 3
FRAME_END = 0xCE
CHANNEL = 1
START, START_OK, TUNE, TUNE_OK, OPEN, OPEN_OK = (10, 10), (10, 11), (10, 30), (10, 31), (10, 40), (10, 41)
CHANNEL_OPEN, CHANNEL_OPEN_OK = (20, 10), (20, 11)
QUEUE_DECLARE, QUEUE_DECLARE_OK = (50, 10), (50, 11)
QOS, QOS_OK, CONSUME, CONSUME_OK = (60, 10), (60, 11), (60, 20), (60, 21)
PUBLISH, DELIVER, ACK, NACK = (60, 40), (60, 60), (60, 80), (60, 120)
SELECT, SELECT_OK = (85, 10), (85, 11)
PERSISTENT = 2
HAS_HEADERS_AND_MODE = 1 << 13 | 1 << 12

Method = tuple[int, int]

_FRAME = Struct(">BHI")
_METHOD = Struct(">HH")
_CONTENT = Struct(">HHQH")
_ACK = Struct(">HHQB")


class Frame(NamedTuple):
    kind: int
    payload: bytes

    @property
    def method(self) -> Method:
        return _METHOD.unpack_from(self.payload) if self.kind == METHOD else (0, 0)


class Refused(Exception):
    """What RabbitMQ said."""


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return b"%b%b\xce" % (_FRAME.pack(kind, channel, len(payload)), payload)


def call(method: Method, arguments: bytes = b"", channel: int = CHANNEL) -> bytes:
    return frame(METHOD, channel, _METHOD.pack(*method) + arguments)


def short(text: str) -> bytes:
    data = text.encode()
    return bytes([len(data)]) + data


def long(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def table(pairs: dict[str, bytes]) -> bytes:
    """All values are long strings."""
    return long(b"".join(short(name) + b"S" + long(value) for name, value in pairs.items()))


def publish(queue: str, body: bytes, headers: dict[str, bytes]) -> bytes:
    """A persistent message to the default exchange."""
    properties = table(headers) + bytes([PERSISTENT])
    content = _CONTENT.pack(60, 0, len(body), HAS_HEADERS_AND_MODE) + properties
    return b"".join(
        (
            call(PUBLISH, b"\x00\x00" + short("") + short(queue) + b"\x00"),
            frame(HEADER, CHANNEL, content),
            frame(BODY, CHANNEL, body),
        )
    )


def ack(delivery_tag: int, *, is_multiple: bool) -> bytes:
    return call(ACK, delivery_tag.to_bytes(8, "big") + bytes([is_multiple]))


def take_frames(received: bytearray) -> list[Frame]:
    """Whole frames, taken from the front."""
    data = bytes(received)
    frames, at = [], 0
    while len(data) - at >= _FRAME.size:
        kind, _, size = _FRAME.unpack_from(data, at)
        start = at + _FRAME.size
        if len(data) < start + size + 1:
            break
        assert data[start + size] == FRAME_END
        made = Frame(kind, data[start : start + size])
        if made.method in {(10, 50), (20, 40)}:  # the connection or the channel is closed by the other side
            raise Refused(made.payload[4:].decode("utf-8", "replace"))
        frames.append(made)
        at = start + size + 1
    del received[:at]
    return frames


def delivery_tag(payload: bytes) -> int:
    """Of a Deliver: behind the method and the consumer's tag."""
    at = 4 + 1 + payload[4]
    return int.from_bytes(payload[at : at + 8], "big")


class Confirms:
    """Counts what is confirmed: one message, or all up to one."""

    def __init__(self) -> None:
        self._single: set[int] = set()
        self._up_to = 0

    def __call__(self, received: bytearray) -> int:
        confirmed = 0
        for each in take_frames(received):
            if each.method == NACK:
                raise Refused("a message was not taken")
            if each.method == ACK:
                confirmed += self._count(*_ACK.unpack(each.payload)[2:])
        return confirmed

    def _count(self, tag: int, is_multiple: int) -> int:
        if not is_multiple:
            self._single.add(tag)
            return 1
        before = {single for single in self._single if single <= tag}
        self._single -= before
        confirmed = tag - self._up_to - len(before)
        self._up_to = tag
        return confirmed
