"""Samples of what is stored beside facts: snapshots, what partitions know of their producers, the small files of a log,
the batches that are not Kafka's alone, and the positions that Spark keeps for us in its checkpoints.
"""

import json
from collections.abc import Callable
from typing import Any

from goqueue.machines.partitions.open_transactions import OpenTransactions
from goqueue.machines.partitions.producer_state import ProducerStates
from goqueue.records.batch import CONTROL_BIT, Batch, check_batch
from goqueue.records.build import NewRecord, build_batch
from goqueue.records.control import ControlKind, build_control, build_kept_free, decode_control
from goqueue.records.decode import decode
from goqueue.records.epochs import EpochHistory
from goqueue.records.log_files import Kind, LogFacts, Summary, pack, read_frame
from goqueue.records.plain import plain_batch
from goqueue.spark.queue.offsets import Lease, Run, packed, unpacked
from goqueue.spark.read.positions import Position, start_of, written
from goqueue.spark.read.positions import read as read_positions
from goqueue.storage.index import OffsetIndex, TimeIndex
from goqueue.storage.snapshots import SnapshotFiles
from goqueue.storage.swap import Manifest, Replacement
from goqueue.testing.memory_disk import MemoryDisk
from tests.golden.samples import NOW_MS, TOPIC_ID, Sample

LOG = "logs/orders/0"
SNAPSHOT_NAME = f"snapshot-groups-{42:020d}-{NOW_MS}.bin"
EPOCH = 3
ENTRIES = [(b"key", b"value"), (b"another", b"")]
VIEWED_TO = 1000


