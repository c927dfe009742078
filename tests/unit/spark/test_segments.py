"""Segments that the storage wrote, read without it: whatever a log holds, and whatever befell its files."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.records.batch import HEADER_BYTES, Batch, Codec, check_batch
from goqueue.records.build import build_batch
from goqueue.records.control import ControlKind, build_control, build_kept_free
from goqueue.records.formats import FORMAT_NAME, FORMATS, encode_formats
from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options, Part
from goqueue.spark.segments.directory import find_logs
from goqueue.spark.segments.plan import Wanted, pieces_of
from goqueue.spark.segments.reader import PieceOfWork, SegmentsReader, segments_schema
from goqueue.storage import swap
from goqueue.storage.compaction import compact, install, plan
from goqueue.storage.log import Log
from goqueue.storage.options import Cleanup, LogOptions
from goqueue.storage.real_disk import RealDisk
from tests.logs import SMALL

NOW_MS = 1_700_000_000_000
OPTIONS = replace(SMALL, segment_bytes=600, cleanup=Cleanup.DELETE)


def batch_of(*values: bytes, at_ms: int = NOW_MS, key: bytes | None = None, producer: int = -1, **more: Any) -> Batch:
    if producer >= 0:
        more |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    data = build_batch([(at_ms, key, value, []) for value in values], **more)
    return check_batch(memoryview(data))


def end_of(producer: int, kind: ControlKind) -> Batch:
    data = build_control(kind, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS)
    return check_batch(memoryview(data))


class Written:
    """A data directory and the log `orders/0` in it."""

    def __init__(self, directory: Path, options: LogOptions = OPTIONS) -> None:
        self.directory = directory
        self.disk = RealDisk(directory)
        self.disk.make_directory("logs/orders")
        self.log = Log.open(self.disk, "logs/orders/0", options, NOW_MS)

    def append(self, *batches: Batch, seal: bool = False) -> None:
        for batch in batches:
            self.log.append([batch], 0, NOW_MS)
        self.log.sync()
        self.log.checkpoint(every_bytes=1)
        if seal:
            self.log.roll(NOW_MS)
            self.log.sync()
            self.log.checkpoint(every_bytes=1)

    @property
    def files(self) -> list[Path]:
        return sorted((self.directory / "logs/orders/0").glob("*.log"))


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def read(directory: Path, **given: str) -> list[dict[str, Any]]:
    options = Options({"read": "segments", "path": str(directory)} | given, Part.SEGMENTS)
    reader = SegmentsReader(segments_schema(options), options)
    rows = []
    for part in reader.partitions():
        for batch in reader.read(part):
            batch.validate(full=True)
            rows += batch.to_pylist()
    return rows


def values(directory: Path, **given: str) -> list[tuple[int, bytes]]:
    return [(row["offset"], row["value"]) for row in read(directory, **given)]


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_sealed_segments_are_read_and_the_active_one_on_request(written: Written) -> None:
    written.append(batch_of(b"a", b"b", codec=Codec.ZSTD), batch_of(b"c"), seal=True)
    written.append(batch_of(b"d"), seal=True)
    written.append(batch_of(b"e"))
    assert values(written.directory) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    assert values(written.directory, activeSegments="true")[-1] == (4, b"e")
    (first, *_) = read(written.directory)
    assert (first["topic"], first["partition"], first["timestampType"]) == ("orders", 0, 0)
    assert first["timestamp"].timestamp() * 1000 == NOW_MS


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=4), min_size=1, max_size=20))
def test_whatever_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, batches: list[list[bytes]]) -> None:
    written = Written(tmp_path_factory.mktemp("data"))
    written.append(*(batch_of(*each) for each in batches))
    expected = list(enumerate(value for each in batches for value in each))
    assert values(written.directory, activeSegments="true") == expected
    written.log.roll(NOW_MS)
    assert values(written.directory) == expected


def test_a_large_segment_is_cut_between_its_batches(tmp_path: Path) -> None:
    written = Written(tmp_path, replace(SMALL, segment_bytes=100_000))
    written.append(*(batch_of(b"%d" % number, bytes(200)) for number in range(20)), seal=True)
    options = Options({"path": str(tmp_path)}, Part.SEGMENTS)
    (log,) = find_logs(options)
    pieces = pieces_of(log, Wanted(), piece_bytes=1000)
    assert len(pieces) > 3
    assert all(piece.end - piece.position <= 1000 for piece in pieces)
    assert [one.position for one in pieces[1:]] == [one.end for one in pieces[:-1]]
    reader = SegmentsReader(segments_schema(options), options)
    rows = [row for one in pieces for batch in reader.read(PieceOfWork(one)) for row in batch.to_pylist()]
    assert [row["offset"] for row in rows] == list(range(40))


def test_offsets_bound_a_read_and_leave_other_segments_alone(written: Written) -> None:
    for number in range(5):
        written.append(batch_of(b"%da" % number, b"%db" % number), seal=True)
    bounds = {"startingOffsets": '{"orders": {"0": 3}}', "endingOffsets": '{"orders": {"0": 6}}'}
    written.files[0].write_bytes(b"")  # nobody looks at it
    written.files[4].write_bytes(b"")
    assert values(written.directory, **bounds) == [(3, b"1b"), (4, b"2a"), (5, b"2b")]


def test_times_bound_a_read_as_the_log_has_them(written: Written) -> None:
    for number in range(5):
        written.append(batch_of(b"%d" % number, at_ms=NOW_MS + number * 1000), seal=True)
    bounds = {"startingTimestamp": str(NOW_MS + 500), "endingTimestamp": str(NOW_MS + 3000)}
    assert values(written.directory, **bounds) == [(1, b"1"), (2, b"2")]
    assert values(written.directory, startingTimestamp=str(NOW_MS + 4001)) == []
    flip(written.files[0], HEADER_BYTES)  # its summary says that it is too old
    assert values(written.directory, **bounds) == [(1, b"1"), (2, b"2")]


def test_aborted_transactions_are_left_out_though_their_end_is_elsewhere(written: Written) -> None:
    written.append(batch_of(b"plain"), batch_of(b"lost", producer=1), batch_of(b"kept", producer=2), seal=True)
    written.append(end_of(2, ControlKind.COMMIT), batch_of(b"more", producer=1), seal=True)
    written.append(end_of(1, ControlKind.ABORT), batch_of(b"active"))
    assert values(written.directory) == [(0, b"plain"), (2, b"kept")]
    seen = values(written.directory, **{"kafka.isolation.level": "read_uncommitted"})
    assert seen == [(0, b"plain"), (1, b"lost"), (2, b"kept"), (4, b"more")]


def test_a_read_ends_before_a_transaction_that_is_open(written: Written) -> None:
    written.append(batch_of(b"a"), batch_of(b"open", producer=1), batch_of(b"behind it"), seal=True)
    written.append(batch_of(b"active"))
    assert values(written.directory) == [(0, b"a")]


def test_a_directory_of_a_later_version_is_refused_if_its_logs_have_a_newer_format(written: Written) -> None:
    written.append(batch_of(b"a"), seal=True)
    file = written.directory / FORMAT_NAME
    file.write_bytes(encode_formats("9.1.0", {**FORMATS, "groups": 99}))
    assert values(written.directory) == [(0, b"a")]
    file.write_bytes(encode_formats("9.1.0", {**FORMATS, "log": 99}))
    with pytest.raises(SparkError, match=r"written by GoQueue 9\.1\.0, which stores log in format 99"):
        values(written.directory)


def test_places_kept_free_are_stepped_over(written: Written) -> None:
    delayed = check_batch(memoryview(build_kept_free(batch_of(b"later", b"later still"))))
    written.append(batch_of(b"a"), delayed, batch_of(b"b"), seal=True)
    assert values(written.directory) == [(0, b"a"), (3, b"b")]


def test_what_is_before_the_start_of_the_log_is_gone(written: Written) -> None:
    written.append(batch_of(b"a"), seal=True)
    written.append(batch_of(b"b", b"c", b"d"), seal=True)
    written.log.advance_start(2)
    assert values(written.directory) == [(2, b"c"), (3, b"d")]


def test_damage_names_its_file_and_place(written: Written) -> None:
    written.append(batch_of(b"a"), batch_of(b"b", b"c"), batch_of(b"d"), seal=True)
    first = batch_of(b"a").size
    flip(written.files[0], first + HEADER_BYTES + 2)
    with pytest.raises(SparkError) as told:
        read(written.directory)
    assert f"{written.files[0]}: damaged batch at byte {first}, offsets 1 to 2: checksum mismatch" in str(told.value)
    rows = read(written.directory, badRows="permissive")
    assert [(row["offset"], row["value"]) for row in rows] == [(0, b"a"), (1, None), (3, b"d")]
    assert [row["_error"] is None for row in rows] == [True, False, True]
    assert f"at byte {first}" in rows[1]["_error"]


def test_a_damaged_header_costs_its_batch_only(written: Written) -> None:
    written.append(batch_of(b"a"), batch_of(b"b"), batch_of(b"c"), seal=True)
    flip(written.files[0], batch_of(b"a").size + 16)  # the magic
    with pytest.raises(SparkError, match="offsets 1 to 1"):
        read(written.directory)
    rows = read(written.directory, badRows="permissive")
    assert [row["offset"] for row in rows if row["_error"] is None] == [0, 2]


def test_a_damaged_end_of_a_transaction_is_told(written: Written) -> None:
    written.append(batch_of(b"a", producer=1), end_of(1, ControlKind.COMMIT), batch_of(b"b"), seal=True)
    flip(written.files[0], batch_of(b"a", producer=1).size + HEADER_BYTES)
    with pytest.raises(SparkError, match="the end of a transaction is damaged at byte"):
        read(written.directory)
    rows = read(written.directory, badRows="permissive")
    assert [row["offset"] for row in rows if row["_error"] is None] == [2]


def test_a_torn_end_of_the_active_segment_is_no_damage(written: Written) -> None:
    written.append(batch_of(b"a"), batch_of(b"b"))
    written.log.close()
    (path,) = written.files
    whole = path.read_bytes()
    for size in range(batch_of(b"a").size, len(whole) - 1):  # its last byte is a zero
        path.write_bytes(whole[:size] + bytes(100))
        assert values(written.directory, activeSegments="true") == [(0, b"a")]


def test_room_that_was_allocated_ahead_is_no_damage(written: Written) -> None:
    """A crash may leave it behind a segment that was being sealed."""
    written.append(batch_of(b"a"), seal=True)
    written.append(batch_of(b"b"), seal=True)
    written.files[0].write_bytes(written.files[0].read_bytes() + bytes(5000))
    assert values(written.directory) == [(0, b"a"), (1, b"b")]


def test_a_decided_compaction_counts_and_an_undecided_one_does_not(tmp_path: Path) -> None:
    written = Written(tmp_path, replace(OPTIONS, cleanup=Cleanup.COMPACT, dirty_ratio_min=0.01))
    for number in range(3):
        written.append(batch_of(b"%d" % number, key=b"k"), seal=True)
    written.append(batch_of(b"active", key=b"k"))
    work = plan(written.log, NOW_MS)
    assert work is not None
    manifest = compact(written.disk, work)
    assert manifest is not None
    written.append(seal=True)
    behind = [(3, b"active")]
    assert values(tmp_path) == [(0, b"0"), (1, b"1"), (2, b"2"), *behind]
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "logs", copy / "logs")
    manifest.save(RealDisk(copy), "logs/orders/0")  # the power went right after it was decided
    assert values(copy) == [(2, b"2"), *behind]
    swap.finish_interrupted(RealDisk(copy), "logs/orders/0")
    assert values(copy) == [(2, b"2"), *behind]
    assert install(written.log, manifest)
    assert values(tmp_path) == [(2, b"2"), *behind]


def test_a_segment_that_was_replaced_meanwhile_is_told(written: Written) -> None:
    written.append(batch_of(b"a"), seal=True)
    options = Options({"path": str(written.directory)}, Part.SEGMENTS)
    reader = SegmentsReader(segments_schema(options), options)
    (part,) = reader.partitions()
    written.files[0].write_bytes(b"another one")
    with pytest.raises(SparkError, match="was replaced since the read was planned"):
        list(reader.read(part))
    written.files[0].unlink()
    with pytest.raises(SparkError, match="is gone since the read was planned"):
        list(reader.read(part))


def test_a_lost_state_and_lost_indexes_cost_nothing(written: Written) -> None:
    written.append(batch_of(b"a"), seal=True)
    written.append(batch_of(b"b"), seal=True)
    home = written.directory / "logs/orders/0"
    for path in (home / "state", *home.glob("*index")):
        path.unlink()
    assert values(written.directory) == [(0, b"a"), (1, b"b")]


def test_a_log_ends_at_a_hole_unless_what_is_behind_it_is_known_to_be_good(written: Written) -> None:
    for value in (b"a", b"b", b"c"):
        written.append(batch_of(value), seal=True)
    written.files[1].unlink()
    with pytest.raises(SparkError, match="offsets 1 to 1: the end is missing"):
        read(written.directory)
    assert [row["value"] for row in read(written.directory, badRows="permissive")] == [b"a", None, b"c"]
    for path in (written.directory / "logs/orders/0").glob("*.index"):
        path.unlink()
    assert values(written.directory) == [(0, b"a")]


def test_topics_are_chosen_and_our_own_are_left_out(written: Written) -> None:
    written.append(batch_of(b"a"), seal=True)
    shutil.copytree(written.directory / "logs/orders", written.directory / "logs/orders-old")
    shutil.copytree(written.directory / "logs/orders", written.directory / "logs/@ledger")
    shutil.copytree(written.directory / "logs/orders", written.directory / "logs/__heartbeat")
    assert {row["topic"] for row in read(written.directory)} == {"orders", "orders-old", "__heartbeat"}
    assert {row["topic"] for row in read(written.directory, subscribe="orders-old")} == {"orders-old"}
    assert {row["topic"] for row in read(written.directory, subscribePattern=".*old")} == {"orders-old"}
    with pytest.raises(SparkError, match="there is no topic nobody in"):
        read(written.directory, subscribe="nobody")
    with pytest.raises(SparkError, match="is no data directory"):
        read(written.directory / "logs")


def test_a_tenant_has_its_own_topics(written: Written) -> None:
    written.append(batch_of(b"a"), seal=True)
    shutil.copytree(written.directory / "logs/orders", written.directory / "logs/acme~orders")
    shutil.copytree(written.directory / "logs/orders", written.directory / "logs/acme~mails")
    assert {row["topic"] for row in read(written.directory)} == {"orders"}
    of_acme = {"goqueue.tenant": "acme"}
    assert {row["topic"] for row in read(written.directory, **of_acme)} == {"orders", "mails"}
    assert {row["topic"] for row in read(written.directory, subscribe="mails", **of_acme)} == {"mails"}
    with pytest.raises(SparkError, match="there is no topic mails in"):
        read(written.directory, subscribe="mails")
