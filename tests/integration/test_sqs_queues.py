"""boto3 and queues: made, found, listed, described, tagged, emptied, deleted; and what AWS says to bad calls."""

import json
from typing import Any

import pytest

from tests.integration.sqs_door import (
    Refusal,
    SqsDoor,
    arn_of,
    attributes_of,
    client_of,
    delete,
    make_fifo,
    make_queue,
    new_name,
    receive,
    receive_all,
    refusal,
)

NO_QUEUE = Refusal("AWS.SimpleQueueService.NonExistentQueue", 400, "The specified queue does not exist.")


def test_a_queue_is_made_with_the_defaults_of_aws(sqs: Any, sqs_door: SqsDoor) -> None:
    name = new_name()
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    assert url == f"{sqs_door.url}/000000000000/{name}"
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == url
    found = attributes_of(sqs, url)
    created = found.pop("CreatedTimestamp")
    assert abs(int(created) - sqs_door.ask(_now_s)) < 60
    assert found == {
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "DelaySeconds": "0",
        "LastModifiedTimestamp": created,
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "QueueArn": f"arn:aws:sqs:goqueue:000000000000:{name}",
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "false",
        "VisibilityTimeout": "30",
    }


async def _now_s(broker: Any) -> int:
    return int(broker.now_ms) // 1000


def test_attributes_are_options_of_the_topic(sqs: Any, sqs_door: SqsDoor) -> None:
    url = make_queue(
        sqs,
        VisibilityTimeout="43200",
        MessageRetentionPeriod="60",
        MaximumMessageSize="1024",
        DelaySeconds="900",
        ReceiveMessageWaitTimeSeconds="20",
    )
    options = _options(sqs_door, url)
    assert (options.lease_ms, options.retention_ms, options.message_ttl_ms) == (43_200_000, 60_000, 60_000)
    assert (options.attempts_max, options.dead_letter_topic, options.dedup_ms) == (0, "", 0)
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "0", "DelaySeconds": "7"})
    assert _options(sqs_door, url).lease_ms == 1
    found = attributes_of(sqs, url, "VisibilityTimeout", "DelaySeconds", "MaximumMessageSize", "RedrivePolicy")
    assert found == {"VisibilityTimeout": "0", "DelaySeconds": "7", "MaximumMessageSize": "1024"}


def _options(sqs_door: SqsDoor, url: str) -> Any:
    async def look(b: Any) -> Any:
        return b.broker.topics.image.topics[url.rpartition("/")[2]].options(b.broker.topics.defaults)

    return sqs_door.ask(look)


def test_a_queue_may_be_made_again_as_it_is_and_not_otherwise(sqs: Any) -> None:
    name = new_name()
    url = sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "1"})["QueueUrl"]
    assert sqs.create_queue(QueueName=name)["QueueUrl"] == url
    assert sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "1", "VisibilityTimeout": "30"})["QueueUrl"]
    with pytest.raises(sqs.exceptions.QueueNameExists):
        sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "2"})
    assert refusal(sqs.create_queue, QueueName=name, Attributes={"DelaySeconds": "2"}) == Refusal(
        "QueueAlreadyExists",
        400,
        "A queue already exists with the same name and a different value for attribute DelaySeconds",
    )


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 81, "käfig", "plain.fifo"])
def test_a_name_that_no_queue_may_have(sqs: Any, name: str) -> None:
    code = "MissingParameter" if not name else "InvalidParameterValue"
    assert refusal(sqs.create_queue, QueueName=name)[:2] == (code, 400)


