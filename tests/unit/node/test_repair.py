"""A node does not start without its metadata, changes nothing then, and comes back by a repair that deletes nothing."""

import errno
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from goqueue.model.errors import DataDirectoryLocked, LogPoisoned, MetadataDamaged, NewerFormat, NoDataDirectory
from goqueue.node.metadata_check import METADATA_PATH, metadata_fault
from goqueue.node.offline import repair_directory
from goqueue.node.repair import Repair, repair
from goqueue.records.formats import FORMAT_NAME, FORMATS, encode_formats
from goqueue.testing import MemoryDisk, VirtualClock
from tests.brokers import TestBroker

NOW_MS = 5000


def stopped(*, is_killed: bool = False) -> tuple[MemoryDisk, dict[str, bytes]]:
    """The disk of a node with two topics, and their ids."""
    node = TestBroker()
    node.create("orders", 2, retention_ms="1234")
    node.create("__heartbeat")
    node.publish("orders", b"a", b"b", partition=1)
    node.commit()
    ids = {topic.name: topic.id for topic in node.broker.topics.image.topics.values()}
    if is_killed:
        return node.disk.crashed(), ids
    node.stop()
    return node.disk, ids


def content(disk: MemoryDisk, path: str = "") -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in disk.list(path):
        one = f"{path}/{name}" if path else name
        try:
            file = disk.open(one)
        except IsADirectoryError:
            found |= content(disk, one)
        else:
            found[one] = file.read(0, file.size())
            file.close()
    return found


def removed(*endings: str) -> Callable[[MemoryDisk], None]:
    def damage(disk: MemoryDisk) -> None:
        for name in disk.list(METADATA_PATH):
            if name.endswith(endings):
                disk.remove(f"{METADATA_PATH}/{name}")

    return damage


