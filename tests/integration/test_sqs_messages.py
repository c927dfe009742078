"""boto3 and messages: sent, received, deleted, made visible again, one by one and in batches."""

import threading
from typing import Any

import pytest

from tests.integration.sqs_door import (
    Refusal,
    SqsDoor,
    attributes_of,
    client_of,
    delete,
    make_queue,
    receive,
    receive_all,
    refusal,
)

MIB = 1024 * 1024
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "Text": {"DataType": "String", "StringValue": "drei Äpfel"},
    "Labelled": {"DataType": "String.json", "StringValue": "{}"},
    "Count": {"DataType": "Number", "StringValue": "-1.5e3"},
    "Exact": {"DataType": "Number.int", "StringValue": "7"},
    "Bytes": {"DataType": "Binary", "BinaryValue": b"\xff\x00\x01"},
    "Looks.Like.Text": {"DataType": "Binary", "BinaryValue": b"abc"},
    "Picture": {"DataType": "Binary.gif", "BinaryValue": b"GIF89a\x80"},
}
COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


def counts(sqs: Any, url: str) -> list[int]:
    found = attributes_of(sqs, url, *COUNTS)
    return [int(found[name]) for name in COUNTS]


# -- sending and receiving


def test_a_message_comes_as_it_was_sent(sqs: Any) -> None:
    url = make_queue(sqs)
    body = "Grüße \U0001f34e\t\r\n <xml/> " + "x" * 1000
    sent = sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=ATTRIBUTES)
    (message,) = receive(sqs, url, wait=5, MessageAttributeNames=["All"], AttributeNames=["All"])
    assert (message["Body"], message["MessageAttributes"]) == (body, ATTRIBUTES)
    assert (message["MessageId"], message["MD5OfBody"]) == (sent["MessageId"], sent["MD5OfMessageBody"])
    assert message["MD5OfMessageAttributes"] == sent["MD5OfMessageAttributes"]
    about = message["Attributes"]
    assert about.keys() == {
        "ApproximateFirstReceiveTimestamp",
        "ApproximateReceiveCount",
        "SenderId",
        "SentTimestamp",
    }
    assert about["ApproximateReceiveCount"] == "1"
    assert int(about["SentTimestamp"]) <= int(about["ApproximateFirstReceiveTimestamp"])


def test_only_the_attributes_that_were_asked_for_come(sqs: Any) -> None:
    url = make_queue(sqs)
    attributes = {name: {"DataType": "String", "StringValue": name} for name in ("a.x", "a.y", "b", "traceparent")}
    sqs.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=attributes)

    def names(*wanted: str) -> set[str]:
        (message,) = receive_all(sqs, url, 1, MessageAttributeNames=list(wanted), VisibilityTimeout=0)
        return set(message.get("MessageAttributes", {}))

    assert names() == set()
    assert names("b", "none") == {"b"}
    assert names("a.*", "b") == {"a.x", "a.y", "b"}
    assert names(".*") == names("All") == set(attributes)
    (message,) = receive_all(sqs, url, 1, MessageSystemAttributeNames=["SentTimestamp"])
    assert set(message["Attributes"]) == {"SentTimestamp"}
    assert refusal(sqs.receive_message, QueueUrl=url, AttributeNames=["Colour"]).code == "InvalidAttributeName"


def test_a_trace_header_goes_with_its_message(sqs: Any) -> None:
    url = make_queue(sqs)
    trace = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}}
    sent = sqs.send_message(QueueUrl=url, MessageBody="x", MessageSystemAttributes=trace)
    assert len(sent["MD5OfMessageSystemAttributes"]) == 32
    (message,) = receive(sqs, url, wait=5, AttributeNames=["AWSTraceHeader"], MessageAttributeNames=["All"])
    assert message["Attributes"] == {"AWSTraceHeader": trace["AWSTraceHeader"]["StringValue"]}
    assert "MessageAttributes" not in message


