"""What members and their supervisor say to each other about the store: msgpack behind a length, on a socket that only
they have. Both ends are of one version, so nothing here is kept or negotiated.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from goqueue.cluster.etcd.port import EtcdFault, KeyCompare, KeyPut, KeyValue

LENGTH_BYTES = 4
FRAME_BYTES_MAX = 256 << 20
"""A listing comes in one, as from etcd."""
R = TypeVar("R")


class AskTxn(msgspec.Struct, array_like=True, tag=1):
    number: int
    """Of the question, on its connection: the answer has it."""
    compares: Sequence[KeyCompare]
    puts: Sequence[KeyPut]


class AskList(msgspec.Struct, array_like=True, tag=2):
    number: int
    prefix: bytes


class AskWatch(msgspec.Struct, array_like=True, tag=3):
    number: int
    prefix: bytes
    revision: int


class EndWatch(msgspec.Struct, array_like=True, tag=4):
    number: int
    """Of the watch. Nobody answers."""


class AskGrant(msgspec.Struct, array_like=True, tag=5):
    number: int
    ttl_s: int


class AskRevoke(msgspec.Struct, array_like=True, tag=6):
    number: int
    lease: int


class AskRenew(msgspec.Struct, array_like=True, tag=7):
    number: int
    lease: int


class Alive(msgspec.Struct, array_like=True, tag=8):
    """The loop of this member runs. Nobody answers."""

    number: int = 0


Asked = AskTxn | AskList | AskWatch | EndWatch | AskGrant | AskRevoke | AskRenew | Alive


class TxnDone(msgspec.Struct, array_like=True, tag=1):
    number: int
    is_done: bool
    revision: int


class Keys(msgspec.Struct, array_like=True, tag=2):
    """A listing, or changes for a watch."""

    number: int
    revision: int
    entries: Sequence[KeyValue]


class Leased(msgspec.Struct, array_like=True, tag=3):
    """The number of a lease, or for how many seconds it was renewed, or 0."""

    number: int
    lease: int


class Faulty(msgspec.Struct, array_like=True, tag=4):
    number: int
    words: str
    compacted: int = 0
    """Of a watch: the first revision that is kept."""


Answer = TxnDone | Keys | Leased | Faulty

_encode = msgspec.msgpack.Encoder().encode


def framed(message: Asked | Answer) -> bytes:
    body = _encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class Frames:
    """Bytes as they come, as messages when they are whole."""

    def __init__(self, kinds: Any) -> None:
        self._decode = msgspec.msgpack.Decoder(kinds).decode
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        """EtcdFault: what comes is none of ours, and nothing behind it can be read."""
        self._buffer += data
        while len(self._buffer) >= LENGTH_BYTES:
            length = int.from_bytes(self._buffer[:LENGTH_BYTES], "big")
            if length > FRAME_BYTES_MAX:
                raise EtcdFault(f"a message of {length} bytes on the way to or from the store")
            end = LENGTH_BYTES + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[LENGTH_BYTES:end])
            del self._buffer[:end]
            try:
                message = self._decode(body)
            except msgspec.MsgspecError as error:
                raise EtcdFault(f"a message on the way to or from the store is damaged: {error}") from None
            yield message
