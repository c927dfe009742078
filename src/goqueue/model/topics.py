"""Topics and their options, and the image: all topics of a cluster at one revision, never changed, only replaced."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType

from goqueue.model.errors import InvalidName, InvalidOption
from goqueue.model.kept_options import INT_MAX, KEPT_OPTIONS, LONG_MAX
from goqueue.model.names import LEDGER_PREFIX, check_kept_name
from goqueue.model.placements import NOWHERE, NodeInfo, Placement
from goqueue.model.schemas import SUBJECT_CHARS_MAX
from goqueue.model.table_options import DEFAULT, check_catalog, check_partition, check_upsert

DAY_MS = 24 * 60 * 60 * 1000
UNLIMITED = -1


@dataclass(frozen=True)
class TopicOptions:
    """One field per option; its dotted name is what Kafka clients call it. Checked when read from text."""

    cleanup_policy: str = "delete"
    compression_type: str = "producer"
    """Kept and shown. Batches stay as their producer compressed them, whatever it says."""
    delete_retention_ms: int = DAY_MS
    max_compaction_lag_ms: int = LONG_MAX
    max_message_bytes: int = 1024 * 1024 + 12
    max_unpacked_bytes: int = 16 * 1024 * 1024
    """What the records of one compressed batch may take, where a topic makes the broker look at them on publish."""
    message_timestamp_after_max_ms: int = LONG_MAX
    """How far in the future a record may say it is. Kafka's default is an hour; here a node whose clock is slow would
    refuse every good producer."""
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    retention_bytes: int = UNLIMITED
    retention_ms: int = 7 * DAY_MS
    segment_bytes: int = 64 * 1024 * 1024
    segment_ms: int = 7 * DAY_MS
    durability: str = "disk"
    partitioner: str = "murmur2"
    """How the partition of a key is chosen: by all who publish, so that records of one key keep their order."""
    schema_validation: str = "off"
    """What happens to records that do not fit their schema."""
    schema_subject: str = "{topic}-value"
    """Whose schemas these are. Where nobody chose, and there is no such subject, it is the one called {topic}."""
    # What queue groups do with this topic.
    delivery: str = "on"
    """Paused: nothing is leased. What is leased already may be settled, and all is taken in."""
    lease_ms: int = 30_000
    attempts_max: int = 5
    unacked_max: int = 1000
    retry_backoff_ms: int = 1000
    retry_backoff_max_ms: int = 60_000
    lease_order: str = "none"
    delay_order: str = "pass"
    message_ttl_ms: int = UNLIMITED
    expired_messages: str = "dead-letter"
    lane_weights: str = "50,25,15,7,3"
    lane_boost_ms: int = 30_000
    fair_by: str = "none"
    """What names the senders between whom a lane is shared: the header gq-fairness-key, or the key."""
    wishes: str = "plain"
    """Where to look for delivery wishes: in uncompressed batches (plain), in compressed ones too (all), nowhere."""
    dead_letter_topic: str = ""
    """Where dead letters go; empty: to {topic}.dlq."""
    dedup_ms: int = 0
    """How long a `gq-dedup-id` is remembered; 0: it says nothing."""
    dedup_scope: str = "topic"
    """Within what a `gq-dedup-id` is the same: the topic, or the records of one key."""
    # What `goqueue pipeline serve` does with this topic.
    table: str = "none"
    """Whether the topic is kept as a table of Iceberg as well."""
    table_mode: str = "append"
    """A row for each record, or the last one of each key."""
    table_schema: str = "raw"
    """The value as one column, or the columns of its schema in the registry."""
    table_partition: str = "default"
    """By what the files of the table are divided: by day, and by key where there is one row of each."""
    table_freshness_ms: int = 60_000
    table_retention_ms: int = UNLIMITED
    table_catalog: str = ""
    """A name that the service knows; empty: the service's own."""

    @cached_property
    def is_plain(self) -> bool:
        """Nobody looks at the records of an uncompressed batch in which no wish was seen."""
        looks_at_keys = self.cleanup_policy != "delete" or (self.wishes != "off" and self.delay_order != "pass")
        is_checked = self.schema_validation != "off" or self.bounds_time
        return not looks_at_keys and not is_checked

    @cached_property
    def bounds_time(self) -> bool:
        """A record may be refused for its timestamp."""
        nearest = min(self.message_timestamp_after_max_ms, self.message_timestamp_before_max_ms)
        return nearest < LONG_MAX and self.message_timestamp_type == "CreateTime"


