"""The SQS door on a broker in memory, with time that goes by itself, in a thread of its own: boto3 blocks."""

import asyncio
import itertools
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from goqueue.testing import MemoryBroker, broker

T = TypeVar("T")

_numbers = itertools.count()


def client_of(url: str, **config: Any) -> Any:
    """A boto3 client that gives up at once: what fails shall be seen."""
    return boto3.client(
        "sqs",
        region_name="goqueue",
        endpoint_url=url,
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=30, **config),
    )


class SqsDoor:
    def __init__(self) -> None:
        self.url = ""
        self.kafka = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._broker: MemoryBroker | None = None
        self._stop: asyncio.Event | None = None
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._main, name="sqs door")

    def start(self) -> "SqsDoor":
        self._thread.start()
        self._ready.result(30)
        return self

    def stop(self) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as failure:
            if not self._ready.done():
                self._ready.set_exception(failure)
            raise

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with broker(clock="real", kafka=True, http=True) as b:
            self._broker = b
            self.url, self.kafka = b.http, b.kafka
            self._ready.set_result(None)
            await self._stop.wait()

    def ask(self, call: Callable[[MemoryBroker], Coroutine[Any, Any, T]]) -> T:
        """Something of the broker inside, from the test's own thread."""
        assert self._loop is not None
        assert self._broker is not None
        return asyncio.run_coroutine_threadsafe(call(self._broker), self._loop).result(30)

    def wait_until(self, holds: Callable[[MemoryBroker], bool]) -> None:
        """Something that the broker will do by itself."""

        async def look(b: MemoryBroker) -> None:
            loop = asyncio.get_running_loop()
            while not holds(b):
                turn: asyncio.Future[None] = loop.create_future()
                loop.call_later(0.005, turn.set_result, None)
                await turn

        self.ask(look)


def new_name(prefix: str = "queue", suffix: str = "") -> str:
    return f"{prefix}-{next(_numbers)}{suffix}"


def make_queue(client: Any, suffix: str = "", **attributes: str) -> str:
    """A queue with a name of its own; returns its URL."""
    made = client.create_queue(QueueName=new_name(suffix=suffix), Attributes=attributes)
    return str(made["QueueUrl"])


def make_fifo(client: Any, **attributes: str) -> str:
    return make_queue(client, ".fifo", FifoQueue="true", **attributes)


def arn_of(client: Any, url: str) -> str:
    return str(attributes_of(client, url, "QueueArn")["QueueArn"])


def attributes_of(client: Any, url: str, *names: str) -> dict[str, str]:
    found = client.get_queue_attributes(QueueUrl=url, AttributeNames=list(names or ("All",)))
    return dict(found.get("Attributes", {}))


def receive(client: Any, url: str, most: int = 10, wait: int = 0, **options: Any) -> list[dict[str, Any]]:
    found = client.receive_message(QueueUrl=url, MaxNumberOfMessages=most, WaitTimeSeconds=wait, **options)
    return list(found.get("Messages", []))


def receive_all(client: Any, url: str, count: int, wait: int = 5, **options: Any) -> list[dict[str, Any]]:
    """Until there are so many; each long poll gives what there is."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        more = receive(client, url, min(10, count - len(found)), wait, **options)
        assert more, f"only {len(found)} of {count} messages came"
        found += more
    return found


def delete(client: Any, url: str, *messages: dict[str, Any]) -> None:
    for message in messages:
        client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


class Refusal(NamedTuple):
    code: str
    status: int
    message: str


def refusal(call: Callable[..., Any], **arguments: Any) -> Refusal:
    """The error that a call gets; one that succeeds is a failure."""
    try:
        answer = call(**arguments)
    except ClientError as error:
        about = error.response
        return Refusal(about["Error"]["Code"], about["ResponseMetadata"]["HTTPStatusCode"], about["Error"]["Message"])
    raise AssertionError(f"was answered with {answer}")
