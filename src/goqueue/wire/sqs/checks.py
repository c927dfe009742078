"""The rules of SQS for what comes with a request: names, numbers, ids, batches."""

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from goqueue.wire.sqs.errors import SqsError, invalid_parameter, invalid_value, missing

T = TypeVar("T")

BATCH_ENTRIES_MAX = 10
BYTES_MAX = 1024 * 1024
"""Of one message, and of all messages of a batch together."""
DELAY_SECONDS_MAX = 900
VISIBILITY_SECONDS_MAX = 12 * 60 * 60
WAIT_SECONDS_MAX = 20
MESSAGES_MAX = 10
PAGE_MAX = 1000
FIFO = ".fifo"

_QUEUE_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
_ENTRY_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_GROUP_ID = re.compile(r"[!-~]{1,128}")


def need(value: T | None, parameter: str) -> T:
    if value is None or value == "":
        raise missing(parameter)
    return value


def check_queue_name(name: str, is_fifo: bool) -> None:
    plain = name.removesuffix(FIFO) if is_fifo else name
    if is_fifo and (plain == name or not _QUEUE_NAME.fullmatch(plain) or len(name) > 80):
        raise invalid_parameter(
            "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with "
            ".fifo suffix and be 1 to 80 in length."
        )
    if not _QUEUE_NAME.fullmatch(plain):
        raise invalid_parameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")


def check_range(value: int, parameter: str, least: int, most: int) -> int:
    if not least <= value <= most:
        raise invalid_value(value, parameter, f"Must be between {least} and {most}, if provided.")
    return value


def check_delay(value: int) -> int:
    if not 0 <= value <= DELAY_SECONDS_MAX:
        raise invalid_value(value, "DelaySeconds", f"DelaySeconds must be >= 0 and <= {DELAY_SECONDS_MAX}.")
    return value


def check_group_id(value: str, parameter: str) -> str:
    """Of a group and of a deduplication."""
    if not _GROUP_ID.fullmatch(value):
        raise invalid_value(
            value[:128],
            parameter,
            f"{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length.",
        )
    return value


class Entry(Protocol):
    id: str | None


E = TypeVar("E", bound=Entry)


def check_entries(entries: Sequence[E] | None, kind: str) -> Sequence[E]:
    """The entries of a batch: 1 to 10, each with an id of its own."""
    if not entries:
        raise SqsError("EmptyBatchRequest", f"There should be at least one {kind} in the request.")
    if len(entries) > BATCH_ENTRIES_MAX:
        raise SqsError(
            "TooManyEntriesInBatchRequest",
            f"Maximum number of entries per request are {BATCH_ENTRIES_MAX}. You have sent {len(entries)}.",
        )
    seen: set[str] = set()
    for entry in entries:
        if entry.id is None or not _ENTRY_ID.fullmatch(entry.id):
            raise SqsError(
                "InvalidBatchEntryId",
                "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
                "It can be at most 80 letters long.",
            )
        if entry.id in seen:
            raise SqsError("BatchEntryIdsNotDistinct", f"Id {entry.id} repeated.")
        seen.add(entry.id)
    return entries


def check_batch_bytes(size: int) -> None:
    if size > BYTES_MAX:
        raise SqsError(
            "BatchRequestTooLong",
            f"Batch requests cannot be longer than {BYTES_MAX} bytes. You have sent {size} bytes.",
        )


def check_message_bytes(size: int, most: int) -> None:
    if size > most:
        raise invalid_parameter(
            f"One or more parameters are invalid. Reason: Message must be shorter than {most} bytes."
        )
