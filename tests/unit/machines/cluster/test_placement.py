"""Where copies are placed."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.machines.cluster.placement import Host, TooFewNodes, assign, first_placement, hosts, replaced
from goqueue.model.metadata import NodeValue
from goqueue.model.placements import NodeInfo, Placement

TOPIC = b"t" * 16
RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
SIX = [Host(node_id, rack) for node_id, rack in RACKS.items()]


def test_leaders_and_copies_come_out_even() -> None:
    placed = [assign(TOPIC, number, SIX, 3) for number in range(60)]
    assert set(Counter(one[0] for one in placed).values()) == {10}
    assert set(Counter(node for one in placed for node in one).values()) == {30}


def test_the_copies_of_a_partition_are_on_as_many_racks_as_there_are() -> None:
    for number in range(30):
        assert len({RACKS[node] for node in assign(TOPIC, number, SIX, 3)}) == 3
        assert len(set(assign(TOPIC, number, SIX, 5))) == 5


def test_the_followers_of_one_leader_differ_from_round_to_round() -> None:
    nodes = [Host(node_id) for node_id in range(1, 6)]
    of_one = {assign(TOPIC, number, nodes, 2) for number in range(40)}
    leader = next(iter(of_one))[0]
    assert len({one for one in of_one if one[0] == leader}) == 4


def test_too_few_nodes_are_said_to_be_so() -> None:
    with pytest.raises(TooFewNodes, match="7 copies"):
        assign(TOPIC, 0, SIX, 7)
    with pytest.raises(TooFewNodes):
        assign(TOPIC, 0, [], 1)


@given(st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=7), st.integers(0, 50), st.data())
def test_any_assignment_names_different_nodes_and_starts_at_its_place(
    racks: list[str | None], number: int, data: st.DataObject
) -> None:
    nodes = [Host(node_id, rack) for node_id, rack in enumerate(racks)]
    copies = data.draw(st.integers(1, len(nodes)))
    placed = assign(TOPIC, number, nodes, copies)
    assert len(set(placed)) == copies
    again = [assign(TOPIC, number + step, nodes, 1)[0] for step in range(len(nodes))]
    assert sorted(again) == list(range(len(nodes)))


def test_nodes_that_leave_get_nothing_and_dead_ones_only_if_need_be() -> None:
    members = {1: NodeValue("d1"), 2: NodeValue("d2", "r"), 3: NodeValue("d3"), 4: NodeValue("d4", wanted="drain")}
    assert hosts(members, (1, 2, 4), 2) == [Host(1), Host(2, "r")]
    assert hosts(members, (1, 2, 4), 3) == [Host(1), Host(2, "r"), Host(3)]


def test_the_living_copies_of_a_new_partition_are_in_sync() -> None:
    alive = {2: NodeInfo(2, 20), 3: NodeInfo(3, 30)}
    assert first_placement((1, 2, 3), alive, 2) == Placement(2, 20, 0, (2, 3), (1, 2, 3))
    with pytest.raises(TooFewNodes, match="fewer than 3"):
        first_placement((1, 2, 3), alive, 3)


def test_a_node_that_leaves_is_replaced_by_one_of_another_rack_with_few_copies() -> None:
    assert replaced((1, 3, 5), 5, SIX, {6: 9, 2: 0, 4: 0}) == (1, 3, 6)
    assert replaced((1, 3), 3, SIX, {4: 5, 5: 4, 6: 4}) == (1, 5)
    with pytest.raises(TooFewNodes):
        replaced((1, 2), 2, SIX[:2], {})
