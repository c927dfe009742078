"""What all loads need of librdkafka: its settings, what it counted, and a topic of their own."""

import json
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import RESOURCE_TOPIC, NewTopic

from goqueue.cli.bench.broker import Broker
from goqueue.cli.bench.errors import BenchFailed
from goqueue.cli.bench.load import Load
from goqueue.cli.progress import Progress
from goqueue.client import Security
from goqueue.client.security import OAUTHBEARER, revealed
from goqueue.node.values import AddressKind

HELLO_S_MAX = 5
ANSWER_S_MAX = 15
FAREWELL_S_MAX = 2
"""For a broker that has just failed: the person who waits wants to know why, soon."""
STALL_S_MAX = 60
"""Without one message more, a load has failed."""
STEP_S = 0.1
"""Of waiting: after each, Ctrl+C is heard and a lost broker noticed."""
COUNTS_MS = 100
TOKEN_S = 300
"""A token is asked for again after this long; what gives it knows better when it ends."""

REFUSALS = (KafkaError._AUTHENTICATION, KafkaError._SSL)  # noqa: SLF001  these are their public names

T = TypeVar("T")


class Traffic(NamedTuple):
    """Requests of one kind, and the mean size of each and of its reply."""

    requests: int
    request_bytes: int
    reply_bytes: int


