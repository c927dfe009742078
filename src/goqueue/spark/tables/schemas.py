"""The columns of every table. Names and types are a promise: others build reports on them."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

TEXT, INT, LONG, TIME, BYTES = StringType(), IntegerType(), LongType(), TimestampType(), BinaryType()
HEADERS = MapType(TEXT, BYTES)
COUNTS = MapType(TEXT, LONG)


def _columns(**types: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


_OFFSETS = _columns(partition=INT, earliest=LONG, next=LONG)
_SPAN = _columns(
    event=TEXT, timestamp=TIME, group=TEXT, consumer=TEXT, offset=LONG, duration_ms=LONG, error=TEXT, detail=TEXT
)

SCHEMAS: dict[str, StructType] = {
    "dlq": _columns(
        dlq_topic=TEXT,
        partition=INT,
        offset=LONG,
        topic=TEXT,
        original_partition=INT,
        original_offset=LONG,
        original_timestamp=TIME,
        group=TEXT,
        reason=TEXT,
        error=TEXT,
        attempts=INT,
        first_delivered_at=TIME,
        died_at=TIME,
        redrives=INT,
        priority=TEXT,
        key=BYTES,
        value=BYTES,
        headers=HEADERS,
    ),
    "traces": _columns(
        trace_id=TEXT,
        topic=TEXT,
        partition=INT,
        offset=LONG,
        started_at=TIME,
        ended_at=TIME,
        duration_ms=LONG,
        status=TEXT,
        spans=ArrayType(_SPAN),
    ),
    "steps": _columns(
        event=TEXT,
        timestamp=TIME,
        topic=TEXT,
        partition=INT,
        first_offset=LONG,
        last_offset=LONG,
        every=LONG,
        group=TEXT,
        consumer=TEXT,
        detail=TEXT,
        moved_to=LONG,
    ),
    "schedules": _columns(
        kind=TEXT,
        name=TEXT,
        topic=TEXT,
        partition=INT,
        offset=LONG,
        deliver_at=TIME,
        last_run=TIME,
        cron=TEXT,
        timezone=TEXT,
        state=TEXT,
    ),
    "leases": _columns(
        group=TEXT,
        topic=TEXT,
        partition=INT,
        first_offset=LONG,
        last_offset=LONG,
        messages=LONG,
        consumer=TEXT,
        delivery_count=INT,
        leased_at=TIME,
        lease_until=TIME,
    ),
    "groups": _columns(group=TEXT, type=TEXT, state=TEXT, members=INT, generation=LONG, topics=ArrayType(TEXT)),
    "lag": _columns(
        group=TEXT,
        type=TEXT,
        state=TEXT,
        topic=TEXT,
        partition=INT,
        committed_offset=LONG,
        settled_offset=LONG,
        end_offset=LONG,
        lag=LONG,
        owner=TEXT,
        client_id=TEXT,
        host=TEXT,
        ready=COUNTS,
        leased=COUNTS,
        waiting=LONG,
        dying=LONG,
        replaying=LONG,
        beyond=LONG,
        oldest_age_ms=LONG,
    ),
    "topics": _columns(
        topic=TEXT,
        topic_id=TEXT,
        partitions=INT,
        messages=LONG,
        size_bytes=LONG,
        options=MapType(TEXT, TEXT),
        offsets=ArrayType(_OFFSETS),
    ),
}
