"""boto3 and dead letters: queues for what was received in vain, and tasks that bring it back."""

import base64
import json
from typing import Any

import pytest

from goqueue.testing import MemoryBroker
from tests.integration.sqs_door import (
    Refusal,
    SqsDoor,
    arn_of,
    attributes_of,
    delete,
    make_fifo,
    make_queue,
    receive,
    receive_all,
    refusal,
)


def with_dead_letters(sqs: Any, target: str, receives: int = 1, **attributes: str) -> str:
    policy = {"deadLetterTargetArn": arn_of(sqs, target), "maxReceiveCount": receives}
    return make_queue(sqs, RedrivePolicy=json.dumps(policy), **attributes)


def fail(sqs: Any, url: str, count: int, times: int = 1) -> None:
    """Receive all of it and give it back, so often."""
    for _ in range(times):
        for message in receive_all(sqs, url, count):
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)


def tasks(sqs: Any, target: str, most: int = 10) -> list[dict[str, Any]]:
    return list(sqs.list_message_move_tasks(SourceArn=arn_of(sqs, target), MaxResults=most).get("Results", []))


def wait_for_end(sqs_door: SqsDoor, url: str) -> None:
    name = url.rpartition("/")[2]
    sqs_door.wait_until(lambda b: all(move.is_over for move in b.broker.moves.of(name)))


def wait_for(sqs_door: SqsDoor, url: str, count: int) -> None:
    """Dead letters are written a moment after they died."""
    name = url.rpartition("/")[2]

    def are_there(b: MemoryBroker) -> bool:
        lags = [b.broker.queues.lag(place) for place in b.broker.queues.places("sqs") if place.topic == name]
        return sum(sum(lag.ready) + lag.waiting for lag in lags) == count

    sqs_door.wait_until(are_there)


def size(sqs: Any, url: str) -> int:
    return int(attributes_of(sqs, url, "ApproximateNumberOfMessages")["ApproximateNumberOfMessages"])


def test_a_message_received_too_often_goes_to_its_dead_letter_queue(sqs: Any) -> None:
    target = make_queue(sqs)
    url = with_dead_letters(sqs, target, 2)
    attributes = {"a": {"DataType": "Number", "StringValue": "1"}}
    sent = sqs.send_message(QueueUrl=url, MessageBody="poison", MessageAttributes=attributes)
    fail(sqs, url, 1, times=2)
    (letter,) = receive(sqs, target, wait=5, AttributeNames=["All"], MessageAttributeNames=["All"])
    assert (letter["Body"], letter["MessageId"]) == ("poison", sent["MessageId"])
    assert letter["MessageAttributes"] == attributes
    assert letter["Attributes"]["DeadLetterQueueSourceArn"] == arn_of(sqs, url)
    assert letter["Attributes"]["ApproximateReceiveCount"] == "1"
    assert (receive(sqs, url), size(sqs, url)) == ([], 0)


def test_a_timeout_counts_as_a_failure(sqs: Any) -> None:
    target = make_queue(sqs)
    url = with_dead_letters(sqs, target, 1, VisibilityTimeout="1")
    sqs.send_message(QueueUrl=url, MessageBody="slow")
    assert len(receive(sqs, url, wait=5)) == 1
    assert [each["Body"] for each in receive(sqs, target, wait=10)] == ["slow"]


def test_a_task_brings_letters_back_to_the_queues_that_they_came_from(sqs: Any, sqs_door: SqsDoor) -> None:
    target = make_queue(sqs)
    first, second = with_dead_letters(sqs, target), with_dead_letters(sqs, target)
    sent = {url: sqs.send_message(QueueUrl=url, MessageBody=url)["MessageId"] for url in (first, second)}
    for url in (first, second):
        fail(sqs, url, 1)
    wait_for(sqs_door, target, 2)
    handle = sqs.start_message_move_task(SourceArn=arn_of(sqs, target))["TaskHandle"]
    assert handle
    wait_for_end(sqs_door, target)
    (task,) = tasks(sqs, target)
    started = task.pop("StartedTimestamp")
    assert started > 1_700_000_000_000
    assert task == {
        "Status": "COMPLETED",
        "SourceArn": arn_of(sqs, target),
        "ApproximateNumberOfMessagesMoved": 2,
        "ApproximateNumberOfMessagesToMove": 2,
    }
    for url in (first, second):
        (message,) = receive(sqs, url, wait=5, AttributeNames=["All"])
        assert (message["Body"], message["MessageId"]) == (url, sent[url])
        assert message["Attributes"]["ApproximateReceiveCount"] == "1"
        assert "DeadLetterQueueSourceArn" not in message["Attributes"]
    assert size(sqs, target) == 0


