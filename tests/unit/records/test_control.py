from typing import Any

import pytest
from aiokafka.record._crecords import DefaultRecordBatch  # type: ignore[import-untyped]
from aiokafka.record.control_record import (  # type: ignore[import-untyped]
    ABORT_MARKER,
    COMMIT_MARKER,
)
from aiokafka.record.control_record import (
    ControlRecord as TheirControlRecord,
)
from hypothesis import given
from hypothesis import strategies as st

from goqueue.model.errors import CorruptBatch
from goqueue.records.batch import CONTROL_BIT, Batch, Codec
from goqueue.records.build import build_batch
from goqueue.records.control import ControlKind, ControlRecord, build_control, decode_control
from goqueue.records.decode import PlainRecord, decode
from goqueue.records.encode import Head, assemble, encode_records
from goqueue.records.rewrite import rebuild_batch
from tests.unit.records.samples import ALL_CODECS, NOW_MS, checked, fields, quick, some_rows

ENDINGS = [ControlKind.ABORT, ControlKind.COMMIT]


def control_batch(*markers: tuple[bytes | None, bytes | None], codec: Codec = Codec.NONE) -> Batch:
    records = [PlainRecord(offset, NOW_MS, key, value, []) for offset, (key, value) in enumerate(markers)]
    head = Head(max(len(records) - 1, 0), NOW_MS, NOW_MS, len(records), CONTROL_BIT | codec)
    return checked(assemble(head, encode_records(records, 0, NOW_MS)))


@quick
@given(st.sampled_from(ENDINGS), st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(-(2**31), 2**31 - 1))
def test_a_marker_comes_back(kind: ControlKind, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> None:
    batch = checked(
        build_control(
            kind,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp=NOW_MS,
        )
    )
    assert decode_control(batch) == ControlRecord(kind, 0, coordinator_epoch)
    assert (batch.is_control, batch.is_transactional, batch.codec) == (True, True, Codec.NONE)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (producer_id, producer_epoch, -1)
    assert (batch.record_count, batch.last_offset_delta) == (1, 0)
    assert (batch.base_timestamp, batch.max_timestamp) == (NOW_MS, NOW_MS)


def test_a_commit_is_byte_for_byte_what_kafka_writes() -> None:
    data = build_control(ControlKind.COMMIT, producer_id=1, producer_epoch=2, coordinator_epoch=3, timestamp=5)
    key = b"\0\0" + b"\0\1"  # version, COMMIT
    value = b"\0\0" + b"\0\0\0\3"  # version, coordinator epoch
    assert data[61:] == b"\x20" + b"\0\0\0" + b"\x08" + key + b"\x0c" + value + b"\0"
    assert data[21:23] == b"\0\x30"


@pytest.mark.parametrize(("kind", "marker"), [(ControlKind.ABORT, ABORT_MARKER), (ControlKind.COMMIT, COMMIT_MARKER)])
def test_aiokafka_reads_our_markers(kind: ControlKind, marker: object) -> None:
    data = build_control(kind, producer_id=1, producer_epoch=2, coordinator_epoch=3, timestamp=NOW_MS)
    theirs = DefaultRecordBatch(bytes(data))
    assert theirs.validate_crc()
    assert theirs.is_control_batch
    (record,) = theirs
    assert TheirControlRecord.parse(record.key) == marker


@pytest.mark.parametrize("codec", ALL_CODECS)
def test_a_compressed_marker_is_read_too(codec: Codec) -> None:
    batch = control_batch((b"\0\0\0\0", b"\0\0\0\0\0\7"), codec=codec)
    assert decode_control(batch) == ControlRecord(ControlKind.ABORT, 0, 7)


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    batch = control_batch((b"\0\5\0\1more", b"\0\6\0\0\0\7more"))
    assert decode_control(batch) == ControlRecord(ControlKind.COMMIT, 5, 7)


@pytest.mark.parametrize("number", [b"\0\2", b"\0\6", b"\xff\xff", b"\x7f\xff"])
def test_a_kind_of_a_later_version_is_unknown(number: bytes) -> None:
    assert decode_control(control_batch((b"\0\0" + number, None))) == ControlRecord(ControlKind.UNKNOWN, 0, -1)


def test_a_marker_that_compaction_removed_is_none() -> None:
    batch = control_batch((b"\0\0\0\0", b"\0\0\0\0\0\7"))
    assert decode_control(checked(rebuild_batch(batch, []))) is None


def test_a_marker_that_compaction_kept_stays() -> None:
    batch = checked(build_control(ControlKind.ABORT, producer_id=1, producer_epoch=2, coordinator_epoch=3, timestamp=5))
    kept = checked(rebuild_batch(batch, decode(batch), delete_horizon_ms=NOW_MS))
    assert decode_control(kept) == ControlRecord(ControlKind.ABORT, 0, 3)
    assert fields(decode(kept)) == fields(decode(batch))
    assert kept.base_sequence == -1


@pytest.mark.parametrize(
    "markers",
    [
        [(None, b"\0\0\0\0\0\0")],
        [(b"\0\0\0", b"\0\0\0\0\0\0")],
        [(b"\0\0\0\1", None)],
        [(b"\0\0\0\1", b"\0\0\0\0\0")],
        [(b"\xff\xff\0\1", b"\0\0\0\0\0\0")],
        [(b"\0\0\0\1", b"\xff\xff\0\0\0\0")],
        [(b"\0\0\0\1", b"\0\0\0\0\0\0")] * 2,
    ],
)
def test_damaged_markers_are_corrupt(markers: list[tuple[bytes | None, bytes | None]]) -> None:
    with pytest.raises(CorruptBatch):
        decode_control(control_batch(*markers))


def test_a_data_batch_is_no_control_batch() -> None:
    with pytest.raises(ValueError, match="no control batch"):
        decode_control(checked(build_batch(some_rows(1))))


GOOD: dict[str, Any] = {"producer_id": 1, "producer_epoch": 2, "coordinator_epoch": 3, "timestamp": 5}


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (ControlKind.UNKNOWN, {}),
        (ControlKind.ABORT, {"producer_id": -1}),
        (ControlKind.ABORT, {"producer_id": 2**63}),
        (ControlKind.ABORT, {"producer_epoch": -1}),
        (ControlKind.ABORT, {"producer_epoch": 2**15}),
        (ControlKind.ABORT, {"coordinator_epoch": 2**31}),
        (ControlKind.ABORT, {"timestamp": -1}),
        (ControlKind.ABORT, {"timestamp": 2**63}),
    ],
)
def test_mistakes_of_the_caller_are_value_errors(kind: ControlKind, wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError):
        build_control(kind, **(GOOD | wrong))
