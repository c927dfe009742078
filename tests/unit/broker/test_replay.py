"""Reading again: a group sent elsewhere, given part of the log once more, or forked; what it settled is not lost."""

from typing import Any

import pytest

from goqueue.broker.queues.restoring import drop_at
from goqueue.broker.queues.settle import Wanted
from goqueue.machines.deliveries.commands import How, Place, Verdict
from goqueue.machines.groups import commands
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.records.filters import RecordFilter
from goqueue.records.messages import NewMessage
from goqueue.records.replays import Difference, Moved, Replayed, ReplayRequest, Where
from tests.brokers import data
from tests.unit.broker.queue_node import QueueNode, queue_node

EARLIEST, LATEST = Where("earliest"), Where("latest")
STARTS = ("stop", "kill", "power")


def settled(count: int = 6, **options: Any) -> QueueNode:
    """A node whose group has worked on `count` records in one batch."""
    node = queue_node(**options)
    node.put("orders", *(NewMessage(b"%d" % number, b"k%d" % (number % 2)) for number in range(count)))
    node.ack(*node.receive(most=count))
    return node


def seek(node: QueueNode, where: Where, group: str = "workers", **options: Any) -> Any:
    return node.reply(lambda done: node.broker.replays.seek(group, "orders", where, done, **options))


def replay(node: QueueNode, start: Where = EARLIEST, stop: Where = LATEST, **fields: Any) -> Any:
    request = ReplayRequest("workers", "orders", start, stop, **fields)
    return node.reply(lambda done: node.broker.replays.replay(request, done))


def refused(reply: Any) -> Code:
    assert isinstance(reply, Refused)
    assert str(reply)
    return reply.code


# -- seek


@pytest.mark.parametrize(
    ("where", "after", "expected"),
    [
        (EARLIEST, 0, b"012345"),
        (LATEST, 6, b""),
        (Where(offset=4), 4, b"45"),
        (Where(moment_ms=3000), 3, b"345"),
        (Where(moment_ms=2500), 3, b"345"),
        (Where(moment_ms=99_999), 6, b""),
    ],
)
def test_a_group_goes_on_from_where_it_is_sent(where: Where, after: int, expected: bytes) -> None:
    node = queue_node()
    node.put("orders", *(NewMessage(b"%d" % number, timestamp_ms=number * 1000) for number in range(6)))
    node.ack(*node.receive(most=2))
    assert seek(node, where, is_dry_run=True) == [Moved(0, 2, after)]
    assert seek(node, where) == [Moved(0, 2, after)]
    assert b"".join(value or b"" for value in node.received()) == expected
    node.put("orders", b"new")
    assert node.received(consumer="two") == [b"new"]


def test_a_dry_seek_moves_nothing() -> None:
    node = settled()
    seek(node, EARLIEST, is_dry_run=True)
    assert node.received() == []


@pytest.mark.parametrize("how", STARTS)
def test_a_seek_is_kept_over_a_restart(how: str) -> None:
    node = settled()
    seek(node, Where(offset=4))
    node = node.restarted(how)
    assert seek(node, Where(offset=5), is_dry_run=True) == [Moved(0, 4, 5)]
    assert node.received() == [b"4", b"5"]


def test_a_seek_ends_leases_and_wakes_who_waits() -> None:
    node = settled(3)
    node.put("orders", b"held")
    (held,) = node.receive()
    parked = node.park(consumer="two", wait_ms=20_000)
    seek(node, Where(offset=2))
    assert parked.values == [b"2", b"held"]
    assert node.verdicts(Wanted(held.receipt)) == [Verdict.EXPIRED]


def test_a_group_that_was_never_there_can_be_sent_somewhere_first() -> None:
    node = settled()
    assert seek(node, Where(offset=3), group="new") == [Moved(0, -1, 3)]
    assert node.received(group="new") == [b"3", b"4", b"5"]


def test_some_partitions_may_be_moved_and_others_not() -> None:
    node = queue_node(partitions=3)
    node.put("orders", *(NewMessage(b"%d" % number, partition=number % 3) for number in range(6)))
    node.ack(*node.receive())
    assert seek(node, EARLIEST, partitions=[0, 2]) == [Moved(0, 2, 0), Moved(2, 2, 0)]
    assert sorted(value or b"" for value in node.received()) == [b"0", b"2", b"3", b"5"]


