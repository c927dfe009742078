"""boto3 and FIFO queues: groups in order, one message of a group at a time, and nothing twice within five minutes."""

from typing import Any

import pytest

from tests.integration.sqs_door import (
    Refusal,
    SqsDoor,
    attributes_of,
    delete,
    make_fifo,
    receive,
    receive_all,
    refusal,
)


def send(sqs: Any, url: str, body: str, group: str = "g", dedup: str | None = None) -> Any:
    given = {} if dedup is None else {"MessageDeduplicationId": dedup}
    return sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId=group, **given)


def test_a_fifo_queue_says_that_it_is_one(sqs: Any, sqs_door: SqsDoor) -> None:
    url = make_fifo(sqs)
    found = attributes_of(sqs, url)
    assert {name: found[name] for name in found if "Fifo" in name or "Dedup" in name} == {
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "queue",
        "FifoQueue": "true",
        "FifoThroughputLimit": "perQueue",
    }

    async def options(b: Any) -> Any:
        return b.broker.topics.image.topics[url.rpartition("/")[2]].options(b.broker.topics.defaults)

    chosen = sqs_door.ask(options)
    assert (chosen.lease_order, chosen.delay_order, chosen.dedup_ms) == ("key", "hold_key", 300_000)


def test_messages_of_a_group_come_in_order_and_one_at_a_time(sqs: Any) -> None:
    url = make_fifo(sqs, ContentBasedDeduplication="true")
    for number in range(3):
        send(sqs, url, f"a{number}", "a")
        send(sqs, url, f"b{number}", "b")
    seen: dict[str, list[str]] = {"a": [], "b": []}
    while sum(map(len, seen.values())) < 6:
        found = receive(sqs, url, wait=5, AttributeNames=["MessageGroupId"])
        groups = [each["Attributes"]["MessageGroupId"] for each in found]
        assert found
        assert len(set(groups)) == len(groups)  # never two of one group
        for message, group in zip(found, groups):
            seen[group].append(message["Body"])
        delete(sqs, url, *found)
    assert seen == {"a": ["a0", "a1", "a2"], "b": ["b0", "b1", "b2"]}


def test_a_message_that_comes_back_comes_before_the_others_of_its_group(sqs: Any) -> None:
    url = make_fifo(sqs, ContentBasedDeduplication="true")
    send(sqs, url, "first")
    send(sqs, url, "second")
    (message,) = receive(sqs, url, wait=5)
    assert receive(sqs, url) == []
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
    (again,) = receive(sqs, url, wait=5)
    assert again["Body"] == "first"
    delete(sqs, url, again)
    assert [each["Body"] for each in receive(sqs, url, wait=5)] == ["second"]


def test_attributes_of_a_fifo_message(sqs: Any) -> None:
    url = make_fifo(sqs)
    sent = [send(sqs, url, str(number), "group-1", f"dedup-{number}") for number in range(3)]
    sequence = [each["SequenceNumber"] for each in sent]
    assert sorted(sequence) == sequence
    assert {len(each) for each in sequence} == {20}
    (message,) = receive(sqs, url, wait=5, AttributeNames=["All"], ReceiveRequestAttemptId="any")
    about = message["Attributes"]
    assert (about["MessageGroupId"], about["MessageDeduplicationId"]) == ("group-1", "dedup-0")
    assert (about["SequenceNumber"], message["MessageId"]) == (sequence[0], sent[0]["MessageId"])


def test_a_message_sent_again_is_not_there_again(sqs: Any) -> None:
    url = make_fifo(sqs)
    first = send(sqs, url, "x", "a", "one")
    again = send(sqs, url, "y", "a", "one")
    other_group = send(sqs, url, "z", "b", "one")
    for each in (again, other_group):
        assert (each["MessageId"], each["SequenceNumber"]) == (first["MessageId"], first["SequenceNumber"])
    (message,) = receive(sqs, url, wait=5)
    assert message["Body"] == "x"
    delete(sqs, url, message)
    assert send(sqs, url, "x", "a", "one")["MessageId"] == first["MessageId"]  # deleted, but known
    assert receive(sqs, url) == []