class _Bytes:
    """A file that is only read."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, position: int, length: int, /) -> bytes:
        return self._data[position : position + length]

    def size(self) -> int:
        return len(self._data)


def _read(data: bytes, kind: Kind) -> bytes:
    return read_frame(_Bytes(data), 0, kind)[0]


def _data_batch(producer_id: int, sequence: int, offset: int, *, epoch: int = 0, transactional: bool = False) -> Batch:
    records: list[NewRecord] = [(NOW_MS + number, b"k", b"v", []) for number in range(3)]
    data = build_batch(
        records,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        base_offset=offset,
        transactional=transactional,
    )
    return check_batch(memoryview(data))


def _marker(kind: ControlKind, producer_id: int, offset: int) -> Batch:
    data = build_control(kind, producer_id=producer_id, producer_epoch=1, coordinator_epoch=4, timestamp=NOW_MS)
    return check_batch(memoryview(data))._replace(base_offset=offset)


def producers() -> ProducerStates:
    states = ProducerStates()
    for batch in (
        _data_batch(2001, 0, 0),
        _data_batch(2001, 3, 3),
        _data_batch(2002, 0, 6, epoch=1, transactional=True),
        _marker(ControlKind.ABORT, 2002, 9),
        _data_batch(2003, 0, 10, epoch=1, transactional=True),
        _marker(ControlKind.COMMIT, 2003, 13),
        _data_batch(2004, 7, 14, epoch=2, transactional=True),
    ):
        states.record(batch, batch.base_offset)
    return states


def open_transactions() -> OpenTransactions:
    return producers().open_transactions


def _seen_producers(data: bytes) -> Any:
    states = ProducerStates.decode(data)
    return {"producers": states.describe(), "batches": states.last_batches(), **_seen(states.open_transactions)}


def _seen(found: OpenTransactions) -> dict[str, Any]:
    return {"aborted": found.aborted_in(0, VIEWED_TO), "undecided_from": found.last_stable_offset(VIEWED_TO)}


def _state() -> LogFacts:
    return LogFacts(5, 300, EpochHistory([(0, 0), (2, 17)]), TOPIC_ID, 200, 150, is_doubtful=True, restart_at=400)


def _seen_state(data: bytes) -> dict[str, Any]:
    facts = LogFacts.decode(_read(data, Kind.LOG_STATE))
    return {
        "start_offset": facts.start_offset,
        "compacted_to": facts.compacted_to,
        "epochs": facts.epochs.entries(),
        "topic_id": facts.topic_id,
        "gaps_to": facts.gaps_to,
        "tombstones_to": facts.tombstones_to,
        "is_doubtful": facts.is_doubtful,
        "restart_at": facts.restart_at,
    }


def _offset_index() -> OffsetIndex:
    index = OffsetIndex(1000)
    index.add(1000, 0)
    index.add(1040, 4196)
    return index


def _time_index() -> TimeIndex:
    index = TimeIndex()
    index.add(-(1 << 63), 1000)
    index.add(NOW_MS, 1040)
    return index


def _seen_offset_index(data: bytes) -> dict[str, Any]:
    index = OffsetIndex.decode(1000, _read(data, Kind.OFFSET_INDEX))
    return {"deltas": list(index.deltas), "positions": list(index.positions)}


def _seen_time_index(data: bytes) -> dict[str, Any]:
    index = TimeIndex.decode(_read(data, Kind.TIME_INDEX))
    return {"highest": list(index.highest), "offsets": list(index.offsets)}


def _manifest() -> Manifest:
    return Manifest([Replacement([0, 100]), Replacement([200])], 300, 1, 90, 30, 150)


def _seen_manifest(data: bytes) -> dict[str, Any]:
    found = Manifest.from_json(_read(data, Kind.COMPACTION))
    return {
        "sources": [each.sources for each in found.replacements],
        "compacted_to": found.compacted_to,
        "truncations": found.truncations,
        "records": [found.records_before, found.records_after],
        "tombstones_to": found.tombstones_to,
    }


def _snapshot() -> bytes:
    disk = MemoryDisk()
    disk.make_directory(LOG)
    SnapshotFiles(disk, LOG, "groups", lambda _offset: EPOCH).save(42, NOW_MS, ENTRIES)
    file = disk.open(f"{LOG}/{SNAPSHOT_NAME}")
    return file.read(0, file.size())


def _seen_snapshot(data: bytes) -> Any:
    disk = MemoryDisk()
    disk.make_directory(LOG)
    file = disk.open(f"{LOG}/{SNAPSHOT_NAME}", create=True)
    file.write(0, [data])
    found = SnapshotFiles(disk, LOG, "groups", lambda _offset: EPOCH).latest(up_to=42)
    assert found is not None
    return {"offset": found.offset, "entries": found.entries}


def _seen_batch(data: bytes) -> dict[str, Any]:
    batch = check_batch(memoryview(data))
    seen: dict[str, Any] = {
        "attributes": batch.attributes,
        "producer": [batch.producer_id, batch.producer_epoch, batch.base_sequence],
        "last_offset_delta": batch.last_offset_delta,
        "records": [[each.offset, each.timestamp, each.key, each.value] for each in decode(batch)],
    }
    if batch.attributes & CONTROL_BIT and (mark := decode_control(batch)) is not None:
        seen["mark"] = [mark.kind.name, mark.coordinator_epoch]
    return seen


def _stream() -> bytes:
    at = {("orders", 0): 23, ("orders", 11): 7, ("refunds", 0): 0}
    ids = {"orders": TOPIC_ID, "refunds": TOPIC_ID[::-1]}
    return json.dumps(written(Position(at, ids), began=written(Position(dict.fromkeys(at, 0), ids)))).encode()


def _seen_stream(data: bytes) -> dict[str, Any]:
    document = json.loads(data)
    began = start_of({}, document)
    position = read_positions(document)
    ids = {"ids": {topic: id_.hex() for topic, id_ in position.ids.items()}} if position.ids else {}
    return {"at": [[*place, offset] for place, offset in position.offsets.items()], "began": began, **ids}


def _leases() -> bytes:
    runs = Run(0, 999), Run(1004, 1004), Run(1007, 1009, 2)
    return json.dumps(packed([Lease("orders", 0, "a receipt", runs)])).encode()


def _summary() -> Summary:
    return Summary(1000, 8192, 1080, NOW_MS, NOW_MS - 5)


WRITERS: dict[tuple[str, str], Callable[[], bytes]] = {
    ("snapshot", "snapshot file"): _snapshot,
    ("producers", "producers"): lambda: producers().encode(),
    ("producers", "open transactions"): lambda: open_transactions().encode(),
    ("log", "state"): lambda: pack(Kind.LOG_STATE, _state().encode()),
    ("log", "summary"): lambda: pack(Kind.SUMMARY, _summary().encode()),
    ("log", "offset index"): lambda: pack(Kind.OFFSET_INDEX, _offset_index().encode()),
    ("log", "time index"): lambda: pack(Kind.TIME_INDEX, _time_index().encode()),
    ("log", "compaction"): lambda: pack(Kind.COMPACTION, _manifest().to_json().encode()),
    ("log", "batch of a ledger"): lambda: bytes(plain_batch([(b"key", b"value"), (b"gone", None)], NOW_MS).data),
    ("log", "marker"): lambda: bytes(_marker(ControlKind.ABORT, 2002, 0).data),
    ("checkpoint", "positions of a stream"): _stream,
    ("checkpoint", "leases of a micro-batch"): _leases,
    ("log", "places kept free"): lambda: bytes(build_kept_free(_data_batch(2001, 0, 0))),
}

READERS: dict[tuple[str, str], Callable[[bytes], Any]] = {
    ("snapshot", "snapshot file"): _seen_snapshot,
    ("producers", "producers"): _seen_producers,
    ("producers", "open transactions"): lambda data: _seen(OpenTransactions.decode(data)),
    ("log", "state"): _seen_state,
    ("log", "summary"): lambda data: Summary.read(_Bytes(data))[0],
    ("log", "offset index"): _seen_offset_index,
    ("log", "time index"): _seen_time_index,
    ("log", "compaction"): _seen_manifest,
    ("log", "batch of a ledger"): _seen_batch,
    ("log", "marker"): _seen_batch,
    ("log", "places kept free"): _seen_batch,
    ("checkpoint", "positions of a stream"): _seen_stream,
    ("checkpoint", "leases of a micro-batch"): lambda data: unpacked(json.loads(data)),
}


def file_samples() -> list[Sample]:
    return [Sample(kind, tag, READERS[kind, tag](write()), write) for (kind, tag), write in WRITERS.items()]
