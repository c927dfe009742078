"""What Spark asks of the reader in queue mode, asked here without Spark: it is the same object."""

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from goqueue.client.sync import Admin, Producer
from goqueue.spark.errors import SparkError
from goqueue.spark.formats.readers import TypedQueueReader, schema_by_registry
from goqueue.spark.options import Options, Part, wants_types
from goqueue.spark.queue.reader import QueueReader
from goqueue.spark.queue.settle import settle_all
from goqueue.spark.read.columns import schema_of
from goqueue.spark.where import Where
from tests.integration.process import Node, wait_until

Rows = list[dict[str, Any]]


class Query:
    """One life of a query. What it knows of another is what a checkpoint says, as JSON."""

    def __init__(self, node: Node, topic: str, **more: str) -> None:
        given = {
            "kafka.bootstrap.servers": node.address,
            "subscribe": topic,
            "mode": "queue",
            "kafka.group.id": f"{topic}-group",
            **more,
        }
        options = Options(given, Part.QUEUE)
        if wants_types(options):
            self.reader: QueueReader = TypedQueueReader(schema_by_registry(options), options)
        else:
            self.reader = QueueReader(schema_of(options), options)
        self.reader.prepareForTriggerAvailableNow()
        self.limit = self.reader.getDefaultReadLimit()

    def offset(self, start: dict[str, Any] | None = None) -> dict[str, Any]:
        """The next one; the same one if there is nothing to do."""
        begin = self.reader.initialOffset() if start is None else start
        found: dict[str, Any] = json.loads(json.dumps(self.reader.latestOffset(begin, self.limit)))
        return found

    def rows(self, end: dict[str, Any]) -> Rows:
        """As executors read them: each has a copy of the reader."""
        found: Rows = []
        for partition in self.reader.partitions({"leases": []}, end):
            copy, split = pickle.loads(pickle.dumps((self.reader, partition)))
            for batch in copy.read(split):
                found += batch.to_pylist()
        return sorted(found, key=lambda row: (row["partition"], row["offset"]))


@contextmanager
def query(node: Node, topic: str, **more: str) -> Iterator[Query]:
    one = Query(node, topic, **more)
    yield one
    one.reader.stop()


def values(rows: Rows) -> list[str]:
    return [row["value"].decode() for row in rows]


def left(admin: Admin, topic: str) -> int:
    return admin.lag(f"{topic}-group").total_lag


def publish(admin: Admin, node: Node, topic: str, count: int, partitions: int = 2, **options: Any) -> None:
    admin.create_topic(topic, partitions, **options)
    with Producer(node.address) as producer:
        for number in range(count):
            producer.send(topic, f"{number}".encode(), partition=number % partitions)


@pytest.fixture
def admin(node: Node) -> Iterator[Admin]:
    with Admin(node.url) as found:
        yield found


def test_rows_are_acknowledged_when_their_micro_batch_is_finished_unless_they_were_settled(
    node: Node, admin: Admin
) -> None:
    publish(admin, node, "finished", 20, attempts_max=2)
    with query(node, "finished", maxRecordsPerTrigger="12") as work:
        first = work.offset()
        rows = work.rows(first)
        assert len(rows) == 12
        assert {(row["delivery_count"], row["priority"]) for row in rows} == {(1, "normal")}
        bad, busy, *_ = rows
        said = [
            {"receipt": bad["receipt"], "_settle": "reject", "_reason": "no such fruit"},
            {"receipt": busy["receipt"], "_settle": "nack", "_delay": "50ms"},
            {"receipt": rows[2]["receipt"], "_settle": None},
        ]
        assert settle_all(said, Where(node.url)) == {"reject": 1, "nack": 1}
        wait_until(
            lambda: not any(each.queue.waiting for each in admin.lag("finished-group").partitions),  # type: ignore[union-attr]
            "the end of the delay",
        )
        second = work.offset(first)
        assert {each.consumer.partition("-")[0] for each in admin.leases("finished-group")} == {"spark"}
        again = work.rows(second)
        assert len(again) == 9
        retried = next(
            row for row in again if row["offset"] == busy["offset"] and row["partition"] == busy["partition"]
        )
        assert (retried["value"], retried["delivery_count"]) == (busy["value"], 2)
        assert sorted(values(rows) + values(again), key=int) == sorted([*map(str, range(20)), "2"], key=int)
        assert settle_all([{"receipt": retried["receipt"], "_settle": "nack", "_reason": "busy"}], Where(node.url)) == {
            "nack": 1
        }
        assert settle_all([{"receipt": bad["receipt"], "_settle": "ack"}], Where(node.url)) == {"late": 1}
        assert work.offset(second) == second
        work.reader.commit(first)
        work.reader.commit(second)
    wait_until(lambda: len(list(admin.dead_letters("finished"))) == 2, "the dead letters")
    found = {each.value: (each.reason, each.error, each.attempts) for each in admin.dead_letters("finished")}
    assert found == {"0": ("rejected", "no such fruit", 1), "2": ("attempts", "busy", 2)}
    assert left(admin, "finished") == 0