CHOICES: Mapping[str, tuple[str, ...]] = {
    "delivery": ("on", "paused"),
    "cleanup_policy": ("delete", "compact", "compact,delete"),
    "compression_type": ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    "message_timestamp_type": ("CreateTime", "LogAppendTime"),
    "durability": ("disk", "os"),
    "partitioner": ("murmur2", "murmur3", "crc32", "round_robin"),
    "lease_order": ("none", "key"),
    "delay_order": ("pass", "hold_key"),
    "expired_messages": ("dead-letter", "drop"),
    "wishes": ("plain", "all", "off"),
    "fair_by": ("none", "header", "key"),
    "dedup_scope": ("topic", "key"),
    "schema_validation": ("off", "reject", "dead-letter"),
    "table": ("none", "iceberg"),
    "table_mode": ("append", "upsert"),
    "table_schema": ("raw", "registry"),
}
LOWEST: Mapping[str, float] = {
    "max_compaction_lag_ms": 1,
    "max_message_bytes": 1,
    "max_unpacked_bytes": 1,
    "min_insync_replicas": 1,
    "retention_bytes": UNLIMITED,
    "retention_ms": UNLIMITED,
    "message_ttl_ms": UNLIMITED,
    "segment_bytes": 16 * 1024,
    "segment_ms": 1,
    "lease_ms": 1,
    "unacked_max": 1,
    "table_freshness_ms": 100,
    "table_retention_ms": UNLIMITED,
}
HIGHEST: Mapping[str, float] = {
    "min_cleanable_dirty_ratio": 1,
    "attempts_max": 200,
    "max_unpacked_bytes": 64 * 1024 * 1024,
    "min_insync_replicas": INT_MAX,
}
DEFAULTS = TopicOptions()
_TYPES = {each.name: type(getattr(DEFAULTS, each.name)) for each in fields(TopicOptions)}


def dotted(field_name: str) -> str:
    return field_name.replace("_", ".")


OPTION_NAMES = {dotted(name): name for name in _TYPES}
LABELS = ("sqs.attributes", "sqs.tags")
"""Texts that a door keeps with a topic and nobody else reads. Stored as options are, and no options."""
LABEL_CHARS_MAX = 64 * 1024


def parse_option(name: str, text: str) -> object:
    """The value of option `name` (dotted); InvalidOption says what is wrong."""
    field_name = OPTION_NAMES.get(name)
    if field_name is None:
        if name in KEPT_OPTIONS:
            return KEPT_OPTIONS[name].check(name, text)
        if name in LABELS:
            return _check_label(name, text)
        raise InvalidOption(f"unknown option {name!r}")
    text = text.replace(", ", ",")
    if field_name == "cleanup_policy" and text == "delete,compact":
        text = "compact,delete"
    if field_name in CHOICES:
        if text not in CHOICES[field_name]:
            raise InvalidOption(f"{name} is {text!r}, but must be one of {', '.join(CHOICES[field_name])}")
        return text
    if field_name in _CHECKS:
        return _CHECKS[field_name](name, text)
    try:
        value: float = _TYPES[field_name](text)
    except ValueError:
        raise InvalidOption(f"{name} is {text!r}, but must be a number") from None
    lowest, highest = LOWEST.get(field_name, 0), HIGHEST.get(field_name, LONG_MAX)
    if not lowest <= value <= highest:
        raise InvalidOption(f"{name} is {text}, but must be from {lowest} to {highest}")
    return value


def check_together(overrides: Mapping[str, str]) -> None:
    """What each option allows and both together do not."""
    least, most = "min.compaction.lag.ms", "max.compaction.lag.ms"
    if least in overrides and most in overrides and int(overrides[least]) > int(overrides[most]):
        raise InvalidOption(f"{least} is {overrides[least]}, but must not be over {most} ({overrides[most]})")
    check_upsert(overrides.get("table.mode", ""), overrides.get("table.partition", DEFAULT))


def _check_weights(name: str, text: str) -> str:
    parts = text.split(",")
    if len(parts) != 5 or not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise InvalidOption(f"{name} is {text!r}, but must be five whole numbers over zero, such as 50,25,15,7,3")
    return text


def _check_subject(name: str, text: str) -> str:
    if not 0 < len(text) <= SUBJECT_CHARS_MAX or not text.isprintable():
        raise InvalidOption(f"{name} is {text[:40]!r}, but must be 1 to {SUBJECT_CHARS_MAX} characters to be seen")
    return text


def _check_topic(name: str, text: str) -> str:
    if text:
        try:
            check_kept_name(text)
        except InvalidName as mistake:
            raise InvalidOption(f"{name}: {mistake}") from None
    return text


def _check_label(name: str, text: str) -> str:
    if len(text) > LABEL_CHARS_MAX:
        raise InvalidOption(f"{name} has {len(text)} characters, at most {LABEL_CHARS_MAX} are kept")
    return text


_CHECKS = {
    "lane_weights": _check_weights,
    "dead_letter_topic": _check_topic,
    "schema_subject": _check_subject,
    "table_partition": check_partition,
    "table_catalog": check_catalog,
}


def minimum_in_sync(overrides: Mapping[str, str], copies: int) -> int:
    """How many copies must be in sync for a write to be acknowledged: two, from three copies on, without a wish."""
    wish = overrides.get(dotted("min_insync_replicas"))
    return int(wish) if wish is not None else min(2, max(1, copies - 1))