def test_a_task_may_bring_letters_elsewhere_and_leaves_what_somebody_has(sqs: Any, sqs_door: SqsDoor) -> None:
    target, elsewhere = make_queue(sqs), make_queue(sqs)
    with_dead_letters(sqs, target)
    for number in range(5):
        sqs.send_message(QueueUrl=target, MessageBody=str(number))  # no dead letters, but in the queue for them
    (held,) = receive(sqs, target, 1, wait=5)
    sqs.start_message_move_task(SourceArn=arn_of(sqs, target), DestinationArn=arn_of(sqs, elsewhere))
    wait_for_end(sqs_door, target)
    (task,) = tasks(sqs, target)
    assert (task["Status"], task["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 4)
    assert task["DestinationArn"] == arn_of(sqs, elsewhere)
    assert {each["Body"] for each in receive_all(sqs, elsewhere, 4)} == set("01234") - {held["Body"]}
    delete(sqs, target, held)
    assert attributes_of(sqs, target, "ApproximateNumberOfMessagesNotVisible").popitem()[1] == "0"


def test_what_came_from_nowhere_cannot_go_back(sqs: Any, sqs_door: SqsDoor) -> None:
    target = make_queue(sqs)
    with_dead_letters(sqs, target)
    sqs.send_message(QueueUrl=target, MessageBody="x")
    sqs.start_message_move_task(SourceArn=arn_of(sqs, target))
    wait_for_end(sqs_door, target)
    (task,) = tasks(sqs, target)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "CouldNotDetermineMessageSource")
    assert [each["Body"] for each in receive(sqs, target, wait=5)] == ["x"]


def test_a_task_whose_destination_is_deleted_fails_and_loses_nothing(sqs: Any, sqs_door: SqsDoor) -> None:
    target = make_queue(sqs)
    url = with_dead_letters(sqs, target)
    for number in range(3):
        sqs.send_message(QueueUrl=url, MessageBody=str(number))
    fail(sqs, url, 3)
    wait_for(sqs_door, target, 3)
    sqs.delete_queue(QueueUrl=url)
    with_dead_letters(sqs, target)  # it is a queue for dead letters still
    sqs.start_message_move_task(SourceArn=arn_of(sqs, target))
    wait_for_end(sqs_door, target)
    (task,) = tasks(sqs, target)
    assert (task["Status"], task["FailureReason"]) == ("FAILED", "AWS.SimpleQueueService.NonExistentQueue")
    assert len(receive_all(sqs, target, 3)) == 3


def test_a_slow_task_can_be_cancelled(sqs: Any, sqs_door: SqsDoor) -> None:
    target, elsewhere = make_queue(sqs), make_queue(sqs)
    with_dead_letters(sqs, target)
    for number in range(10):
        sqs.send_message(QueueUrl=target, MessageBody=str(number))
    arguments = {"SourceArn": arn_of(sqs, target), "DestinationArn": arn_of(sqs, elsewhere)}
    handle = sqs.start_message_move_task(**arguments, MaxNumberOfMessagesPerSecond=1)["TaskHandle"]
    (task,) = tasks(sqs, target)
    assert (task["Status"], task["TaskHandle"], task["MaxNumberOfMessagesPerSecond"]) == ("RUNNING", handle, 1)
    assert task["ApproximateNumberOfMessagesToMove"] == 10
    assert refusal(sqs.start_message_move_task, **arguments) == Refusal(
        "InvalidParameterValue",
        400,
        "There is already a task running. Only one active task is allowed for a source queue arn at a given time.",
    )
    assert sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"] < 10
    wait_for_end(sqs_door, target)
    (task,) = tasks(sqs, target)
    moved = task["ApproximateNumberOfMessagesMoved"]
    assert (task["Status"], "TaskHandle" in task) == ("CANCELLED", False)
    assert 1 <= moved < 10
    assert (size(sqs, elsewhere), size(sqs, target)) == (moved, 10 - moved)
    assert refusal(sqs.cancel_message_move_task, TaskHandle=handle).code == "InvalidParameterValue"
    sqs.start_message_move_task(**arguments)
    wait_for_end(sqs_door, target)
    assert [each["Status"] for each in tasks(sqs, target)] == ["COMPLETED", "CANCELLED"]
    assert len(tasks(sqs, target, 1)) == 1
    assert (size(sqs, elsewhere), size(sqs, target)) == (10, 0)


def test_fifo_dead_letters_keep_their_order_and_come_back_though_their_ids_are_known(
    sqs: Any, sqs_door: SqsDoor
) -> None:
    target = make_fifo(sqs, ContentBasedDeduplication="true")
    policy = {"deadLetterTargetArn": arn_of(sqs, target), "maxReceiveCount": 1}
    url = make_fifo(sqs, ContentBasedDeduplication="true", RedrivePolicy=json.dumps(policy))
    for body in ("one", "two"):
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g")
    for _ in range(2):
        fail(sqs, url, 1)
        fail(sqs, url, 1)
        wait_for(sqs_door, target, 2)
        (letter,) = receive_all(sqs, target, 1, AttributeNames=["All"])
        assert letter["Body"] == "one"
        assert letter["Attributes"]["MessageGroupId"] == "g"
        assert len(letter["Attributes"]["MessageDeduplicationId"]) == 64
        sqs.change_message_visibility(QueueUrl=target, ReceiptHandle=letter["ReceiptHandle"], VisibilityTimeout=0)
        assert size(sqs, target) == 2
        sqs.start_message_move_task(SourceArn=arn_of(sqs, target))
        wait_for_end(sqs_door, target)
        assert tasks(sqs, target)[0]["Status"] == "COMPLETED"
    for body in ("one", "two"):
        (message,) = receive(sqs, url, wait=5)
        assert message["Body"] == body
        delete(sqs, url, message)


@pytest.mark.parametrize("rate", [0, 501])
def test_a_rate_that_cannot_be(sqs: Any, rate: int) -> None:
    target = make_queue(sqs)
    with_dead_letters(sqs, target)
    found = refusal(sqs.start_message_move_task, SourceArn=arn_of(sqs, target), MaxNumberOfMessagesPerSecond=rate)
    assert found.code == "InvalidParameterValue"


def test_tasks_that_cannot_be(sqs: Any) -> None:
    url, target = make_queue(sqs), make_queue(sqs)
    with_dead_letters(sqs, target)
    arn, gone = arn_of(sqs, target), arn_of(sqs, target) + "x"
    not_found = ("ResourceNotFoundException", 404)
    assert refusal(sqs.start_message_move_task, SourceArn=arn_of(sqs, url)) == Refusal(
        "InvalidParameterValue", 400, "Source queue must be configured as a Dead Letter Queue."
    )
    assert refusal(sqs.start_message_move_task, SourceArn=gone)[:2] == not_found
    assert refusal(sqs.start_message_move_task, SourceArn=arn, DestinationArn=gone)[:2] == not_found
    assert refusal(sqs.start_message_move_task, SourceArn=arn, DestinationArn=arn).code == "InvalidParameterValue"
    assert refusal(sqs.list_message_move_tasks, SourceArn=gone)[:2] == not_found
    assert refusal(sqs.list_message_move_tasks, SourceArn=arn, MaxResults=11).code == "InvalidParameterValue"
    assert refusal(sqs.cancel_message_move_task, TaskHandle="nonsense") == Refusal(
        "InvalidParameterValue", 400, "Value for parameter TaskHandle is invalid."
    )
    for handle in ({"task": 10**9, "source": target.rpartition("/")[2]}, {"task": 1, "source": "gone"}):
        text = base64.urlsafe_b64encode(json.dumps(handle).encode()).decode()
        assert refusal(sqs.cancel_message_move_task, TaskHandle=text)[:2] == not_found
