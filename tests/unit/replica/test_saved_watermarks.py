"""A copy that has lost what it once acknowledged knows it after a restart, and does not stand for election."""

from goqueue.model.placements import Placement
from goqueue.model.topics import Topic
from goqueue.records.batch import check_batch
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Seat
from goqueue.replica.saved_watermarks import SavedWatermarks
from goqueue.storage.watermarks import TOPIC_ID_BYTES, Watermark, Watermarks, load_watermarks, save_watermarks
from goqueue.testing import MemoryDisk
from tests.brokers import TOPIC_ID, Parts, data

OTHER_ID = bytes(reversed(TOPIC_ID))


def node(disk: MemoryDisk, boot: str = "first") -> Parts:
    parts = Parts(disk)
    parts.replicas.saved = SavedWatermarks(disk, boot)
    return parts


def save(parts: Parts, *, is_clean: bool = False) -> None:
    assert parts.replicas.saved is not None
    saved = parts.replicas.saved
    saved.save(saved.of(parts.replicas.all(), is_clean=is_clean))


def filled(parts: Parts, durability: str = "disk") -> Replica:
    replica = parts.replica(durability=durability)
    replica.append(check_batch(data(b"a", b"b")), 1000)
    parts.commit()
    return replica


def test_watermarks_come_back_as_they_were_saved() -> None:
    disk = MemoryDisk()
    logs = {("orders", 3): Watermark(7, False, TOPIC_ID), ("@groups", 0): Watermark(1, True)}
    saved = Watermarks("boot", is_clean=True, logs=logs)
    save_watermarks(disk, saved)
    assert load_watermarks(disk) == saved


def test_watermarks_of_a_version_without_topic_ids_are_read() -> None:
    logs = {("orders", 3): Watermark(7, False, TOPIC_ID), ("@groups", 0): Watermark(1, True)}
    body = Watermarks("boot", is_clean=True, logs=logs).encode()
    before = Watermarks.decode(body[: -len(logs) * TOPIC_ID_BYTES])
    assert before.logs == {name: one._replace(topic_id=b"") for name, one in logs.items()}


def opened(parts: Parts, topic_id: bytes, leader: int, epoch: int = 0) -> Replica:
    """The copy of node 1, in a cluster."""
    parts.replicas.seat = Seat(1, 1)
    placement = Placement(replicas=(1, 2), isr=(1,), leader=leader, incarnation=1, epoch=epoch)
    replica = parts.replicas.open(Topic("orders", topic_id, 1, {}, (placement,)), 0, parts.clock.now_ms())
    assert replica is not None, parts.replicas.failed
    return replica


def started_again() -> tuple[MemoryDisk, Parts]:
    """A node that found two records of `orders`."""
    disk = MemoryDisk()
    parts = node(disk)
    opened(parts, TOPIC_ID, leader=1).append(check_batch(data(b"a", b"b")), 1000)
    parts.commit()
    save(parts)
    parts.close()
    again = node(disk)
    assert opened(again, TOPIC_ID, leader=1, epoch=1).high_watermark == 2
    return disk, again


def test_a_topic_that_was_deleted_and_made_again_is_not_in_doubt() -> None:
    """Else all copies of the new one would be that this node and others make, and nobody could take its leader's
    place."""
    _, parts = started_again()
    parts.replicas.retire("orders", [0])()
    assert not opened(parts, OTHER_ID, leader=2).is_doubtful


def test_a_topic_that_was_deleted_and_made_again_while_the_node_was_down_is_not_in_doubt() -> None:
    disk, parts = started_again()
    save(parts)
    parts.close()
    replica = opened(node(disk), OTHER_ID, leader=2)
    assert (replica.end_offset, replica.high_watermark) == (0, 0)
    assert not replica.is_doubtful


def test_a_log_that_was_lost_is_in_doubt_if_its_topic_is_the_same() -> None:
    _, parts = started_again()
    parts.replicas.retire("orders", [0])()
    assert opened(parts, TOPIC_ID, leader=2).is_doubtful


def test_a_copy_that_ends_where_it_did_is_not_in_doubt() -> None:
    disk = MemoryDisk()
    parts = node(disk)
    filled(parts)
    save(parts)
    parts.close()
    replica = node(disk).replica()
    assert not replica.is_doubtful
    assert replica.high_watermark == 2


def test_a_copy_that_ends_below_its_watermark_is_doubtful_and_stays_so() -> None:
    disk = MemoryDisk()
    parts = node(disk)
    filled(parts)
    save(parts)
    parts.replicas.retire("orders", [0])()
    parts.close()
    again = node(disk)
    replica = again.replica()
    assert replica.is_doubtful
    save(again)
    again.close()
    assert node(disk).replica().is_doubtful


def test_a_machine_that_went_down_leaves_copies_in_doubt_that_were_acknowledged_unsynced() -> None:
    disk = MemoryDisk()
    parts = node(disk)
    filled(parts, durability="os")
    save(parts)
    parts.close()
    same_boot = node(disk, "first")
    assert not same_boot.replica(durability="os").is_doubtful
    save(same_boot)
    same_boot.close()
    assert node(disk, "second").replica(durability="os").is_doubtful


def test_a_machine_that_was_stopped_in_good_order_leaves_no_doubt() -> None:
    disk = MemoryDisk()
    parts = node(disk)
    filled(parts, durability="os")
    save(parts, is_clean=True)
    parts.close()
    assert not node(disk, "second").replica(durability="os").is_doubtful


def test_a_stop_before_all_was_opened_does_not_call_clean_what_was_not_synced() -> None:
    disk = MemoryDisk()
    parts = node(disk)
    filled(parts, durability="os")
    save(parts)
    parts.close()
    stopped_early = node(disk, "first")
    save(stopped_early, is_clean=True)
    stopped_early.close()
    assert node(disk, "second").replica(durability="os").is_doubtful


def test_the_watermark_of_a_copy_that_is_being_opened_stays_saved() -> None:
    disk = MemoryDisk()
    parts = node(disk)
    log = filled(parts, durability="os").log
    save(parts)
    saved = SavedWatermarks(disk, "first")
    assert saved.judge(("orders", 0), log) == 2
    assert saved.of((), is_clean=False).logs["orders", 0].offset == 2
