"""What nodes ask each other beside copies of logs, and what they answer: msgpack, each kind under a tag that stays.
Fields are only ever added.
"""

from typing import Any, Final

import msgspec

from goqueue.model import errors
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused

API_KEY: Final = 20001
"""Submit: offered to other nodes only."""

GROUPS, TRANSACTIONS, SCHEMAS = "groups", "transactions", "schemas"
DELIVERIES, DELAYS = "deliveries", "delays"


class Submit(msgspec.Struct, frozen=True, tag="submit"):
    """A command to the coordinator of a ledger."""

    kind: str
    """One of the words above."""
    topic_id: bytes
    """Of the partition whose companion it is; empty: of a shard."""
    number: int
    """Of the shard, or the partition."""
    epoch: int
    """Of the leader, as the one who asks knows it."""
    tag: str
    command: bytes
    left_ms: int
    """How long the one who asks will wait."""


class EndInPartition(msgspec.Struct, frozen=True, tag="end"):
    """A transaction is decided: end it in this partition, first what is delayed there, then with a marker."""

    topic_id: bytes
    partition: int
    epoch: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    commit: bool
    left_ms: int


class Verify(msgspec.Struct, frozen=True, tag="verify"):
    """May this producer write to these partitions, and commit offsets of these groups, in its transaction?"""

    transactional_id: str
    number: int
    """Of its shard."""
    epoch: int
    producer_id: int
    producer_epoch: int
    partitions: tuple[tuple[str, int], ...]
    groups: tuple[str, ...]
    left_ms: int


class Append(msgspec.Struct, frozen=True, tag="append"):
    """Publish a batch, as of a producer that asks for all in-sync replicas."""

    topic_id: bytes
    partition: int
    epoch: int
    batch: bytes
    left_ms: int
    is_own: bool = True
    """The broker itself has to put it there: no quota of a tenant keeps it out."""


class Ends(msgspec.Struct, frozen=True, tag="ends"):
    """Where partitions begin and end, of those that the one who is asked leads."""

    places: tuple[tuple[bytes, int], ...]
    left_ms: int


class KindOf(msgspec.Struct, frozen=True, tag="kind"):
    """What is known of a group here: whether it commits offsets, and whether records were delivered to it one by
    one."""

    group_id: str
    left_ms: int
    asks_coordinator: bool = False
    """Only the group's coordinator may answer."""


class TallyOf(msgspec.Struct, frozen=True, tag="tally"):
    """What tenants have where the one who is asked leads."""

    tenants: tuple[str, ...]
    with_groups: bool
    left_ms: int


Request = Submit | EndInPartition | Verify | Append | Ends | KindOf | TallyOf


class Answered(msgspec.Struct, frozen=True, tag="ok"):
    place: int = 0
    value: bytes = b""


class Failed(msgspec.Struct, frozen=True, tag="error"):
    """It was not done, or nobody knows."""

    error: str
    """The kind of error, by the name of the protocol's code or of ours."""
    message: str
    code: int
    is_unknown: bool = False
    """It may have been done."""


class NotHere(msgspec.Struct, frozen=True, tag="elsewhere"):
    """It was not done: the one who was asked does not lead, by metadata of this revision."""

    revision: int


Answer = Answered | Failed | NotHere


class EndOfLog(msgspec.Struct, frozen=True, array_like=True):
    """Of one partition."""

    topic_id: bytes
    partition: int
    start: int
    end: int
    """The high watermark."""
    stable: int
    """The last stable offset."""


class KindAnswer(msgspec.Struct, frozen=True):
    is_stream: bool
    is_queue: bool


class Tally(msgspec.Struct, frozen=True):
    stored: dict[str, int]
    """Bytes, by tenant."""
    groups: tuple[str, ...]
    """Full names."""
    connections: dict[str, int] = {}
    """By tenant."""


class Appended(msgspec.Struct, frozen=True):
    base_offset: int
    append_time: int


encode: Final = msgspec.msgpack.Encoder().encode
decode_request: Final = msgspec.msgpack.Decoder(Request).decode
decode_answer: Final = msgspec.msgpack.Decoder(Answer).decode
decode_ends: Final = msgspec.msgpack.Decoder(list[EndOfLog]).decode
decode_kind: Final = msgspec.msgpack.Decoder(KindAnswer).decode
decode_tally: Final = msgspec.msgpack.Decoder(Tally).decode
decode_appended: Final = msgspec.msgpack.Decoder(Appended).decode
decode_code: Final = msgspec.msgpack.Decoder(Code).decode

_PLAIN: Final[dict[str, type[GoQueueError]]] = {
    each.__name__: each
    for each in (
        errors.BatchTooLarge,
        errors.CoordinatorFailed,
        errors.CoordinatorLoading,
        errors.CorruptBatch,
        errors.DiskFull,
        errors.Indeterminate,
        errors.InvalidOption,
        errors.InvalidWish,
        errors.LogPoisoned,
        errors.NotReached,
        errors.ReadFailed,
    )
}
"""Errors that mean the same at the one who asks. All others travel as the protocol's code."""


def failed(error: GoQueueError, *, is_unknown: bool = False) -> Failed:
    name = type(error).__name__
    return Failed(name if name in _PLAIN else "", str(error), code_of(error), is_unknown)


def error_of(answer: Failed) -> GoQueueError:
    kind = _PLAIN.get(answer.error)
    if answer.is_unknown:
        return errors.Indeterminate(answer.message)
    return Refused(_code(answer.code), answer.message) if kind is None else kind(answer.message)


def _code(number: int) -> Code:
    try:
        return Code(number)
    except ValueError:  # of a newer node
        return Code.UNKNOWN_SERVER_ERROR


def is_loading(answer: Any) -> bool:
    """It was not done, and may be soon."""
    return isinstance(answer, Failed) and not answer.is_unknown and answer.error == errors.CoordinatorLoading.__name__
