"""The rules of SQS that need no queue: attributes of queues, batches, requests as they come."""

import msgspec
import pytest

from goqueue.wire.sqs.checks import check_entries, check_queue_name, need
from goqueue.wire.sqs.errors import ERRORS, SqsError
from goqueue.wire.sqs.queue_attributes import (
    RECEIVES_MAX,
    Redrive,
    check_queue_attributes,
    format_redrive_policy,
    parse_allow_policy,
    parse_redrive_policy,
)
from goqueue.wire.sqs.requests import CreateQueue, SendEntry, SendMessageBatch


def test_numbers_are_kept_in_their_usual_form() -> None:
    assert check_queue_attributes({"DelaySeconds": "007"}, is_fifo=False) == {"DelaySeconds": "7"}
    for text in ("٣", "1e1", " 1", "", "9" * 50):
        with pytest.raises(SqsError):
            check_queue_attributes({"DelaySeconds": text}, is_fifo=False)


def test_what_asks_for_nothing_is_taken_and_not_kept() -> None:
    nothing = {"Policy": "", "KmsMasterKeyId": "", "SqsManagedSseEnabled": "false"}
    assert check_queue_attributes(nothing, is_fifo=False) == {}


def test_redrive_policies_are_read_as_people_write_them() -> None:
    assert parse_redrive_policy("") is None
    assert parse_redrive_policy('{"deadLetterTargetArn": "a", "maxReceiveCount": "5"}') == Redrive("a", 5)
    assert parse_redrive_policy('{"deadLetterTargetArn": "a", "maxReceiveCount": 1000}') == Redrive("a", RECEIVES_MAX)
    assert parse_redrive_policy(format_redrive_policy("a", 3)) == Redrive("a", 3)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "[]",
        '{"redrivePermission": "some"}',
        '{"redrivePermission": "byQueue"}',
        '{"redrivePermission": "denyAll", "sourceQueueArns": ["a"]}',
    ],
)
def test_allow_policies_that_cannot_be(text: str) -> None:
    assert parse_allow_policy("") is None
    with pytest.raises(SqsError, match="redrive allow policy"):
        parse_allow_policy(text)


@pytest.mark.parametrize(
    ("name", "is_fifo"), [("a-B_9", False), ("x" * 80, False), ("a.fifo", True), ("x" * 75 + ".fifo", True)]
)
def test_names_that_a_queue_may_have(name: str, is_fifo: bool) -> None:
    check_queue_name(name, is_fifo)


def test_what_is_needed_and_absent_is_named() -> None:
    assert need(0, "Zero") == 0
    for absent in (None, ""):
        with pytest.raises(SqsError, match=r"must contain the parameter QueueName\."):
            need(absent, "QueueName")


def test_a_batch_keeps_its_order() -> None:
    entries = [SendEntry(id="b"), SendEntry(id="a")]
    assert check_entries(entries, "x") == entries


def test_requests_are_read_as_boto3_sends_them() -> None:
    sent = b'{"QueueName": "a", "Attributes": {"DelaySeconds": "1"}, "tags": {"x": "y"}, "Unknown": 1}'
    assert msgspec.json.decode(sent, type=CreateQueue) == CreateQueue("a", {"DelaySeconds": "1"}, {"x": "y"})
    batch = msgspec.json.decode(
        b'{"Entries": [{"Id": "1", "MessageBody": "x", "MessageAttributes":'
        b' {"b": {"DataType": "Binary", "BinaryValue": "/wA="}}}]}',
        type=SendMessageBatch,
    )
    assert batch.entries is not None
    assert batch.entries[0].message_attributes["b"].binary_value == b"\xff\x00"


def test_every_error_says_what_older_clients_call_it() -> None:
    assert ERRORS["QueueDoesNotExist"].code == "AWS.SimpleQueueService.NonExistentQueue"
    assert all(kind.status >= 400 and kind.code for kind in ERRORS.values())
    assert SqsError("ServiceUnavailable", "x").is_of_sender is False
