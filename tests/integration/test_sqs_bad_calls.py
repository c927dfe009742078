"""Calls that cannot be: boto3 gets the errors that AWS gives, by name, code and status."""

from typing import Any

import httpx
import pytest

from tests.integration.sqs_door import Refusal, SqsDoor, attributes_of, make_queue, refusal

MIB = 1024 * 1024


def count(sqs: Any, url: str) -> str:
    return attributes_of(sqs, url, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"MessageBody": ""}, "MissingParameter"),
        ({"MessageBody": "\x0b"}, "InvalidMessageContents"),
        ({"MessageBody": "\ufffe"}, "InvalidMessageContents"),
        ({"MessageBody": "x", "DelaySeconds": 901}, "InvalidParameterValue"),
        ({"MessageBody": "x", "DelaySeconds": -1}, "InvalidParameterValue"),
        ({"MessageBody": "x", "MessageDeduplicationId": "a"}, "InvalidParameterValue"),
        ({"MessageBody": "x", "MessageGroupId": "a b"}, "InvalidParameterValue"),
        (
            {"MessageBody": "x", "MessageSystemAttributes": {"Other": {"DataType": "String", "StringValue": "a"}}},
            "InvalidParameterValue",
        ),
    ],
)
def test_a_message_that_cannot_be_sent(sqs: Any, arguments: dict[str, Any], code: str) -> None:
    url = make_queue(sqs)
    assert refusal(sqs.send_message, QueueUrl=url, **arguments)[:2] == (code, 400)
    assert count(sqs, url) == "0"


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("a", {"DataType": "String", "StringValue": ""}),
        ("a", {"DataType": "String"}),
        ("a", {"DataType": "String", "StringValue": "\x01"}),
        ("a", {"DataType": "String", "BinaryValue": b"x"}),
        ("a", {"DataType": "Number", "StringValue": "many"}),
        ("a", {"DataType": "Binary", "StringValue": "x"}),
        ("a", {"DataType": "Colour", "StringValue": "x"}),
        ("a", {"DataType": "", "StringValue": "x"}),
        ("", {"DataType": "String", "StringValue": "x"}),
        ("a b", {"DataType": "String", "StringValue": "x"}),
        (".a", {"DataType": "String", "StringValue": "x"}),
        ("AWS.a", {"DataType": "String", "StringValue": "x"}),
        ("amazon.a", {"DataType": "String", "StringValue": "x"}),
        ("sqs-type-a", {"DataType": "String", "StringValue": "x"}),
        ("x" * 257, {"DataType": "String", "StringValue": "x"}),
        ("gq-priority", {"DataType": "String", "StringValue": "whatever"}),
    ],
)
def test_an_attribute_that_cannot_be_sent(sqs: Any, name: str, attribute: dict[str, Any]) -> None:
    url = make_queue(sqs)
    found = refusal(sqs.send_message, QueueUrl=url, MessageBody="x", MessageAttributes={name: attribute})
    code = "InvalidMessageContents" if attribute.get("StringValue") == "\x01" else "InvalidParameterValue"
    assert found[:2] == (code, 400)


def test_ten_attributes_and_no_more(sqs: Any) -> None:
    url = make_queue(sqs)
    attributes = {f"a{number}": {"DataType": "String", "StringValue": "x"} for number in range(11)}
    found = refusal(sqs.send_message, QueueUrl=url, MessageBody="x", MessageAttributes=attributes)
    assert found.message == "Number of message attributes [11] exceeds the allowed maximum [10]."
    del attributes["a0"]
    sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=attributes)


@pytest.mark.parametrize(
    "arguments",
    [
        {"MaxNumberOfMessages": 0},
        {"MaxNumberOfMessages": 11},
        {"WaitTimeSeconds": -1},
        {"WaitTimeSeconds": 21},
        {"VisibilityTimeout": -1},
        {"VisibilityTimeout": 43201},
    ],
)
def test_a_receive_that_cannot_be(sqs: Any, arguments: dict[str, int]) -> None:
    url = make_queue(sqs)
    found = refusal(sqs.receive_message, QueueUrl=url, **arguments)
    assert found[:2] == ("InvalidParameterValue", 400)
    ((name, value),) = arguments.items()
    assert found.message.startswith(f"Value {value} for parameter {name} is invalid. Reason: Must be")


def test_batches_that_cannot_be(sqs: Any) -> None:
    url = make_queue(sqs)
    calls: dict[Any, dict[str, Any]] = {
        sqs.send_message_batch: {"MessageBody": "x"},
        sqs.delete_message_batch: {"ReceiptHandle": "x"},
        sqs.change_message_visibility_batch: {"ReceiptHandle": "x", "VisibilityTimeout": 1},
    }
    old = "AWS.SimpleQueueService."
    for call, fields in calls.items():

        def refused(*ids: str, call: Any = call, fields: dict[str, Any] = fields) -> Refusal:
            return refusal(call, QueueUrl=url, Entries=[{"Id": each, **fields} for each in ids])

        assert refused()[:2] == (old + "EmptyBatchRequest", 400)
        assert refused(*map(str, range(11))) == Refusal(
            old + "TooManyEntriesInBatchRequest", 400, "Maximum number of entries per request are 10. You have sent 11."
        )
        assert refused("a", "b", "a") == Refusal(old + "BatchEntryIdsNotDistinct", 400, "Id a repeated.")
        for name in ("", "a b", "ä", "x" * 81):
            assert refused(name)[:2] == (old + "InvalidBatchEntryId", 400)
    assert count(sqs, url) == "0"


def post(sqs_door: SqsDoor, action: str, content: bytes, method: str = "POST") -> httpx.Response:
    headers = {"X-Amz-Target": action, "Content-Type": "application/x-amz-json-1.0"}
    return httpx.request(method, sqs_door.url, headers=headers, content=content)


def test_what_is_no_request_gets_an_error_that_a_client_understands(sqs_door: SqsDoor) -> None:
    unknown = post(sqs_door, "AmazonSQS.MakeCoffee", b"{}")
    assert (unknown.status_code, unknown.json()["__type"]) == (
        400,
        "com.amazon.coral.service#UnknownOperationException",
    )
    assert post(sqs_door, "AmazonSNS.Publish", b"{}").json()["__type"].endswith("#UnknownOperationException")
    assert post(sqs_door, "AmazonSQS.ListQueues", b"{}", "PUT").status_code == 400
    for content in (b"{", b"[]", b'{"QueueName": 7}', b'{"QueueName": "\xff"}', b'{"QueueName": "\\ud800"}'):
        answer = post(sqs_door, "AmazonSQS.CreateQueue", content)
        assert (answer.status_code, answer.headers["x-amzn-query-error"]) == (400, "MalformedInput;Sender")
    assert post(sqs_door, "AmazonSQS.CreateQueue", b"").headers["x-amzn-query-error"] == "MissingParameter;Sender"
    large = post(sqs_door, "AmazonSQS.SendMessage", b" " * (8 * MIB + 1))
    assert large.status_code == 413
    for each in (unknown, large):
        assert each.headers["content-type"] == "application/x-amz-json-1.0"
        assert each.headers["x-amzn-requestid"]