class Client:
    """The callbacks of one producer or consumer."""

    def __init__(self, broker: Broker, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self.settings: dict[str, Any] = {
            **_how_to_reach(broker),
            "error_cb": self._on_error,
            "socket.nagle.disable": True,
        }
        self.counting: dict[str, Any] = {"stats_cb": self._on_counts, "statistics.interval.ms": COUNTS_MS}
        """Settings for `traffic`. Not for a measurement of single messages: counting is work in their way."""
        self._failure = ""
        self._counts = ""
        self._progress_s = now_s()

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001  that is its public name
            self._failure = f"the broker was lost: {error.str()}"

    def on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        """For messages of which only the failures matter."""
        if error is not None:
            self._failure = f"a message was not taken: {error.str()}"

    def _on_counts(self, text: str) -> None:
        self._counts = text

    def check(self, *, has_progress: bool) -> None:
        """Call it whenever there was, or could have been, progress."""
        if self._failure:
            raise BenchFailed(self._failure)
        now_s = self._now_s()
        if has_progress:
            self._progress_s = now_s
        elif now_s > self._progress_s + STALL_S_MAX:
            raise BenchFailed(f"the broker answered nothing for {STALL_S_MAX} s")

    def traffic(self, api: str, messages: int, poll: Callable[[float], object]) -> Traffic:
        """After `messages` went through: what librdkafka counted of it, which it tells a moment later."""
        self._counts = ""
        moved = {"Produce": "txmsgs", "Fetch": "rxmsgs"}[api]
        deadline_s = time.monotonic() + ANSWER_S_MAX
        while True:
            poll(STEP_S)
            counts = json.loads(self._counts or "{}")
            if counts.get(moved, 0) >= messages:
                break
            if time.monotonic() > deadline_s:
                raise BenchFailed(f"librdkafka does not say how many requests it took: {counts.get(moved)} messages")
        brokers = counts["brokers"].values()
        requests = sum(broker["req"][api] for broker in brokers)
        sent, received = (sum(broker[name] for broker in brokers) for name in ("txbytes", "rxbytes"))
        return Traffic(requests, max(1, round(sent / requests)), max(1, round(received / requests)))


class Topic(NamedTuple):
    name: str
    partitions: int
    durability: str | None
    admin: AdminClient

    def place(self, partition: int, offset: int = 0) -> TopicPartition:
        return TopicPartition(self.name, partition, offset)

    def ends(self) -> list[int]:
        """The next offset of each partition."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {self.place(partition): latest for partition in range(self.partitions)}
        answers = self.admin.list_offsets(asked, request_timeout=ANSWER_S_MAX)
        ends = {place.partition: int(answer.result().offset) for place, answer in answers.items()}
        return [ends[partition] for partition in range(self.partitions)]

    def check_stored(self, messages: int) -> int:
        stored = sum(self.ends())
        if stored != messages:
            raise BenchFailed(f"{messages} messages were acknowledged, but {stored} are stored")
        return stored


@contextmanager
def own_topic(broker: Broker, load: Load, progress: Progress) -> Iterator[Topic]:
    """A new topic, deleted afterwards, so that a load counts only its own messages."""
    admin = _reach(broker)
    name = f"goqueue-bench-{secrets.token_hex(6)}"
    config = {} if load.durability is None else {"durability": load.durability}
    new = NewTopic(name, load.partitions, -1, config=config)
    _wait(admin.create_topics([new], request_timeout=ANSWER_S_MAX)[name], "cannot make a topic")
    answer_s_max = FAREWELL_S_MAX
    try:
        yield Topic(name, load.partitions, _durability(admin, name), admin)
        answer_s_max = ANSWER_S_MAX
    finally:
        try:
            admin.delete_topics([name], request_timeout=answer_s_max)[name].result()
        except KafkaException as error:
            if broker.process is None:  # our own goes with all it has
                progress.note(f"topic {name} could not be deleted: {error.args[0].str()}")


def _how_to_reach(broker: Broker) -> dict[str, Any]:
    said: dict[str, Any] = {
        "bootstrap.servers": broker.address,
        "client.id": "goqueue-bench",
        "log_level": 0,  # what goes wrong is said once, by us
    }
    return said if broker.security is None else said | options_of(broker.security)


def options_of(security: Security) -> dict[str, Any]:
    """As librdkafka has them."""
    kind = "SASL_" if security.has_credentials else ""
    said: dict[str, Any] = {"security.protocol": f"{kind}{'SSL' if security.tls else 'PLAINTEXT'}"}
    for name, file in (
        ("ssl.ca.location", security.ca_file),
        ("ssl.certificate.location", security.cert_file),
        ("ssl.key.location", security.key_file),
    ):
        if file is not None:
            said[name] = str(file)
    if security.key_password is not None:
        said["ssl.key.password"] = revealed(security.key_password)
    if security.token is not None:
        said |= {"sasl.mechanism": OAUTHBEARER, "oauth_cb": lambda _: (security.token_text(), time.time() + TOKEN_S)}
    elif security.has_credentials:
        mechanism, user, password = security.sasl
        said |= {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
    return said


def _reach(broker: Broker) -> AdminClient:
    """A plain connection first: it fails at once and says why, where librdkafka would go on trying."""
    address, refused = broker.address, ""

    def on_error(error: KafkaError) -> None:
        nonlocal refused
        if error.code() in REFUSALS:
            refused = error.str()

    try:
        socket.create_connection(AddressKind().parse(address), timeout=HELLO_S_MAX).close()
    except OSError as error:
        raise BenchFailed(f"cannot reach a broker at {address}: {error.strerror or error}") from error
    admin = AdminClient(_how_to_reach(broker) | {"error_cb": on_error})
    try:
        admin.list_topics(timeout=HELLO_S_MAX)
    except KafkaException as error:
        if refused:
            raise BenchFailed(f"the broker at {address} refuses: {refused}") from error
        raise BenchFailed(f"what listens at {address} does not answer as a Kafka broker would") from error
    return admin


def _durability(admin: AdminClient, topic: str) -> str | None:
    """Of a topic that was just made: Kafka knows it a moment after it said so."""
    resource = ConfigResource(RESOURCE_TOPIC, topic)
    deadline_s = time.monotonic() + ANSWER_S_MAX
    while True:
        answer = admin.describe_configs([resource], request_timeout=ANSWER_S_MAX)[resource]
        error = answer.exception()
        is_unknown = isinstance(error, KafkaException) and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        if not is_unknown or time.monotonic() > deadline_s:
            break
        time.sleep(STEP_S)
    entry = _wait(answer, "cannot read the options of a topic").get("durability")
    return None if entry is None else str(entry.value)


def _wait(answer: "Future[T]", complaint: str) -> T:
    try:
        return answer.result()
    except KafkaException as error:
        raise BenchFailed(f"{complaint}: {error.args[0].str()}") from error
