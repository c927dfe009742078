"""How much a micro-batch takes: caps on offsets and bytes, and a least amount that is waited for.

Spark knows such limits from 4.2 on. Before, a micro-batch takes all that is there.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pyspark

from goqueue.client.assigned import Place
from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options

__all__ = ["Limits", "admission", "spread", "spread_bytes", "wants_all"]

try:
    from pyspark.sql.streaming import datasource as admission
except ImportError:  # before 4.2
    admission = None  # type: ignore[assignment]

IS_KNOWN_TO_SPARK = admission is not None
_OPTIONS = ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger")


class Limits(NamedTuple):
    """None: there is no such limit."""

    offsets_max: int | None = None
    bytes_max: int | None = None
    offsets_min: int | None = None
    delay_ms_max: int = 0

    @classmethod
    def of(cls, options: Options) -> "Limits":
        given = [name for name in _OPTIONS if options.has(name)]
        if given and not IS_KNOWN_TO_SPARK:
            raise SparkError(f"{', '.join(given)}: needs pyspark 4.2 or newer, and this is {pyspark.__version__}")
        offsets_max, bytes_max, offsets_min = (options.get(name) for name in _OPTIONS)
        return cls(offsets_max, bytes_max, offsets_min, options.get("maxTriggerDelay"))

    def for_spark(self) -> Any:
        """One of Spark's own, which it hands back with every question, unless its trigger wants all there is. It has
        none that says more than one thing, so ours are looked at again then.
        """
        if self.offsets_max is not None:
            return admission.ReadMaxRows(self.offsets_max)
        if self.bytes_max is not None:
            return admission.ReadMaxBytes(self.bytes_max)
        if self.offsets_min is not None:
            return admission.ReadMinRows(self.offsets_min)
        return admission.ReadAllAvailable()

    def waits(self, available: int, waited_ms: float) -> bool:
        """Whether there is too little for a micro-batch yet."""
        return self.offsets_min is not None and available < self.offsets_min and waited_ms < self.delay_ms_max


def wants_all(limit: Any) -> bool:
    """`limit` is what Spark asks with; None: it does not know of limits."""
    return limit is None or isinstance(limit, admission.ReadAllAvailable)


def spread(available: Mapping[Place, int], most: int) -> dict[Place, int]:
    """How many offsets each partition gives, `most` in all: in proportion to what it has, so that all come to their
    end together. One with anything gives at least one, as in Spark's Kafka source.
    """
    total = sum(available.values())
    if total <= most:
        return dict(available)
    return {place: min(count, max(count * most // total, 1)) for place, count in available.items()}


def spread_bytes(available: Mapping[Place, int], record_bytes: Mapping[Place, float], most: int) -> dict[Place, int]:
    """The same by bytes; `record_bytes`: what a record of each partition takes, about."""
    sizes = {place: count * record_bytes[place] for place, count in available.items()}
    total = sum(sizes.values())
    if total <= most:
        return dict(available)
    return {place: min(count, max(int(count * most / total), 1)) if count else 0 for place, count in available.items()}
