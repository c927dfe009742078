"""Ledgers that an upgrade reads or writes: opened for so long, and not in service."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from goqueue.model.errors import LogPoisoned
from goqueue.model.topics import Topic
from goqueue.replica.companions import LEDGER_OPTIONS
from goqueue.replica.replica import Replica
from goqueue.replica.replicas import Replicas


@contextmanager
def opened(
    replicas: Replicas, log: str, numbers: Sequence[int], now_ms: int, topic_id: bytes = b""
) -> Iterator[dict[int, Replica]]:
    """LogPoisoned: one cannot be opened."""
    topic = Topic(log, topic_id, max(numbers) + 1, LEDGER_OPTIONS)
    opening = replicas.opening(topic, numbers, now_ms)
    opening.run()
    try:
        for number, error in opening.failed.items():
            raise LogPoisoned(f"ledger {log}/{number} cannot be opened: {error}")
        yield opening.opened
    finally:
        for replica in opening.opened.values():
            replica.close()


def remove(replicas: Replicas, log: str) -> None:
    """Gone when this returns, whatever crashes then."""
    if replicas.directory.has(log):
        replicas.directory.retire(log, replicas.directory.partitions_of(log))()
