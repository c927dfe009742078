"""GoQueue on Spark: the data source `goqueue`, and the jobs that move, keep and explain the data.

Importing this imports no pyspark: the command line asks for a job only when one is run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goqueue.spark.progress import behind_latest
    from goqueue.spark.queue.settle import settle
    from goqueue.spark.sessions import session
    from goqueue.spark.source import GoQueueDataSource

__all__ = ["GoQueueDataSource", "behind_latest", "session", "settle"]

_HOMES = {
    "GoQueueDataSource": "source",
    "behind_latest": "progress",
    "session": "sessions",
    "settle": "queue.settle",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