@dataclass(frozen=True)
class Topic:
    name: str
    id: bytes
    """Sixteen random bytes: a topic made again under the same name has another."""
    partitions: int
    overrides: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The options that were set, dotted names and text."""
    placements: tuple[Placement, ...] = ()
    """Of each partition; empty where nobody asks, as for the broker's own logs."""
    replication_factor: int = 1

    def options(self, defaults: TopicOptions) -> TopicOptions:
        changes = {
            OPTION_NAMES[name]: parse_option(name, text)
            for name, text in self.overrides.items()
            if name in OPTION_NAMES  # else it is kept for others
        }
        if self.replication_factor > 1:
            changes["min_insync_replicas"] = minimum_in_sync(self.overrides, self.replication_factor)
        return replace(defaults, **changes)  # type: ignore[arg-type]  # parse_option gives each field's type

    def has_other_options(self, before: "Topic") -> bool:
        """Than it had; or another number of copies, from which some follow."""
        return self.overrides != before.overrides or self.replication_factor != before.replication_factor

    def placed_anew(self, before: "Topic | None") -> list[int]:
        """The partitions that are placed otherwise than before, and new ones. A placement that is as it was is the same
        object, so that a change of a few among thousands costs next to nothing."""
        if before is None or before.id != self.id:
            return list(range(len(self.placements)))
        known = len(before.placements)
        pairs = zip(self.placements, before.placements)
        return [*(at for at, (now, was) in enumerate(pairs) if now is not was), *range(known, len(self.placements))]


@dataclass(frozen=True)
class Image:
    """Invariant: never changed. Whoever holds one sees one moment."""

    revision: int = 0
    topics: Mapping[str, Topic] = field(default_factory=lambda: MappingProxyType({}))
    nodes: Mapping[int, NodeInfo] = field(default_factory=lambda: MappingProxyType({}))
    """Those that are alive."""
    ledgers: Mapping[str, Topic] = field(default_factory=lambda: MappingProxyType({}))
    """The broker's own logs that a cluster spreads over its nodes, such as `@groups`: no client finds them among
    `topics`. Empty on a node that is its own cluster, which has all of them."""

    def find(self, name: str) -> Topic | None:
        """A topic or a ledger: not for clients."""
        return (self.ledgers if name.startswith(LEDGER_PREFIX) else self.topics).get(name)

    def placement(self, topic: str, partition: int) -> Placement:
        """Of a topic or a ledger. NOWHERE: there is no such partition, or nobody knows where it is."""
        known = self.find(topic)
        is_known = known is not None and 0 <= partition < len(known.placements)
        return known.placements[partition] if known is not None and is_known else NOWHERE

    def leader_of(self, topic: str, partition: int) -> NodeInfo | None:
        """None: nobody leads it, or not in this life."""
        placement = self.placement(topic, partition)
        node = self.nodes.get(placement.leader)
        return node if node is not None and node.incarnation == placement.incarnation else None

    def placed_anew(self, before: "Image") -> Iterator[tuple[str, int]]:
        """The partitions of topics and ledgers that are placed otherwise than in an earlier image, and new ones."""
        for now, was in ((self.topics, before.topics), (self.ledgers, before.ledgers)):
            for name, topic in now.items():
                known = was.get(name)
                if topic is not known:
                    for number in topic.placed_anew(known):
                        yield name, number

    def by_id(self, topic_id: bytes) -> Topic | None:
        return self._ids.get(topic_id)

    @cached_property
    def _ids(self) -> Mapping[bytes, Topic]:
        return {topic.id: topic for topic in self.topics.values()}

    def replaced(
        self, revision: int, changes: Mapping[str, Topic | None], nodes: Mapping[int, NodeInfo] | None = None
    ) -> "Image":
        """The next image: with these topics in place of those of the same names; None: without. With these nodes, if
        they have changed. What it costs, beside two copies of tables, goes by the number of changes."""
        topics, ids, ledgers = {**self.topics}, {**self._ids}, self.ledgers
        for name, topic in changes.items():
            if name.startswith(LEDGER_PREFIX):
                others = {key: each for key, each in ledgers.items() if key != name}
                ledgers = MappingProxyType(others if topic is None else {**others, name: topic})
                continue
            before = topics.get(name)
            if before is not None:
                del ids[before.id]
            if topic is None:
                topics.pop(name, None)
            else:
                topics[name] = ids[topic.id] = topic
        image = Image(revision, MappingProxyType(topics), self.nodes if nodes is None else nodes, ledgers)
        image.__dict__["_ids"] = ids
        return image


@dataclass(frozen=True)
class TopicsChange:
    """From one image to the next."""

    before: Image
    image: Image
    names: frozenset[str]
    """Of topics that are new, changed or gone; all others are as they were."""

    @property
    def gone(self) -> list[Topic]:
        """Also those that were made again under their name."""
        known = [self.before.topics[name] for name in sorted(self.names) if name in self.before.topics]
        return [topic for topic in known if self.image.by_id(topic.id) is None]

    @property
    def present(self) -> list[Topic]:
        """Those that are new or changed."""
        return [self.image.topics[name] for name in sorted(self.names) if name in self.image.topics]
