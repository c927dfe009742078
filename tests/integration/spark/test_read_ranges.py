"""Where a batch read starts and ends, and what is said when it cannot: on a real node, without a JVM."""

import json
from typing import Any

import confluent_kafka as ck
import httpx
import pytest

from goqueue.spark.errors import SparkError
from goqueue.spark.read.splits import Range
from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node
from tests.integration.spark.reading import (
    START_MS,
    batch_reader,
    publish,
    ranges,
    read_all,
    rows,
    rows_in,
    sent,
)
from tests.integration.topics import admin_client

VALUES = [b"%d" % number for number in range(100)]


@pytest.fixture
def topic(node: Node, make_topic: CreateTopic) -> str:
    """Two partitions: a hundred messages, and ten."""
    name = make_topic(partitions=2)
    publish(node, name, VALUES)
    publish(node, name, VALUES[:10], partition=1)
    return name


def of(topic: str, first: Any, second: Any) -> str:
    return json.dumps({topic: {"0": first, "1": second}})


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ({}, (0, 100, 0, 10)),
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, (0, 100, 0, 10)),
        ({"startingOffsets": (5, -2), "endingOffsets": (50, -1)}, (5, 50, 0, 10)),
        ({"startingTimestamp": START_MS + 7}, (7, 100, 7, 10)),
        ({"startingTimestamp": START_MS + 7, "startingOffsetsByTimestamp": (0, 0)}, (7, 100, 7, 10)),
        ({"startingOffsetsByTimestamp": (START_MS + 20, "2023-11-14T22:13:20.003Z")}, (20, 100, 3, 10)),
        ({"startingOffsetsByTimestamp": (START_MS + 20, 0), "startingOffsets": "earliest"}, (20, 100, 0, 10)),
        ({"endingTimestamp": START_MS + 30}, (0, 30, 0, 10)),
        ({"endingOffsetsByTimestamp": (START_MS + 30, START_MS + 2)}, (0, 30, 0, 2)),
        (
            {"startingTimestamp": START_MS + 30, "startingOffsetsByTimestampStrategy": "latest"},
            (30, 100, 10, 10),
        ),
        ({"startingOffsets": (-5 % 1000, 0), "failOnDataLoss": "false"}, (100, 100, 0, 10)),
    ],
)
def test_bounds(node: Node, topic: str, options: dict[str, Any], bounds: tuple[int, int, int, int]) -> None:
    given = {name: of(topic, *value) if isinstance(value, tuple) else str(value) for name, value in options.items()}
    first, first_end, second, second_end = bounds
    wanted = [one for one in (Range(topic, 0, first, first_end), Range(topic, 1, second, second_end)) if one.offsets]
    reader = batch_reader(node, subscribe=topic, **given)
    splits = reader.partitions()
    assert ranges(splits) == wanted
    assert [(row.partition, row.offset, row.value) for row in rows(reader, splits)] == [
        (one.partition, offset, VALUES[offset]) for one in wanted for offset in range(one.start, one.end)
    ]


def test_a_moment_may_be_relative(node: Node, make_topic: CreateTopic) -> None:
    name = make_topic(partitions=1)
    publish(node, name, [b"old"])
    producer = ck.Producer({"bootstrap.servers": node.address})
    producer.produce(name, b"new")
    assert producer.flush(DEADLINE_S) == 0
    assert [row.value for row in read_all(node, subscribe=name, startingTimestamp="-10m")] == [b"new"]


