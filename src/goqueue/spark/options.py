"""Every option of the data source: its name, what may be given, where it counts, and what it means.

The names are those of Spark's Kafka source where it has one. Spark gives options as text, their names in any case.
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from goqueue.client.security import MECHANISMS
from goqueue.model.errors import InvalidMoment
from goqueue.model.moments import parse_duration_ms
from goqueue.spark.errors import SparkError
from goqueue.spark.kafka_options import is_taken, refused


class Part(StrEnum):
    """What an option belongs to."""

    BATCH = "batch read"
    STREAM = "stream read"
    QUEUE = "queue mode"
    TABLE = "table"
    SEGMENTS = "segments"
    SINK = "write"
    SETTLE = "settling write"


ROWS = (Part.BATCH, Part.STREAM)
READS = (Part.BATCH, Part.STREAM, Part.QUEUE)
BROKERS = (*READS, Part.SINK, Part.TABLE, Part.SETTLE)
TRUST = (*BROKERS, Part.SEGMENTS)
ALL_ROWS = (*ROWS, Part.SEGMENTS)
ALL_READS = (*READS, Part.SEGMENTS)
BATCHES = (Part.BATCH, Part.SEGMENTS)

TRANSACTION_MS_MAX = 15 * 60 * 1000
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
BAD_ROWS = ("permissive", "failfast", "deadletter")

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)i?b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def text(given: str) -> str:
    if not given.strip():
        raise ValueError("it is empty")
    return given


def number(given: str) -> int:
    if not given.strip().isdigit() or int(given) < 1:
        raise ValueError(f"{given!r} is no whole number above 0")
    return int(given)


def count(given: str) -> int:
    if not given.strip().isdigit():
        raise ValueError(f"{given!r} is no whole number from 0")
    return int(given)


def yes_or_no(given: str) -> bool:
    if given.lower() not in ("true", "false"):
        raise ValueError(f"{given!r} is neither true nor false")
    return given.lower() == "true"


def size(given: str) -> int:
    """Bytes: 1048576, 512k, 10MiB."""
    found = _SIZE.fullmatch(given.strip())
    if found is None:
        raise ValueError(f"{given!r} is no size such as 1048576, 512k or 10MiB")
    return int(found[1]) << (10 * _POWERS[found[2].lower()])


def duration(given: str) -> int:
    """Milliseconds: 250, 10s, 15 minutes."""
    try:
        return parse_duration_ms(int(given) if given.isdigit() else given)
    except InvalidMoment as error:
        raise ValueError(str(error)) from None


def transaction_time(given: str) -> int:
    """Milliseconds: 60000, 5m; 15m at most."""
    found = duration(given)
    if not 0 < found <= TRANSACTION_MS_MAX:
        raise ValueError(f"{given!r} is not above 0 and up to 15m, as brokers take it")
    return found


def names(given: str) -> tuple[str, ...]:
    found = tuple(filter(None, (one.strip() for one in given.split(","))))
    if not found:
        raise ValueError("it names nothing")
    return found


def document(given: str) -> Any:
    try:
        return json.loads(given)
    except ValueError as error:
        raise ValueError(f"it is no JSON: {error}") from None


def one_of(*allowed: str) -> Callable[[str], str]:
    def check(given: str) -> str:
        if given.lower() not in allowed:
            raise ValueError(f"{given!r} is none of {', '.join(allowed)}")
        return given.lower()

    check.__doc__ = ", ".join(allowed)
    return check


def protocol(given: str) -> str:
    if given.upper() not in PROTOCOLS:
        raise ValueError(f"{given!r} is none of {', '.join(PROTOCOLS)}")
    return given.upper()


def mechanism(given: str) -> str:
    if given.upper() not in MECHANISMS:
        raise ValueError(f"{given!r} is none of {', '.join(MECHANISMS)}")
    return given.upper()


def pem(given: str) -> str:
    if given.upper() != "PEM":
        raise ValueError(f"{given!r} cannot be read: give a file with PEM")
    return "PEM"


class Option(NamedTuple):
    name: str
    parse: Callable[[str], Any]
    parts: tuple[Part, ...]
    meaning: str
    default: str | None = None


OPTIONS: tuple[Option, ...] = (
    Option("kafka.bootstrap.servers", text, BROKERS, "the brokers, host:port with commas between"),
    Option(
        "goqueue.server",
        text,
        TRUST,
        "the HTTP address, or those of several nodes with commas, for what needs it; otherwise the broker is asked",
    ),
    Option("kafka.security.protocol", protocol, BROKERS, "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
    Option("kafka.sasl.mechanism", mechanism, BROKERS, "SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN (default SCRAM-SHA-256)"),
    Option("kafka.sasl.jaas.config", text, BROKERS, 'the login: `... required username="alice" password="...";`'),
    Option("kafka.ssl.truststore.location", text, TRUST, "file with the authorities of brokers (PEM)"),
    Option("kafka.ssl.truststore.type", pem, TRUST, "PEM; there is no other", "PEM"),
    Option("kafka.ssl.keystore.location", text, TRUST, "file with the certificate to show, and its key (PEM)"),
    Option("kafka.ssl.keystore.type", pem, TRUST, "PEM; there is no other", "PEM"),
    Option("kafka.ssl.certificate.location", text, TRUST, "file with the certificate alone (PEM), as in librdkafka"),
    Option("kafka.ssl.key.location", text, TRUST, "file with its key (PEM)"),
    Option("kafka.ssl.key.password", text, TRUST, "password of that key, if it has one"),
    Option("kafka.client.id", text, BROKERS, "what the broker's logs and quotas call the query", "goqueue-spark"),
    Option("kafka.request.timeout.ms", duration, BROKERS, "how long a broker may take to answer, or be away", "60s"),
    Option("goqueue.api.key", text, TRUST, "an API key, for Kafka and HTTP; instead of a login"),
    Option("goqueue.api.key.file", text, TRUST, "file of the driver with that key in its first line"),
    Option("goqueue.tenant", text, TRUST, "the tenant that an admin of the cluster acts for"),
    Option("subscribe", names, ALL_READS, 'topics, with commas between; `load("orders")` says the same'),
    Option("subscribePattern", text, ALL_READS, "all topics whose name matches this regular expression"),
    Option("assign", document, ROWS, 'partitions, as JSON: {"orders": [0, 1]}'),
    Option("startingOffsets", text, ALL_ROWS, 'earliest, latest, or JSON: {"orders": {"0": 23, "1": -2}}'),
    Option("startingTimestamp", text, ALL_ROWS, "from this moment on: milliseconds since 1970, RFC 3339, or -10m"),
    Option("startingOffsetsByTimestamp", document, ALL_ROWS, 'moments: {"orders": {"0": 1700000000000}}'),
    Option(
        "startingOffsetsByTimestampStrategy",
        one_of("error", "latest"),
        ROWS,
        "where nothing is that young: fail, or start at the end",
        "error",
    ),
    Option("endingOffsets", text, BATCHES, "latest, or JSON as for startingOffsets", "latest"),
    Option("endingTimestamp", text, BATCHES, "up to this moment, without it"),
    Option("endingOffsetsByTimestamp", document, BATCHES, "a moment for each partition"),
    Option("maxOffsetsPerTrigger", number, (Part.STREAM,), "at most so many offsets in a micro-batch"),
    Option("maxRecordsPerTrigger", number, (Part.QUEUE,), "at most so many messages leased for a micro-batch", "10000"),
    Option("maxBytesPerTrigger", size, (Part.STREAM,), "about so many bytes in a micro-batch"),
    Option("minOffsetsPerTrigger", number, (Part.STREAM,), "wait until so many offsets are there"),
    Option("maxTriggerDelay", duration, (Part.STREAM,), "but no longer than this", "15m"),
    Option("minPartitions", number, ROWS, "at least so many Spark partitions: large ones are split"),
    Option("maxRecordsPerPartition", number, ROWS, "at most so many offsets in a Spark partition"),
    Option("kafka.max.partition.fetch.bytes", size, ROWS, "at most so many bytes in an answer, or one batch", "8MiB"),
    Option("kafka.fetch.max.bytes", size, ROWS, "the same: an answer is of one partition", "8MiB"),
    Option("kafka.fetch.max.wait.ms", duration, ROWS, "how long a broker may wait for what is not there yet", "500"),
    Option("failOnDataLoss", yes_or_no, ROWS, "fail when offsets that were wanted are gone", "true"),
    Option("includeHeaders", yes_or_no, (*ALL_READS, Part.SINK), "a column `headers`; a write needs no word", "false"),
    Option("columns", names, ALL_READS, "these columns only, in this order"),
    Option("groupIdPrefix", text, (Part.STREAM,), "the query's position is reported under this and the query's id"),
    Option("kafka.group.id", text, READS, "the group under which a query's position is reported, or that leases"),
    Option(
        "kafka.isolation.level",
        one_of("read_committed", "read_uncommitted"),
        ALL_ROWS,
        "whether open and aborted transactions are seen",
        "read_committed",
    ),
    Option(
        "valueFormat",
        one_of("raw", "json", "avro", "protobuf"),
        ALL_READS,
        "decode the value by the registry",
        "raw",
    ),
    Option("valueSubject", text, ALL_READS, "the registry's subject; `<topic>-value` otherwise"),
    Option(
        "badRows",
        one_of(*BAD_ROWS),
        ALL_READS,
        "rows whose value does not fit: null columns and a reason, the end of the query, or the dead letters",
        "permissive",
    ),
    Option(
        "mode",
        one_of("stream", "queue", "settle"),
        (*ALL_READS, Part.SETTLE),
        "`queue`: lease rows; of a write, `settle`: settle them",
        "stream",
    ),
    Option("visibility", duration, (Part.QUEUE,), "how long rows stay leased; kept up while the batch runs", "5m"),
    Option(
        "table",
        one_of("dlq", "traces", "steps", "schedules", "leases", "groups", "lag", "topics"),
        (Part.TABLE,),
        "the queue's own state",
    ),
    Option("topic", text, (Part.TABLE, Part.SINK), "of a table: only this topic; of a write: all rows go there"),
    Option("group", text, (Part.TABLE,), "only this group"),
    Option("limit", number, (Part.TABLE,), "at most so many rows"),
    Option(
        "read",
        one_of("brokers", "segments"),
        ALL_READS,
        "`segments`: a data directory or backup, without a broker",
        "brokers",
    ),
    Option(
        "activeSegments",
        yes_or_no,
        (Part.SEGMENTS,),
        "also the last segment of each partition, which a running broker writes to",
        "false",
    ),
    Option("checkpointLocation", text, (Part.SINK, Part.SETTLE), "Spark's own: where a query remembers how far it is"),
    Option("path", text, tuple(Part), "what `load()` or `save()` was given"),
    Option(
        "partitioner",
        one_of("murmur2", "murmur3", "crc32", "round_robin"),
        (Part.SINK,),
        "what chooses a partition by key, instead of what the topic's option `partitioner` says",
    ),
    Option(
        "kafka.compression.type",
        one_of("none", "gzip", "snappy", "lz4", "zstd"),
        (Part.SINK,),
        "how batches are packed",
        "lz4",
    ),
    Option(
        "kafka.transaction.timeout.ms",
        transaction_time,
        (Part.SINK,),
        "how long a batch may take before the broker gives it up; 15m at most",
        "15m",
    ),
    Option("kafka.delivery.timeout.ms", duration, (Part.SINK,), "how long a message may take to be acknowledged", "2m"),
    Option("kafka.batch.size", size, (Part.SINK,), "at most so many bytes in a batch, before it is packed", "768k"),
    Option("txnAppId", text, (Part.SINK,), "who writes, if a write that is repeated shall be recognised"),
    Option("txnVersion", count, (Part.SINK,), "the how many-th write of txnAppId this is: each higher than the last"),
    Option("queryName", text, (Part.SINK, Part.SETTLE), "Spark's own"),
)
_BY_NAME = {option.name.lower(): option for option in OPTIONS}


class Options:
    """Those that were given, checked, as values. SparkError: some are wrong; all problems are told at once."""

    def __init__(self, given: Mapping[str, str], part: Part, *or_of: Part) -> None:
        """`or_of`: these may be meant as well; it is not known yet."""
        self.part = part
        self.unused: list[str] = []
        """Of Spark's own source for Kafka: they say nothing here."""
        self._values: dict[str, Any] = {}
        problems = []
        for name, value in given.items():
            option = _BY_NAME.get(name.lower())
            if is_taken(name) and (option is None or not {part, *or_of} & set(option.parts)):
                problems += refused(name)
                self.unused.append(name)
            elif option is None:
                problems.append(f"there is no option {name!r}{_did_you_mean(name)}")
            elif not {part, *or_of} & set(option.parts):
                problems.append(f"{option.name} is no option of a {part}, but of {_listed(option.parts)}")
            else:
                try:
                    self._values[option.name] = option.parse(value)
                except ValueError as error:
                    problems.append(f"{option.name}: {error}")
        if problems:
            raise SparkError("; ".join(problems))

    def has(self, name: str) -> bool:
        """Given by the user, not by its default."""
        return name in self._values

    def get(self, name: str) -> Any:
        """Its value, the parsed default, or None."""
        if name in self._values:
            return self._values[name]
        option = _BY_NAME[name.lower()]
        return None if option.default is None else option.parse(option.default)

    def need(self, name: str) -> Any:
        value = self.get(name)
        if value is None:
            close = difflib.get_close_matches(name, self.unused, 1)
            hint = f", and {close[0]} is not it" if close else ""
            raise SparkError(f'a {self.part} needs .option("{name}", ...): {_BY_NAME[name.lower()].meaning}{hint}')
        return value


def part_of(given: Mapping[str, str], *, is_stream: bool) -> Part:
    """Which part of the source a read with these options is."""
    folded = {name.lower(): value.lower() for name, value in given.items()}
    if "table" in folded:
        return Part.TABLE
    if folded.get("read") == "segments":
        return Part.SEGMENTS
    if folded.get("mode") == "queue":
        return Part.QUEUE
    return Part.STREAM if is_stream else Part.BATCH


def wants_types(options: Options) -> bool:
    """Whether values are decoded by the registry."""
    return bool(options.get("valueFormat") != "raw")


def part_of_write(given: Mapping[str, str]) -> Part:
    """Which part of the source a write with these options is."""
    is_settling = any(name.lower() == "mode" and value.lower() == "settle" for name, value in given.items())
    return Part.SETTLE if is_settling else Part.SINK


def _did_you_mean(name: str) -> str:
    close = difflib.get_close_matches(name.lower(), _BY_NAME, 1)
    return f"; did you mean {_BY_NAME[close[0]].name}?" if close else ""


def _listed(parts: Iterable[Part]) -> str:
    return ", ".join(dict.fromkeys(parts))