def test_a_batch_is_sent_received_and_deleted(sqs: Any) -> None:
    url = make_queue(sqs)
    entries: list[dict[str, Any]] = [{"Id": f"id_{number}", "MessageBody": f"body {number}"} for number in range(10)]
    entries[3]["MessageAttributes"] = ATTRIBUTES
    sent = sqs.send_message_batch(QueueUrl=url, Entries=entries)
    assert "Failed" not in sent
    assert [each["Id"] for each in sent["Successful"]] == [each["Id"] for each in entries]
    messages = receive_all(sqs, url, 10)
    assert {each["MessageId"]: each["Body"] for each in messages} == {
        each["MessageId"]: entry["MessageBody"] for each, entry in zip(sent["Successful"], entries)
    }
    assert counts(sqs, url) == [0, 10, 0]
    handles = [{"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]} for number, each in enumerate(messages)]
    assert len(sqs.delete_message_batch(QueueUrl=url, Entries=handles)["Successful"]) == 10
    assert counts(sqs, url) == [0, 0, 0]


def test_of_a_batch_the_good_ones_are_sent_and_the_bad_ones_named(sqs: Any) -> None:
    url = make_queue(sqs, MaximumMessageSize="1024")
    entries = [
        {"Id": "good", "MessageBody": "x"},
        {"Id": "long", "MessageBody": "x" * 1025},
        {"Id": "odd", "MessageBody": "x\x00"},
        {"Id": "late", "MessageBody": "x", "DelaySeconds": 901},
    ]
    answer = sqs.send_message_batch(QueueUrl=url, Entries=entries)
    assert [each["Id"] for each in answer["Successful"]] == ["good"]
    assert [(each["Id"], each["Code"], each["SenderFault"]) for each in answer["Failed"]] == [
        ("long", "InvalidParameterValue", True),
        ("odd", "InvalidMessageContents", True),
        ("late", "InvalidParameterValue", True),
    ]
    assert [each["Body"] for each in receive(sqs, url, wait=5)] == ["x"]


def test_a_mebibyte_is_a_message_and_more_is_none(sqs: Any) -> None:
    url = make_queue(sqs)
    sqs.send_message(QueueUrl=url, MessageBody="x" * MIB)
    assert refusal(sqs.send_message, QueueUrl=url, MessageBody="x" * (MIB + 1)) == Refusal(
        "InvalidParameterValue",
        400,
        "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.",
    )
    attributes = {"a": {"DataType": "String", "StringValue": "b"}}
    size = len("a" + "String" + "b")
    over = "x" * (MIB - size + 1)
    assert refusal(sqs.send_message, QueueUrl=url, MessageBody=over, MessageAttributes=attributes).code == (
        "InvalidParameterValue"
    )
    sqs.send_message(QueueUrl=url, MessageBody="y" * (MIB - size), MessageAttributes=attributes, DelaySeconds=1)
    found = receive_all(sqs, url, 2)
    assert sorted(len(each["Body"]) for each in found) == [MIB - size, MIB]
    delete(sqs, url, *found)
    half = "ä" * (MIB // 4)
    entries = [{"Id": str(number), "MessageBody": half} for number in range(2)]
    assert len(sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 2
    entries.append({"Id": "2", "MessageBody": "x"})
    assert refusal(sqs.send_message_batch, QueueUrl=url, Entries=entries) == Refusal(
        "AWS.SimpleQueueService.BatchRequestTooLong",
        400,
        f"Batch requests cannot be longer than {MIB} bytes. You have sent {MIB + 1} bytes.",
    )


# -- visibility


def test_a_message_is_invisible_until_its_timeout_and_keeps_its_id(sqs: Any) -> None:
    url = make_queue(sqs, VisibilityTimeout="1")
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (first,) = receive(sqs, url, wait=5, AttributeNames=["All"])
    assert receive(sqs, url) == []
    (second,) = receive(sqs, url, wait=5, AttributeNames=["All"])
    assert second["MessageId"] == first["MessageId"]
    assert second["ReceiptHandle"] != first["ReceiptHandle"]
    assert (first["Attributes"]["ApproximateReceiveCount"], second["Attributes"]["ApproximateReceiveCount"]) == (
        "1",
        "2",
    )
    for name in ("SentTimestamp", "ApproximateFirstReceiveTimestamp"):
        assert first["Attributes"][name] == second["Attributes"][name]


def test_zero_makes_a_message_visible_at_once_and_more_keeps_it_away(sqs: Any) -> None:
    url = make_queue(sqs, VisibilityTimeout="1")
    for body in ("a", "b"):
        sqs.send_message(QueueUrl=url, MessageBody=body)
    messages = {each["Body"]: each["ReceiptHandle"] for each in receive_all(sqs, url, 2)}
    answer = sqs.change_message_visibility_batch(
        QueueUrl=url,
        Entries=[
            {"Id": "a", "ReceiptHandle": messages["a"], "VisibilityTimeout": 600},
            {"Id": "bad", "ReceiptHandle": "nonsense", "VisibilityTimeout": 1},
            {"Id": "far", "ReceiptHandle": messages["a"], "VisibilityTimeout": 43201},
        ],
    )
    assert [each["Id"] for each in answer["Successful"]] == ["a"]
    assert [(each["Id"], each["Code"]) for each in answer["Failed"]] == [
        ("bad", "ReceiptHandleIsInvalid"),
        ("far", "InvalidParameterValue"),
    ]
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=messages["b"], VisibilityTimeout=0)
    assert [each["Body"] for each in receive(sqs, url)] == ["b"]
    assert [each["Body"] for each in receive(sqs, url, wait=3)] == ["b"]  # its second is over, the other's is not
    assert counts(sqs, url) == [0, 2, 0]


def test_a_receive_may_have_a_timeout_of_its_own(sqs: Any) -> None:
    url = make_queue(sqs)
    sqs.send_message(QueueUrl=url, MessageBody="x")
    assert len(receive(sqs, url, wait=5, VisibilityTimeout=0)) == 1
    assert len(receive(sqs, url, wait=5, VisibilityTimeout=1)) == 1
    assert receive(sqs, url) == []
    assert len(receive(sqs, url, wait=5)) == 1


def test_a_message_is_delivered_for_ever_without_a_redrive_policy(sqs: Any) -> None:
    url = make_queue(sqs)
    sqs.send_message(QueueUrl=url, MessageBody="x")
    for attempt in range(1, 12):
        (message,) = receive_all(sqs, url, 1, AttributeNames=["ApproximateReceiveCount"])
        assert message["Attributes"]["ApproximateReceiveCount"] == str(attempt)
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)


# -- deleting


def test_deleting_twice_is_fine_and_what_is_no_receipt_is_told(sqs: Any) -> None:
    url, other = make_queue(sqs), make_queue(sqs)
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (message,) = receive(sqs, url, wait=5)
    handle = message["ReceiptHandle"]
    elsewhere = refusal(sqs.delete_message, QueueUrl=other, ReceiptHandle=handle)
    nonsense = refusal(sqs.delete_message, QueueUrl=url, ReceiptHandle="nonsense")
    changed = refusal(sqs.delete_message, QueueUrl=url, ReceiptHandle=handle[:-1] + ("A" if handle[-1] != "A" else "B"))
    assert {elsewhere[:2], nonsense[:2], changed[:2]} == {("ReceiptHandleIsInvalid", 400)}
    with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid):
        sqs.delete_message(QueueUrl=url, ReceiptHandle="x")
    delete(sqs, url, message, message)
    assert counts(sqs, url) == [0, 0, 0]


def test_an_old_receipt_deletes_nothing_that_somebody_else_has(sqs: Any) -> None:
    url = make_queue(sqs, VisibilityTimeout="0")
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (first,) = receive(sqs, url, wait=5)
    (second,) = receive(sqs, url, wait=5, VisibilityTimeout=600)
    delete(sqs, url, first)  # as in AWS: no error, and no effect
    assert counts(sqs, url) == [0, 1, 0]
    assert refusal(
        sqs.change_message_visibility, QueueUrl=url, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=5
    )[:2] == ("AWS.SimpleQueueService.MessageNotInflight", 400)
    delete(sqs, url, second)
    assert counts(sqs, url) == [0, 0, 0]
    found = refusal(
        sqs.change_message_visibility, QueueUrl=url, ReceiptHandle=second["ReceiptHandle"], VisibilityTimeout=5
    )
    assert found.code == "InvalidParameterValue"
    assert "Message does not exist" in found.message


def test_a_message_that_is_visible_again_is_not_in_flight(sqs: Any) -> None:
    url = make_queue(sqs, VisibilityTimeout="0")
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (message,) = receive(sqs, url, wait=5)
    assert receive(sqs, url, wait=5)  # by now the first lease is over
    with pytest.raises(sqs.exceptions.MessageNotInflight):
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=5)