def test_topics_are_chosen_by_name_pattern_or_partition(node: Node, make_topic: CreateTopic) -> None:
    first, second = make_topic(partitions=1), make_topic(partitions=2)
    publish(node, first, [b"1"])
    publish(node, second, [b"2"], partition=1)
    both = {(first, b"1"), (second, b"2")}

    def found(**options: str) -> set[tuple[str, bytes | None]]:
        return {(row.topic, row.value) for row in read_all(node, **options)}

    assert found(subscribe=f"{first},{second}") == found(path=f"{first}, {second}") == both
    assert found(subscribePattern=f"{first}|{second}") == both
    assert found(subscribePattern="nothing-.*") == set()
    assert found(assign=json.dumps({second: [1]})) == {(second, b"2")}
    assert found(assign=json.dumps({second: [0]})) == set()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscribe": "no-such"}, "there is no topic no-such"),
        ({"assign": '{"{topic}": [0, 7]}'}, r"topic {topic} has no partition 7, but 2: 0 to 1"),
        ({"assign": '{"{topic}": 0}'}, "assign: it must be partitions by topic"),
        ({"subscribePattern": "("}, "subscribePattern: '\\(' is no regular expression"),
        ({"subscribe": "{topic}", "path": "{topic}"}, r'subscribe and load\("..."\) both say which topics'),
        ({}, "say which topics"),
        ({"subscribe": "{topic}", "startingOffsets": '{"{topic}": {"0": 1}}'}, "nothing about partition 1 of topic"),
        (
            {"subscribe": "{topic}", "startingOffsets": '{"{topic}": {"0": 1, "1": 0, "2": 0}}'},
            "startingOffsets names partition 2 of topic {topic}, which the read is not about",
        ),
        (
            {"subscribe": "{topic}", "startingOffsets": '{"{topic}": {"0": 101, "1": 0}}'},
            "startingOffsets: offset 101 of partition 0 of topic {topic} is not there: it has 0 up to 100",
        ),
        (
            {"subscribe": "{topic}", "endingOffsets": '{"{topic}": {"0": 1000, "1": 0}}'},
            "endingOffsets: offset 1000 of partition 0",
        ),
        (
            {
                "subscribe": "{topic}",
                "startingOffsets": '{"{topic}": {"0": 9, "1": 0}}',
                "endingOffsets": '{"{topic}": {"0": 5, "1": 5}}',
            },
            "endingOffsets comes before startingOffsets in partition 0 of topic {topic}: 5 before 9",
        ),
        ({"subscribe": "{topic}", "startingOffsets": "first"}, "startingOffsets: 'first' is neither earliest nor"),
        ({"subscribe": "{topic}", "startingOffsets": "latest"}, "startingOffsets of a batch read cannot be latest"),
        ({"subscribe": "{topic}", "endingOffsets": "earliest"}, "endingOffsets of a batch read cannot be earliest"),
        ({"subscribe": "{topic}", "startingOffsets": '{"{topic}": {"0": "x"}}'}, "startingOffsets: 'x' is no offset"),
        ({"subscribe": "{topic}", "startingOffsets": '{"{topic}": {"a": 1}}'}, "startingOffsets: 'a' is no partition"),
        ({"subscribe": "{topic}", "startingTimestamp": "yesterday"}, "startingTimestamp: 'yesterday' is no time"),
        (
            {"subscribe": "{topic}", "startingTimestamp": str(START_MS + 30)},
            "startingTimestamp: nothing in partition 1 of topic {topic} is as young as 2023-11-14T22:13:20.030Z",
        ),
    ],
)
def test_what_cannot_be_read_is_said_before_anything_is(
    node: Node, topic: str, options: dict[str, str], said: str
) -> None:
    given = {name: value.replace("{topic}", topic) for name, value in options.items()}
    with pytest.raises(SparkError, match=said.replace("{topic}", topic)):
        batch_reader(node, **given).partitions()


def test_a_wrong_address_is_said(node: Node) -> None:
    reader = batch_reader(node, subscribe="x", kafka_bootstrap_servers="127.0.0.1:1")
    with pytest.raises(SparkError, match=r"no broker answers at kafka.bootstrap.servers='127.0.0.1:1'.*127.0.0.1:1"):
        reader.partitions()


def test_splits_are_cut_and_read_exactly(node: Node, topic: str) -> None:
    reader = batch_reader(node, subscribe=topic, minPartitions="7", maxRecordsPerPartition="30")
    splits = reader.partitions()
    assert len(splits) == 7
    assert max(one.offsets for one in ranges(splits)) <= 30
    assert sorted(row.offset for row in rows(reader, splits) if row.partition == 0) == list(range(100))


