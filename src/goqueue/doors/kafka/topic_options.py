"""Options of topics as Kafka's tools see them: their types, and the broker's options that stand behind them."""

from collections.abc import Iterator, Mapping
from dataclasses import fields

from goqueue.doors.kafka.config_entries import Chosen, Option, Source
from goqueue.model.kept_options import KEPT_OPTIONS, OptionType
from goqueue.model.option_words import OPTION_WORDS
from goqueue.model.topics import DEFAULTS, OPTION_NAMES, Topic, TopicOptions, dotted, parse_option

INTS = (
    "max.message.bytes",
    "max.unpacked.bytes",
    "min.insync.replicas",
    "segment.bytes",
    "attempts.max",
    "unacked.max",
)
LISTS = ("cleanup.policy",)
TYPES: Mapping[type, OptionType] = {str: OptionType.STRING, int: OptionType.LONG, float: OptionType.DOUBLE}

BROKER_NAMES: Mapping[str, str] = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.type": "compression.type",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "durability": "goqueue.durability",
}
"""What a broker calls the value that a topic gets which does not say otherwise."""


def type_of(name: str) -> OptionType:
    if name in KEPT_OPTIONS:
        return KEPT_OPTIONS[name].type
    if name in LISTS:
        return OptionType.LIST
    return OptionType.INT if name in INTS else TYPES[type(getattr(DEFAULTS, OPTION_NAMES[name]))]


def default_of(name: str, defaults: TopicOptions) -> str:
    """What a topic gets that does not say otherwise."""
    return KEPT_OPTIONS[name].default if name in KEPT_OPTIONS else str(getattr(defaults, OPTION_NAMES[name]))


def options_of(topic: Topic, defaults: TopicOptions) -> Iterator[Option]:
    for name in (*(dotted(each.name) for each in fields(TopicOptions)), *KEPT_OPTIONS):
        chosen = broker_values(name, defaults)
        if name in topic.overrides:
            own = Chosen(name, str(parse_option(name, topic.overrides[name])), Source.TOPIC)
            chosen = [own, *chosen]
        yield Option(name, type_of(name), chosen, OPTION_WORDS[name])


def broker_values(name: str, defaults: TopicOptions) -> list[Chosen]:
    """What the settings of this node say about a topic option, if they say anything, and the default."""
    shown = BROKER_NAMES.get(name, name)
    value, default = default_of(name, defaults), default_of(name, DEFAULTS)
    chosen = [Chosen(shown, value, Source.STATIC_BROKER)] if value != default else []
    return [*chosen, Chosen(shown, default, Source.DEFAULT)]