@pytest.mark.parametrize(
    ("where", "code"),
    [
        (Where(offset=7), Code.OFFSET_OUT_OF_RANGE),
        (Where(offset=-1), Code.OFFSET_OUT_OF_RANGE),
        (Where(), Code.INVALID_REQUEST),
        (Where("middle"), Code.INVALID_REQUEST),
        (Where("earliest", offset=1), Code.INVALID_REQUEST),
    ],
)
def test_no_place_in_the_log_is_refused_and_nothing_moves(where: Where, code: Code) -> None:
    node = settled()
    assert refused(seek(node, where)) is code
    assert refused(replay(node, where)) is code
    assert node.received() == []


@pytest.mark.parametrize(("topic", "partitions"), [("nowhere", None), ("orders", [7])])
def test_what_is_not_there_cannot_be_read_again(topic: str, partitions: list[int] | None) -> None:
    node = settled()
    calls = node.broker.replays
    request = ReplayRequest("workers", topic, EARLIEST, LATEST, partitions=partitions)
    moved = node.reply(lambda done: calls.seek("workers", topic, EARLIEST, done, partitions=partitions))
    replayed = node.reply(lambda done: calls.replay(request, done))
    assert [refused(moved), refused(replayed)] == [Code.UNKNOWN_TOPIC_OR_PARTITION] * 2


# -- replay


@pytest.mark.parametrize(("start", "stop"), [(0, 6), (0, 1), (1, 3), (2, 6), (5, 6), (3, 3), (4, 2)])
def test_a_bounded_replay_delivers_just_that_once_more(start: int, stop: int) -> None:
    node = settled()
    expected = [b"%d" % number for number in range(start, stop)]
    bounds = Where(offset=start), Where(offset=stop)
    assert replay(node, *bounds, is_dry_run=True) == [Replayed(0, start, stop, len(expected))]
    assert replay(node, *bounds) == [Replayed(0, start, stop, len(expected))]
    got = node.receive()
    assert [(each.value, each.attempt) for each in got] == [(value, 1) for value in expected]
    node.ack(*got)
    node.pass_ms(60_000)
    assert node.received() == []
    assert node.broker.queues.measure(Place("workers", "orders", 0)).start_offset == 6


def test_a_replay_by_time_takes_what_was_published_then() -> None:
    node = queue_node()
    for number in range(6):
        node.put("orders", NewMessage(b"%d" % number, timestamp_ms=number * 1000))
    node.ack(*node.receive())
    assert replay(node, Where(moment_ms=2000), Where(moment_ms=4000)) == [Replayed(0, 2, 4, 2)]
    assert node.received() == [b"2", b"3"]


def test_a_replay_takes_what_its_filter_takes() -> None:
    node = settled()
    assert replay(node, filter=RecordFilter(key=b"k1"), is_dry_run=True) == [Replayed(0, 0, 6, 3)]
    assert replay(node, Where(offset=0), Where(offset=4), filter=RecordFilter(key=b"k1")) == [Replayed(0, 0, 4, 2)]
    assert node.received() == [b"1", b"3"]


def test_what_a_filter_takes_far_behind_the_start_is_found() -> None:
    """One look at the log shows a mebibyte; who waits must not miss what lies behind."""
    node = queue_node(unacked_max="100000")
    node.put("orders", b"first needle")
    for _ in range(60):
        node.broker.publisher.publish("orders", 0, data(*[b"x" * 4000] * 50))
    node.put("orders", b"second needle")
    while got := node.receive(most=1000):
        node.ack(*got)
    assert replay(node, filter=RecordFilter(contains=b"needle"))[0].records == 2
    assert node.received(most=1) == [b"first needle"]
    assert node.park(wait_ms=20_000).values == [b"second needle"]


def test_a_replay_goes_on_beside_the_work_of_the_group() -> None:
    node = settled(40)
    node.put("orders", *(b"new %d" % number for number in range(40)))
    replay(node, Where(offset=0), Where(offset=40))
    first = [value or b"" for _ in range(4) for value in node.received(most=10)]
    assert {value.startswith(b"new") for value in first} == {True, False}
    rest = [value or b"" for _ in range(4) for value in node.received(most=10)]
    assert len({*first, *rest}) == 80