def test_a_body_may_be_its_own_id(sqs: Any) -> None:
    url = make_fifo(sqs, ContentBasedDeduplication="true")
    entries = [{"Id": str(number), "MessageBody": "same", "MessageGroupId": "g"} for number in range(3)]
    sent = sqs.send_message_batch(QueueUrl=url, Entries=entries)["Successful"]
    assert len({each["MessageId"] for each in sent}) == 1
    assert send(sqs, url, "same", dedup="its-own")["MessageId"] != sent[0]["MessageId"]
    first = receive_all(sqs, url, 1, AttributeNames=["MessageDeduplicationId"])
    assert len(first[0]["Attributes"]["MessageDeduplicationId"]) == 64
    delete(sqs, url, *first)
    assert [each["Body"] for each in receive(sqs, url, wait=5)] == ["same"]


def test_ids_may_count_for_their_group_only(sqs: Any) -> None:
    url = make_fifo(sqs, DeduplicationScope="messageGroup", FifoThroughputLimit="perMessageGroupId")
    first, same, other = (send(sqs, url, "x", group, "one")["MessageId"] for group in ("a", "a", "b"))
    assert first == same != other
    assert len(receive_all(sqs, url, 2)) == 2
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"FifoThroughputLimit": "perMessageGroupId"})
    assert refusal(sqs.set_queue_attributes, QueueUrl=url, Attributes={"DeduplicationScope": "queue"}).code == (
        "InvalidParameterValue"
    )


def test_a_queue_may_delay_its_groups_and_keeps_their_order(sqs: Any) -> None:
    url = make_fifo(sqs, DelaySeconds="1", ContentBasedDeduplication="true")
    sent = [send(sqs, url, body) for body in ("first", "second", "first")]
    assert sent[2]["MessageId"] == sent[0]["MessageId"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "0"})
    sent.append(send(sqs, url, "third"))
    for number, body in ((0, "first"), (1, "second"), (3, "third")):
        (message,) = receive(sqs, url, wait=5, AttributeNames=["All"])
        assert (message["Body"], message["MessageId"]) == (body, sent[number]["MessageId"])
        assert message["Attributes"]["SequenceNumber"] == sent[number]["SequenceNumber"]
        delete(sqs, url, message)


def test_a_receipt_that_is_out_of_date_is_refused(sqs: Any) -> None:
    url = make_fifo(sqs, VisibilityTimeout="0", ContentBasedDeduplication="true")
    send(sqs, url, "x")
    (first,) = receive(sqs, url, wait=5)
    assert receive(sqs, url, wait=5)
    handle = first["ReceiptHandle"]
    assert refusal(sqs.delete_message, QueueUrl=url, ReceiptHandle=handle) == Refusal(
        "InvalidParameterValue",
        400,
        f"Value {handle} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ({"MessageDeduplicationId": "a"}, "MissingParameter", "must contain the parameter MessageGroupId"),
        ({"MessageGroupId": "g"}, "InvalidParameterValue", "ContentBasedDeduplication enabled or"),
        ({"MessageGroupId": "g", "MessageDeduplicationId": "a b"}, "InvalidParameterValue", "1 to 128 in length"),
        ({"MessageGroupId": "g" * 129, "MessageDeduplicationId": "a"}, "InvalidParameterValue", "1 to 128 in length"),
        (
            {"MessageGroupId": "g", "MessageDeduplicationId": "a", "DelaySeconds": 2},
            "InvalidParameterValue",
            "not valid for this queue type",
        ),
    ],
)
def test_a_fifo_message_that_cannot_be_sent(sqs: Any, arguments: dict[str, Any], code: str, says: str) -> None:
    url = make_fifo(sqs)
    found = refusal(sqs.send_message, QueueUrl=url, MessageBody="x", **arguments)
    assert found[:2] == (code, 400)
    assert says in found.message


def test_a_fifo_batch_that_cannot_be_sent(sqs: Any) -> None:
    url = make_fifo(sqs)
    good = {"Id": "good", "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "a"}
    for name, says in (("MessageGroupId", "parameter MessageGroupId"), ("MessageDeduplicationId", "enabled or")):
        bad = {key: text for key, text in good.items() if key != name} | {"Id": "bad"}
        found = refusal(sqs.send_message_batch, QueueUrl=url, Entries=[good, bad])
        assert found.code == "InvalidParameterValue"
        assert says in found.message
    assert attributes_of(sqs, url, "ApproximateNumberOfMessages") == {"ApproximateNumberOfMessages": "0"}
