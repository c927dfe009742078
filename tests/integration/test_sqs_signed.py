"""boto3 with the id and the secret of an API key, against a closed door."""

import asyncio
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from goqueue.broker.accounts.logins import Logins
from goqueue.broker.accounts.sealing import Sealing
from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from goqueue.doors.http.door import HttpDoor
from goqueue.doors.sqs.app import TARGET, SqsApp
from goqueue.model.secret import Secret
from goqueue.testing import broker
from tests.unit.doors.http.test_credentials import done_of


def client(url: str, key_id: str, secret: str) -> Any:
    return boto3.client(
        "sqs",
        endpoint_url=url,
        region_name="eu-west-1",
        aws_access_key_id=key_id,
        aws_secret_access_key=secret,
        config=Config(retries={"max_attempts": 0}),
    )


def use(url: str, key_id: str, secret: str) -> None:
    sqs = client(url, key_id, secret)
    queue = sqs.create_queue(QueueName="letters")["QueueUrl"]
    sqs.send_message(QueueUrl=queue, MessageBody="three äpples")
    (got,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=20)["Messages"]
    assert got["Body"] == "three äpples"
    sqs.delete_message(QueueUrl=queue, ReceiptHandle=got["ReceiptHandle"])
    for wrong_id, wrong_secret, code in (
        (key_id, secret[::-1], "SignatureDoesNotMatch"),
        ("AKIAIOSFODNN7EXAMPLE", secret, "InvalidClientTokenId"),
    ):
        with pytest.raises(ClientError) as refused:
            client(url, wrong_id, wrong_secret).list_queues()
        assert refused.value.response["Error"]["Code"] == code
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_boto3_signs_with_an_api_key() -> None:
    async def inside() -> None:
        async with broker(clock="real") as b:
            node = b.broker
            node.accounts.sealing = Sealing(node.dice, Secret(bytes(32)))
            gate = Gate(node, logins=Logins(node.accounts, node.clock, node.dice, b"secret"), is_closed=True)
            roles = ("producer", "consumer", "operator")
            made = await done_of(lambda done: node.accounts.create_key("shop", roles, 0, {}, done, is_for_sqs=True))
            door = HttpDoor(HttpApp(gate, by_header={TARGET: SqsApp(gate)}))
            _, port = await door.open("127.0.0.1", 0)
            await asyncio.to_thread(use, f"http://127.0.0.1:{port}", made.text.key_id, made.text.secret.reveal())
            await door.close()

    asyncio.run(inside())
