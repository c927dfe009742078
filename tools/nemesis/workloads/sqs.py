"""The same as for queues over HTTP, by boto3 and SQS."""

import itertools
import threading
import time
from typing import Any, ClassVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError

from tools.nemesis.workloads.common import ANSWER_S_MAX, BROKEN_FROM, DRAIN_S_MAX, NotDone, Run, Unanswered
from tools.nemesis.workloads.queues import LEASE_S, SQS_DOOR, HttpQueue


class SqsClient:
    """To one node; to the next one when that does not answer. It never tries again by itself."""

    def __init__(self, run: Run, first: int) -> None:
        self._urls = itertools.cycle(run.http[first % len(run.http) :] + run.http[: first % len(run.http)])
        self._turn()

    def _turn(self) -> None:
        config = Config(retries={"total_max_attempts": 1}, read_timeout=ANSWER_S_MAX, connect_timeout=ANSWER_S_MAX)
        self._url = next(self._urls)
        session = boto3.session.Session()
        self._sqs = session.client(
            "sqs",
            region_name="goqueue",
            endpoint_url=self._url,
            aws_access_key_id="any",
            aws_secret_access_key="any",  # noqa: S106  nothing asks for it
            config=config,
        )

    def call(self, name: str, queue: str, **given: Any) -> Any:
        if queue:
            given["QueueUrl"] = f"{self._url}/000000000000/{queue}"
        try:
            return getattr(self._sqs, name)(**given)
        except EndpointConnectionError as error:
            self._turn()
            raise NotDone(str(error)) from error
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", BROKEN_FROM)
            if status < BROKEN_FROM:
                raise NotDone(str(error)) from error
            self._turn()
            raise Unanswered(str(error)) from error
        except BotoCoreError as error:
            self._turn()
            raise Unanswered(repr(error)) from error


class SqsQueue(HttpQueue):
    name = "sqs"
    door = SQS_DOOR
    queue = "nemesis-sqs"
    done = "delete"
    attributes: ClassVar[dict[str, str]] = {}

    def prepare(self, run: Run) -> None:
        client = SqsClient(run, 0)
        give_up = time.monotonic() + DRAIN_S_MAX
        pause = threading.Event()
        while True:
            try:
                client.call("create_queue", "", QueueName=self.queue, Attributes=self.attributes)
            except (NotDone, Unanswered):
                if time.monotonic() > give_up:
                    raise
                pause.wait(0.5)
            else:
                return

    def _client(self, run: Run, first: int) -> Any:
        return SqsClient(run, first)

    def _send(self, client: Any, message_id: str) -> None:
        client.call("send_message", self.queue, MessageBody=message_id)

    def _receive(self, client: Any) -> list[tuple[str, str]]:
        told = client.call(
            "receive_message", self.queue, MaxNumberOfMessages=5, WaitTimeSeconds=1, VisibilityTimeout=LEASE_S
        )
        return [(each["Body"], each["ReceiptHandle"]) for each in told.get("Messages", ())]

    def _settle(self, client: Any, receipt: str, how: str) -> None:
        if how == self.done:
            client.call("delete_message", self.queue, ReceiptHandle=receipt)
        else:
            client.call("change_message_visibility", self.queue, ReceiptHandle=receipt, VisibilityTimeout=0)


class SqsFifoQueue(SqsQueue):
    """Here a deletion is refused while another worker has the message, so that every answer counts."""

    name = "sqs-fifo"
    door = "sqs fifo"
    queue = "nemesis-sqs.fifo"
    done = "fifo delete"
    attributes: ClassVar[dict[str, str]] = {"FifoQueue": "true"}

    def _send(self, client: Any, message_id: str) -> None:
        client.call(
            "send_message",
            self.queue,
            MessageBody=message_id,
            MessageGroupId=message_id,
            MessageDeduplicationId=message_id,
        )
