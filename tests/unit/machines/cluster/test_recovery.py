"""With which copy a partition goes on when nobody knows who is in sync."""

from goqueue.machines.cluster.election import Partition
from goqueue.machines.cluster.recovery import (
    EPOCHS_MARGIN,
    IDS_MARGIN,
    CopyState,
    best,
    go_on,
    not_accounted_for,
    plan,
    recover,
)
from goqueue.model.metadata import (
    ClusterKey,
    ClusterValue,
    Compare,
    LiveKey,
    PartitionKey,
    ProducerIdsKey,
    ProducerIdsValue,
    Put,
)
from goqueue.model.placements import Lost, NodeInfo, Placement

KEY = PartitionKey(b"t" * 16, 0)
PLACED = Partition(KEY, Placement(1, 50, 4, (1, 2), (1, 2, 3), revision=60), 2)
NODES = {node_id: NodeInfo(node_id, 100 + node_id) for node_id in (1, 2, 3)}


def copy(
    end: int, last_epoch: int = 4, seen_epoch: int = 4, producer_id: int = -1, doubtful: bool = False
) -> CopyState:
    return CopyState(*_ids(), 0, end, last_epoch, seen_epoch, producer_id, doubtful)


def _ids() -> tuple[bytes, int]:
    return KEY.topic_id, KEY.number


def test_the_latest_epoch_counts_first_and_then_the_length() -> None:
    assert best({1: copy(10), 2: copy(12), 3: copy(11)}, (1, 2, 3)) == 2
    assert best({1: copy(100), 2: copy(12, last_epoch=5)}, (1, 2, 3)) == 2
    assert best({1: copy(10), 2: copy(10)}, (2, 1)) == 2, "of equals the preferred one"
    assert best({1: copy(10, doubtful=True), 2: copy(10)}, (1, 2)) == 2
    assert best({4: copy(10)}, (1, 2)) is None


def test_a_plan_raises_epochs_and_producer_ids_above_all_that_was_seen() -> None:
    held = {1: {KEY: copy(10, seen_epoch=9)}, 2: {KEY: copy(12, producer_id=5400)}, 3: {}}
    found = plan([PLACED], held, 3000, {})
    (one,) = found.chosen
    assert (one.node_id, one.epoch, one.missing) == (2, 9 + EPOCHS_MARGIN, (3,))
    assert found.producer_ids_end == 6000 + IDS_MARGIN
    assert found.missing == (3,)
    assert not_accounted_for(found, ()) == (3,)
    assert not_accounted_for(found, (3,)) == ()


def test_an_operator_may_choose_another_copy_but_not_one_that_there_is_not() -> None:
    held = {1: {KEY: copy(10)}, 2: {KEY: copy(12)}}
    assert plan([PLACED], held, 0, {KEY: 1}).chosen[0].node_id == 1
    assert plan([PLACED], held, 0, {KEY: 3}).left == (PLACED,)
    assert plan([PLACED], {1: {}}, 0, {}).left == (PLACED,)


def test_the_chosen_copy_leads_alone_only_while_all_is_halted_and_what_was_given_up_is_told() -> None:
    (one,) = plan([PLACED], {1: {KEY: copy(10)}, 2: {KEY: copy(12)}}, 0, {}).chosen
    step = recover(one, NODES, 77, 1234, "backup")
    assert set(step.compares) == {Compare(KEY, 60), Compare(LiveKey(2), 102), Compare(ClusterKey(), 77)}
    lost = (Lost(1234, 2, 12, "backup"),)
    epoch = 4 + EPOCHS_MARGIN
    led = PLACED.placement._replace(leader=2, incarnation=102, epoch=epoch, isr=(2,), lost=lost)
    assert step.puts == (Put(KEY, led),)


def test_the_last_step_lets_nodes_elect_again() -> None:
    cluster = ClusterValue("c", b"s", 16, 16, halted="restored", recoveries=2)
    step = go_on(cluster, 77, 70, 106_000)
    assert step.compares == (Compare(ClusterKey(), 77), Compare(ProducerIdsKey(), 70))
    assert step.puts == (
        Put(ProducerIdsKey(), ProducerIdsValue(106_000)),
        Put(ClusterKey(), cluster._replace(halted="", recoveries=3)),
    )
