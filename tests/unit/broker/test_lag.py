"""How far a group is behind, by what it really committed and what was really published."""

from typing import Any

import pytest

from goqueue.broker.groups.lag import GROUPS_PER_TURN
from goqueue.broker.groups.listing import page_of_names
from goqueue.machines.groups import commands
from goqueue.machines.groups.classic.payloads import partitions_of_assignment
from goqueue.machines.groups.consumer import facts as consumer_commands
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.lag import GroupLag, Owner, PartitionLag
from goqueue.model.refusal import Refused
from tests.brokers import TestBroker

HOST = "/127.0.0.1"
PROTOCOLS = (commands.GroupProtocol("range", b"\0\0\0\0\0\1\0\6orders\0\0\0\0"),)


def assignment(topic: str, *partitions: int) -> bytes:
    """As a leader writes it, version 0, with user data at the end."""
    numbers = b"".join(number.to_bytes(4) for number in partitions)
    name = len(topic).to_bytes(2) + topic.encode()
    return b"\0\0" + (1).to_bytes(4) + name + len(partitions).to_bytes(4) + numbers + b"\0\0\0\1x"


class Behind(TestBroker):
    """Two partitions of `orders`, with 10 and 4 records."""

    def __init__(self) -> None:
        super().__init__()
        self.create("orders", 2)
        self.publish("orders", *[b"x"] * 10)
        self.publish("orders", *[b"x"] * 4, partition=1)
        self.commit()

    def tell(self, command: Any) -> Any:
        return self.ask(self.broker.groups.submit, command)

    def set_offsets(self, group_id: str, offsets: dict[int, int], member_id: str = "", epoch: int = -1) -> None:
        wanted = tuple(commands.OffsetToCommit("orders", number, offset) for number, offset in offsets.items())
        reply = self.tell(commands.CommitOffsets(group_id, wanted, epoch, member_id))
        assert set(reply.codes) == {Code.NONE}

    def lag(self, group_id: str) -> GroupLag:
        found = self.ask(self.broker.lag.of_group, group_id)
        assert isinstance(found, GroupLag), found
        return found

    def all_lags(self) -> Any:
        names, _ = page_of_names(self.broker, None, 1000)
        return self.ask(self.broker.lag.of_some, names)

    def join_classic(self, group_id: str, assigned: bytes, protocol_type: str = "consumer") -> str:
        """One member, stable."""
        command = commands.JoinGroup(
            group_id,
            "",
            "m",
            10_000,
            10_000,
            protocol_type,
            PROTOCOLS,
            None,
            "app",
            HOST,
            knows_member_id_required=False,
        )
        reply = self.tell(command)
        assert reply.code is Code.NONE
        self.tell(commands.SyncGroup(group_id, reply.generation, "m", assignments=(("m", assigned),)))
        return "m"

    def join_consumer(self, group_id: str, member_id: str) -> Any:
        return self.tell(
            consumer_commands.ConsumerHeartbeat(
                group_id,
                member_id,
                0,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=("orders",),
                owned=(),
                client_id="app",
                client_host=HOST,
            )
        )


@pytest.fixture
def broker() -> Behind:
    return Behind()


def test_the_lag_is_what_was_published_behind_the_committed_offset(broker: Behind) -> None:
    broker.set_offsets("g", {0: 7, 1: 4})
    found = broker.lag("g")
    assert found == GroupLag(
        "g", "classic", "Empty", (PartitionLag("orders", 0, 7, 10, 3, None), PartitionLag("orders", 1, 4, 4, 0, None))
    )
    assert found.lag == 3
    broker.publish("orders", b"y", b"z", partition=1)
    assert broker.lag("g").lag == 3, "what is not durable nobody can be behind of"
    broker.commit()
    assert [one.lag for one in broker.lag("g").partitions] == [3, 2]


def test_members_of_a_classic_group_are_named_by_what_their_leader_assigned(broker: Behind) -> None:
    broker.join_classic("g", assignment("orders", 1))
    broker.set_offsets("g", {0: 1, 1: 3}, "m", 1)
    found = broker.lag("g")
    assert (found.type, found.state) == ("classic", "Stable")
    assert found.partitions == (
        PartitionLag("orders", 0, 1, 10, 9, None),
        PartitionLag("orders", 1, 3, 4, 1, Owner("m", "app", HOST)),
    )