def test_what_retention_has_removed_is_told_or_gone_past(node: Node, make_topic: CreateTopic) -> None:
    name = make_topic(partitions=1)
    publish(node, name, VALUES)
    plain, lenient = (
        batch_reader(node, subscribe=name, failOnDataLoss=fails, startingOffsets=json.dumps({name: {"0": 0}}))
        for fails in ("true", "false")
    )
    splits = plain.partitions()
    admin_client(node.address).delete_records([ck.TopicPartition(name, 0, 60)])[ck.TopicPartition(name, 0)].result(
        DEADLINE_S
    )
    with pytest.raises(SparkError, match=f"partition 0 of topic {name}: offsets from 0 on are gone"):
        rows(plain, splits)
    with pytest.raises(SparkError, match=r"offset 0 of partition 0 .* is not there: it has 60 up to 100"):
        plain.partitions()
    assert [row.offset for row in rows(lenient, splits)] == list(range(60, 100))
    assert [row.offset for row in rows(lenient, lenient.partitions())] == list(range(60, 100))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec(node: Node, make_topic: CreateTopic, codec: str) -> None:
    name = make_topic(partitions=1)
    values = [b"%d" % number * 20 for number in range(500)]
    publish(node, name, values, config={"compression.type": codec})
    assert [row.value for row in read_all(node, subscribe=name)] == values


def test_aborted_and_open_transactions_are_not_seen(node: Node, make_topic: CreateTopic) -> None:
    name = make_topic(partitions=1)
    producer = ck.Producer({"bootstrap.servers": node.address, "transactional.id": name})
    producer.init_transactions(DEADLINE_S)
    for number, ends in enumerate(
        (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)
    ):
        producer.begin_transaction()
        for each in range(3):
            producer.produce(name, b"%d %d" % (number, each), partition=0)
        producer.flush(DEADLINE_S)
        ends(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(name, b"open", partition=0)
    producer.flush(DEADLINE_S)
    committed = [b"%d %d" % (number, each) for number in (0, 2) for each in range(3)]
    assert [row.value for row in read_all(node, subscribe=name)] == committed
    everything = [row.value for row in read_all(node, subscribe=name, kafka_isolation_level="read_uncommitted")]
    assert everything == [*committed[:3], b"1 0", b"1 1", b"1 2", *committed[3:], b"open"]
    producer.abort_transaction(DEADLINE_S)


def test_a_broker_that_is_killed_in_the_middle_is_waited_for(own_node: Node, make_topic: CreateTopic) -> None:
    name = make_topic(partitions=1)
    values = [b"%06d" % number + bytes(1000) for number in range(60_000)]
    publish(own_node, name, values)
    reader = batch_reader(own_node, subscribe=name)
    (split,) = reader.partitions()
    batches = sent(reader).read(split)
    found = [row.value for row in rows_in(next(batches))]
    own_node.kill()
    own_node.start()
    found += [row.value for batch in batches for row in rows_in(batch)]
    assert found == values


def test_a_bounded_time_range_fetches_only_what_it_needs(node: Node, make_topic: CreateTopic) -> None:
    name = make_topic(partitions=1, segment_bytes=str(1 << 20))
    publish(node, name, [bytes(1000)] * 10_000)
    bounds = {"startingTimestamp": str(START_MS + 7000), "endingTimestamp": str(START_MS + 7100)}
    assert [row.offset for row in read_all(node, subscribe=name, **bounds)] == list(range(7000, 7100))
    text = httpx.get(f"{node.url}/metrics").text
    (line,) = (
        one for one in text.splitlines() if one.startswith("goqueue_broker_bytes_consumed_total") and name in one
    )
    # Whole batches are fetched. The producer makes them of at most 1 MB, and says where each begins: two may be needed.
    assert 100 * 1000 < float(line.rpartition(" ")[2]) < 2_200_000
