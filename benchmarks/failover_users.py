"""Users of a cluster for the benchmark of fail-over: each does one thing again and again, and notes when it was
answered. They have the settings that their libraries come with, but for what a person sets who wants to wait for
seconds and not for half a minute when a node does not answer.
"""

import asyncio
import itertools
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import confluent_kafka as ck
import httpx
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from goqueue.client.errors import ClientError as OurError
from goqueue.client.producer import Producer
from goqueue.client.worker import Worker
from tools.java_users import JavaUsers, Told

EVERY_S = 0.03
"""Between two messages to a partition: six partitions are 200 requests a second of a librdkafka, which puts one
partition into a request and has five under way. With more than a round trip allows, some partitions are served and
others are starved."""
ANSWER_S_MAX = 1.0
"""As docs/cluster.md advises who wants to wait for less than five seconds when a machine vanishes."""
LIBRDKAFKA: dict[str, Any] = {"log_level": 0, "socket.timeout.ms": int(ANSWER_S_MAX * 1000)}
JAVA = dict.fromkeys(("request.timeout.ms", "socket.connection.setup.timeout.ms"), int(ANSWER_S_MAX * 1000))
JAVA_START_S_MAX = 60.0
JAVA_ANSWERS = ("sent", "committed", "aborted", "read")
"""One of five transactions is aborted, as it was asked for."""
GROUP = "failover"
SQS_QUEUE = "failover-sqs"


class Noted:
    """When something was answered, by what it was about."""

    def __init__(self) -> None:
        self.times: dict[int, list[float]] = {}
        self._is_over = threading.Event()

    def answered(self, about: int = 0) -> None:
        self.times.setdefault(about, []).append(time.monotonic())

    def pause(self, seconds: float = EVERY_S) -> bool:
        """False: it is over."""
        return not self._is_over.wait(seconds)

    @property
    def is_over(self) -> bool:
        return self._is_over.is_set()

    def begin(self) -> None:
        self._thread = threading.Thread(target=self.run)
        self._thread.start()

    def end(self) -> None:
        self._is_over.set()
        self._thread.join(60)

    def run(self) -> None:
        raise NotImplementedError

    def rows(self, name: str) -> Mapping[str, "Noted"]:
        """By the names under which they are shown."""
        return {name: self}


class Librdkafka(Noted):
    """A message to each partition, acks=all, idempotent."""

    def __init__(self, servers: str, topic: str, partitions: Sequence[int]) -> None:
        super().__init__()
        settings = {"bootstrap.servers": servers, "enable.idempotence": True, "acks": "all"}
        self._producer = ck.Producer(settings | LIBRDKAFKA)
        self._topic, self._partitions = topic, partitions

    def run(self) -> None:
        while self.pause():
            for number in self._partitions:
                done = partial(self._done, number)
                with suppress(BufferError):
                    self._producer.produce(self._topic, b"x" * 100, partition=number, on_delivery=done)
            self._producer.poll(0)
        self._producer.flush(30)

    def _done(self, number: int, error: ck.KafkaError | None, _message: ck.Message) -> None:
        if error is None:
            self.answered(number)


class GroupMember(Noted):
    """Reads what the others publish, as the only member of a group, and commits each time."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__()
        settings = {"bootstrap.servers": servers, "group.id": GROUP, "auto.offset.reset": "latest"}
        self._consumer = ck.Consumer(settings | LIBRDKAFKA | {"enable.auto.commit": False})
        self._consumer.subscribe([topic])
        self.commits = Noted()

    def run(self) -> None:
        while not self.is_over:
            messages = [one for one in self._consumer.consume(1000, 0.05) if one.error() is None]
            for partition in {one.partition() for one in messages}:
                self.answered(partition or 0)
            if messages:
                with suppress(ck.KafkaException):
                    self._consumer.commit(asynchronous=False)
                    self.commits.answered()
        self._consumer.close()

    def rows(self, name: str) -> Mapping[str, Noted]:
        return {f"{name}: read": self, f"{name}: commit": self.commits}


class Transactions(Noted):
    """One after the other, to three partitions each."""

    def __init__(self, servers: str, topic: str, partitions: Sequence[int]) -> None:
        super().__init__()
        self._settings = {"bootstrap.servers": servers, "transactional.id": "failover"} | LIBRDKAFKA
        self._topic, self._partitions = topic, partitions

    def run(self) -> None:
        while not self.is_over:
            with suppress(ck.KafkaException):
                producer = ck.Producer(self._settings)
                producer.init_transactions(10)
                while self.pause():
                    self._one(producer)

    def _one(self, producer: ck.Producer) -> None:
        try:
            producer.begin_transaction()
            for number in self._partitions[:3]:
                producer.produce(self._topic, b"t" * 100, partition=number)
            producer.commit_transaction(15)
        except ck.KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(15)
        else:
            self.answered()


class Sqs(Noted):
    """boto3: a message is sent, received and deleted; by the next node when one does not answer. It does not wait for
    messages: `read_timeout` would have to be longer than that."""

    def __init__(self, urls: Sequence[str]) -> None:
        super().__init__()
        config = Config(retries={"total_max_attempts": 1}, read_timeout=ANSWER_S_MAX, connect_timeout=ANSWER_S_MAX)
        keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "goqueue"}
        session = boto3.session.Session()
        self._clients = [session.client("sqs", endpoint_url=url, config=config, **keys) for url in urls]

    def run(self) -> None:
        for sqs in itertools.cycle(self._clients):
            if self.is_over:
                return
            with suppress(BotoCoreError, ClientError):
                url = sqs.create_queue(QueueName=SQS_QUEUE)["QueueUrl"]
                while self.pause():
                    self._one(sqs, url)

    def _one(self, sqs: Any, url: str) -> None:
        sqs.send_message(QueueUrl=url, MessageBody="hello")
        told = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=5)
        for each in told.get("Messages", ()):
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
            self.answered()


class Java(Noted):
    """Some of Kafka's own clients, in one Java process, which tells when each was answered."""

    def __init__(self, users: Sequence[str], servers: str, topic: str, partitions: Sequence[int], errors: Path) -> None:
        super().__init__()
        self._users = users
        self._given = (servers.split(","), topic, partitions, errors)
        self._of: dict[str, Noted] = {user: Noted() for user in users}
        self._topic = topic

    def begin(self) -> None:
        every_ms = int(EVERY_S * 1000)
        self._java = JavaUsers(self._users, *self._given, heard=self._heard, every_ms=every_ms, settings=JAVA)
        give_up_s = time.monotonic() + JAVA_START_S_MAX  # Java needs long until it begins
        while not all(each.times for each in self._of.values()) and time.monotonic() < give_up_s:
            self.pause()

    def _heard(self, told: Told) -> None:
        if told.event in JAVA_ANSWERS and told.topic.startswith(self._topic):
            about = told.partition if told.topic == self._topic else 0
            self._of[told.user].times.setdefault(about, []).append(told.at_s)

    def end(self) -> None:
        self._java.end()

    def rows(self, name: str) -> Mapping[str, Noted]:
        return {name: self._of[self._users[0]]}


