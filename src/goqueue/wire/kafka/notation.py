"""The notation in which `messages/` states the protocol: a message is a class, a field is a line, and one class serves
all versions.

    current_leader_epoch: Annotated[Int32, "9+ ignorable"] = -1

The type says how the field lies on the wire, `| None` that it can be null, the default what it is in versions that lack
it. Fields stand in wire order. The note, if any, holds in this order:

    9+ or 4-12 or 5   the versions that have the field; without it, all in which its message occurs
    null 10+          the versions in which it may be null; without it, all of them if the type has `| None`
    tag 0             it travels in the tagged section, and only if it is not the default
    ignorable         a version without it drops the value silently; otherwise that is a bug and a ValueError

A tagged message that is absent is None, since making a default one per partition would cost more than the rest.
"""

from typing import Annotated, Protocol

import msgspec


class Message(msgspec.Struct, gc=False):
    """Base of all messages and of their parts. They form trees, so the cycle collector has nothing to find in them."""


class Stretch(Protocol):
    """Records that lie elsewhere, in a file for instance: the encoder needs to know only how long they are."""

    @property
    def length(self) -> int: ...


Int8 = Annotated[int, "int8"]
Int16 = Annotated[int, "int16"]
Uint16 = Annotated[int, "uint16"]
Int32 = Annotated[int, "int32"]
Int64 = Annotated[int, "int64"]
Float64 = Annotated[float, "float64"]
Bool = Annotated[bool, "bool"]
Uuid = Annotated[bytes, "uuid"]
"""Its 16 bytes."""
String = Annotated[str, "string"]
Bytes = Annotated[bytes, "bytes"]
Records = Annotated[memoryview, "records"]
"""Decoded: the very bytes of the frame, not a copy."""
RecordsToSend = Annotated[bytes | memoryview | Stretch, "records"]
"""Decoded it is a memoryview. Encoded, the output is split around it, so that it is never copied."""

NO_UUID = bytes(16)
INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