# -- delays


def test_a_delayed_message_comes_when_it_is_due_under_the_id_that_it_was_sent_with(sqs: Any) -> None:
    url = make_queue(sqs)
    sent = sqs.send_message(QueueUrl=url, MessageBody="later", DelaySeconds=1)
    sqs.send_message(QueueUrl=url, MessageBody="now")
    assert [each["Body"] for each in receive(sqs, url, wait=5)] == ["now"]
    assert counts(sqs, url) == [0, 1, 1]
    (message,) = receive(sqs, url, wait=5, AttributeNames=["All"])
    assert (message["Body"], message["MessageId"]) == ("later", sent["MessageId"])
    about = message["Attributes"]
    assert int(about["ApproximateFirstReceiveTimestamp"]) - int(about["SentTimestamp"]) >= 1000
    assert counts(sqs, url) == [0, 2, 0]


def test_a_queue_may_delay_all_that_do_not_say_otherwise(sqs: Any) -> None:
    url = make_queue(sqs, DelaySeconds="900")
    sqs.send_message(QueueUrl=url, MessageBody="late")
    sqs.send_message(QueueUrl=url, MessageBody="at once", DelaySeconds=0)
    sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "a", "MessageBody": "late too"}])
    assert [each["Body"] for each in receive(sqs, url, wait=5)] == ["at once"]
    assert counts(sqs, url) == [0, 1, 2]


