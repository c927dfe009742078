"""What a start does with a data directory that was made for another number of processes, and what one does that finds
such work half done. The lock of the directory is held, and none of its members runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any, TypeVar

import msgspec

from goqueue.broker.accounts.audit import AUDIT
from goqueue.cluster.etcd.keys import prefix_of
from goqueue.machines.controller import Controller
from goqueue.machines.controller_facts import STORED_FACTS
from goqueue.machines.entries import ENTRY_FACTS, Entries
from goqueue.machines.machine import Fact, Machine
from goqueue.model.errors import CannotJoin, DamagedFile, GoQueueError
from goqueue.node.metadata_check import METADATA, METADATA_PATH
from goqueue.node.processes import moves
from goqueue.node.processes.dividing import SHARDS, Divided, for_fewer, for_several
from goqueue.node.processes.member_names import MEMBERS, STORE, STORE_PATH, member_directory, members_of
from goqueue.node.processes.moves import DRAFT, NEXT, OLD, Move
from goqueue.node.upgrade import LAYOUT, LAYOUT_NAME
from goqueue.ports.dice import Dice, random_id
from goqueue.records.decode import decode
from goqueue.records.log_files import LOGS_NAME, Kind
from goqueue.records.plain import plain_batch
from goqueue.records.walk import Damage
from goqueue.replica.companion_names import KINDS, CompanionName
from goqueue.replica.replicas import OWN_LEDGERS
from goqueue.storage import side_file
from goqueue.storage.data_directory import ASIDE_NAME
from goqueue.storage.disk import Disk
from goqueue.storage.inspection import batches, inspect
from goqueue.storage.known_shards import SHARDS_NAME
from goqueue.storage.log import Log
from goqueue.storage.options import LogOptions
from goqueue.storage.snapshots import SnapshotFiles
from goqueue.storage.starts import BYTES, STARTS_NAME
from goqueue.storage.state import LogState
from goqueue.storage.swap import Manifest
from goqueue.telemetry.logs import get_logger

FIRST_EPOCH = 0
LEDGER, MADE = "ledger", "made"
OWN = (*OWN_LEDGERS, AUDIT)
"""Ledgers that every process keeps for itself."""

events = get_logger("processes")
M = TypeVar("M", bound=Machine)


def redivide(disk: Disk, processes: int, cluster_name: str, dice: Dice, now_ms: int) -> None:
    """CannotJoin: it must not be. Else the directory is one of `processes`, or an empty one. More of them than it has
    members already are fine as it is."""
    if moves.finish(disk):
        events.info("data directory divided anew, as an earlier start had begun to")
    members = members_of(disk)
    if not members and processes > 1 and disk.exists(f"{LOGS_NAME}/{METADATA}"):
        planned = _planned_several(disk, processes, cluster_name, dice, now_ms)
    elif members and max(members) > processes:
        planned = _planned_fewer(disk, processes, cluster_name, now_ms)
    else:
        return
    _refuse_taken(disk, planned)
    moves.decide(disk, planned)
    moves.finish(disk)
    events.info("data directory divided anew", processes=processes, before=max(members, default=1))


def _planned_several(disk: Disk, processes: int, cluster_name: str, dice: Dice, now_ms: int) -> list[Move]:
    _refuse_unready(disk)
    controller = _replayed(disk, METADATA_PATH, "metadata", Controller(), STORED_FACTS)
    ids = {name: _ledger_id(disk, name) or random_id(dice) for name in SHARDS}
    divided = for_several(controller, _epoch(disk), processes, ids, prefix_of(cluster_name))
    moves.begin(disk)
    _write_ledger(disk, divided.facts, now_ms)
    where = {(place.topic, place.number): place.target for place in divided.places}
    where |= {(place.topic_id.hex(), place.number): place.target for place in divided.places}
    planned = [
        Move(f"{LOGS_NAME}/{name}/{number}", f"{_logs(where.get(_host(name, number), 1))}/{name}/{number}")
        for name, number in _names(disk, LOGS_NAME)
        if name != METADATA
    ]
    for place in divided.places:
        if place.topic in SHARDS and not disk.exists(f"{LOGS_NAME}/{place.topic}/{place.number}"):
            made = f"{MADE}/{place.topic}/{place.number}"
            Log.open(disk, f"{DRAFT}/{made}", LogOptions(), now_ms, topic_id=place.topic_id).close()
            planned.append(Move(f"{NEXT}/{made}", f"{_logs(place.target)}/{place.topic}/{place.number}"))
    return [*planned, _dropped(f"{LOGS_NAME}/{METADATA}"), Move(f"{NEXT}/{LEDGER}", f"{LOGS_NAME}/{STORE}")]


def _planned_fewer(disk: Disk, processes: int, cluster_name: str, now_ms: int) -> list[Move]:
    divided = for_fewer(_replayed(disk, STORE_PATH, "store", Entries(), ENTRY_FACTS), processes, cluster_name)
    moves.begin(disk)
    _write_ledger(disk, divided.facts, now_ms)
    planned = list(_moved(disk, divided))
    taken = {move.source for move in planned}
    gone = [number for number in members_of(disk) if processes == 1 or number > processes]
    copied = {(place.topic, place.number) for place in divided.places}
    copied |= {(place.topic_id.hex(), place.number) for place in divided.places}
    for member in gone:
        planned += _left(disk, member, processes, taken, copied)
    planned += [_dropped(member_directory(member)) for member in gone]
    planned.append(_dropped(f"{LOGS_NAME}/{STORE}"))
    if processes > 1:
        return [*planned, Move(f"{NEXT}/{LEDGER}", f"{LOGS_NAME}/{STORE}")]
    side_file.save_durably(disk, f"{DRAFT}/{STARTS_NAME}", Kind.STARTS, divided.epoch.to_bytes(BYTES, "little"))
    side_file.replace_durably(disk, f"{DRAFT}/{LAYOUT_NAME}", LAYOUT)
    for name in (STARTS_NAME, SHARDS_NAME, LAYOUT_NAME):
        planned += [_dropped(name)] if disk.exists(name) else []
        planned += [Move(f"{NEXT}/{name}", name)] if name != SHARDS_NAME else []
    return [*planned, _dropped(MEMBERS), Move(f"{NEXT}/{LEDGER}", f"{LOGS_NAME}/{METADATA}")]


def _moved(disk: Disk, divided: Divided) -> Iterator[Move]:
    """Logs of partitions and of ledgers, and the companions that are where their partition is."""
    for place in divided.places:
        if place.source == place.target:
            continue
        companions = (CompanionName(kind, place.topic_id, place.number).log for kind in KINDS)
        for name in (place.topic, *companions):
            source = f"{_logs(place.source)}/{name}/{place.number}"
            if disk.exists(source):
                yield Move(source, f"{_logs(place.target)}/{name}/{place.number}")


def _left(disk: Disk, member: int, processes: int, taken: set[str], copied: set[tuple[str, int]]) -> Iterator[Move]:
    """Of a member that there is no more: what is no second copy is kept."""
    logs = _logs(member)
    for name, number in _names(disk, logs):
        source = f"{logs}/{name}/{number}"
        if name in OWN and member == processes == 1:
            yield Move(source, f"{LOGS_NAME}/{name}/{number}")
        elif name == AUDIT or (name not in OWN and source not in taken and _host(name, number) not in copied):
            yield Move(source, f"{ASIDE_NAME}/member-{member}-{name}-{number}")
    for name in disk.list(f"{member_directory(member)}/{ASIDE_NAME}"):
        yield Move(f"{member_directory(member)}/{ASIDE_NAME}/{name}", f"{ASIDE_NAME}/member-{member}-{name}")


def _refuse_taken(disk: Disk, planned: Sequence[Move]) -> None:
    dropped = {move.source for move in planned if move.target.startswith(OLD)}
    for source, target in planned:
        if disk.exists(target) and target not in dropped:
            raise CannotJoin(f"this data directory cannot be divided anew: {source} is to be {target}, which is there")


def _refuse_unready(disk: Disk) -> None:
    """CannotJoin: something is left of an earlier version, which a start with one process brings up to date."""
    known = {METADATA, *SHARDS, *OWN}
    strange = [name for name, _ in _names(disk, LOGS_NAME) if name.startswith("@") and name not in known]
    strange = [name for name in strange if CompanionName.parse(name, 0) is None]
    if not disk.exists(LAYOUT_NAME) or strange:
        raise CannotJoin(
            "this data directory is of an earlier version: start it once without --processes, stop it, and start it"
            " with --processes again"
        )


def _replayed(disk: Disk, path: str, kind: str, machine: M, facts: Sequence[type[Fact]]) -> M:
    """All that a ledger says. CannotJoin: not all of it can be read, so nothing is decided from it."""
    found = inspect(disk, path)
    if not found.is_whole or Manifest.load(disk, path) is not None:
        why = found.words() or "it was being compacted"
        raise CannotJoin(
            f"{path}, which tells what topics there are, has to be mended first: {why}. Nothing was changed. Start it"
            " with as many processes as before, stop it, and try again"
        )
    read = msgspec.msgpack.Decoder(reduce(or_, facts)).decode
    damage: list[Damage] = []
    snapshot = SnapshotFiles(disk, path, kind).latest(up_to=found.end_offset)
    try:
        for _, value in [] if snapshot is None else snapshot.entries:
            machine.apply(read(value))
        for batch in batches(disk, path, 0 if snapshot is None else snapshot.offset, damage):
            for record in decode(batch):
                machine.forget(record.key or b"") if record.value is None else machine.apply(read(record.value))
    except (GoQueueError, msgspec.MsgspecError, ValueError) as error:
        raise CannotJoin(f"{path} has facts that cannot be read: {error}. Nothing was changed") from error
    if damage:
        raise CannotJoin(f"{path} has {len(damage)} batches that cannot be read. Nothing was changed")
    return machine


def _write_ledger(disk: Disk, facts: Iterable[Fact], now_ms: int) -> None:
    encode = msgspec.msgpack.Encoder().encode
    log = Log.open(disk, f"{DRAFT}/{LEDGER}/0", LogOptions(), now_ms, first_epoch=FIRST_EPOCH)
    for fact in facts:  # one batch each, as a later command would write it: a value may be large
        log.append([plain_batch([(fact.key(), encode(fact))], now_ms)], FIRST_EPOCH, now_ms)
    log.close()


def _epoch(disk: Disk) -> int:
    """Of the last start of one process, or a later one that a log knows."""
    states = [_state(disk, f"{LOGS_NAME}/{name}/{number}") for name, number in _names(disk, LOGS_NAME)]
    latest = max((state.epochs.latest for state in states if state is not None), default=0)
    try:
        return max(latest, int.from_bytes(side_file.load(disk, STARTS_NAME, Kind.STARTS), "little"))
    except (OSError, DamagedFile):
        return max(latest, 0)


def _ledger_id(disk: Disk, name: str) -> bytes:
    """As its logs know it from when several processes had it; empty: they never had."""
    found = (_state(disk, f"{LOGS_NAME}/{name}/{number}") for number in disk.list(f"{LOGS_NAME}/{name}"))
    return next((state.topic_id for state in found if state is not None and state.topic_id), b"")


def _state(disk: Disk, path: str) -> Any:
    try:
        return LogState.load(disk, path)
    except (OSError, DamagedFile):
        return None  # there is none, or recovery tells


def _names(disk: Disk, logs: str) -> Iterator[tuple[str, int]]:
    for name in disk.list(logs):
        for number in disk.list(f"{logs}/{name}"):
            if number.isascii() and number.isdigit():
                yield name, int(number)


def _host(name: str, number: int) -> tuple[str, int]:
    """By which the partition of a companion is known, or the log itself."""
    companion = CompanionName.parse(name, number)
    return (name, number) if companion is None else (companion.topic_id.hex(), number)


def _logs(member: int) -> str:
    return f"{member_directory(member)}/{LOGS_NAME}" if member else LOGS_NAME


def _dropped(path: str) -> Move:
    return Move(path, f"{OLD}/{path.replace('/', '-')}")
