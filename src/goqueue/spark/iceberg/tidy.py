"""What a table needs beside rows: small files put together, old snapshots, rows and files removed.

All of it holds the table's lock, so that it and the micro-batches of this process do not undo each other's commits. A
commit of somebody else in between refuses ours, which is then planned anew the next time.
"""

import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from goqueue.spark.errors import told_in_one_line
from goqueue.spark.iceberg.files import Files, Target, Values, as_bytes, from_bytes, target_of, values_of
from goqueue.spark.iceberg.rows import RESULT_DDL, Told, read_told, tell

SMALL_BYTES = 32 * 1024 * 1024
TOGETHER_BYTES = 128 * 1024 * 1024
FILES_MIN = 8
"""So many small files of one partition are put together."""
SNAPSHOTS_KEPT = 50
ORPHAN_AGE_S = 24 * 60 * 60
"""Longer than any write takes: what is younger may be about to be committed."""


class Tidied(NamedTuple):
    """What was done."""

    files_before: int = 0
    files_after: int = 0
    snapshots: int = 0
    orphans: int = 0

    def plus(self, other: "Tidied") -> "Tidied":
        return Tidied(*(mine + its for mine, its in zip(self, other)))


def put_together(spark: SparkSession, table: Table, files_min: int = FILES_MIN) -> tuple[int, int]:
    """Small files of a partition become few: one snapshot, which replaces them. How many went, and came."""
    groups = list(small_files(table, files_min))
    if not groups:
        return 0, 0
    plan = [[as_bytes(file) for file in group] for group in groups]
    rewrite = partial(_rewritten, groups=plan, target=target_of(table, table.metadata))
    told = read_told(spark.range(len(groups), numPartitions=len(groups)).mapInArrow(rewrite, RESULT_DDL))
    new = [from_bytes(one.data, table.metadata.default_spec_id) for one in told]
    old = [file for group in groups for file in group]
    transaction = table.transaction()
    with transaction.update_snapshot(snapshot_properties={"goqueue.tidy": "small files"}).overwrite() as change:
        for file in old:
            change.delete_data_file(file)
        for file in new:
            change.append_data_file(file)
    transaction.commit_transaction()
    return len(old), len(new)


def small_files(table: Table, files_min: int) -> Iterator[list[DataFile]]:
    """Groups of one partition, each to become a file. A file of an earlier partitioning is left alone."""
    by_place: dict[Values, list[DataFile]] = {}
    for task in table.scan().plan_files():
        is_current = task.file.spec_id == table.metadata.default_spec_id
        if is_current and not task.delete_files and task.file.file_size_in_bytes < SMALL_BYTES:
            by_place.setdefault(values_of(task.file), []).append(task.file)
    for files in by_place.values():
        if len(files) < files_min:
            continue
        group: list[DataFile] = []
        for file in sorted(files, key=lambda each: each.file_path):
            if group and sum(each.file_size_in_bytes for each in group) + file.file_size_in_bytes > TOGETHER_BYTES:
                yield group
                group = []
            group.append(file)
        if len(group) > 1:
            yield group


def _rewritten(
    batches: Iterator[pa.RecordBatch], groups: list[list[bytes]], target: Target
) -> Iterator[pa.RecordBatch]:
    with told_in_one_line():
        files = Files(target)
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for one in groups[number]:
                    for rows in files.read(from_bytes(one, 0)).to_batches():
                        yield from tell(Told(data=as_bytes(file)) for file in files.add(rows))
                yield from tell(Told(data=as_bytes(file)) for file in files.finish())


def expire(table: Table, kept: int = SNAPSHOTS_KEPT) -> int:
    """All but the newest snapshots. Their files stay until `remove_orphans`."""
    snapshots = sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0, reverse=True)
    held = {ref.snapshot_id for ref in table.metadata.refs.values()}
    old = [one.snapshot_id for one in snapshots[kept:] if one.snapshot_id not in held]
    if old:
        table.maintenance.expire_snapshots().by_ids(old).commit()
    return len(old)


def forget(table: Table, retention_ms: int, now_s: float) -> None:
    """Rows older than that. Files without a younger row are dropped, others written anew."""
    if retention_ms < 0 or table.current_snapshot() is None:
        return
    old = f"_timestamp < '{datetime.fromtimestamp(now_s - retention_ms / 1000, UTC).isoformat()}'"
    if table.scan(row_filter=old, limit=1).to_arrow().num_rows:
        table.delete(old)


def remove_orphans(table: Table, now_s: float, also_live: Iterable[str] = (), age_s: float = ORPHAN_AGE_S) -> int:
    """Files below the table that no snapshot names: left by writers that were killed, and by expired snapshots."""
    live = {_path(each) for each in (*live_files(table), *also_live)}
    files, root = _file_system(table)
    found = files.get_file_info(FileSelector(root, recursive=True))
    orphans = [
        each.path
        for each in found
        if each.type == FileType.File and each.mtime.timestamp() < now_s - age_s and _path(each.path) not in live
    ]
    for path in orphans:
        files.delete_file(path)
    return len(orphans)


def live_files(table: Table) -> Iterator[str]:
    yield table.metadata_location
    yield from (entry.metadata_file for entry in table.metadata.metadata_log)
    yield from (each.statistics_path for each in table.metadata.statistics)
    seen: set[str] = set()
    for snapshot in table.metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            yield manifest.manifest_path
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                yield entry.data_file.file_path


def _file_system(table: Table) -> tuple[FileSystem, str]:
    assert isinstance(table.io, PyArrowFileIO), "pyarrow is what the extra installs"
    scheme, netloc, path = PyArrowFileIO.parse_location(table.location(), table.io.properties)
    return table.io.fs_by_scheme(scheme, netloc), path


def _path(location: str) -> str:
    """Without its scheme, as a listing tells it."""
    parts = urlsplit(location)
    return f"{parts.netloc}{parts.path}" if parts.scheme else location


def tidied(
    spark: SparkSession, table: Table, retention_ms: int = -1, also_live: Iterable[str] = (), files_min: int = FILES_MIN
) -> Tidied:
    """All of it, once."""
    now_s = time.time()
    try:
        forget(table, retention_ms, now_s)
        before, after = put_together(spark, table.refresh(), files_min)
        expired = expire(table.refresh())
    except CommitFailedException:
        return Tidied()  # somebody else was faster: the next time
    return Tidied(before, after, expired, remove_orphans(table.refresh(), now_s, also_live))
