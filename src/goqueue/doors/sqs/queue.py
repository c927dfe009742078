"""A queue as SQS sees it: a topic, the options it has, and what SQS wants to know that is no option of a topic."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Self

import msgspec

from goqueue.broker.view.view import View
from goqueue.model.topics import UNLIMITED, Topic, TopicOptions
from goqueue.records.dead_letters import dead_letter_topic
from goqueue.wire.sqs.checks import BYTES_MAX
from goqueue.wire.sqs.queue_attributes import DEFAULTS, FIFO_DEFAULTS, NUMBERS, RedriveAllowPolicy, parse_allow_policy

GROUP = "sqs"
"""The queue group of all that is received through this door."""
ATTRIBUTES, TAGS = "sqs.attributes", "sqs.tags"
CREATED, MODIFIED = "CreatedTimestamp", "LastModifiedTimestamp"
SECOND_MS = 1000
DEDUP_MS = 5 * 60 * 1000
IN_FLIGHT_MAX, FIFO_IN_FLIGHT_MAX = 120_000, 20_000
BATCH_BYTES_MAX = BYTES_MAX + 64 * 1024
"""The largest message, with all that a record says beside it."""

_decode = msgspec.json.Decoder(dict[str, str]).decode


class Queue(NamedTuple):
    topic: Topic
    options: TopicOptions
    labels: Mapping[str, str]
    """Attributes that are no options."""

    @classmethod
    def of(cls, topic: Topic, defaults: TopicOptions) -> Self:
        return cls(topic, topic.options(defaults), read_label(topic, ATTRIBUTES))

    @property
    def name(self) -> str:
        return self.topic.name

    @property
    def is_fifo(self) -> bool:
        return self.labels.get("FifoQueue") == "true"

    def number(self, name: str) -> int:
        """An attribute that is kept as it is."""
        text = self.labels.get(name, DEFAULTS[name])
        return int(text) if text.isascii() and text.isdigit() else int(DEFAULTS[name])

    @property
    def message_bytes_max(self) -> int:
        return min(self.number("MaximumMessageSize"), self.options.max_message_bytes)

    @property
    def dead_letters(self) -> str | None:
        """The queue for messages that were received in vain; None: they are delivered for ever."""
        if not self.options.attempts_max:
            return None
        named = self.options.dead_letter_topic
        return named if named and named != self.name else dead_letter_topic(self.name)

    @property
    def allow_policy(self) -> RedriveAllowPolicy | None:
        return parse_allow_policy(self.labels.get("RedriveAllowPolicy", ""))

    @property
    def tags(self) -> dict[str, str]:
        return read_label(self.topic, TAGS)

    def settings(self) -> dict[str, str]:
        """What can be set, but for the policies; as it holds now, whoever set it."""
        retention_ms = self.options.retention_ms
        longest = NUMBERS["MessageRetentionPeriod"][1]
        found = {
            "DelaySeconds": str(self.number("DelaySeconds")),
            "MaximumMessageSize": str(self.message_bytes_max),
            "MessageRetentionPeriod": str(longest if retention_ms == UNLIMITED else retention_ms // SECOND_MS),
            "ReceiveMessageWaitTimeSeconds": str(self.number("ReceiveMessageWaitTimeSeconds")),
            "VisibilityTimeout": str(self.options.lease_ms // SECOND_MS),
        }
        if self.is_fifo:
            found |= {name: self.labels.get(name, default) for name, default in FIFO_DEFAULTS.items()}
        return found


class KnownQueues:
    """What topics are as queues: worked out once for each, until it changes."""

    def __init__(self) -> None:
        self._revision = -1
        self._known: dict[str, Queue] = {}

    def of(self, topic: Topic, broker: View) -> Queue:
        found = self._known.get(topic.name)
        if found is None or found.topic is not topic:
            revision = broker.topics.image.revision
            if revision != self._revision:
                self._revision, self._known = revision, {}  # of topics that are gone nobody asks again
            found = self._known[topic.name] = Queue.of(topic, broker.topics.defaults)
        return found


class AllQueues:
    """Every topic that a client may see, but our own."""

    def __init__(self, broker: View, known: KnownQueues) -> None:
        self._broker = broker
        self._known = known

    def find(self, name: str) -> Queue | None:
        topic = self._broker.topics.image.topics.get(name)
        return None if topic is None else self._known.of(topic, self._broker)

    def __iter__(self) -> Iterator[Queue]:
        for topic in self._broker.topics.image.topics.values():
            yield self._known.of(topic, self._broker)


def read_label(topic: Topic, name: str) -> dict[str, str]:
    """Anybody who may change options may have written anything there."""
    try:
        return _decode(topic.overrides.get(name, "{}"))
    except msgspec.DecodeError:
        return {}


def write_label(values: Mapping[str, str]) -> str:
    return msgspec.json.encode(dict(values)).decode()


def new_options(is_fifo: bool) -> dict[str, str]:
    """Of a topic that is made as a queue. Times are ours, so that nobody's clock makes a message old."""
    options = {
        "attempts.max": "0",
        "expired.messages": "drop",
        "max.message.bytes": str(BATCH_BYTES_MAX),
        "message.timestamp.type": "LogAppendTime",
        "unacked.max": str(FIFO_IN_FLIGHT_MAX if is_fifo else IN_FLIGHT_MAX),
    }
    if is_fifo:
        options |= {"lease.order": "key", "delay.order": "hold_key", "dedup.ms": str(DEDUP_MS)}
    else:
        options["fair.by"] = "key"  # a message group is a sender; whoever names none is served as before
    return options


def options_of(attributes: Mapping[str, str]) -> dict[str, str]:
    """The options of a topic that attributes stand for."""
    options = {}
    if "VisibilityTimeout" in attributes:
        options["lease.ms"] = str(max(1, int(attributes["VisibilityTimeout"]) * SECOND_MS))
    if "MessageRetentionPeriod" in attributes:  # segments go late; nobody shall receive what is in them
        retention_ms = str(int(attributes["MessageRetentionPeriod"]) * SECOND_MS)
        options |= {"retention.ms": retention_ms, "message.ttl.ms": retention_ms}
    if "DeduplicationScope" in attributes:
        options["dedup.scope"] = "key" if attributes["DeduplicationScope"] == "messageGroup" else "topic"
    return options


KEPT = (
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "DelaySeconds",
    "FifoQueue",
    "FifoThroughputLimit",
    "MaximumMessageSize",
    "ReceiveMessageWaitTimeSeconds",
    "RedriveAllowPolicy",
)
"""Attributes for which there is no option."""
