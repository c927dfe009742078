"""The offset of a queue: the leases of one micro-batch, by name.

It goes into the checkpoint before the micro-batch runs. So whoever takes over reads the same rows, and settles the same
leases. Ranges are packed: many offsets that follow each other take a few characters.

    {"leases": [{"topic": "orders", "partition": 0, "receipt": "Ag...", "runs": "0-999,1004,1007-1009x2"}]}
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from goqueue.spark.errors import SparkError

NOTHING: dict[str, Any] = {"leases": []}
_RUN = re.compile(r"(\d+)(?:-(\d+))?(?:x(\d+))?")


class Run(NamedTuple):
    """Neighbours that were delivered equally often."""

    first: int
    last: int
    delivery_count: int = 1


class Lease(NamedTuple):
    topic: str
    partition: int
    receipt: str
    runs: tuple[Run, ...]
    """In the order of offsets."""

    @property
    def rows(self) -> int:
        return sum(run.last + 1 - run.first for run in self.runs)


def packed(leases: Iterable[Lease]) -> dict[str, Any]:
    """As it goes into the checkpoint."""
    return {
        "leases": [
            {
                "topic": lease.topic,
                "partition": lease.partition,
                "receipt": lease.receipt,
                "runs": ",".join(map(_pack, merged(lease.runs))),
            }
            for lease in leases
        ]
    }


def unpacked(offset: dict[str, Any]) -> list[Lease]:
    """SparkError: it is the offset of something else, such as a query that ran in another mode."""
    try:
        return [
            Lease(
                str(each["topic"]),
                int(each["partition"]),
                str(each["receipt"]),
                tuple(map(_unpack, each["runs"].split(","))),
            )
            for each in offset["leases"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise SparkError(
            "the checkpoint is not that of a query with mode=queue: give this query a checkpointLocation of its own"
        ) from None


def merged(runs: Iterable[Run]) -> list[Run]:
    """In the order of offsets, neighbours as one."""
    found: list[Run] = []
    for run in sorted(runs):
        before = found[-1] if found else None
        if before is not None and before.last + 1 == run.first and before.delivery_count == run.delivery_count:
            found[-1] = before._replace(last=run.last)
        else:
            found.append(run)
    return found


def _pack(run: Run) -> str:
    offsets = f"{run.first}" if run.first == run.last else f"{run.first}-{run.last}"
    return offsets if run.delivery_count == 1 else f"{offsets}x{run.delivery_count}"


def _unpack(text: str) -> Run:
    found = _RUN.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return Run(int(found[1]), int(found[2] or found[1]), int(found[3] or 1))
