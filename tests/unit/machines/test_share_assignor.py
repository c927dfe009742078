"""A share group's assignor against its promises."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from goqueue.machines.groups.assignors import Subscriber
from goqueue.machines.groups.share.assignor import assign_shared

Partition = tuple[bytes, int]
Members = dict[str, Subscriber[bytes]]
Assigned = dict[str, list[Partition]]


def equals(count: int, topics: Mapping[bytes, int], previous: Mapping[str, list[Partition]] | None = None) -> Members:
    names = [f"m{number:04}" for number in range(count)]
    return {name: Subscriber(frozenset(topics), (previous or {}).get(name, ())) for name in names}


def again(members: Members, assigned: Assigned) -> Members:
    return {name: member._replace(previous=assigned.get(name, ())) for name, member in members.items()}


def readers(assigned: Assigned) -> Counter[Partition]:
    return Counter(partition for mine in assigned.values() for partition in mine)


def all_of(topics: Mapping[bytes, int]) -> set[Partition]:
    return {(topic, number) for topic, count in topics.items() for number in range(count)}


def spread(numbers: list[int]) -> int:
    return max(numbers) - min(numbers)


counts = st.dictionaries(st.sampled_from([b"a", b"b", b"c"]), st.integers(1, 6), min_size=1)
sizes = st.integers(1, 30)


@given(topics=counts, first=sizes, second=sizes)
def test_equals_have_equally_much_and_partitions_equally_many_readers(
    topics: dict[bytes, int], first: int, second: int
) -> None:
    """Also after members have come or gone."""
    assigned: Assigned = {}
    for size in (first, second):
        assigned = assign_shared(equals(size, topics, assigned), topics)
        assert set(readers(assigned)) == all_of(topics)
        assert spread([len(mine) for mine in assigned.values()]) <= 1
        assert spread(list(readers(assigned).values())) <= 1
        assert min(len(mine) for mine in assigned.values()) >= 1
        assert all(len(set(mine)) == len(mine) for mine in assigned.values())


@given(topics=counts, size=sizes)
def test_what_is_balanced_stays(topics: dict[bytes, int], size: int) -> None:
    members = equals(size, topics)
    assigned = assign_shared(members, topics)
    assert assign_shared(again(members, assigned), topics) == assigned


@given(topics=counts, size=st.integers(2, 30), place=st.integers(0, 29))
def test_when_a_reader_leaves_a_shared_partition_one_other_moves_at_most(
    topics: dict[bytes, int], size: int, place: int
) -> None:
    members = equals(size, topics)
    before = assign_shared(members, topics)
    left = again(members, before)
    del left[f"m{place % size:04}"]
    after = assign_shared(left, topics)
    moved = sum(len(set(after[name]) - set(before[name])) for name in after)
    needed = len(before[f"m{place % size:04}"]) if size <= sum(topics.values()) else 1
    assert moved <= needed


@given(topics=counts, size=st.integers(1, 30))
def test_a_newcomer_moves_nobody_where_partitions_are_shared(topics: dict[bytes, int], size: int) -> None:
    members = equals(size, topics)
    before = assign_shared(members, topics)
    after = assign_shared(equals(size + 1, topics, before), topics)
    for name, mine in before.items():
        assert set(after[name]) <= set(mine)
    if size >= sum(topics.values()):
        assert {name: after[name] for name in before} == before


@st.composite
def mixed_groups(draw: st.DrawFn) -> tuple[Members, dict[bytes, int]]:
    topics = draw(st.dictionaries(st.sampled_from([b"a", b"b", b"c", b"d"]), st.integers(0, 4)))
    some = st.frozensets(st.sampled_from([b"a", b"b", b"c", b"d"]))
    places = st.tuples(st.sampled_from([b"a", b"b", b"x"]), st.integers(0, 5))
    members = {
        f"m{number}": Subscriber(draw(some), draw(st.lists(places, unique=True, max_size=4)))
        for number in range(draw(st.integers(1, 12)))
    }
    return members, topics


@given(mixed_groups())
def test_different_subscriptions_too_leave_no_partition_and_no_member_out(
    group: tuple[Members, dict[bytes, int]],
) -> None:
    members, topics = group
    assigned = assign_shared(members, topics)
    wanted = {topic for member in members.values() for topic in member.topics}
    assert set(readers(assigned)) == {place for place in all_of(topics) if place[0] in wanted}
    for name, member in members.items():
        has_choice = any(topics.get(topic) for topic in member.topics)
        assert bool(assigned[name]) == has_choice
        assert {topic for topic, _ in assigned[name]} <= member.topics
        assert len(set(assigned[name])) == len(assigned[name])
    assert assign_shared(again(members, assigned), topics) is not None


def test_a_thousand_readers_of_one_partition() -> None:
    topics = {b"a": 1}
    assert assign_shared(equals(1000, topics), topics) == {f"m{number:04}": [(b"a", 0)] for number in range(1000)}