def test_what_was_not_settled_is_not_delivered_twice_by_a_replay() -> None:
    node = settled(3)
    node.put("orders", b"3", b"4")
    node.receive(most=1)
    assert replay(node, is_dry_run=True) == [Replayed(0, 0, 5, 3)]
    assert replay(node) == [Replayed(0, 0, 5, 3)]
    assert sorted(value or b"" for value in node.received()) == [b"0", b"1", b"2", b"4"]
    assert replay(node, is_dry_run=True) == [Replayed(0, 0, 5, 0)]


def test_a_replay_keeps_to_its_rate() -> None:
    node = settled(30)
    replay(node, records_per_second=10)
    taken = []
    for _ in range(40):
        taken.append(len(node.received(lease_ms=10_000_000)))
        node.pass_ms(100)
    assert (sum(taken), max(taken)) == (30, 1)
    assert sum(taken[:10]) == 10


@pytest.mark.parametrize("how", STARTS)
def test_a_replay_goes_on_after_a_restart_where_it_was(how: str) -> None:
    node = settled()
    replay(node, filter=RecordFilter(key=b"k1"))
    got = node.receive(most=2)
    node.ack(got[0])
    node = node.restarted(how)
    assert node.received() == [b"3", b"5"]


def test_a_replayed_record_may_be_retried_and_die_like_any_other() -> None:
    node = settled(2, attempts_max="2")
    replay(node)
    first, second = node.receive()
    node.settle([first], How.RETRY, delay_ms=0)
    node.settle([second], How.REJECT)
    node.settle(node.receive(), How.RETRY, delay_ms=0)
    node.pass_ms(1000)
    assert node.values("orders.dlq") == [b"1", b"0"]
    assert node.received() == []


# -- forks


def fork(node: QueueNode, name: str = "fork", source: str = "workers") -> Any:
    return node.reply(lambda done: node.broker.replays.fork(source, name, done))


def test_a_fork_begins_with_what_its_group_has_settled_and_goes_its_own_way() -> None:
    node = settled(4)
    node.put("orders", b"4", b"5")
    node.ack(node.receive()[1])
    assert fork(node) is None
    assert node.broker.replays.compare("workers", "fork") == []
    got = node.receive(group="fork")
    assert [each.value for each in got] == [b"4"]
    node.ack(*got)
    assert node.broker.replays.compare("workers", "fork") == [Difference("orders", 0, (), ((4, 4),))]


def test_a_replay_into_a_fork_leaves_the_group_alone() -> None:
    node = settled()
    reply = replay(node, filter=RecordFilter(key=b"k1"), fork_as="fork")
    assert reply == [Replayed(0, 0, 6, 3)]
    assert node.received() == []
    assert node.broker.replays.compare("workers", "fork") == [Difference("orders", 0, ((1, 1), (3, 3), (5, 5)), ())]
    got = node.receive(group="fork")
    assert [each.value for each in got] == [b"1", b"3", b"5"]
    node.ack(*got[:2])
    assert node.broker.replays.compare("workers", "fork") == [Difference("orders", 0, ((5, 5),), ())]


def test_a_dry_replay_makes_no_fork() -> None:
    node = settled()
    assert replay(node, fork_as="fork", is_dry_run=True) == [Replayed(0, 0, 6, 6)]
    assert node.broker.queues.places("fork") == []


def promote(node: QueueNode, fork_id: str = "fork", group_id: str = "workers") -> Any:
    return node.reply(lambda done: node.broker.replays.promote(fork_id, group_id, done))


@pytest.mark.parametrize("how", [None, *STARTS])
def test_a_promoted_fork_is_what_its_group_has_settled_from_then_on(how: str | None) -> None:
    """What a replay has still to deliver in the fork is not settled, and so will be delivered by the group."""
    node = settled()
    replay(node, filter=RecordFilter(key=b"k1"), fork_as="fork")
    node.ack(*node.receive(group="fork", most=1))
    assert promote(node) is None
    assert node.broker.queues.places("fork") == []
    if how is not None:
        node = node.restarted(how)
    got = node.receive()
    assert [each.value for each in got] == [b"3", b"5"]
    node.ack(*got)
    node.put("orders", b"new")
    assert node.received() == [b"new"]


