from types import MappingProxyType

import pytest

from goqueue.broker.cluster_watch import ClusterWatch, Happened, PartitionState
from goqueue.model.placements import NOBODY, Lost, NodeInfo, Placement
from goqueue.model.topics import Image, Topic, TopicsChange
from goqueue.testing import VirtualClock

IN_SYNC = Placement(1, 10, 5, (1, 2, 3), (1, 2, 3))


def image(*placements: Placement, nodes: tuple[int, ...] = (1, 2, 3), overrides: dict[str, str] | None = None) -> Image:
    topic = Topic("orders", b"i" * 16, len(placements), overrides or {}, placements, replication_factor=3)
    return Image(7, {"orders": topic}, MappingProxyType({each: NodeInfo(each, each * 10) for each in nodes}))


def watch(*images: Image) -> ClusterWatch:
    made = ClusterWatch(VirtualClock(), 1)
    before = Image()
    for each in images:
        made.changed(TopicsChange(before, each, frozenset({"orders"})))
        before = each
    return made


@pytest.mark.parametrize(
    ("placement", "state"),
    [
        (IN_SYNC, PartitionState.ONLINE),
        (IN_SYNC._replace(isr=(1, 2)), PartitionState.UNDER_REPLICATED),
        (IN_SYNC._replace(isr=(1,)), PartitionState.UNDER_MIN_ISR),
        (IN_SYNC._replace(leader=NOBODY), PartitionState.OFFLINE),
        (IN_SYNC._replace(leader=4), PartitionState.OFFLINE),
        (IN_SYNC._replace(incarnation=9), PartitionState.OFFLINE),
    ],
    ids=["whole", "one missing", "too few", "no leader", "a dead leader", "an earlier life of the leader"],
)
def test_a_partition_is_in_the_worst_state_that_is_true_of_it(placement: Placement, state: PartitionState) -> None:
    (found,) = watch(image(placement)).placed()
    assert found.state is state


def test_partitions_and_nodes_are_counted() -> None:
    offline, alone = IN_SYNC._replace(leader=NOBODY), IN_SYNC._replace(isr=(1,))
    moved = IN_SYNC._replace(leader=2, incarnation=20)
    counts = watch(image(IN_SYNC, offline, alone, moved, nodes=(1, 2))).counts()
    assert counts._asdict() == {
        "nodes": 3,
        "nodes_alive": 2,
        "partitions": 4,
        "offline": 1,
        "under_min_isr": 1,
        "under_replicated": 2,
        "not_preferred": 1,
    }


def test_each_node_is_told_what_it_leads_and_holds() -> None:
    moved = IN_SYNC._replace(leader=2, incarnation=20)
    assert watch(image(IN_SYNC, IN_SYNC, moved)).held() == {1: (2, 3), 2: (1, 3), 3: (0, 3)}


def test_the_living_node_with_the_lowest_id_is_the_controller() -> None:
    made = watch(image(IN_SYNC, nodes=(2, 3)))
    assert (made.controller, made.is_controller) == (2, False)


def test_a_first_leader_is_no_election() -> None:
    assert watch(image(IN_SYNC)).elections == 0


def test_a_death_and_what_follows_is_told_in_order() -> None:
    elected = Placement(2, 20, 6, (2, 3), (1, 2, 3))
    back = elected._replace(isr=(1, 2, 3))
    made = watch(
        image(IN_SYNC), image(IN_SYNC, nodes=(2, 3)), image(elected, nodes=(2, 3)), image(elected), image(back)
    )
    assert [each.kind for each in made.events if each.number > 3] == [
        Happened.NODE_DOWN,
        Happened.OFFLINE,
        Happened.LEADER_CHANGED,
        Happened.ISR_SHRUNK,
        Happened.NODE_UP,
        Happened.ISR_EXPANDED,
    ]
    assert (made.elections, made.isr_shrinks, made.isr_expands, made.unclean_elections) == (1, 1, 1, 0)


def test_an_unclean_election_is_told_with_what_it_may_have_lost() -> None:
    unclean = Placement(3, 30, 6, (3,), (1, 2, 3), lost=(Lost(5, 3, 100, "operator"),))
    made = watch(image(IN_SYNC), image(unclean))
    assert made.unclean_elections == 1
    assert any("from 100 on may be gone" in each.message for each in made.events)


def test_a_topic_made_again_under_its_name_has_no_history() -> None:
    again = Image(8, {"orders": Topic("orders", b"j" * 16, 1, {}, (Placement(2, 20, 0, (2,), (2,)),))})
    assert watch(image(IN_SYNC), again).elections == 0
