"""boto3 and a real node: what it was told survives a kill, and a stop lets nobody wait in vain."""

import json
import re
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.integration.process import Node
from tests.integration.sqs_door import arn_of, attributes_of, client_of, delete, receive, receive_all

PAGE = Path(__file__).parents[2] / "docs" / "sqs.md"


def killed(node: Node) -> Any:
    node.kill()
    node.start()
    return client_of(node.url)


def test_queues_messages_and_ids_survive_a_kill(own_node: Node) -> None:
    sqs = client_of(own_node.url)
    failed = sqs.create_queue(QueueName="failed.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    policy = json.dumps({"deadLetterTargetArn": arn_of(sqs, failed), "maxReceiveCount": 5})
    wanted = {"FifoQueue": "true", "ContentBasedDeduplication": "true", "DelaySeconds": "0", "RedrivePolicy": policy}
    url = sqs.create_queue(QueueName="orders.fifo", Attributes=wanted, tags={"team": "shop"})["QueueUrl"]
    plain = sqs.create_queue(QueueName="plain", Attributes={"VisibilityTimeout": "600"})["QueueUrl"]
    sent = sqs.send_message(QueueUrl=url, MessageBody="once", MessageGroupId="g")
    later = sqs.send_message(QueueUrl=plain, MessageBody="later", DelaySeconds=2)
    for body in ("deleted", "kept"):
        sqs.send_message(QueueUrl=plain, MessageBody=body)
    before = {each["Body"]: each for each in receive_all(sqs, plain, 2)}
    delete(sqs, plain, before["deleted"])

    sqs = killed(own_node)
    assert json.loads(attributes_of(sqs, url)["RedrivePolicy"])["maxReceiveCount"] == 5
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"team": "shop"}
    again = sqs.send_message(QueueUrl=url, MessageBody="once", MessageGroupId="g")
    assert (again["MessageId"], again["SequenceNumber"]) == (sent["MessageId"], sent["SequenceNumber"])
    (message,) = receive(sqs, url, wait=10)
    assert message["MessageId"] == sent["MessageId"]

    found = {each["Body"]: each for each in receive_all(sqs, plain, 2, wait=10)}
    assert set(found) == {"kept", "later"}
    assert found["kept"]["MessageId"] == before["kept"]["MessageId"]
    assert found["later"]["MessageId"] == later["MessageId"]
    delete(sqs, plain, *found.values())
    assert receive(sqs, plain) == []


def test_a_message_received_before_a_restart_can_be_deleted_after_it(own_node: Node) -> None:
    sqs = client_of(own_node.url)
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x")
    (message,) = receive(sqs, url, wait=10)
    sqs = killed(own_node)
    delete(sqs, url, message)
    assert attributes_of(sqs, url, "ApproximateNumberOfMessages") == {"ApproximateNumberOfMessages": "0"}
    assert receive(sqs, url) == []


def test_a_node_that_stops_answers_those_who_wait(own_node: Node) -> None:
    sqs = client_of(own_node.url)
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    polling = HTTPConnection(own_node.url.removeprefix("http://"), timeout=30)
    body = json.dumps({"QueueUrl": url, "WaitTimeSeconds": 20})
    polling.request("POST", "/", body, {"X-Amz-Target": "AmazonSQS.ReceiveMessage"})
    sqs.list_queues()  # by the time that this is answered the other request has come
    own_node.stop()
    answer = polling.getresponse()
    assert (answer.status, answer.read()) == (200, b"{}")
    polling.close()


def test_the_example_of_the_page_does_what_it_says(own_node: Node) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert examples
    for example in examples:
        assert "http://127.0.0.1:8080" in example
        exec(compile(example.replace("http://127.0.0.1:8080", own_node.url), str(PAGE), "exec"), {})