def cut(disk: MemoryDisk) -> None:
    (name,) = [name for name in disk.list(METADATA_PATH) if name.endswith(".log")]
    file = disk.open(f"{METADATA_PATH}/{name}")
    file.truncate(file.size() // 2)
    file.close()


def all_removed(disk: MemoryDisk) -> None:
    removed("")(disk)
    disk.remove(METADATA_PATH)
    disk.remove("logs/@metadata")


DAMAGE: dict[str, Callable[[MemoryDisk], None]] = {
    "no segment": removed(".log"),
    "no segment and no indexes": removed(".log", "index"),
    "half a segment": cut,
    "nothing but snapshots": removed(".log", "index", "state"),
    "no directory": all_removed,
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_node_without_whole_metadata_does_not_start_and_changes_nothing(how: str) -> None:
    disk, _ = stopped()
    DAMAGE[how](disk)
    before = content(disk)
    with pytest.raises(MetadataDamaged, match="goqueue repair --dry-run") as refused:
        TestBroker(disk, VirtualClock(NOW_MS))
    assert "Nothing was changed" in str(refused.value)
    left = {path: data for path, data in content(disk).items() if path != "lock"}
    assert left == {path: data for path, data in before.items() if path != "lock"}


def write_formats(disk: MemoryDisk, data: bytes) -> None:
    disk.remove(FORMAT_NAME)
    file = disk.open(FORMAT_NAME, create=True)
    file.write(0, [data])
    file.close()


def test_a_node_does_not_start_on_what_a_later_version_wrote_and_changes_nothing() -> None:
    disk, _ = stopped()
    write_formats(disk, encode_formats("9.1.0", {**FORMATS, "groups": FORMATS["groups"] + 1}))
    before = content(disk)
    with pytest.raises(NewerFormat, match=r"written by GoQueue 9\.1\.0, which stores groups in format"):
        TestBroker(disk, VirtualClock(NOW_MS))
    assert content(disk) == before


def test_an_upgrade_that_finds_damaged_metadata_does_not_shut_the_earlier_version_out() -> None:
    disk, _ = stopped()
    earlier = encode_formats("0.0.1", dict.fromkeys(FORMATS, 1))
    write_formats(disk, earlier)
    cut(disk)
    with pytest.raises(MetadataDamaged):
        TestBroker(disk, VirtualClock(NOW_MS))
    assert content(disk)[FORMAT_NAME] == earlier


@pytest.mark.parametrize("is_killed", [False, True])
def test_whole_metadata_is_no_reason_to_refuse(is_killed: bool) -> None:
    disk, _ = stopped(is_killed=is_killed)
    assert metadata_fault(disk) == ""
    assert repair(disk, NOW_MS, Random(1), is_dry_run=False) == Repair()
    assert set(TestBroker(disk, VirtualClock(NOW_MS)).broker.topics.image.topics) == {"orders", "__heartbeat"}


def test_a_new_directory_is_no_reason_to_refuse() -> None:
    assert metadata_fault(MemoryDisk()) == ""
    assert TestBroker().broker.topics.image.topics == {}


@pytest.mark.parametrize("how", [how for how in DAMAGE if how != "no directory"])
def test_a_repair_brings_all_topics_back_as_they_were(how: str) -> None:
    disk, ids = stopped()
    DAMAGE[how](disk)
    before = content(disk)
    planned = repair(disk, NOW_MS, Random(1), is_dry_run=True)
    assert set(content(disk)) - {"lock"} == set(before) - {"lock"}, "a dry run changes nothing"
    done = repair(disk, NOW_MS, Random(1), is_dry_run=False)
    assert (planned.restored, planned.guessed, planned.left_out) == (["__heartbeat", "orders"], [], [])
    assert (done.restored, done.knows_cluster, done.kept_as) == (planned.restored, True, f"damaged/metadata-{NOW_MS}")
    kept = {path.rpartition("/")[2]: data for path, data in content(disk, done.kept_as).items()}
    assert kept == {path.rpartition("/")[2]: data for path, data in before.items() if path.startswith(METADATA_PATH)}
    for name in ("new-0", "new-1"):
        node = TestBroker(disk, VirtualClock(NOW_MS))
        topics = node.broker.topics.image.topics
        assert {topic.name: topic.id for topic in topics.values()} == ids
        assert (topics["orders"].partitions, dict(topics["orders"].overrides)) == (2, {"retention.ms": "1234"})
        ids[name] = node.create(name).topic.id
        node.stop()


def test_without_anything_remembered_topics_are_made_of_their_logs() -> None:
    disk, _ = stopped()
    all_removed(disk)
    done = repair(disk, NOW_MS, Random(1), is_dry_run=False)
    assert (done.restored, done.guessed, done.knows_cluster) == ([], ["__heartbeat", "orders"], False)
    node = TestBroker(disk, VirtualClock(NOW_MS))
    assert {name: topic.partitions for name, topic in node.broker.topics.image.topics.items()} == {
        "orders": 2,
        "__heartbeat": 1,
    }
    assert node.broker.topics.replica("orders", 1).high_watermark == 2
    assert node.publish("orders", b"c", partition=1) == 2


def test_a_topic_that_has_no_logs_any_more_is_left_out() -> None:
    disk, _ = stopped()
    removed(".log")(disk)
    for number in range(2):
        for name in disk.list(f"logs/orders/{number}"):
            disk.remove(f"logs/orders/{number}/{name}")
        disk.remove(f"logs/orders/{number}")
    done = repair(disk, NOW_MS, Random(1), is_dry_run=False)
    assert (done.restored, done.left_out) == (["__heartbeat"], ["orders"])


def test_a_directory_in_use_is_not_repaired() -> None:
    node = TestBroker()
    with pytest.raises(DataDirectoryLocked):
        repair(node.disk, NOW_MS, Random(1), is_dry_run=True)


def test_a_repair_that_was_cut_off_is_done_again() -> None:
    disk, ids = stopped()
    removed(".log", "index")(disk)
    failed = 0
    for nth in range(1, 20):
        image = disk.crashed()
        image.faults.add("write", errno.EIO, nth=nth)
        try:
            repair(image, NOW_MS, Random(1), is_dry_run=False)
        except (OSError, LogPoisoned):
            failed += 1
            image.faults.clear()
            repair(image, NOW_MS + 1, Random(1), is_dry_run=False)
        node = TestBroker(image, VirtualClock(NOW_MS))
        assert {topic.name: topic.id for topic in node.broker.topics.image.topics.values()} == ids
    assert failed > 2


@pytest.mark.parametrize("is_dry_run", [True, False])
def test_a_directory_that_is_no_data_directory_is_said_to_be_none_and_nothing_is_left_in_it(
    tmp_path: Path, is_dry_run: bool
) -> None:
    (tmp_path / "photo").write_bytes(b"x")
    with pytest.raises(NoDataDirectory) as told:
        repair_directory(tmp_path, 0, is_dry_run=is_dry_run)
    assert "is no data directory" in str(told.value)
    assert [each.name for each in tmp_path.iterdir()] == ["photo"]
