"""A data directory that is divided among another number of processes: whatever crashes meanwhile, the next start has
all logs, each where it is to be, and once.
"""

from functools import cache
from random import Random

import pytest
from structlog.testing import capture_logs

from goqueue.model.errors import CannotJoin
from goqueue.node.processes.redividing import redivide
from goqueue.node.processes.store_directory import refuse_members
from goqueue.records.messages import NewMessage
from goqueue.testing import MemoryDisk, VirtualClock
from tests.layers import in_layers
from tests.sim.crashes import images
from tests.unit.broker.queue_node import QueueNode

NOW_MS = 1_800_000_000_000
TOPICS = ("orders", "reports")
LATER_MS = 3_600_000
PARTS = 12

Tree = dict[str, bytes]


def divide(disk: MemoryDisk, processes: int) -> None:
    redivide(disk, processes, "goqueue", Random(processes), NOW_MS)


@cache
def directory(*path: int) -> MemoryDisk:
    """Of one process with two topics, a queue group that has done a part and a delayed message; then divided."""
    if path:
        disk = directory(*path[:-1]).crashed()
        divide(disk, path[-1])
        return disk.crashed()
    disk = MemoryDisk()
    node = QueueNode(disk, VirtualClock(NOW_MS))
    for topic in TOPICS:
        node.create(topic, 3)
        node.put(topic, *(NewMessage(b"%d" % number, key=b"%d" % number) for number in range(9)))
    node.settle(node.receive("orders", most=4))
    node.put("orders", NewMessage(b"late", key=b"0", delay_ms=LATER_MS))
    node.close()
    return disk.crashed()


def tree(disk: MemoryDisk, path: str = "") -> Tree:
    """All that there is but locks."""
    found: Tree = {}
    for name in disk.list(path):
        inner = f"{path}/{name}" if path else name
        try:
            file = disk.open(inner)
        except IsADirectoryError:
            found[f"{inner}/"] = b""
            found |= tree(disk, inner)
        else:
            found[inner] = file.read(0, file.size())
    return found


def logs(disk: MemoryDisk) -> dict[str, Tree]:
    """By name and number, wherever they are: what their files hold."""
    found: dict[str, Tree] = {}
    for path, data in tree(disk).items():
        where, _, rest = path.partition("logs/")
        name = "/".join(rest.split("/")[:2])
        if rest.count("/") == 2 and not rest.endswith("/") and not rest.startswith(("@metadata", "@store")):
            found.setdefault(f"{where}{name}", {})[rest] = data
    return found


@pytest.mark.parametrize(("before", "processes"), [((), 2), ((2,), 1), ((3,), 2)])
@pytest.mark.parametrize("part", in_layers(range(PARTS), first=1))
def test_a_crash_at_any_operation_leaves_what_the_next_start_completes(
    before: tuple[int, ...], processes: int, part: int
) -> None:
    disk = directory(*before).crashed()
    divide(disk, processes)
    wanted = tree(disk)
    seen = 0
    for upto in points(disk)[part::PARTS]:
        for label, image in images(disk, upto):
            with capture_logs():
                divide(image, processes)
            assert tree(image) == wanted, label
            seen += 1
    assert seen > 30


def points(disk: MemoryDisk) -> list[int]:
    """After some of the operations until it is decided, which write what is then to be moved, and after all others."""
    decided = next(at for at, line in enumerate(disk.trace()) if line.endswith("rename next.draft next"))
    return [*range(0, decided - 5, 29), *range(decided - 5, disk.op_count + 1)]


def test_logs_are_renamed_and_none_is_lost_or_twice() -> None:
    alone, several, back = logs(directory()), logs(directory(3)), logs(directory(3, 1))
    assert len({path.rpartition("/logs/")[0] for path in several}) == 1, "all below members"
    by_name = {path.partition("/")[2].partition("/")[2]: files for path, files in several.items()}
    assert len(by_name) == len(several)
    assert {name: by_name[name] for name in alone} == alone
    assert {name.partition("/")[0] for name in by_name.keys() - alone.keys()} <= {"@groups", "@transactions"}
    assert back == by_name
    members = {path.split("/")[1] for path in several}
    assert members == {"1", "2", "3"}


def test_one_process_goes_on_with_what_several_had() -> None:
    for path in ((), (2, 1), (3, 2, 1), (2, 1, 2, 1)):
        disk = directory(*path).crashed()
        node = QueueNode(disk, VirtualClock(NOW_MS + 2 * LATER_MS))
        got = [each.value for each in node.receive("orders", most=50)]
        assert len(got) == len(set(got)) == 6, path
        assert b"late" in got, path
        everything = {each.value for each in node.receive("reports", most=50)}
        assert everything == {b"%d" % number for number in range(9)}, path
        node.close()


def test_a_node_of_a_cluster_refuses_what_belongs_to_several_processes() -> None:
    refuse_members(directory().crashed())
    with pytest.raises(CannotJoin, match="belongs to 2 processes of one machine"):
        refuse_members(directory(2).crashed())


def test_metadata_that_cannot_be_read_is_refused_and_nothing_is_changed() -> None:
    disk = directory().crashed()
    for path in tree(disk):
        if path.startswith("logs/@metadata/0/snapshot-"):
            disk.remove(path)
    (name,) = (path for path in tree(disk) if path.startswith("logs/@metadata/0/") and path.endswith(".log"))
    disk.flip_bit(name, 8 * 80)
    before = tree(disk)
    with pytest.raises(CannotJoin, match="batches that cannot be read"):
        divide(disk, 2)
    assert tree(disk) == before