def test_a_group_keeps_its_place_where_its_fork_has_none() -> None:
    """Also what the first of two promotions has dropped there, if the second is what finishes."""
    node = queue_node(partitions=2)
    node.put("orders", NewMessage(b"0", partition=0), NewMessage(b"1", partition=1))
    node.ack(*node.receive())
    fork(node)
    queues = node.broker.queues
    assert node.reply(lambda done: drop_at(queues, Place("fork", "orders", 1), done)) is True
    assert node.reply(lambda done: drop_at(queues, Place("fork", "orders", 1), done)) is False
    assert seek(node, EARLIEST, "fork", partitions=[0]) == [Moved(0, 1, 0)]
    assert promote(node) is None
    assert queues.places("workers") == [Place("workers", "orders", 0), Place("workers", "orders", 1)]
    assert seek(node, LATEST, is_dry_run=True) == [Moved(0, 0, 1), Moved(1, 1, 1)]
    assert node.received() == [b"0"]


def test_a_dropped_fork_is_gone_and_its_group_is_not() -> None:
    node = settled()
    fork(node)
    node.reply(lambda done: node.broker.queues.drop("fork", None, done))
    assert node.broker.queues.places("fork") == []
    assert node.received() == []
    assert fork(node) is None


def test_forks_that_cannot_be_are_refused() -> None:
    node = settled()
    fork(node)
    assert refused(fork(node)) is Code.NON_EMPTY_GROUP
    assert refused(fork(node, "workers")) is Code.NON_EMPTY_GROUP
    assert refused(fork(node, "other", "nobody")) is Code.GROUP_ID_NOT_FOUND
    assert refused(promote(node, "nobody")) is Code.GROUP_ID_NOT_FOUND
    assert refused(promote(node, "workers", "workers")) is Code.INVALID_REQUEST
    assert node.broker.queues.places("workers") == [Place("workers", "orders", 0)]
    assert isinstance(replay(node, fork_as="fork"), GoQueueError)


# -- stream groups


def committed(node: QueueNode) -> dict[int, int]:
    reply = node.reply(lambda done: node.broker.groups.submit(commands.FetchOffsets("readers", None), done))
    return {each.partition: each.offset for each in reply.offsets}


def seek_stream(node: QueueNode, where: Where, **options: Any) -> Any:
    return node.reply(lambda done: node.broker.replays.seek_stream("readers", "orders", where, done, **options))


def test_a_stream_group_goes_on_from_where_it_is_sent() -> None:
    node = queue_node(partitions=2)
    for number in range(4):
        node.put("orders", NewMessage(b"x", partition=0, timestamp_ms=number * 1000))
    node.put("orders", NewMessage(b"x", partition=1, timestamp_ms=500))
    assert seek_stream(node, LATEST) == [Moved(0, -1, 4), Moved(1, -1, 1)]
    assert committed(node) == {0: 4, 1: 1}
    assert seek_stream(node, Where(moment_ms=1000), is_dry_run=True) == [Moved(0, 4, 1), Moved(1, 1, 1)]
    assert committed(node) == {0: 4, 1: 1}
    assert seek_stream(node, Where(moment_ms=1000)) == [Moved(0, 4, 1), Moved(1, 1, 1)]
    node = node.restarted("power")
    assert committed(node) == {0: 1, 1: 1}


def test_a_stream_group_is_not_moved_under_the_feet_of_its_members() -> None:
    node = settled()
    seek_stream(node, LATEST)
    protocols = (commands.GroupProtocol("range", b""),)
    join = commands.JoinGroup(
        "readers", "", "me", 10_000, 10_000, "consumer", protocols, knows_member_id_required=False
    )
    node.broker.groups.submit(join, lambda reply: None)
    node.pass_ms(5000)
    assert refused(seek_stream(node, EARLIEST)) is Code.NON_EMPTY_GROUP
    assert committed(node) == {0: 6}


def test_a_stream_seek_to_nowhere_is_refused() -> None:
    node = settled()
    assert refused(seek_stream(node, Where(offset=99))) is Code.OFFSET_OUT_OF_RANGE
    assert committed(node) == {}