def test_what_a_leader_assigned_in_a_language_of_its_own_is_nobodys(broker: Behind) -> None:
    broker.set_offsets("workers", {0: 1})
    broker.join_classic("workers", assignment("orders", 0), protocol_type="connect")
    broker.set_offsets("odd", {0: 1})
    broker.join_classic("odd", b"\0\0\x7f\xff\xff\xff\0")
    for group in ("workers", "odd"):
        assert broker.lag(group).partitions == (PartitionLag("orders", 0, 1, 10, 9, None),)


def test_members_of_a_consumer_group_are_named_by_what_they_have(broker: Behind) -> None:
    first = broker.join_consumer("g", "first")
    broker.set_offsets("g", {0: 5}, "first", first.member_epoch)
    broker.join_consumer("g", "second")  # it waits for one of the two, which still are the first one's
    found = broker.lag("g")
    owner = Owner("first", "app", HOST)
    assert (found.type, found.state) == ("consumer", "Reconciling")
    assert found.partitions == (
        PartitionLag("orders", 0, 5, 10, 5, owner),
        PartitionLag("orders", 1, None, 4, 4, owner),
    )


def test_without_a_commit_all_that_is_kept_is_still_to_be_read(broker: Behind) -> None:
    broker.broker.topics.replica("orders", 0).delete_before(4)
    broker.join_consumer("g", "m")
    assert [(one.committed, one.lag) for one in broker.lag("g").partitions] == [(None, 6), (None, 4)]


def test_records_that_are_gone_are_no_lag(broker: Behind) -> None:
    broker.set_offsets("g", {0: 2})
    broker.broker.topics.replica("orders", 0).delete_before(8)
    (found,) = broker.lag("g").partitions
    assert (found.committed, found.end, found.lag) == (2, 10, 2)


def test_a_partition_out_of_service_has_no_end(broker: Behind, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.set_offsets("g", {0: 2, 1: 2})

    def replica(topic: str, number: int) -> Any:
        if number:
            raise Refused(Code.KAFKA_STORAGE_ERROR)
        return found

    found = broker.broker.topics.replica("orders", 0)
    monkeypatch.setattr(broker.broker.topics, "replica", replica)
    lag = broker.lag("g")
    assert [(one.end, one.lag) for one in lag.partitions] == [(10, 8), (None, None)]
    assert lag.lag == 8


def test_it_is_the_same_after_a_restart(broker: Behind) -> None:
    broker.set_offsets("g", {0: 7})
    before = broker.lag("g")
    broker.stop()
    again = Behind.__new__(Behind)
    TestBroker.__init__(again, broker.disk, broker.clock)
    assert again.lag("g") == before


def test_of_all_groups_by_name(broker: Behind) -> None:
    names = [f"g{number:03}" for number in range(2 * GROUPS_PER_TURN + 1)]
    for number, name in enumerate(names):
        broker.set_offsets(name, {0: number % 10})
    broker.join_consumer("new", "m")
    found = broker.all_lags()
    assert [one.group_id for one in found] == [*names, "new"]
    assert found == [broker.lag(name) for name in (*names, "new")]


def test_without_groups_there_is_no_lag(broker: Behind) -> None:
    assert broker.all_lags() == []
    refused = broker.ask(broker.broker.lag.of_group, "nobody")
    assert isinstance(refused, Refused)
    assert refused.code is Code.GROUP_ID_NOT_FOUND


def test_a_stopped_coordinator_says_so(broker: Behind) -> None:
    broker.set_offsets("g", {0: 7})
    broker.assembly.stop()
    with pytest.raises(GoQueueError, match="has stopped"):
        broker.all_lags()
    assert isinstance(broker.ask(broker.broker.lag.of_group, "g"), GoQueueError)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (assignment("orders", 2, 0), [("orders", 2), ("orders", 0)]),
        (assignment("orders"), []),
        (assignment("orders", 1)[:-9], None),
        (b"\0\0\xff\xff\xff\xff", None),
        (b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff", None),
        (b"\0\0\0\0\0\1\0\1t\x7f\xff\xff\xff", None),
        (b"\0\0\0\0\0\1\0\1\xff\0\0\0\0", None),
        (b"\0", None),
    ],
)
def test_only_an_assignment_is_read_as_one(data: bytes, expected: list[tuple[str, int]] | None) -> None:
    assert partitions_of_assignment(data) == expected