@pytest.mark.parametrize("name", ["plain", "x" * 76 + ".fifo", ".fifo"])
def test_a_name_that_no_fifo_queue_may_have(sqs: Any, name: str) -> None:
    found = refusal(sqs.create_queue, QueueName=name, Attributes={"FifoQueue": "true"})
    assert found.code == "InvalidParameterValue"
    assert ".fifo suffix" in found.message


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ({"DelaySeconds": "901"}, "InvalidAttributeValue"),
        ({"DelaySeconds": "-1"}, "InvalidAttributeValue"),
        ({"DelaySeconds": "soon"}, "InvalidAttributeValue"),
        ({"VisibilityTimeout": "43201"}, "InvalidAttributeValue"),
        ({"MessageRetentionPeriod": "59"}, "InvalidAttributeValue"),
        ({"MessageRetentionPeriod": "1209601"}, "InvalidAttributeValue"),
        ({"MaximumMessageSize": "1023"}, "InvalidAttributeValue"),
        ({"MaximumMessageSize": "1048577"}, "InvalidAttributeValue"),
        ({"ReceiveMessageWaitTimeSeconds": "21"}, "InvalidAttributeValue"),
        ({"Colour": "red"}, "InvalidAttributeName"),
        ({"ContentBasedDeduplication": "true"}, "InvalidAttributeName"),
        ({"QueueArn": "x"}, "InvalidAttributeName"),
        ({"KmsMasterKeyId": "alias/x"}, "AWS.SimpleQueueService.UnsupportedOperation"),
        ({"SqsManagedSseEnabled": "true"}, "AWS.SimpleQueueService.UnsupportedOperation"),
        ({"Policy": "{}"}, "AWS.SimpleQueueService.UnsupportedOperation"),
        ({"RedriveAllowPolicy": "{}"}, "InvalidParameterValue"),
    ],
)
def test_an_attribute_that_cannot_be_is_refused_when_made_and_when_set(
    sqs: Any, attributes: dict[str, str], code: str
) -> None:
    name = new_name()
    assert refusal(sqs.create_queue, QueueName=name, Attributes=attributes)[:2] == (code, 400)
    assert refusal(sqs.get_queue_url, QueueName=name) == NO_QUEUE
    url = make_queue(sqs)
    before = attributes_of(sqs, url)
    assert refusal(sqs.set_queue_attributes, QueueUrl=url, Attributes=attributes)[:2] == (code, 400)
    assert attributes_of(sqs, url) == before


def test_an_attribute_that_there_is_not_cannot_be_asked_for(sqs: Any) -> None:
    url = make_queue(sqs)
    found = refusal(sqs.get_queue_attributes, QueueUrl=url, AttributeNames=["Colour"])
    assert found == Refusal("InvalidAttributeName", 400, "Unknown Attribute Colour.")
    assert attributes_of(sqs, url, "Policy") == {}


def test_a_queue_does_not_turn_into_a_fifo_queue(sqs: Any) -> None:
    url = make_queue(sqs)
    assert refusal(sqs.set_queue_attributes, QueueUrl=url, Attributes={"FifoQueue": "true"}).code == (
        "InvalidAttributeName"
    )


def test_queues_are_listed_by_prefix_and_in_pages(sqs: Any) -> None:
    prefix = new_name("listed")
    names = [f"{prefix}-{number}" for number in range(5)]
    urls = [sqs.create_queue(QueueName=name)["QueueUrl"] for name in names]
    assert sqs.list_queues(QueueNamePrefix=prefix)["QueueUrls"] == urls
    assert (
        "QueueUrls" not in sqs.list_queues(QueueNamePrefix=prefix + "-none")
        or not sqs.list_queues(QueueNamePrefix=prefix + "-none")["QueueUrls"]
    )
    page = sqs.list_queues(QueueNamePrefix=prefix, MaxResults=2)
    assert page["QueueUrls"] == urls[:2]
    pages = sqs.get_paginator("list_queues").paginate(QueueNamePrefix=prefix, PaginationConfig={"PageSize": 2})
    assert [url for each in pages for url in each["QueueUrls"]] == urls
    assert refusal(sqs.list_queues, MaxResults=1001).code == "InvalidParameterValue"
    assert refusal(sqs.list_queues, MaxResults=1, NextToken="a").code == "InvalidParameterValue"


