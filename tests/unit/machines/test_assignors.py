"""Assignors against brute force and against their promises."""

from collections.abc import Callable, Mapping
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.machines.groups.assignors import (
    ASSIGNORS,
    Change,
    Subscriber,
    assign_ranges,
    assignment_diff,
    round_robin,
    uniform,
)
from tests.steps import Steps

Partition = tuple[str, int]
Members = dict[str, Subscriber[str]]
Assigned = dict[str, list[Partition]]
Assign = Callable[[Mapping[str, Subscriber[str]], Mapping[str, int]], Assigned]

ALL: list[Assign] = [uniform, assign_ranges, round_robin]


def equals(count: int, topics: Mapping[str, int], previous: Mapping[str, list[Partition]] | None = None) -> Members:
    """Members that subscribe to everything."""
    names = [f"m{number:04}" for number in range(count)]
    return {name: Subscriber(frozenset(topics), (previous or {}).get(name, ())) for name in names}


def again(members: Members, assigned: Assigned) -> Members:
    return {name: member._replace(previous=assigned.get(name, ())) for name, member in members.items()}


def moves(before: Assigned, after: Assigned) -> int:
    """Partitions that a member who is still there has lost to another."""
    return sum(len(set(before[name]) - set(after[name])) for name in before.keys() & after.keys())


def score(members: Members, assigned: Assigned) -> tuple[int, int]:
    """Imbalance, then partitions that have left a member which could have kept them."""
    kept = {partition: name for name, member in members.items() for partition in member.previous}
    left = sum(kept.get(partition, name) != name for name, mine in assigned.items() for partition in mine)
    return sum(len(mine) ** 2 for mine in assigned.values()), left


def best_score(members: Members, topics: Mapping[str, int]) -> tuple[int, int]:
    """By trying all assignments there are."""
    partitions = [(topic, number) for topic, count in topics.items() for number in range(count)]
    choices = [[name for name, member in members.items() if topic in member.topics] for topic, _ in partitions]
    reached = [(partition, names) for partition, names in zip(partitions, choices) if names]
    scores = []
    for chosen in product(*(names for _, names in reached)):
        assigned: Assigned = {name: [] for name in members}
        for name, (partition, _) in zip(chosen, reached):
            assigned[name].append(partition)
        scores.append(score(members, assigned))
    return min(scores)


@st.composite
def small_groups(draw: st.DrawFn, same: bool) -> tuple[Members, dict[str, int]]:
    topics = draw(st.dictionaries(st.sampled_from("abc"), st.integers(1, 3), min_size=1, max_size=3))
    count = draw(st.integers(1, 4 if sum(topics.values()) < 6 else 3))
    some = st.just(frozenset(topics)) if same else st.frozensets(st.sampled_from(sorted(topics)))
    subscribed = {f"m{number}": draw(some) for number in range(count)}
    held: dict[str, list[Partition]] = {name: [] for name in subscribed}
    for topic, partitions in topics.items():
        for number in range(partitions):
            name = draw(st.sampled_from(sorted(subscribed)))
            if topic in subscribed[name] and draw(st.integers(0, 4)):
                held[name].append((topic, number))
    return {name: Subscriber(subscribed[name], held[name]) for name in subscribed}, topics


@given(small_groups(same=True))
@settings(max_examples=80, deadline=None)
def test_uniform_is_as_even_and_as_sticky_as_any_assignment_can_be(group: tuple[Members, dict[str, int]]) -> None:
    """Balance first, then the exact least number of moves, by brute force."""
    members, topics = group
    assert score(members, uniform(members, topics)) == best_score(members, topics)


@given(small_groups(same=False))
@settings(max_examples=80, deadline=None)
def test_mixed_subscriptions_are_balanced_as_far_as_they_allow(group: tuple[Members, dict[str, int]]) -> None:
    members, topics = group
    assert score(members, uniform(members, topics))[0] == best_score(members, topics)[0]


