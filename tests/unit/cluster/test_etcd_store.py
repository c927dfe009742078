"""Metadata in etcd behind the calls of a store, on a virtual etcd with the faults of a real one."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.cluster.etcd.keys import MetadataUnreadable
from goqueue.cluster.etcd.port import EtcdFault, KeyPut
from goqueue.cluster.etcd.store import CONFLICT_SHOWN_WITHIN_MS, OPERATIONS_MAX, UNREADABLE_RETRY_MS, EtcdStore
from goqueue.model.metadata import (
    ABSENT,
    Committed,
    Compare,
    Conflict,
    Event,
    GroupKey,
    GroupValue,
    Key,
    Listing,
    LiveKey,
    ProducerIdsKey,
    ProducerIdsValue,
    Put,
    Step,
    Value,
)
from goqueue.model.placements import NodeInfo
from goqueue.testing.virtual_clock import VirtualClock
from goqueue.testing.virtual_etcd import VirtualEtcd

PREFIX = "/goqueue/main/"
IDS = ProducerIdsKey()


def put_ids(revision: int, end: int) -> Step:
    return Step((Compare(IDS, revision),), (Put(IDS, ProducerIdsValue(end)),))


class User:
    """Whoever keeps what the store tells, as `Metadata` does."""

    def __init__(self, etcd: VirtualEtcd, clock: VirtualClock, host: str = "node-1") -> None:
        self.store = EtcdStore(etcd.client(host), PREFIX, clock)
        self.known: dict[Key, Event] = {}
        self.told: list[Event] = []
        self.listed = 0
        self.outcomes: list[Any] = []
        self.store.watch(self._events, lambda: self.store.list(self._listing))
        self.store.start()

    def _listing(self, listing: Listing) -> None:
        self.listed += 1
        self.known = {event.key: event for event in listing.entries}

    def _events(self, events: Sequence[Event]) -> None:
        self.told += events
        for event in events:
            if event.value is None:
                self.known.pop(event.key, None)
            else:
                self.known[event.key] = event

    def txn(self, step: Step) -> None:
        self.store.txn(step, self.outcomes.append)

    def value(self, key: Key) -> Value | None:
        return self.known[key].value if key in self.known else None


class World:
    def __init__(self, seed: int = 7) -> None:
        self.clock = VirtualClock()
        self.etcd = VirtualEtcd(self.clock, Random(seed))
        self.user = User(self.etcd, self.clock)
        self.clock.advance(20)

    def written(self, path: str, value: str) -> None:
        """By somebody with a shell."""
        self.etcd.do_txn([], [KeyPut((PREFIX + path).encode(), value.encode())])


@pytest.fixture
def world() -> World:
    return World()


def test_a_change_is_made_once_and_told_to_all(world: World) -> None:
    other = User(world.etcd, world.clock, "node-2")
    world.user.txn(put_ids(ABSENT, 1000))
    world.clock.advance(50)
    ((revision,),) = world.user.outcomes
    assert world.user.outcomes == [Committed(revision)]
    assert world.user.known == other.known == {IDS: Event(IDS, ProducerIdsValue(1000), revision)}
    other.txn(put_ids(ABSENT, 5000))
    world.clock.advance(200)
    other.txn(put_ids(revision, 2000))
    world.clock.advance(200)
    assert other.outcomes == [Conflict(revision), Committed(revision + 1)]
    assert world.user.value(IDS) == other.value(IDS) == ProducerIdsValue(2000)


def test_what_was_deleted_is_told_as_gone(world: World) -> None:
    world.user.txn(put_ids(ABSENT, 1000))
    world.clock.advance(50)
    world.user.txn(Step((), (Put(IDS, None),)))
    world.clock.advance(50)
    assert world.user.told[-1] == Event(IDS, None, world.etcd.revision)
    assert world.user.known == {}


def test_whoever_is_told_of_a_success_has_been_told_of_the_change(world: World) -> None:
    world.etcd.weather_of("node-1").watch_ms = (300, 300)
    seen: list[Value | None] = []
    world.user.store.txn(put_ids(ABSENT, 1000), lambda outcome: seen.append(world.user.value(IDS)))
    world.clock.advance(200)
    assert seen == []
    world.clock.advance(200)
    assert seen == [ProducerIdsValue(1000)]


def test_a_watch_that_is_a_second_behind_holds_up_no_answer(world: World) -> None:
    world.etcd.weather_of("node-1").watch_ms = (5000, 5000)
    world.user.txn(put_ids(ABSENT, 1000))
    world.clock.advance(1100)
    assert world.user.outcomes == [Committed(world.etcd.revision)]
    assert world.user.known == {}


def test_a_conflict_is_told_soon_however_far_behind_the_watch_is(world: World) -> None:
    world.etcd.weather_of("node-1").watch_ms = (5000, 5000)
    world.written("producer-ids", '{"v":1,"end":5}')
    world.user.txn(put_ids(ABSENT, 1000))
    world.clock.advance(CONFLICT_SHOWN_WITHIN_MS + 20)
    assert world.user.outcomes == [Conflict(world.etcd.revision)]


def test_a_broken_watch_goes_on_behind_what_it_has_told(world: World) -> None:
    world.etcd.kill()
    world.clock.advance(3000)
    world.etcd.go_on()
    world.written("producer-ids", '{"v":1,"end":5}')
    world.written("producer-ids", '{"v":1,"end":6}')
    world.clock.advance(3000)
    assert [event.value for event in world.user.told] == [ProducerIdsValue(5), ProducerIdsValue(6)]
    assert world.user.listed == 1


def test_after_a_compaction_everything_is_listed_anew(world: World) -> None:
    world.written("producer-ids", '{"v":1,"end":5}')
    world.written("groups/old", '{"v":1,"options":{}}')
    world.clock.advance(50)
    world.etcd.kill()
    world.clock.advance(50)
    world.etcd.go_on()
    world.etcd.do_txn([], [KeyPut(b"/goqueue/main/groups/old", None)])
    world.written("groups/new", '{"v":1,"options":{"a":"b"}}')
    world.etcd.compact()
    world.clock.advance(3000)
    assert world.user.listed == 2
    assert list(world.user.known) == [GroupKey("new"), IDS]
    world.written("producer-ids", '{"v":1,"end":6}')
    world.clock.advance(50)
    assert world.user.value(IDS) == ProducerIdsValue(6)


def test_a_listing_for_somebody_else_disturbs_no_watch(world: World) -> None:
    world.etcd.weather_of("node-1").watch_ms = (300, 300)
    world.written("producer-ids", '{"v":1,"end":5}')
    listings: list[Listing] = []
    world.user.store.list(listings.append)
    world.clock.advance(100)
    ((key, value, _),) = listings[0].entries
    assert (key, value) == (IDS, ProducerIdsValue(5))
    assert world.user.known == {}
    world.clock.advance(300)
    assert [event.value for event in world.user.told] == [ProducerIdsValue(5)]
    assert world.user.listed == 1


def test_an_etcd_that_does_not_answer_is_asked_again_for_a_listing() -> None:
    clock = VirtualClock()
    etcd = VirtualEtcd(clock, Random(1))
    etcd.kill()
    user = User(etcd, clock)
    clock.advance(10_000)
    assert user.listed == 0
    etcd.go_on()
    clock.advance(3000)
    assert user.listed == 1


def test_a_lost_answer_is_told_as_a_fault_and_the_write_is_not_repeated(world: World) -> None:
    world.etcd.weather_of("node-1").unanswered = 1.0
    world.user.txn(put_ids(ABSENT, 1000))
    world.clock.advance(10_000)
    (fault,) = world.user.outcomes
    assert isinstance(fault, EtcdFault)
    assert world.user.value(IDS) == ProducerIdsValue(1000)
    assert [event.value for event in world.user.told] == [ProducerIdsValue(1000)]


def test_a_key_is_read_as_it_stands_whatever_the_watch_has_told(world: World) -> None:
    world.etcd.weather_of("node-1").watch_ms = (5000, 5000)
    world.written("groups/a", '{"v":1,"options":{}}')
    world.written("groups/ab", '{"v":1,"options":{"x":"y"}}')
    read: list[Any] = []
    for key in (GroupKey("a"), GroupKey("ab"), GroupKey("abc")):
        world.user.store.read(key, read.append)
        world.clock.advance(20)
    assert read == [
        Event(GroupKey("a"), GroupValue({}), world.etcd.revision - 1),
        Event(GroupKey("ab"), GroupValue({"x": "y"}), world.etcd.revision),
        Event(GroupKey("abc"), None, ABSENT),
    ]
    world.etcd.kill()
    world.user.store.read(GroupKey("a"), read.append)
    world.clock.advance(3000)
    assert isinstance(read[-1], EtcdFault)


def test_a_later_version_stops_all_decisions_until_it_is_gone(world: World) -> None:
    world.written("producer-ids", '{"v":1,"end":5}')
    world.clock.advance(50)
    world.written("producer-ids", '{"v":2,"ends":[5]}')
    world.clock.advance(50)
    world.written("groups/a", '{"v":1,"options":{}}')
    world.user.txn(put_ids(world.etcd.revision, 7))
    world.clock.advance(2 * UNREADABLE_RETRY_MS)
    (refused,) = world.user.outcomes
    assert isinstance(refused, MetadataUnreadable)
    assert "upgrade this node" in str(world.user.store.unreadable)
    assert world.user.known == {IDS: world.user.known[IDS]}
    world.written("producer-ids", '{"v":1,"end":8}')
    world.clock.advance(UNREADABLE_RETRY_MS + 50)
    assert world.user.store.unreadable is None
    assert world.user.value(IDS) == ProducerIdsValue(8)
    assert world.user.value(GroupKey("a")) == GroupValue({})


def test_an_etcd_that_has_gone_back_decides_nothing_more(world: World) -> None:
    backup = world.etcd.backup()
    for end in (5, 6, 7):
        world.written("producer-ids", f'{{"v":1,"end":{end}}}')
    world.clock.advance(50)
    world.etcd.restore(backup)
    world.user.txn(put_ids(ABSENT, 1000))
    world.clock.advance(50)
    world.user.txn(put_ids(ABSENT, 2000))
    world.clock.advance(50)
    assert [type(outcome) for outcome in world.user.outcomes] == [MetadataUnreadable, MetadataUnreadable]
    assert "gone back" in str(world.user.store.unreadable)
    assert world.user.value(IDS) == ProducerIdsValue(7)


def test_an_answer_that_was_under_way_while_the_watch_went_on_is_not_taken_for_one_of_the_past(world: World) -> None:
    world.etcd.weather_of("node-1").delay_ms = (100, 100)
    world.user.txn(put_ids(77, 1000))  # refused at the revision as of now
    world.clock.advance(101)
    world.etcd.weather_of("node-1").delay_ms = (1, 1)
    world.written("groups/a", '{"v":1,"options":{}}')
    world.clock.advance(300)
    assert world.user.outcomes == [Conflict(world.etcd.revision - 1)]
    assert world.user.store.unreadable is None


def test_the_key_of_a_session_has_its_lease_and_goes_with_it(world: World) -> None:
    leases: list[Any] = []
    world.user.store.grant(4, leases.append)
    world.clock.advance(20)
    node = NodeInfo(1, 0, ("k1", 9092), lease=leases[0])
    world.user.txn(Step((Compare(LiveKey(1), ABSENT),), (Put(LiveKey(1), node, leases[0]),)))
    world.clock.advance(50)
    assert world.user.value(LiveKey(1)) == node._replace(incarnation=world.etcd.revision)
    world.user.store.renew(leases[0], leases.append)
    world.clock.advance(50)
    assert leases[1:] == [4]
    world.user.store.revoke(leases[0], leases.append)
    world.clock.advance(50)
    assert world.user.value(LiveKey(1)) is None
    assert leases[2:] == [None]


def test_a_step_that_etcd_would_refuse_is_a_bug(world: World) -> None:
    puts = tuple(Put(GroupKey(str(number)), GroupValue({})) for number in range(OPERATIONS_MAX))
    world.user.txn(Step((), puts))
    world.clock.advance(50)
    assert world.user.outcomes == [Committed(world.etcd.revision)]
    assert len(world.user.known) == OPERATIONS_MAX
    with pytest.raises(AssertionError):
        world.user.txn(Step((), (*puts, Put(IDS, ProducerIdsValue(1)))))


def test_a_store_that_was_stopped_tells_nobody_anything(world: World) -> None:
    world.user.txn(put_ids(ABSENT, 1000))
    world.user.store.stop()
    world.user.store.stop()
    world.clock.advance(20_000)
    assert world.user.outcomes == []
    assert world.user.told == []
    assert world.clock.timers == 0


@given(st.integers(0, 2**32))
def test_whatever_breaks_the_store_ends_with_what_etcd_has(seed: int) -> None:
    world, dice = World(seed), Random(seed)
    weather = world.etcd.weather_of("node-1")
    weather.broken, weather.lost, weather.slow, weather.unanswered = 0.2, 0.2, 0.2, 0.2
    for number in range(60):
        world.clock.advance(dice.uniform(0, 400))
        match dice.randrange(12):
            case 0:
                world.etcd.compact()
            case 1:
                world.etcd.cut("node-1")
            case 2:
                world.etcd.heal()
            case 3:
                world.etcd.kill()
            case 4:
                world.etcd.go_on()
            case 5:
                world.etcd.do_txn([], [KeyPut(f"{PREFIX}groups/{dice.randrange(4)}".encode(), None)])
            case _:
                world.written(f"groups/{dice.randrange(4)}", f'{{"v":1,"options":{{"n":"{number}"}}}}')
    world.etcd.weather_of("node-1").__dict__.update(vars(world.etcd.weather))
    world.etcd.heal()
    world.etcd.go_on()
    world.clock.advance(30_000)
    there = {entry.key.decode().removeprefix(f"{PREFIX}groups/"): entry for entry in world.etcd.keys.values()}
    assert {key.group_id: event.revision for key, event in world.user.known.items() if isinstance(key, GroupKey)} == {
        name: entry.mod_revision for name, entry in there.items()
    }
    assert world.user.store.unreadable is None
