"""Putting compacted segments in the place of their sources: all of it or nothing, whenever the power goes.

Outputs are written into the folder `cleaned` of the log. A durable manifest then says which sources each one replaces:
from that moment the swap will happen, now or at the next start. Without a manifest, outputs are leftovers and are
removed.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass

from goqueue.model.errors import DamagedFile
from goqueue.records.log_files import CLEANED_NAME, LOG_SUFFIX, MANIFEST_NAME, Kind
from goqueue.storage import index_files, side_file
from goqueue.storage.disk import Disk
from goqueue.storage.segment import segment_path
from goqueue.storage.state import LogState


@dataclass(frozen=True, slots=True)
class Replacement:
    """Sources by base offset. Invariant: the output has the base offset of its first source."""

    sources: list[int]

    @property
    def base_offset(self) -> int:
        return self.sources[0]


@dataclass(frozen=True, slots=True)
class Manifest:
    replacements: list[Replacement]
    compacted_to: int
    truncations: int
    """Of the log whose segments these replace."""
    records_before: int = 0
    records_after: int = 0
    """In the segments that were looked at; to be told, not to be relied on."""
    tombstones_to: int = 0
    """Tombstones below it were dropped."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> "Manifest":
        fields = json.loads(text)
        fields["replacements"] = [Replacement(**entry) for entry in fields["replacements"]]
        return cls(**fields)

    def save(self, disk: Disk, directory: str) -> None:
        side_file.save_durably(disk, f"{directory}/{MANIFEST_NAME}", Kind.COMPACTION, self.to_json().encode())

    @classmethod
    def load(cls, disk: Disk, directory: str) -> "Manifest | None":
        try:
            return cls.from_json(side_file.load(disk, f"{directory}/{MANIFEST_NAME}", Kind.COMPACTION))
        except (FileNotFoundError, DamagedFile):
            return None


def install(disk: Disk, directory: str, manifest: Manifest, state: LogState | None) -> None:
    """Carry a saved manifest out. Every step may already have happened before a crash. A lost state is rebuilt
    later."""
    for replacement in manifest.replacements:
        _replace(disk, directory, replacement)
    disk.sync_directory(directory)
    disk.sync_directory(f"{directory}/{CLEANED_NAME}")
    if state is not None:
        state.compacted_to = max(state.compacted_to, manifest.compacted_to)
        state.tombstones_to = max(state.tombstones_to, manifest.tombstones_to)
        state.save(disk, directory)
    sweep(disk, directory)


def _replace(disk: Disk, directory: str, replacement: Replacement) -> None:
    # Indexes go first: an old index must never be taken for that of the new segment.
    for source in replacement.sources:
        index_files.remove(disk, segment_path(directory, source))
    disk.sync_directory(directory)
    for suffix in (LOG_SUFFIX, *index_files.SUFFIXES):
        name = segment_path("", replacement.base_offset, suffix)
        with suppress(FileNotFoundError):
            disk.rename(f"{directory}/{CLEANED_NAME}{name}", f"{directory}{name}")
    for source in replacement.sources[1:]:
        with suppress(FileNotFoundError):
            disk.remove(segment_path(directory, source, LOG_SUFFIX))


def finish_interrupted(disk: Disk, directory: str) -> bool:
    """At the start of recovery: carry a decided swap out, sweep away an undecided one. True if one was decided."""
    manifest = Manifest.load(disk, directory)
    if manifest is None:
        sweep(disk, directory)
        return False
    try:
        state = LogState.load(disk, directory)
    except (FileNotFoundError, DamagedFile):
        state = None
    install(disk, directory, manifest, state)
    return True


def sweep(disk: Disk, directory: str) -> None:
    """Remove the manifest, then what is left of the outputs."""
    if disk.exists(f"{directory}/{MANIFEST_NAME}"):
        disk.remove(f"{directory}/{MANIFEST_NAME}")
        disk.sync_directory(directory)
    for name in disk.list(f"{directory}/{CLEANED_NAME}"):
        disk.remove(f"{directory}/{CLEANED_NAME}/{name}")