@pytest.mark.parametrize("assign", ALL)
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_every_partition_has_exactly_one_reader_who_asked_for_it(assign: Assign, data: st.DataObject) -> None:
    topics = data.draw(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 20)))
    some = st.frozensets(st.sampled_from("abcdefx"))
    count = data.draw(st.integers(0, 8))
    members: Members = {f"m{number}": Subscriber(data.draw(some)) for number in range(count)}
    if data.draw(st.booleans()):  # whatever was before, even nonsense
        anything = st.lists(st.tuples(st.sampled_from("abcdefx"), st.integers(-2, 25)), max_size=30)
        members = {name: member._replace(previous=data.draw(anything)) for name, member in members.items()}
    assigned = assign(members, topics)
    assert list(assigned) == list(members)
    given_out = [partition for mine in assigned.values() for partition in mine]
    subscribed = frozenset[str]().union(*(member.topics for member in members.values()))
    wanted = [(topic, number) for topic in topics if topic in subscribed for number in range(topics[topic])]
    assert sorted(given_out) == sorted(wanted)
    for name, mine in assigned.items():
        assert {topic for topic, _ in mine} <= members[name].topics
        assert mine == sorted(mine)
    assert assign(members, topics) == assigned


@given(st.integers(1, 40), st.lists(st.integers(0, 60), min_size=1, max_size=6), st.booleans())
def test_uniform_and_round_robin_differ_by_one_at_most(count: int, partitions: list[int], has_stranger: bool) -> None:
    topics = {f"t{number}": each for number, each in enumerate(partitions)}
    members = equals(count, topics)
    if has_stranger:
        members["stranger"] = Subscriber(frozenset({"not there"}))
    assigns: list[Assign] = [uniform, round_robin] if not has_stranger else [uniform]
    for assign in assigns:
        loads = [len(mine) for name, mine in assign(members, topics).items() if name != "stranger"]
        assert max(loads) - min(loads) <= 1