def test_a_query_that_is_started_again_reads_the_same_rows_and_finishes_them(node: Node, admin: Admin) -> None:
    publish(admin, node, "again", 10)
    with query(node, "again") as before:
        checkpoint = before.offset()
        rows = before.rows(checkpoint)
    with query(node, "again") as other:
        assert other.offset() == {"leases": []}
    with query(node, "again") as after:
        assert after.rows(checkpoint) == rows
        assert left(admin, "again") == 10
        assert after.offset(checkpoint) == checkpoint
    assert left(admin, "again") == 0


def test_leases_last_as_long_as_the_query_lives(node: Node, admin: Admin) -> None:
    publish(admin, node, "kept", 4)
    with query(node, "kept", visibility="2s") as work:
        end = work.offset()
        until = {each.lease_until for each in admin.leases("kept-group")}
        wait_until(lambda: min(each.lease_until for each in admin.leases("kept-group")) > max(until), "an extension")
        assert work.offset(end) == end
    assert left(admin, "kept") == 0


def test_who_comes_too_late_leaves_the_rows_to_others(node: Node, admin: Admin) -> None:
    publish(admin, node, "late", 4)
    with query(node, "late", visibility="1s") as slow:
        slow.reader._extending.stop()
        end = slow.offset()
        rows = slow.rows(end)
        wait_until(lambda: not list(admin.leases("late-group")), "the end of the leases")
        with query(node, "late") as other:
            theirs = other.offset()
            assert values(other.rows(theirs)) == values(rows)
            assert slow.offset(end) == end
            assert left(admin, "late") == 4
            assert {row["delivery_count"] for row in other.rows(theirs)} == {2}
            other.offset(theirs)
    assert left(admin, "late") == 0


def test_a_restart_of_the_broker_in_the_middle_loses_nothing_and_repeats_nothing(own_node: Node) -> None:
    with Admin(own_node.url) as admin:
        publish(admin, own_node, "restarted", 10)
    with query(own_node, "restarted") as work:
        end = work.offset()
        rows = work.rows(end)
        settle_all([{"receipt": rows[0]["receipt"], "_settle": "nack", "_delay": 0}], Where(own_node.url))
        own_node.kill()
        own_node.start()
        following = work.offset(end)
        assert values(work.rows(following)) == ["0"]
        assert work.offset(following) == following
    with Admin(own_node.url) as admin:
        assert left(admin, "restarted") == 0


def test_urgent_rows_come_first_and_scattered_ones_are_found(node: Node, admin: Admin) -> None:
    admin.create_topic("urgent", 1)
    with Producer(node.address) as producer:
        for number in range(3000):
            producer.post("urgent", f"{number}".encode(), priority="critical" if number % 1000 == 7 else "low")
        producer.flush()
    with query(
        node, "urgent", maxRecordsPerTrigger="4", columns="value,receipt,priority", includeHeaders="true"
    ) as work:
        end = work.offset()
        (found,) = (work.reader.read(split) for split in work.reader.partitions({"leases": []}, end))
        rows = [row for batch in found for row in batch.to_pylist()]
    assert [row["value"] for row in rows if row["priority"] == "critical"] == [b"7", b"1007", b"2007"]
    assert list(rows[0]) == ["value", "receipt", "priority", "headers"]
    assert len(rows) == 4


FRUIT = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}, "offset": {"type": "string"}}})
GOOD, BAD = b'{"id": 7, "offset": "left"}', b'{"id": "seven"}'