class JavaReaders(Java):
    """Groups of all three kinds. They read what the producer beside them publishes."""

    READERS = ("classic", "consumer", "share")

    def __init__(self, servers: str, topic: str, partitions: Sequence[int], errors: Path) -> None:
        super().__init__((*self.READERS, "producer"), servers, topic, partitions, errors)

    def rows(self, name: str) -> Mapping[str, Noted]:
        return {f"{name}: {user}": self._of[user] for user in self.READERS}


class Asynchronous(Noted):
    """Runs in a loop of its own thread."""

    def run(self) -> None:
        asyncio.run(self.work())

    async def work(self) -> None:
        raise NotImplementedError

    async def again(self, do: Callable[[], Awaitable[None]], every_s: float) -> None:
        """A new one each time, whether the one before was answered or not."""
        tasks: dict[asyncio.Task[None], None] = {}
        while not self.is_over:
            task = asyncio.ensure_future(do())
            tasks[task] = None
            task.add_done_callback(lambda done: tasks.pop(done, None))
            await asyncio.sleep(every_s)
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class OurProducer(Asynchronous):
    def __init__(self, servers: str, topic: str, partitions: Sequence[int]) -> None:
        super().__init__()
        self._servers, self._topic, self._partitions = servers.split(","), topic, partitions

    async def work(self) -> None:
        turns = itertools.cycle(self._partitions)
        async with Producer(self._servers, request_timeout=f"{ANSWER_S_MAX:g}s") as producer:

            async def send() -> None:
                number = next(turns)
                with suppress(OurError):
                    await producer.send(self._topic, b"o" * 100, partition=number)
                    self.answered(number)

            await self.again(send, EVERY_S / len(self._partitions))


class OverHttp(Asynchronous):
    """Published through nodes that are not the victim, which pass it on: no client backs off here, so that what is
    measured is the cluster's own share. The nodes look for the next leader themselves, so there is no need for another
    time-out than the library's own."""

    def __init__(self, urls: Callable[[], Sequence[str]], topic: str, partitions: Sequence[int]) -> None:
        """`urls`: of nodes that are to be asked now."""
        super().__init__()
        self._urls, self._topic, self._partitions = urls, topic, partitions

    async def work(self) -> None:
        turns = itertools.cycle(self._partitions)
        async with httpx.AsyncClient(trust_env=False) as client:

            async def send() -> None:
                number = next(turns)
                url = f"{self._urls()[0]}/v1/topics/{self._topic}/messages"
                with suppress(httpx.HTTPError):
                    told = await client.post(url, json={"messages": [{"value": "h", "partition": number}]})
                    if told.is_success and not told.json().get("failed"):
                        self.answered(number)

            await self.again(send, EVERY_S / len(self._partitions) * 2)


class OurWorker(Asynchronous):
    """Handles jobs that it publishes itself, through a queue of a few partitions."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__()
        self._servers, self._topic = servers.split(","), topic

    async def work(self) -> None:
        worker = Worker(self._servers, self._topic, group="failover-workers", lease="5s")

        @worker.handle
        async def handle(_job: object) -> None:
            self.answered()

        async with Producer(self._servers, request_timeout=f"{ANSWER_S_MAX:g}s") as producer:

            async def send() -> None:
                with suppress(OurError):
                    await producer.send(self._topic, b"job")

            running = asyncio.ensure_future(worker.run())
            await self.again(send, EVERY_S)
            worker.stop()
            with suppress(OurError, TimeoutError):
                await asyncio.wait_for(running, 10)
