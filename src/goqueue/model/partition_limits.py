"""How many partitions there may be. The node tells the controller, because it knows how many files it may open."""

from typing import NamedTuple

from goqueue.model.topics import UNLIMITED


class PartitionLimits(NamedTuple):
    """How many partitions there may be. What was made under other limits stays."""

    per_topic: int = 1_000
    in_all: int = 100_000
    default: int = 3
    """Of a topic that does not say how many."""
    retention_ms: int = UNLIMITED
    """Of a topic that does not say how long it keeps records: a tenant may have no right to that."""

    def refusal(self, wanted: int, others: int) -> str:
        """Why a topic cannot have `wanted` partitions beside the `others` of all other topics; empty: it can."""
        if not 1 <= wanted <= self.per_topic:
            return f"{wanted} partitions; a topic may have 1 to {self.per_topic} (partitions_max)"
        if wanted + others > self.in_all:
            return (
                f"{wanted} partitions beside the {others} of other topics; this node may have {self.in_all}, "
                "by its limit on open files"
            )
        return ""
