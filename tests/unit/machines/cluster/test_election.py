"""Who stands for election, and what each change compares and writes."""

from goqueue.machines.cluster import steward
from goqueue.machines.cluster.election import (
    NEXT_HEIR_MS,
    Partition,
    change_isr,
    elect,
    elect_unclean,
    hand_over,
    has_leader,
    joined,
    stand_after_ms,
    together,
    write_again,
)
from goqueue.model.metadata import (
    ABSENT,
    ClusterKey,
    Compare,
    CompareGone,
    GoneKey,
    LiveKey,
    PartitionKey,
    Put,
    RemovedKey,
    Step,
    TopicKey,
    TopicValue,
)
from goqueue.model.placements import Lost, NodeInfo, Placement

KEY = PartitionKey(b"t" * 16, 3)
CLUSTER = 7
NODES = {node_id: NodeInfo(node_id, node_id * 10) for node_id in (1, 2, 3)}
LED = Placement(1, 10, 4, (1, 2, 3), (1, 2, 3), revision=50)


def without(*dead: int) -> dict[int, NodeInfo]:
    return {node_id: node for node_id, node in NODES.items() if node_id not in dead}


def at(placement: Placement = LED, minimum: int = 2) -> Partition:
    return Partition(KEY, placement, minimum)


def written(step: Step | None) -> Placement:
    assert step is not None
    value = step.puts[0].value
    assert isinstance(value, Placement)
    return value


def stands(placement: Placement, nodes: dict[int, NodeInfo], me: int, *, is_doubtful: bool = False) -> int | None:
    return stand_after_ms(placement, nodes, me, is_doubtful=is_doubtful)


def test_the_heirs_of_a_dead_leader_stand_one_after_the_other() -> None:
    assert [stands(LED, NODES, me) for me in (1, 2, 3)] == [None, None, None]
    assert [stands(LED, without(1), me) for me in (1, 2, 3)] == [None, 0, NEXT_HEIR_MS]
    assert [stands(LED, without(1, 2), me) for me in (2, 3)] == [None, 0]


def test_a_replica_that_is_not_in_sync_or_doubtful_never_stands() -> None:
    assert stands(LED._replace(isr=(1, 3)), without(1), 2) is None
    assert stands(LED, without(1), 2, is_doubtful=True) is None
    assert stands(LED, without(1), 3) == NEXT_HEIR_MS, "the others do not know that it is"


def test_a_leader_that_was_started_again_stands_anew() -> None:
    again = {**NODES, 1: NodeInfo(1, 60)}
    assert not has_leader(LED, again)
    assert stands(LED, again, 1) == 0
    step = elect(at(), again, 1, CLUSTER)
    assert written(step) == LED._replace(incarnation=60, epoch=5)
    assert Compare(LiveKey(1), 60) in step.compares
    assert CompareGone(LiveKey(1), 10) in step.compares


def test_an_election_compares_all_that_it_was_decided_from() -> None:
    step = elect(at(), without(1), 2, CLUSTER)
    assert written(step) == LED._replace(leader=2, incarnation=20, epoch=5, isr=(2, 3))
    assert set(step.compares) == {
        Compare(KEY, 50),
        Compare(LiveKey(2), 20),
        Compare(ClusterKey(), CLUSTER),
        CompareGone(LiveKey(1), 10),
        Compare(LiveKey(1), ABSENT),
    }


def test_an_election_never_leaves_fewer_than_the_minimum() -> None:
    step = elect(at(), without(1, 3), 2, CLUSTER)
    assert written(step).isr == (1, 2, 3)
    assert Compare(LiveKey(3), ABSENT) not in step.compares
    assert written(elect(at(minimum=1), without(1, 3), 2, CLUSTER)).isr == (2,)
    few = LED._replace(replicas=(1, 2), isr=(1, 2))
    assert written(elect(at(few, minimum=3), without(1), 2, CLUSTER)).isr == (1, 2)


def test_an_unclean_election_says_what_may_be_lost_and_needs_the_isr_to_be_gone() -> None:
    lost = Lost(1000, 3, 77, "asked for")
    placement = LED._replace(isr=(1, 2))
    step = elect_unclean(at(placement), without(1, 2), 3, CLUSTER, lost)
    assert written(step) == placement._replace(leader=3, incarnation=30, epoch=5, isr=(3,), lost=(lost,))
    assert {Compare(LiveKey(1), ABSENT), Compare(LiveKey(2), ABSENT)} <= set(step.compares)
    passing = elect_unclean(at(placement), NODES, 3, CLUSTER, lost, passed_over=(2,))
    assert Compare(LiveKey(2), ABSENT) not in passing.compares


def test_a_leader_hands_over_to_a_living_member_of_the_isr_only() -> None:
    step = hand_over(at(), NODES, 3)
    assert written(step) == LED._replace(leader=3, incarnation=30, epoch=5)
    assert step is not None
    assert set(step.compares) == {Compare(KEY, 50), Compare(LiveKey(1), 10), Compare(LiveKey(3), 30)}
    assert hand_over(at(LED._replace(isr=(1, 2))), NODES, 3) is None
    assert hand_over(at(), without(3), 3) is None
    assert hand_over(at(), NODES, 1) is None


