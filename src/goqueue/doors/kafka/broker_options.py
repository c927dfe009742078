"""This broker's settings as Kafka's tools see them. They are read when a node starts, so none can be changed here."""

from collections.abc import Iterator

from goqueue.doors.kafka.config_entries import Chosen, Option, Source
from goqueue.doors.kafka.request import Request
from goqueue.doors.kafka.topic_options import BROKER_NAMES, broker_values, type_of
from goqueue.machines.groups import commands
from goqueue.machines.groups.consumer.facts import CONSUMER_GROUPS
from goqueue.machines.groups.share import facts as share_commands
from goqueue.model.kept_options import OptionType
from goqueue.model.option_words import OPTION_WORDS

HTTP_ADDRESS = "goqueue.http.address"
"""Where the HTTP interface can be reached."""
MINUTE_MS = 60_000
LOG_LEVEL = "goqueue.log.level"
LOG_LEVELS = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR"}


def broker_options(request: Request) -> list[Option]:
    found = {option.name: option for option in _all(request)}
    return [found[name] for name in sorted(found)]


def _all(request: Request) -> Iterator[Option]:
    broker, endpoint = request.broker, request.endpoint
    defaults = broker.topics.defaults
    for name, shown in BROKER_NAMES.items():
        yield Option(shown, type_of(name), broker_values(name, defaults), OPTION_WORDS[name], is_read_only=True)
    for one in broker.settings:
        source = Source.DEFAULT if one.value == one.default else Source.STATIC_BROKER
        chosen = [Chosen(one.name, one.value, source)]
        if source is not Source.DEFAULT:
            chosen.append(Chosen(one.name, one.default, Source.DEFAULT))
        yield Option(one.name, one.type, chosen, one.words, is_read_only=True)
    address = f"{endpoint.listener.name}://{endpoint.host}:{endpoint.port}"
    yield _fixed("advertised.listeners", address, "Where clients are told to connect.", Source.STATIC_BROKER)
    yield _fixed("broker.id", broker.identity.node_id, "Number of this broker.", Source.STATIC_BROKER)
    yield _fixed("node.id", broker.identity.node_id, "Number of this broker.", Source.STATIC_BROKER)
    if endpoint.http:
        yield _fixed(HTTP_ADDRESS, endpoint.http, "Where the HTTP interface can be reached.", Source.STATIC_BROKER)
    yield from _groups()


def _groups() -> Iterator[Option]:
    classic, consumer = commands.GroupOptions(), CONSUMER_GROUPS
    share = share_commands.ShareGroupOptions()
    for name, value, words in (
        ("group.min.session.timeout.ms", classic.session_ms_min, "Shortest session of a classic member."),
        ("group.max.session.timeout.ms", classic.session_ms_max, "Longest session of a classic member."),
        ("group.max.size", classic.size_max, "Most members of a group."),
        ("offset.metadata.max.bytes", classic.metadata_chars_max, "Longest text that may go with an offset."),
        (
            "offsets.retention.minutes",
            classic.offset_retention_ms // MINUTE_MS,
            "How long an empty group keeps offsets.",
        ),
        (
            "group.consumer.session.timeout.ms",
            consumer.session_ms,
            "Session of a member, without an option of its group.",
        ),
        ("group.consumer.heartbeat.interval.ms", consumer.heartbeat_ms, "Pause between the heartbeats of a member."),
        ("group.share.session.timeout.ms", share.session_ms, "Session of a member, without an option of its group."),
        ("group.share.heartbeat.interval.ms", share.heartbeat_ms, "Pause between the heartbeats of a member."),
    ):
        yield _fixed(name, value, words, Source.DEFAULT)


def _fixed(name: str, value: str | int, words: str, source: Source) -> Option:
    kind = OptionType.INT if isinstance(value, int) else OptionType.STRING
    return Option(name, kind, [Chosen(name, str(value), source)], words, is_read_only=True)


def loggers(request: Request) -> list[Option]:
    """One: there is one level for all that a node logs."""
    level = next((one.value for one in request.broker.settings if one.name == LOG_LEVEL), "info")
    shown = LOG_LEVELS.get(level, level.upper())
    words = "Least severe event that is logged."
    return [Option("root", OptionType.STRING, [Chosen("root", shown, Source.LOGGER)], words, is_read_only=True)]