def test_tags_come_and_go(sqs: Any) -> None:
    name = new_name()
    url = sqs.create_queue(QueueName=name, tags={"team": "shop"})["QueueUrl"]
    sqs.tag_queue(QueueUrl=url, Tags={"cost": "42", "team": "warehouse"})
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "warehouse", "cost": "42"}
    sqs.untag_queue(QueueUrl=url, TagKeys=["team", "none"])
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"cost": "42"}
    sqs.untag_queue(QueueUrl=url, TagKeys=["cost"])
    assert "Tags" not in sqs.list_queue_tags(QueueUrl=url)
    many = {f"tag-{number}": "x" for number in range(51)}
    for tags in ({"": "x"}, {"aws:x": "y"}, {"x" * 129: ""}, {"x": "y" * 257}, many):
        assert refusal(sqs.tag_queue, QueueUrl=url, Tags=tags).code == "InvalidParameterValue"


def test_a_queue_that_is_not_there_is_not_there_for_anybody(sqs: Any, sqs_door: SqsDoor) -> None:
    url = make_queue(sqs)
    sqs.delete_queue(QueueUrl=url)
    entry = {"Id": "a", "ReceiptHandle": "x"}
    calls: list[tuple[Any, dict[str, Any]]] = [
        (sqs.delete_queue, {}),
        (sqs.purge_queue, {}),
        (sqs.get_queue_attributes, {}),
        (sqs.set_queue_attributes, {"Attributes": {"DelaySeconds": "1"}}),
        (sqs.list_queue_tags, {}),
        (sqs.tag_queue, {"Tags": {"a": "b"}}),
        (sqs.untag_queue, {"TagKeys": ["a"]}),
        (sqs.send_message, {"MessageBody": "x"}),
        (sqs.send_message_batch, {"Entries": [{"Id": "a", "MessageBody": "x"}]}),
        (sqs.receive_message, {}),
        (sqs.delete_message, {"ReceiptHandle": "x"}),
        (sqs.delete_message_batch, {"Entries": [entry]}),
        (sqs.change_message_visibility, {"ReceiptHandle": "x", "VisibilityTimeout": 1}),
        (sqs.change_message_visibility_batch, {"Entries": [entry | {"VisibilityTimeout": 1}]}),
        (sqs.list_dead_letter_source_queues, {}),
        (sqs.add_permission, {"Label": "x", "AWSAccountIds": ["1"], "Actions": ["*"]}),
        (sqs.remove_permission, {"Label": "x"}),
    ]
    for call, arguments in calls:
        assert refusal(call, QueueUrl=url, **arguments) == NO_QUEUE
    assert refusal(sqs.send_message, QueueUrl=f"{sqs_door.url}/000000000000/@metadata", MessageBody="x") == NO_QUEUE
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.get_queue_url(QueueName="none-of-that-name")


def test_a_queue_made_anew_is_empty(sqs: Any) -> None:
    name = new_name()
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="old")
    sqs.delete_queue(QueueUrl=url)
    assert sqs.create_queue(QueueName=name)["QueueUrl"] == url
    assert attributes_of(sqs, url, "ApproximateNumberOfMessages") == {"ApproximateNumberOfMessages": "0"}
    sqs.send_message(QueueUrl=url, MessageBody="new")
    assert [each["Body"] for each in receive(sqs, url, wait=5)] == ["new"]


def test_permissions_are_not_offered(sqs: Any) -> None:
    url = make_queue(sqs)
    added = refusal(sqs.add_permission, QueueUrl=url, Label="x", AWSAccountIds=["1"], Actions=["*"])
    removed = refusal(sqs.remove_permission, QueueUrl=url, Label="x")
    assert added[:2] == removed[:2] == ("AWS.SimpleQueueService.UnsupportedOperation", 400)


