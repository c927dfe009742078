"""What a stream answers to Spark's driver, on a real node and without a JVM: how far, what, and what is lost."""

import json
import uuid

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]
from pyspark.sql.streaming.datasource import ReadAllAvailable

from goqueue.spark.errors import SparkError
from goqueue.spark.read import stream
from goqueue.spark.read.positions import BEGAN
from goqueue.spark.read.splits import Range
from tests.integration.conftest import CreateTopic
from tests.integration.goqueue_command import Command
from tests.integration.process import DEADLINE_S, Node, wait_until
from tests.integration.spark.reading import offsets, publish, ranges, rows, stream_reader
from tests.integration.topics import admin_client, create_topic, group_offsets

ALL = ReadAllAvailable()


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """New topics and partitions are seen at once."""
    monkeypatch.setattr(stream, "LOOK_S", 0.0)


def values(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_a_stream_starts_where_it_is_told_to_and_goes_to_the_end(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(partitions=2)
    publish(node, topic, values(10))
    assert offsets(stream_reader(node, subscribe=topic).initialOffset()) == {topic: {"0": 10, "1": 0}}
    reader = stream_reader(node, subscribe=topic, startingOffsets=json.dumps({topic: {"0": 4, "1": -2}}))
    start = reader.initialOffset()
    assert offsets(start) == {topic: {"0": 4, "1": 0}}
    publish(node, topic, values(3), partition=1)
    end = reader.latestOffset(start, ALL)
    assert offsets(end) == {topic: {"0": 10, "1": 3}, BEGAN: offsets(start)}
    assert offsets(reader.reportLatestOffset() or {}) == {topic: {"0": 10, "1": 3}}
    splits = reader.partitions(start, end)
    assert ranges(splits) == [Range(topic, 0, 4, 10), Range(topic, 1, 0, 3)]
    assert [row.value for row in rows(reader, splits)] == values(10)[4:] + values(3)
    assert reader.latestOffset(end, ALL) == end
    assert reader.partitions(end, end) == []
    reader.stop()


@pytest.mark.parametrize("count", [0, 5])
def test_who_is_killed_in_the_first_micro_batch_begins_it_where_it_began(
    node: Node, make_topic: CreateTopic, count: int
) -> None:
    """Spark keeps its end, and asks the next driver for its start."""
    topic = make_topic(partitions=1)
    publish(node, topic, values(10))
    killed = stream_reader(node, subscribe=topic)  # from now on
    start = killed.initialOffset()
    publish(node, topic, values(count))
    end = json.loads(json.dumps(killed.latestOffset(start, ALL)))  # as the checkpoint has it
    killed.stop()
    publish(node, topic, values(7))
    reader = stream_reader(node, subscribe=topic)
    other_start = reader.initialOffset()
    assert offsets(other_start) == {topic: {"0": 17 + count}}
    first = [Range(topic, 0, 10, 10 + count)] if count else []
    assert ranges(reader.partitions(other_start, end)) == first
    after = reader.latestOffset(end, ALL)
    assert offsets(after) == {topic: {"0": 17 + count}}
    assert ranges(reader.partitions(end, after)) == [Range(topic, 0, 10 + count, 17 + count)]
    reader.stop()


def test_what_is_there_now_and_no_more(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(partitions=1)
    publish(node, topic, values(25))
    reader = stream_reader(node, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="10")
    reader.prepareForTriggerAvailableNow()  # type: ignore[attr-defined]
    publish(node, topic, values(100))
    at, ends = reader.initialOffset(), []
    while (after := reader.latestOffset(at, reader.getDefaultReadLimit())) != at:
        at = after
        ends.append(at[topic]["0"])
    assert ends == [10, 20, 25]
    reader.stop()


def test_caps_are_spread_over_partitions(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(partitions=2)
    publish(node, topic, [bytes(1000)] * 900, config={"batch.num.messages": 10})
    publish(node, topic, [bytes(1000)] * 100, partition=1, config={"batch.num.messages": 10})
    start = {topic: {"0": 0, "1": 0}}

    def next_of(**options: str) -> dict[str, int]:
        reader = stream_reader(node, subscribe=topic, startingOffsets="earliest", **options)
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        assert offsets(reader.latestOffset(start, ALL)) == {topic: {"0": 900, "1": 100}}
        reader.stop()
        return end[topic]  # type: ignore[no-any-return]

    assert next_of(maxOffsetsPerTrigger="100") == {"0": 90, "1": 10}
    by_bytes = next_of(maxBytesPerTrigger="100k")
    assert 80 < by_bytes["0"] < 92
    assert 8 < by_bytes["1"] < 11
    assert next_of(maxBytesPerTrigger="100k", maxOffsetsPerTrigger="10") == {"0": 9, "1": 1}
    assert next_of(minOffsetsPerTrigger="1001") == start[topic]
    assert next_of(minOffsetsPerTrigger="1001", maxTriggerDelay="0") == {"0": 900, "1": 100}
    assert next_of(minOffsetsPerTrigger="1000", maxOffsetsPerTrigger="10") == {"0": 9, "1": 1}


def test_topics_and_partitions_that_appear_are_read_from_their_beginning(node: Node) -> None:
    prefix = f"appearing-{uuid.uuid4().hex[:8]}"
    first, second = f"{prefix}-1", f"{prefix}-2"
    create_topic(node.address, first, 1)
    publish(node, first, values(5))
    reader = stream_reader(node, subscribePattern=f"{prefix}-.*")
    start = reader.initialOffset()
    assert offsets(start) == {first: {"0": 5}}
    create_topic(node.address, second, 1)
    publish(node, second, values(2))
    admin_client(node.address).create_partitions([NewPartitions(first, 2)])[first].result(DEADLINE_S)
    publish(node, first, values(3), partition=1)
    end = reader.latestOffset(start, ALL)
    assert offsets(end) == {first: {"0": 5, "1": 3}, second: {"0": 2}, BEGAN: offsets(start)}
    assert ranges(reader.partitions(start, end)) == [Range(first, 1, 0, 3), Range(second, 0, 0, 2)]
    reader.stop()


def test_what_retention_has_removed_fails_the_query_or_is_gone_past(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(partitions=1)
    publish(node, topic, values(100))
    gone = ck.TopicPartition(topic, 0, 60)
    admin_client(node.address).delete_records([gone])[gone].result(DEADLINE_S)
    start, end = {topic: {"0": 50}}, {topic: {"0": 70}}
    strict = stream_reader(node, subscribe=topic)
    with pytest.raises(SparkError, match=f"partition 0 of topic {topic} has offsets 60 up to 100, and the query wants"):
        strict.partitions(start, end)
    lenient = stream_reader(node, subscribe=topic, failOnDataLoss="false")
    assert [row.offset for row in rows(lenient, lenient.partitions(start, end))] == list(range(60, 70))
    strict.stop()
    lenient.stop()


def test_a_topic_that_is_deleted_and_made_again(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(partitions=1)
    publish(node, topic, values(100))
    strict = stream_reader(node, subscribe=topic)
    lenient = stream_reader(node, subscribe=topic, failOnDataLoss="false")
    start = strict.latestOffset({topic: {"0": 100}}, ALL)  # of a checkpoint that knew no ids yet
    assert offsets(start) == {topic: {"0": 100}}
    assert strict.latestOffset(start, ALL) == lenient.latestOffset(start, ALL) == start
    publish(node, topic, values(5))
    before = lenient.latestOffset(start, ALL)
    (planned,) = strict.partitions(start, before)
    admin_client(node.address).delete_topics([topic])[topic].result(DEADLINE_S)
    with pytest.raises(SparkError, match=f"there is no topic {topic}"):
        strict.latestOffset(start, ALL)
    assert lenient.latestOffset(start, ALL) == {}
    assert rows(lenient, [planned]) == []
    create_topic(node.address, topic, 1)
    publish(node, topic, values(200))  # more than it had: only its id tells that it is another one
    for asked in (lambda: strict.latestOffset(start, ALL), lambda: strict.partitions(start, before)):
        with pytest.raises(SparkError, match=f"topic {topic} was deleted and made again since the query read it"):
            asked()
    with pytest.raises(SparkError, match=f"topic {topic} was deleted and made again while it was read"):
        rows(strict, [planned])
    assert rows(lenient, [planned]) == []
    assert lenient.partitions(start, before) == []
    for at in (start, before, {}):
        end = lenient.latestOffset(at, ALL)
        assert offsets(end) == {topic: {"0": 200}}
        assert [row.value for row in rows(lenient, lenient.partitions(at, end))] == values(200)
    strict.stop()
    lenient.stop()


def test_the_position_is_the_lag_of_a_group(node: Node, make_topic: CreateTopic, goqueue: Command) -> None:
    topic, group = make_topic(partitions=2), f"spark-{uuid.uuid4().hex[:8]}"
    publish(node, topic, values(10))
    reader = stream_reader(node, subscribe=topic, kafka_group_id=group)
    reader.commit({topic: {"0": 4, "1": 0}})
    assert group_offsets(node, group) == {0: 4, 1: 0}
    lags = {one["partition"]: one["lag"] for one in goqueue.json("group", "describe", group)["lag"]}
    assert lags == {0: 6, 1: 0}
    reader.latestOffset({topic: {"0": 10, "1": 0}}, ALL)
    assert group_offsets(node, group) == {0: 10, 1: 0}
    reader.stop()


def test_a_group_of_consumers_is_not_overwritten(node: Node, make_topic: CreateTopic, group: str) -> None:
    topic = make_topic(partitions=1)
    consumer = ck.Consumer({"bootstrap.servers": node.address, "group.id": group})
    consumer.subscribe([topic])

    def has_joined() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    wait_until(has_joined, "the consumer's assignment")
    reader = stream_reader(node, subscribe=topic, kafka_group_id=group)
    with pytest.raises(SparkError, match=f"cannot be reported under group '{group}'"):
        reader.commit({topic: {"0": 0}})
    reader.stop()
    consumer.close()
