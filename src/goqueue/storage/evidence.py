"""How far a log is known to have reached, by what stands beside it. Snapshots are saved and indexes written only when
the log was durable up to there: a log that ends before that has lost what it had.
"""

from collections.abc import Collection, Iterable

from goqueue.records.log_files import INDEX_SUFFIX, LOG_SUFFIX, base_offset_of
from goqueue.storage import index_files
from goqueue.storage.disk import Disk
from goqueue.storage.snapshots import ANY_NAME


def known_end(disk: Disk, directory: str, names: Iterable[str]) -> int:
    """The highest offset below which all was durable, by the names in `directory` and the indexes of its last segment
    and of segments that are gone."""
    names = list(names)
    bases = {base for base in map(base_offset_of, names) if base is not None}
    ends = [0]
    for name in names:
        if (snapshot := ANY_NAME.fullmatch(name)) is not None:
            ends.append(int(snapshot["offset"]))
        elif name.endswith(INDEX_SUFFIX) and _is_needed(name, bases):
            ends.append(_end_in(disk, directory, name))
    return max(ends)


def _is_needed(name: str, bases: Collection[int]) -> bool:
    """Of the segments in between, the next one's name says as much."""
    base = _base(name)
    return base is not None and (base not in bases or base == max(bases))


def _base(name: str) -> int | None:
    return base_offset_of(name.removesuffix(INDEX_SUFFIX) + LOG_SUFFIX)


def _end_in(disk: Disk, directory: str, name: str) -> int:
    summary = index_files.load_summary(disk, f"{directory}/{name.removesuffix(INDEX_SUFFIX)}")
    return summary.end_offset if summary is not None and summary.base_offset == _base(name) else 0
