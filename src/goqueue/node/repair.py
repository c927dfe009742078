"""`goqueue repair`: metadata put together again from its snapshots, from what is left of its log, and from the logs of
the topics themselves. Nothing is deleted: what was there is copied aside first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

import msgspec

from goqueue.machines.controller import Controller
from goqueue.machines.controller_facts import STORED_FACTS, ClusterNamed, ProducerIdsTaken, SchedulePlaced, TopicStored
from goqueue.machines.machine import Fact
from goqueue.model.errors import GoQueueError
from goqueue.model.names import LEDGER_PREFIX, is_topic_name
from goqueue.node.metadata_check import METADATA_PATH, metadata_fault
from goqueue.ports.dice import Dice, random_id
from goqueue.records.decode import decode
from goqueue.records.log_files import LOGS_NAME
from goqueue.storage.data_directory import LOCK_NAME
from goqueue.storage.disk import Disk
from goqueue.storage.format_file import note_formats, refuse_newer
from goqueue.storage.inspection import Inspection, batches, inspect
from goqueue.storage.log import Log
from goqueue.storage.options import LogOptions
from goqueue.storage.snapshots import SnapshotFiles
from goqueue.storage.state import LogState
from goqueue.telemetry.logs import get_logger

ASIDE = "damaged"
ANY_OFFSET = (1 << 63) - 1
COPY_BYTES = 1024 * 1024

events = get_logger("node")


@dataclass
class Repair:
    """What was found and done, or would be."""

    fault: str = ""
    """Empty: nothing is wrong with the metadata."""
    knows_cluster: bool = False
    """False: the node gets a new cluster id and secret, and receipts given out before are void."""
    restored: list[str] = field(default_factory=list)
    """Topics with the options and the id that they had."""
    guessed: list[str] = field(default_factory=list)
    """Topics of which only logs are left: they get default options. Logs that do not know their topic's id get a new
    one, and groups begin anew in them."""
    left_out: list[str] = field(default_factory=list)
    """Topics that the metadata knows and that have no logs: deleted since, or lost with their logs."""
    kept_as: str = ""
    """Where a copy of what was there is."""


def repair(disk: Disk, now_ms: int, dice: Dice, *, is_dry_run: bool) -> Repair:
    """DataDirectoryLocked: a node runs on it. NewerFormat: a later version wrote it."""
    lock = disk.lock(LOCK_NAME)
    try:
        refuse_newer(disk)
        done = Repair(metadata_fault(disk))
        if not done.fault:
            return done
        found = inspect(disk, METADATA_PATH)
        facts = list(_facts(_remembered(disk), _topics_on_disk(disk), lambda name: _id_of(disk, name, dice), done))
        if not is_dry_run:
            note_formats(disk)
            done.kept_as = _copy_aside(disk, now_ms)
            _write(disk, facts, found, now_ms)
        return done
    finally:
        lock.release()


def _remembered(disk: Disk) -> Controller:
    """From the newest sound snapshot, and what can be read of the log behind it."""
    controller, offset = Controller(), 0
    read = msgspec.msgpack.Decoder(reduce(or_, STORED_FACTS)).decode
    snapshot = SnapshotFiles(disk, METADATA_PATH, "metadata").latest(up_to=ANY_OFFSET)
    if snapshot is not None:
        offset = snapshot.offset
        for _, value in snapshot.entries:
            _try(controller.apply, read, value)
    for batch in batches(disk, METADATA_PATH, offset):
        try:
            records = decode(batch)
        except GoQueueError:
            continue
        for record in records:
            if record.value is None:
                _try(controller.forget, bytes, record.key or b"")
            else:
                _try(controller.apply, read, record.value)
    return controller


def _topics_on_disk(disk: Disk) -> dict[str, int]:
    """And their numbers of partitions."""
    found = {}
    for name in disk.list(LOGS_NAME):
        if name.startswith(LEDGER_PREFIX) or not is_topic_name(name):
            continue
        numbers = [int(one) for one in disk.list(f"{LOGS_NAME}/{name}") if one.isascii() and one.isdigit()]
        if numbers:
            found[name] = max(numbers) + 1
    return found


def _facts(
    controller: Controller, on_disk: dict[str, int], id_of: Callable[[str], bytes], done: Repair
) -> Iterator[Fact]:
    known = {fact.name: fact for fact in controller.facts() if isinstance(fact, TopicStored)}
    done.knows_cluster = bool(controller.secret)
    if done.knows_cluster:
        yield ClusterNamed(controller.cluster_id, controller.secret)
    if controller.producer_ids_end:
        yield ProducerIdsTaken(controller.producer_ids_end)
    yield from (SchedulePlaced(name, *place) for name, place in controller.schedules().items())
    done.left_out = sorted(known.keys() - on_disk.keys())
    for name, partitions in sorted(on_disk.items()):
        fact = known.get(name)
        (done.guessed if fact is None else done.restored).append(name)
        if fact is None:
            fact = TopicStored(name, id_of(name), partitions, {})
        yield msgspec.structs.replace(fact, partitions=max(fact.partitions, partitions))


def _id_of(disk: Disk, topic: str, dice: Dice) -> bytes:
    """As its logs know it: one of another id would be put aside."""
    for number in disk.list(f"{LOGS_NAME}/{topic}"):
        try:
            topic_id = LogState.load(disk, f"{LOGS_NAME}/{topic}/{number}").topic_id
        except (OSError, GoQueueError):
            continue
        if topic_id:
            return topic_id
    return random_id(dice)


def _copy_aside(disk: Disk, now_ms: int) -> str:
    target = f"{ASIDE}/metadata-{now_ms}"
    disk.make_directory(target)
    for name in disk.list(METADATA_PATH):
        try:
            source = disk.open(f"{METADATA_PATH}/{name}")
        except IsADirectoryError:
            continue
        copy = disk.open(f"{target}/{name}", create=True)
        for position in range(0, source.size(), COPY_BYTES):
            copy.write(position, [source.read(position, COPY_BYTES)])
        copy.sync()
        copy.close()
        source.close()
    disk.sync_directory(target)
    return target


def _write(disk: Disk, facts: list[Fact], found: Inspection, now_ms: int) -> None:
    """As a snapshot behind all that the log ever held. A crash before the log goes on there leaves a node that still
    refuses to start, and this to be done again."""
    disk.make_directory(METADATA_PATH)
    encode = msgspec.msgpack.Encoder().encode
    offset = max(found.reached, found.end_offset)
    entries = [(fact.key(), encode(fact)) for fact in facts]
    SnapshotFiles(disk, METADATA_PATH, "metadata").save(offset, now_ms, entries)
    Log.open(disk, METADATA_PATH, LogOptions(), now_ms, first_epoch=0).close()


def _try(apply: Callable[[Any], None], read: Callable[[bytes], Any], data: bytes) -> None:
    """What cannot be read is left out; the node would leave it out too."""
    try:
        apply(read(data))
    except Exception as error:  # noqa: BLE001  whatever it is
        events.warning("fact skipped", ledger=METADATA_PATH, reason=f"{type(error).__name__}: {error}")
