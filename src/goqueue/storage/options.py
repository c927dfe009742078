"""What one log may be told: plain data, so that a topic's settings are values and not method names."""

from dataclasses import dataclass
from enum import StrEnum

KIB = 1024
MIB = 1024 * KIB
SECOND_MS = 1000
DAY_MS = 24 * 60 * 60 * SECOND_MS
UNLIMITED = -1
UNBOUNDED_MS = (1 << 63) - 1


class Durability(StrEnum):
    """When an append may be acknowledged."""

    DISK = "disk"
    """After the group sync: survives the machine."""
    OS = "os"
    """At once, from the page cache: survives the process; a timer syncs it."""


class Cleanup(StrEnum):
    """What happens to old records."""

    DELETE = "delete"
    COMPACT = "compact"
    BOTH = "compact,delete"


@dataclass(frozen=True, slots=True)
class LogOptions:
    durability: Durability = Durability.DISK
    cleanup: Cleanup = Cleanup.DELETE
    batch_bytes_max: int = 16 * MIB
    segment_bytes: int = 64 * MIB
    segment_ms: int = 7 * DAY_MS
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = UNLIMITED
    sync_interval_ms: int = SECOND_MS
    """Durability `os`: how long a write may wait for its sync, idle or not."""
    disk_reserve_bytes: int = 256 * MIB
    """Appends are refused below this much free space, so that what must be written to recover still can be."""
    index_interval_bytes: int = 4 * KIB
    checkpoint_bytes: int = 4 * MIB
    """How much synced log may stand behind the last saved index: what a crash makes recovery scan."""
    dirty_ratio_min: float = 0.5
    """Share of bytes not yet compacted from which on a compaction is worth its work."""
    tombstone_ms: int = DAY_MS
    """How long a deletion stays readable after its first compaction."""
    compaction_lag_ms_min: int = 0
    """Records younger than this are not compacted away: a slow reader still sees each of them."""
    compaction_lag_ms_max: int = UNBOUNDED_MS
    """Records older than this are compacted, however little is dirty: a deletion must have come about by then."""

    @property
    def compacts(self) -> bool:
        return self.cleanup is not Cleanup.DELETE

    @property
    def roll_ms(self) -> int:
        """Age at which the active segment is sealed: only sealed ones are compacted."""
        return min(self.segment_ms, self.compaction_lag_ms_max) if self.compacts else self.segment_ms

    @property
    def deletes(self) -> bool:
        return self.cleanup is not Cleanup.COMPACT