def test_a_leader_that_stops_leaves_the_isr_with_its_leadership_if_enough_are_left() -> None:
    step = hand_over(at(), NODES, 3, leaves=True)
    assert written(step) == LED._replace(leader=3, incarnation=30, epoch=5, isr=(2, 3))
    assert step is not None
    assert set(step.compares) == {Compare(KEY, 50), Compare(LiveKey(1), 10), Compare(LiveKey(3), 30)}
    few = LED._replace(isr=(1, 3))
    assert written(hand_over(at(few), NODES, 3, leaves=True)).isr == (1, 3), "the floor is two"


def test_a_replica_joins_the_isr_only_in_the_life_in_which_it_fetched() -> None:
    step = change_isr(at(LED._replace(isr=(1, 2))), {1, 2, 3}, {3: 29})
    assert written(step).isr == (1, 2, 3)
    assert step is not None
    assert set(step.compares) == {Compare(KEY, 50), Compare(LiveKey(1), 10), Compare(LiveKey(3), 29)}


def test_the_isr_does_not_shrink_below_the_minimum() -> None:
    assert written(change_isr(at(), {1, 3}, {})).isr == (1, 3)
    assert change_isr(at(), {1}, {}) is None
    assert change_isr(at(), {2, 3}, {}) is None, "nor without its leader"
    assert written(change_isr(at(LED._replace(isr=(1, 2))), {1, 3}, {3: 30})).isr == (1, 3)
    assert written(change_isr(at(LED._replace(isr=(1,)), minimum=3), {1, 2}, {2: 20})).isr == (1, 2), "growth helps"


def test_the_same_is_written_again_to_move_the_revision() -> None:
    assert written(write_again(at())) == LED


def test_elections_share_transactions_and_compares() -> None:
    steps = [elect(Partition(PartitionKey(b"t" * 16, number), LED, 2), without(1), 2, CLUSTER) for number in range(130)]
    rounds = together(steps)
    assert [len(some) for some in rounds] == [60, 60, 10]
    whole = joined(rounds[0])
    assert len(whole.compares) == 60 + 4
    assert len(whole.puts) == 60


# -- the steward

TOPIC = TopicKey("orders")


def test_the_steward_is_the_living_node_with_the_lowest_id() -> None:
    assert [steward.is_steward(without(1), me) for me in (1, 2, 3)] == [False, True, False]


def test_a_replica_that_leaves_stays_until_all_that_come_are_in_sync() -> None:
    moving = written(steward.reassign(at(), TOPIC, 9, (4, 2, 3)))
    assert (moving.replicas, moving.adding, moving.removing) == ((4, 2, 3, 1), (4,), (1,))
    assert moving.isr == LED.isr
    assert steward.finish_reassignment(at(moving)) is None, "4 is not in sync"
    moving = moving._replace(isr=(1, 2, 3, 4))
    assert steward.finish_reassignment(at(moving)) is None, "its leader leaves"
    assert steward.heir_of_removed(moving, {**NODES, 4: NodeInfo(4, 40)}) == 4
    done = written(steward.finish_reassignment(at(moving._replace(leader=4, incarnation=40))))
    assert (done.replicas, done.adding, done.removing, done.isr) == ((4, 2, 3), (), (), (2, 3, 4))


def test_a_reassignment_that_is_cancelled_restores_the_replicas() -> None:
    moving = written(steward.reassign(at(), TOPIC, 9, (4, 5, 1)))
    back = written(steward.cancel(at(moving), TOPIC, 9))
    assert (set(back.replicas), back.adding, back.removing) == ({1, 2, 3}, (), ())
    late = moving._replace(isr=(1, 2, 3, 4), leader=4, incarnation=40)
    back = written(steward.cancel(at(late), TOPIC, 9))
    assert (set(back.replicas), back.adding, back.removing, back.isr) == ({1, 2, 3, 4}, (), (4,), (1, 2, 3, 4))
    assert steward.heir_of_removed(back, NODES) == 1
    assert steward.cancel(at(), TOPIC, 9) is None


def test_the_first_replica_is_preferred_once_it_is_in_sync() -> None:
    led = LED._replace(leader=2, incarnation=20)
    assert steward.preferred(led, NODES) == 1
    assert steward.preferred(led, without(1)) is None
    assert steward.preferred(led._replace(isr=(2, 3)), NODES) is None
    assert steward.preferred(LED, NODES) is None


def test_only_without_a_living_member_of_the_isr_may_others_be_chosen() -> None:
    placement = LED._replace(isr=(1, 2))
    assert steward.standing_without_isr(placement, without(1)) == []
    assert steward.standing_without_isr(placement, without(1, 2)) == [3]


def test_a_topic_is_forgotten_when_all_living_holders_have_removed_it() -> None:
    value = TopicValue(b"t" * 16, 150, {}, is_deleting=True)
    placements = dict.fromkeys(range(150), LED)

    def steps(removed: tuple[int, ...], nodes: dict[int, NodeInfo]) -> list[Step]:
        return steward.finish_deletion("orders", value, 9, placements, removed, nodes, 1000)

    assert steps((1, 2), NODES) == []
    done = steps((1, 2), without(3))
    assert all(step.compares == (Compare(TOPIC, 9),) and len(step.puts) <= 100 for step in done)
    puts = [put for step in done for put in step.puts]
    assert puts[0].key == GoneKey(value.topic_id)
    assert puts[-1] == Put(TOPIC, None)
    assert {put.key for put in puts[1:-1]} == {
        *(PartitionKey(value.topic_id, number) for number in range(150)),
        *(RemovedKey(value.topic_id, node_id) for node_id in (1, 2)),
    }