@given(st.integers(2, 12), st.integers(2, 12), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_members_with_one_subscription_differ_by_one_at_most_among_others(
    left: int, right: int, random: Random
) -> None:
    topics = {"a": random.randint(0, 30), "b": random.randint(0, 30), "c": random.randint(0, 30)}
    members: Members = {f"l{number}": Subscriber(frozenset("ab")) for number in range(left)}
    members |= {f"r{number}": Subscriber(frozenset("bc")) for number in range(right)}
    for _ in range(4):
        assigned = uniform(members, topics)
        for side in "lr":
            loads = [len(mine) for name, mine in assigned.items() if name[0] == side]
            assert not loads or max(loads) - min(loads) <= 1
        members = again(members, assigned)
        members.pop(random.choice(sorted(members)))
        topics[random.choice("abc")] += random.randint(0, 3)


@pytest.mark.parametrize(("count", "partitions"), [(1, 12), (2, 12), (3, 12), (5, 12), (7, 100), (12, 12), (15, 12)])
def test_sticky_moves_only_the_share_of_who_joins(count: int, partitions: int) -> None:
    topics = {"orders": partitions}
    before = uniform(equals(count, topics), topics)
    after = uniform(equals(count + 1, topics, before), topics)
    newcomer = f"m{count:04}"
    assert len(after[newcomer]) == partitions // (count + 1)
    assert moves(before, after) == len(after[newcomer])


@pytest.mark.parametrize(("count", "partitions"), [(2, 12), (3, 12), (5, 12), (7, 100), (12, 12), (15, 12)])
def test_sticky_moves_nothing_of_those_who_stay_when_one_leaves(count: int, partitions: int) -> None:
    topics = {"orders": partitions}
    before = uniform(equals(count, topics), topics)
    members = again(equals(count, topics), before)
    del members["m0001"]
    assert moves(before, uniform(members, topics)) == 0


def test_added_partitions_move_nothing_that_is_in_place() -> None:
    members = equals(3, {"a": 6})
    before = uniform(members, {"a": 6})
    after = uniform(again(members, before), {"a": 9})
    assert moves(before, after) == 0
    assert sorted(map(len, after.values())) == [3, 3, 3]


def test_a_chain_of_moves_is_found_where_no_single_move_helps() -> None:
    members: Members = {
        "full": Subscriber(frozenset("a"), [("a", 0), ("a", 1), ("a", 2)]),
        "middle": Subscriber(frozenset("ab"), [("b", 0), ("b", 1)]),
        "empty": Subscriber(frozenset("b"), [("b", 2)]),
    }
    assigned = uniform(members, {"a": 3, "b": 3})
    assert sorted(map(len, assigned.values())) == [2, 2, 2]
    assert score(members, assigned)[1] == 2


def test_ranges_are_neighbours_and_meet_across_topics() -> None:
    topics = {"clicks": 5, "views": 5}
    assert assign_ranges(equals(2, topics), topics) == {
        "m0000": [("clicks", 0), ("clicks", 1), ("clicks", 2), ("views", 0), ("views", 1), ("views", 2)],
        "m0001": [("clicks", 3), ("clicks", 4), ("views", 3), ("views", 4)],
    }


def test_round_robin_takes_turns_over_all_topics() -> None:
    topics = {"a": 3, "b": 2}
    assert round_robin(equals(2, topics), topics) == {
        "m0000": [("a", 0), ("a", 2), ("b", 1)],
        "m0001": [("a", 1), ("b", 0)],
    }


def test_round_robin_passes_over_who_does_not_subscribe() -> None:
    members = {"x": Subscriber(frozenset("ab")), "y": Subscriber(frozenset("b")), "z": Subscriber(frozenset("ab"))}
    assert round_robin(members, {"a": 3, "b": 3}) == {
        "x": [("a", 0), ("a", 2), ("b", 2)],
        "y": [("b", 0)],
        "z": [("a", 1), ("b", 1)],
    }


def test_diff_names_what_is_revoked_and_what_is_added() -> None:
    before = {"stays": [("a", 0)], "loses": [("a", 1), ("a", 2)], "leaves": [("a", 3)]}
    after = {"stays": [("a", 0)], "loses": [("a", 1)], "joins": [("a", 2), ("a", 3)]}
    assert assignment_diff(before, after) == {
        "loses": Change(revoked=frozenset({("a", 2)}), added=frozenset()),
        "leaves": Change(revoked=frozenset({("a", 3)}), added=frozenset()),
        "joins": Change(revoked=frozenset(), added=frozenset({("a", 2), ("a", 3)})),
    }


@given(small_groups(same=False), small_groups(same=False))
@settings(max_examples=40, deadline=None)
def test_diff_applied_to_the_old_gives_the_new(
    first: tuple[Members, dict[str, int]], second: tuple[Members, dict[str, int]]
) -> None:
    before, after = uniform(*first), uniform(*second)
    rebuilt = {name: set(mine) for name, mine in before.items()}
    for name, change in assignment_diff(before, after).items():
        assert change.revoked <= rebuilt.get(name, set())
        assert not change.added & rebuilt.get(name, set())
        rebuilt[name] = (rebuilt.get(name, set()) - change.revoked) | change.added
    assert {name: mine for name, mine in rebuilt.items() if mine} == {
        name: set(mine) for name, mine in after.items() if mine
    }


def test_a_thousand_members_and_ten_thousand_partitions_are_assigned_at_once() -> None:
    """In well under 200 ms: of the two million pairs of a member and a partition, hardly any is looked at."""
    random = Random(848)
    topics = {f"t{number:03}": 100 for number in range(100)}
    same = equals(1000, topics)
    mixed = {name: Subscriber(frozenset(random.sample(sorted(topics), 20))) for name in same}
    for members in (same, mixed):
        assigned = uniform(members, topics)
        members["newcomer"] = Subscriber(frozenset(topics))
        before = again(members, assigned)
        with Steps() as steps:
            after = uniform(before, topics)
        assert steps.count < 400_000
        assert moves(assigned, after) == len(after["newcomer"])


def test_assignors_are_known_by_the_names_clients_use() -> None:
    assert list(ASSIGNORS) == ["uniform", "range", "roundrobin"]
