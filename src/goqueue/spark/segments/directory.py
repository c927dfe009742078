"""What a data directory holds, seen by somebody who does not own it: nothing is locked, repaired or written.

What recovery would honour at the next start is honoured here. `state` says where a log starts, what is compacted and
which epochs wrote it; a sound `compaction` file says that a swap was decided, so the segments in `cleaned/` count and
their sources do not; without it they are leftovers. A summary in an `.index` says up to where its segment was synced.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from goqueue.model.errors import DamagedFile, InvalidName
from goqueue.model.names import check_kept_name
from goqueue.model.own_version import own_version
from goqueue.model.tenancy import DEFAULT_TENANT, full, tenant_said
from goqueue.records.formats import FORMAT_NAME, newer_formats
from goqueue.records.log_files import (
    CLEANED_NAME,
    INDEX_SUFFIX,
    LOGS_NAME,
    MANIFEST_NAME,
    STATE_NAME,
    Kind,
    LogFacts,
    Summary,
    base_offset_of,
    read_frame,
)
from goqueue.records.walk import Expected
from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options

T = TypeVar("T")

ATTEMPTS_MAX = 5
"""A running broker may swap a segment for a compacted one between our looking at its name and at its file."""


class SegmentFile(NamedTuple):
    path: str
    base_offset: int
    size: int
    changed_ns: int
    summary: Summary | None
    """None: nothing vouches for it."""
    expected: Expected

    @property
    def max_timestamp(self) -> int | None:
        """None: not known without reading it."""
        is_whole = self.summary is not None and self.summary.end_position == self.size
        return self.summary.max_timestamp if is_whole and self.summary is not None else None


class LogFiles(NamedTuple):
    topic: str
    partition: int
    start_offset: int
    segments: list[SegmentFile]
    """In their order. The last one is active: a broker that runs on this directory writes to it."""
    good_to: int
    """All offsets below were on the disk when that was written down. Behind it, a log ends at its first hole."""


def find_logs(options: Options) -> list[LogFiles]:
    """SparkError: no data directory, or a topic that it does not have."""
    directory = Path(options.need("path"))
    logs = directory / LOGS_NAME
    if not logs.is_dir():
        raise SparkError(f"{directory} is no data directory of GoQueue: it has no folder {LOGS_NAME!r}")
    _refuse_newer(directory)
    tenant = options.get("goqueue.tenant") or DEFAULT_TENANT
    kept = {one.name: one for one in logs.iterdir() if _is_topic(one) and tenant_said(one.name) == tenant}
    topics = {name.removeprefix(full(tenant, "")): place for name, place in kept.items()}
    found = []
    for topic in _chosen(options, sorted(topics), directory):
        names = [one.name for one in topics[topic].iterdir()]
        partitions = sorted(int(name) for name in names if name.isascii() and name.isdigit())
        found += [_open(topics[topic] / str(partition), topic, partition) for partition in partitions]
    return found


def _refuse_newer(directory: Path) -> None:
    try:
        refusal = newer_formats((directory / FORMAT_NAME).read_bytes(), own_version(), only=("log",))
    except (FileNotFoundError, DamagedFile):
        return
    if refusal:
        raise SparkError(f"{directory} cannot be read: {refusal}")


def _is_topic(directory: Path) -> bool:
    try:
        check_kept_name(directory.name)
    except InvalidName:
        return False
    return directory.is_dir()


def _chosen(options: Options, existing: list[str], directory: Path) -> list[str]:
    named, pattern = options.get("subscribe"), options.get("subscribePattern")
    if named and pattern:
        raise SparkError("subscribe and subscribePattern both say which topics: only one of them is allowed")
    if named:
        missing = sorted(set(named) - set(existing))
        if missing:
            raise SparkError(f"there is no topic {', '.join(missing)} in {directory}")
        return sorted(set(named))
    if not pattern:
        return existing
    try:
        return list(filter(re.compile(pattern).fullmatch, existing))
    except re.error as error:
        raise SparkError(f"subscribePattern: {pattern!r} is no regular expression: {error}") from None


def _open(directory: Path, topic: str, partition: int) -> LogFiles:
    attempt = 0
    while True:
        try:
            return _look(directory, topic, partition)
        except FileNotFoundError as error:
            attempt += 1
            if attempt == ATTEMPTS_MAX:
                raise SparkError(f"{directory} changes while it is being read: {error}") from None


def _look(directory: Path, topic: str, partition: int) -> LogFiles:
    facts = _facts(directory)
    manifest = _manifest(directory)
    replaced: set[int] = set()
    compacted_to = facts.compacted_to if facts else 0
    if manifest is not None:
        replaced = {base for one in manifest["replacements"] for base in one["sources"][1:]}
        compacted_to = max(compacted_to, manifest["compacted_to"])
    paths = dict(_segments(directory))
    if manifest is not None:
        paths |= dict(_segments(directory / CLEANED_NAME))
    epochs = facts.epochs if facts else None
    segments = []
    for base in sorted(paths.keys() - replaced):
        # Without the state, whatever epochs and gaps the batches show is believed.
        expected = Expected(epochs, has_gaps=facts is None or facts.has_gaps(base) or base < compacted_to)
        segments.append(_segment(paths[base], base, expected))
    start_offset = facts.start_offset if facts else (segments[0].base_offset if segments else 0)
    ends = [one.summary.end_offset for one in segments if one.summary is not None]
    return LogFiles(topic, partition, start_offset, segments, max([compacted_to, *ends]))


def _segments(directory: Path) -> Iterator[tuple[int, Path]]:
    for path in directory.iterdir() if directory.is_dir() else ():
        base = base_offset_of(path.name)
        if base is not None:
            yield base, path


def _segment(path: Path, base: int, expected: Expected) -> SegmentFile:
    # The index first: a swap takes it away before it replaces the segment.
    summary = _summary(path.with_suffix(INDEX_SUFFIX))
    stat = path.stat()
    if summary is not None and (summary.base_offset != base or not 0 < summary.end_position <= stat.st_size):
        summary = None
    return SegmentFile(str(path), base, stat.st_size, stat.st_mtime_ns, summary, expected)


def _facts(directory: Path) -> LogFacts | None:
    body = _body(directory / STATE_NAME, Kind.LOG_STATE)
    if body is None:
        return None
    try:
        return LogFacts.decode(body)
    except DamagedFile:
        return None


def _manifest(directory: Path) -> Any:
    body = _body(directory / MANIFEST_NAME, Kind.COMPACTION)
    return None if body is None else json.loads(body)


def _summary(path: Path) -> Summary | None:
    return _read(path, lambda file: Summary.read(file)[0])


def _body(path: Path, kind: Kind) -> bytes | None:
    return _read(path, lambda file: read_frame(file, 0, kind)[0])


class _File:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, position: int, length: int, /) -> bytes:
        return os.pread(self._descriptor, length, position)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size


def _read(path: Path, how: Callable[[_File], T]) -> T | None:
    """None: it is missing or damaged, which never costs data."""
    try:
        with path.open("rb") as file:
            return how(_File(file.fileno()))
    except (FileNotFoundError, DamagedFile):
        return None
