"""The image of a cluster, from whatever a store holds: the same values, the same image."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from goqueue.cluster.metadata import Metadata
from goqueue.cluster.store import OnDone, OnEvents, OnListed
from goqueue.model.metadata import (
    Compare,
    Event,
    Key,
    Listing,
    LiveKey,
    PartitionKey,
    Put,
    Step,
    TopicKey,
    TopicValue,
    Value,
)
from goqueue.model.placements import NOWHERE, NodeInfo, Placement

ID, OTHER_ID = b"i" * 16, b"o" * 16
HERE = Placement(1, 10, 4, (1, 2), (1, 2, 3))


class FakeStore:
    """Keys in a table, and one who watches."""

    def __init__(self) -> None:
        self.table: dict[Key, Event] = {}
        self.revision = 0
        self.tell: OnEvents = lambda events: None
        self.lose: Callable[[], None] = lambda: None
        self.asked: list[Step] = []

    def list(self, on_listed: OnListed) -> None:
        on_listed(Listing(self.revision, list(self.table.values())))

    def watch(self, on_events: OnEvents, on_lost: Callable[[], None]) -> None:
        self.tell, self.lose = on_events, on_lost

    def txn(self, step: Step, on_done: OnDone) -> None:
        self.asked.append(step)

    def submit(self, command: Any, on_reply: Callable[[Any], None]) -> None:
        raise AssertionError((command, on_reply))

    def removed(self, name: str, revision: int) -> None:
        self.txn(Step((Compare(TopicKey(name), revision),), (Put(TopicKey(name), None),)), lambda outcome: None)

    def set(self, *puts: tuple[Key, Value | None], is_told: bool = True) -> None:
        self.revision += 1
        events = [Event(key, value, self.revision) for key, value in puts]
        for event in events:
            if event.value is None:
                self.table.pop(event.key, None)
            else:
                self.table[event.key] = event
        if is_told:
            self.tell(events)


def watched() -> tuple[FakeStore, Metadata, list[set[str]]]:
    store = FakeStore()
    metadata = Metadata(store)
    told: list[set[str]] = []
    metadata.on_change = lambda names: told.append(set(names))
    return store, metadata, told


def topic(partitions: int = 2, topic_id: bytes = ID, *, is_deleting: bool = False, **overrides: str) -> TopicValue:
    return TopicValue(topic_id, partitions, overrides, is_deleting)


def test_a_topic_is_shown_with_where_its_partitions_are() -> None:
    store, metadata, told = watched()
    store.set((LiveKey(1), NodeInfo(1, 10)), (LiveKey(2), NodeInfo(2, 11)))
    store.set((PartitionKey(ID, 0), HERE), (TopicKey("orders"), topic()))
    found = metadata.image.topics["orders"]
    assert (found.id, found.partitions, found.placements) == (ID, 2, (HERE, NOWHERE))
    assert metadata.image.leader_of("orders", 0) == NodeInfo(1, 10)
    assert metadata.image.leader_of("orders", 1) is None
    assert metadata.image.leader_of("orders", 2) is None
    assert metadata.image.leader_of("nothing", 0) is None
    assert metadata.image.revision == 2
    assert told == [set(), {"orders"}]


def test_a_leader_that_was_started_again_does_not_lead() -> None:
    store, metadata, _ = watched()
    store.set((LiveKey(1), NodeInfo(1, 10)), (PartitionKey(ID, 0), HERE), (TopicKey("orders"), topic(1)))
    store.set((LiveKey(1), NodeInfo(1, 20)))
    assert metadata.image.leader_of("orders", 0) is None
    store.set((PartitionKey(ID, 0), HERE._replace(incarnation=20, epoch=5)))
    assert metadata.image.leader_of("orders", 0) == NodeInfo(1, 20)
    store.set((LiveKey(1), None))
    assert metadata.image.leader_of("orders", 0) is None


def test_an_image_that_somebody_holds_does_not_change() -> None:
    store, metadata, _ = watched()
    store.set((PartitionKey(ID, 0), HERE), (TopicKey("orders"), topic(1, retention="5")))
    image, orders = metadata.image, metadata.image.topics["orders"]
    store.set((TopicKey("orders"), topic(3)))
    store.set((PartitionKey(ID, 0), HERE._replace(epoch=9)))
    store.set((LiveKey(5), NodeInfo(5, 1)))
    store.set((TopicKey("orders"), None))
    assert image.topics == {"orders": orders}
    assert (orders.partitions, orders.placements, dict(orders.overrides)) == (1, (HERE,), {"retention": "5"})
    assert dict(image.nodes) == {}
    assert metadata.image.revision > image.revision


def test_a_topic_that_others_changes_do_not_concern_stays_the_same_object() -> None:
    store, metadata, told = watched()
    store.set((TopicKey("orders"), topic()), (TopicKey("clicks"), topic(1, OTHER_ID)))
    before = metadata.image.topics["orders"]
    store.set((TopicKey("clicks"), topic(5, OTHER_ID)), (LiveKey(1), NodeInfo(1, 1)))
    assert metadata.image.topics["orders"] is before
    store.lose()
    assert metadata.image.topics["orders"] is before
    assert told[-2:] == [{"clicks"}, set()]


def test_what_was_missed_is_found_by_listing_anew_also_what_is_gone() -> None:
    store, metadata, told = watched()
    store.set((TopicKey("orders"), topic()), (TopicKey("clicks"), topic(1, OTHER_ID)), (LiveKey(1), NodeInfo(1, 1)))
    store.set((TopicKey("orders"), topic(4)), is_told=False)
    store.set((TopicKey("clicks"), None), is_told=False)
    store.set((LiveKey(1), None), (LiveKey(2), NodeInfo(2, 2)), is_told=False)
    store.lose()
    assert {name: one.partitions for name, one in metadata.image.topics.items()} == {"orders": 4}
    assert dict(metadata.image.nodes) == {2: NodeInfo(2, 2)}
    assert told[-1] == {"orders", "clicks"}


def test_a_topic_that_is_being_deleted_is_not_shown_and_is_forgotten_only_as_it_was_known() -> None:
    store, metadata, _ = watched()
    store.set((TopicKey("orders"), topic()))
    metadata.removed("orders")
    assert store.asked == [], "it lives"
    store.set((TopicKey("orders"), topic(is_deleting=True)))
    assert dict(metadata.image.topics) == {}
    assert {name: value.partitions for name, value in metadata.deleting.items()} == {"orders": 2}
    metadata.removed("orders")
    assert store.asked == [Step((Compare(TopicKey("orders"), 2),), (Put(TopicKey("orders"), None),))]
    store.set((TopicKey("orders"), topic(1, OTHER_ID)))
    assert metadata.deleting == {}
    assert metadata.image.topics["orders"].id == OTHER_ID
    assert metadata.image.by_id(ID) is None


KEYS = st.sampled_from(
    [TopicKey("a"), TopicKey("b"), PartitionKey(ID, 0), PartitionKey(ID, 1), PartitionKey(OTHER_ID, 0), LiveKey(1)]
)


@given(st.lists(st.lists(st.tuples(KEYS, st.integers(0, 4)), min_size=1, max_size=3), max_size=12), st.data())
def test_however_it_was_learned_the_image_is_that_of_the_values(steps: list[Any], data: st.DataObject) -> None:
    store, metadata, _ = watched()
    for step in steps:
        puts: list[tuple[Key, Value | None]] = []
        for key, number in step:
            match key:
                case TopicKey(name):
                    value: Value | None = topic(number or 1, ID if name == "a" else OTHER_ID, is_deleting=number == 3)
                case PartitionKey():
                    value = HERE._replace(epoch=number)
                case _:
                    value = NodeInfo(1, number)
            puts.append((key, None if number == 4 else value))
        is_told = data.draw(st.booleans())
        store.set(*puts, is_told=is_told)
        if not is_told:
            store.lose()
    fresh = Metadata(store)
    store.lose()
    assert (metadata.image.topics, metadata.image.nodes) == (fresh.image.topics, fresh.image.nodes)
    assert metadata.deleting == fresh.deleting
    assert {one.id: one for one in metadata.image.topics.values()} == dict(metadata.image._ids)