# -- long polling


def test_a_long_poll_is_answered_when_a_message_comes(sqs: Any, sqs_door: SqsDoor) -> None:
    url = make_queue(sqs, ReceiveMessageWaitTimeSeconds="20")
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.extend(_poll(sqs_door, url)))
    waiting.start()
    sqs_door.wait_until(lambda b: bool(b.broker.receiver._parked))
    sqs.send_message(QueueUrl=url, MessageBody="there")
    waiting.join(10)
    assert [each["Body"] for each in found] == ["there"]


def _poll(sqs_door: SqsDoor, url: str) -> list[Any]:
    return list(client_of(sqs_door.url).receive_message(QueueUrl=url).get("Messages", []))


def test_message_groups_of_a_standard_queue_share_it_fairly(sqs: Any) -> None:
    url = sqs.create_queue(QueueName="fair")["QueueUrl"]
    for _ in range(3):
        entries = [{"Id": str(each), "MessageBody": "noisy", "MessageGroupId": "g"} for each in range(10)]
        assert len(sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]) == 10
    sqs.send_message(QueueUrl=url, MessageBody="quiet", MessageGroupId="g2")
    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["MessageGroupId"])["Messages"]
    assert ("quiet", "g2") in [(each["Body"], each["Attributes"]["MessageGroupId"]) for each in found]