def publish_fruit(admin: Admin, node: Node, topic: str) -> None:
    """Two that fit their schema, and one between them that does not."""
    admin.create_topic(topic, 1)
    admin.register_schema(f"{topic}-value", FRUIT, "JSON")
    with Producer(node.address) as producer:
        producer.send_many(topic, [{"value": value, "key": b"k", "priority": "high"} for value in (GOOD, BAD, GOOD)])


def typed_rows(work: Query, end: dict[str, Any]) -> Rows:
    (split,) = work.reader.partitions({"leases": []}, end)
    copy, split = pickle.loads(pickle.dumps((work.reader, split)))
    return [row for batch in copy.read(split) for row in batch.to_pylist()]


def test_typed_rows_are_leased_and_what_does_not_fit_is_kept_with_its_reason(node: Node, admin: Admin) -> None:
    publish_fruit(admin, node, "fruit")
    with query(node, "fruit", valueFormat="json") as work:
        end = work.offset()
        rows = typed_rows(work, end)
        assert [(row["id"], row["offset"], row["_offset"]) for row in rows] == [
            (7, "left", 0),
            (None, None, 1),
            (7, "left", 2),
        ]
        assert {(row["key"], row["delivery_count"], row["priority"]) for row in rows} == {(b"k", 1, "high")}
        assert [row["_value"] for row in rows] == [None, BAD, None]
        assert [row["_error"] is None for row in rows] == [True, False, True]
        said = [
            {"receipt": row["receipt"], "_settle": "reject", "_reason": row["_error"]} for row in rows if row["_error"]
        ]
        assert settle_all(said, Where(node.url)) == {"reject": 1}
        assert work.offset(end) == end
    wait_until(lambda: len(list(admin.dead_letters("fruit"))) == 1, "the dead letter")
    (letter,) = admin.dead_letters("fruit")
    assert (letter.value, letter.reason, letter.error) == (BAD.decode(), "rejected", said[0]["_reason"])
    assert left(admin, "fruit") == 0


def test_only_the_columns_that_were_asked_for_are_made(node: Node, admin: Admin) -> None:
    publish_fruit(admin, node, "picked")
    with query(node, "picked", valueFormat="json", columns="receipt,id") as work:
        rows = typed_rows(work, work.offset())
    assert [list(row) for row in rows] == [["receipt", "id"]] * 3
    assert [row["id"] for row in rows] == [7, None, 7]
    assert len({row["receipt"] for row in rows}) == 3


def test_typed_rows_that_fail_fast_stay_with_their_group(node: Node, admin: Admin) -> None:
    publish_fruit(admin, node, "picky")
    with query(node, "picky", valueFormat="json", badRows="failfast") as work:
        end = work.offset()
        with pytest.raises(SparkError, match=r"topic picky, partition 0, offset 1: .*seven.*; badRows=permissive or"):
            typed_rows(work, end)
    assert left(admin, "picky") == 3
    assert list(admin.dead_letters("picky")) == []


def test_typed_rows_that_become_dead_letters_are_left_out_and_acknowledged(node: Node, admin: Admin) -> None:
    publish_fruit(admin, node, "unfit")
    with query(node, "unfit", valueFormat="json", badRows="deadletter") as work:
        end = work.offset()
        for _ in range(2):  # a task that is run again buries the same
            assert [row["_offset"] for row in typed_rows(work, end)] == [0, 2]
        assert work.offset(end) == end
    (letter,) = admin.dead_letters("unfit")
    assert (letter.value, letter.reason, letter.original_offset) == (BAD.decode(), "schema", 1)
    assert left(admin, "unfit") == 0


def test_what_a_queue_needs_is_told(node: Node) -> None:
    wrong = {
        "kafka.group.id": {"subscribe": "a"},
        "say which topics, in one way": {"kafka.group.id": "g"},
        "visibility: 999 ms is too short": {"kafka.group.id": "g", "subscribe": "a", "visibility": "999ms"},
    }
    for words, given in wrong.items():
        options = Options({"kafka.bootstrap.servers": node.address, "mode": "queue", **given}, Part.QUEUE)
        with pytest.raises(SparkError, match=words):
            QueueReader(schema_of(options), options)
    with query(node, "nothing") as work, pytest.raises(SparkError, match="there is no topic 'nothing'"):
        work.offset()
    with query(node, "nothing") as work, pytest.raises(SparkError, match="checkpointLocation of its own"):
        work.offset({"orders": {"0": 5}})
