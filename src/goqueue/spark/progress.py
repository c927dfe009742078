"""How far a query is behind, as Spark's own source for Kafka tells it among its metrics.

Spark lets a source in Python report the newest offsets and no metrics, so whoever looks at the progress counts them.
"""

import json
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from goqueue.spark.read.positions import read


def behind_latest(progress: StreamingQueryProgress | dict[str, Any], source: int = 0) -> dict[str, str]:
    """Of the `source`-th source of the query: the least, most and mean number of offsets that a partition is behind,
    by the names of Spark's own: {"minOffsetsBehindLatest": "0", ...}. Empty: the source has not told its newest ones.
    """
    told = json.loads(progress.json) if isinstance(progress, StreamingQueryProgress) else progress
    ours = told["sources"][source]
    if not ours.get("latestOffset") or not ours.get("endOffset"):
        return {}
    latest, end = (read(_document(ours[name])) for name in ("latestOffset", "endOffset"))
    behind = [max(offset - (end.at(place, latest.ids) or 0), 0) for place, offset in latest.offsets.items()]
    if not behind:
        return {}
    return {
        "minOffsetsBehindLatest": str(min(behind)),
        "maxOffsetsBehindLatest": str(max(behind)),
        "avgOffsetsBehindLatest": str(round(sum(behind) / len(behind), 1)),
    }


def done_by(query: StreamingQuery, topic: str) -> dict[int, int]:
    """By partition: up to where its micro-batches have come that are done."""
    progress: Any = query.lastProgress
    if progress is None:
        return {}
    told = json.loads(progress.json) if isinstance(progress, StreamingQueryProgress) else progress
    end = told["sources"][0].get("endOffset")
    if not end:
        return {}
    return {place[1]: offset for place, offset in read(_document(end)).offsets.items() if place[0] == topic}


def _document(told: str | dict[str, Any]) -> dict[str, Any]:
    """Spark Connect tells it as text."""
    found: dict[str, Any] = json.loads(told) if isinstance(told, str) else told
    return found