def test_a_purge_takes_what_is_ready_in_flight_and_delayed(sqs: Any, sqs_door: SqsDoor) -> None:
    url = make_queue(sqs)
    name = url.rpartition("/")[2]
    for body in ("a", "b", "c"):
        sqs.send_message(QueueUrl=url, MessageBody=body)
    sqs.send_message(QueueUrl=url, MessageBody="later", DelaySeconds=900)
    receive_all(sqs, url, 1)
    counts = (
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
    )
    assert list(attributes_of(sqs, url, *counts).values()) == ["2", "1", "1"]
    sqs.purge_queue(QueueUrl=url)
    assert list(attributes_of(sqs, url, *counts).values()) == ["0", "0", "0"]
    assert receive(sqs, url) == []
    sqs.send_message(QueueUrl=url, MessageBody="after")
    (message,) = receive(sqs, url, wait=5)
    delete(sqs, url, message)

    async def read(b: Any) -> set[bytes]:
        return {record.value for record in await b.read(name)}

    assert sqs_door.ask(read) == {b"a", b"b", b"c", b"after"}  # for all who read the topic otherwise it is all there


def test_an_endpoint_may_have_another_account_and_an_address_with_a_path(sqs_door: SqsDoor) -> None:
    client = client_of(sqs_door.url + "/some/where")
    url = make_queue(client)
    client.send_message(QueueUrl=url.replace("000000000000", "123456789012"), MessageBody="x")
    assert [each["Body"] for each in receive(client, url, wait=5)] == ["x"]


def test_redrive_policies_that_cannot_be(sqs: Any) -> None:
    url, other, fifo = make_queue(sqs), make_queue(sqs), make_fifo(sqs)
    arn, own = arn_of(sqs, other), arn_of(sqs, url)

    def refused(policy: Any) -> str:
        text = policy if isinstance(policy, str) else json.dumps(policy)
        found = refusal(sqs.set_queue_attributes, QueueUrl=url, Attributes={"RedrivePolicy": text})
        assert found[:2] == ("InvalidParameterValue", 400)
        return found.message.partition("Reason: ")[2]

    assert refused("nonsense") == "Redrive policy is not a valid JSON map."
    assert refused({"maxReceiveCount": 3}).endswith("deadLetterTargetArn.")
    assert refused({"deadLetterTargetArn": arn}).endswith("maxReceiveCount.")
    assert refused({"deadLetterTargetArn": "dummy", "maxReceiveCount": 3}) == "Invalid value for deadLetterTargetArn."
    assert refused({"deadLetterTargetArn": arn + "x", "maxReceiveCount": 3}) == "Dead letter target does not exist."
    assert refused({"deadLetterTargetArn": arn, "maxReceiveCount": 0}).startswith("Invalid value for maxReceiveCount")
    assert refused({"deadLetterTargetArn": arn, "maxReceiveCount": 1001}).startswith("Invalid value for maxReceive")
    assert "same type" in refused({"deadLetterTargetArn": arn_of(sqs, fifo), "maxReceiveCount": 3})
    assert "its own" in refused({"deadLetterTargetArn": own, "maxReceiveCount": 3})
    assert "RedrivePolicy" not in attributes_of(sqs, url)


def test_a_queue_may_say_for_whom_it_takes_dead_letters(sqs: Any) -> None:
    first, second, target = make_queue(sqs), make_queue(sqs), make_queue(sqs)
    policy = json.dumps({"deadLetterTargetArn": arn_of(sqs, target), "maxReceiveCount": "3"})

    def allow(**what: Any) -> None:
        sqs.set_queue_attributes(QueueUrl=target, Attributes={"RedriveAllowPolicy": json.dumps(what)})

    def use(url: str) -> None:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": policy})

    allow(redrivePermission="denyAll")
    assert refusal(lambda: use(first)).code == "InvalidParameterValue"
    allow(redrivePermission="byQueue", sourceQueueArns=[arn_of(sqs, first)])
    use(first)
    assert refusal(lambda: use(second)).code == "InvalidParameterValue"
    allow(redrivePermission="allowAll")
    use(second)
    assert sqs.list_dead_letter_source_queues(QueueUrl=target)["queueUrls"] == sorted([first, second])
    assert json.loads(attributes_of(sqs, first)["RedrivePolicy"]) == {
        "deadLetterTargetArn": arn_of(sqs, target),
        "maxReceiveCount": 3,
    }
    sqs.set_queue_attributes(QueueUrl=first, Attributes={"RedrivePolicy": ""})
    assert sqs.list_dead_letter_source_queues(QueueUrl=target)["queueUrls"] == [second]
