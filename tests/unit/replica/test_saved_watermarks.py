"""A copy that has lost what it once acknowledged knows it after a restart, and does not stand for election."""

from goqueue.records.batch import check_batch
from goqueue.replica.replica import Replica
from goqueue.replica.saved_watermarks import SavedWatermarks
from goqueue.storage.watermarks import Watermark, Watermarks, load_watermarks, save_watermarks
from goqueue.testing import MemoryDisk
from tests.brokers import Parts, data


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
    saved = Watermarks(
        "boot", is_clean=True, logs={("orders", 3): Watermark(7, False), ("@groups", 0): Watermark(1, True)}
    )
    save_watermarks(disk, saved)
    assert load_watermarks(disk) == saved


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
