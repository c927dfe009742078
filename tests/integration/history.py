"""What producers were told, against what stands in the log: the judge of every test that kills a node.

A value names its producer and its number, so that each can be followed. Rules:
  kept      every acknowledged message is there, at the offset that was acknowledged
  once      no message is there twice, acknowledged or not
  ours      nothing is there that nobody sent
  in order  the messages of one producer in one partition stand in the order in which it sent them
  dense     offsets begin at 0 and leave no gap
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tests.integration.clients import Record
from tests.integration.process import DEADLINE_S, Late


class Sent(NamedTuple):
    producer: str
    number: int
    partition: int

    @property
    def value(self) -> bytes:
        return f"{self.producer}:{self.number}".encode()


class History:
    """Producers write into it from threads of their own."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._sent: dict[bytes, Sent] = {}
        self._acknowledged: dict[bytes, int] = {}
        self._failures: list[BaseException] = []

    def send(self, sent: Sent) -> bytes:
        with self._changed:
            self._sent[sent.value] = sent
        return sent.value

    def acknowledge(self, sent: Sent, offset: int) -> None:
        with self._changed:
            self._acknowledged[sent.value] = offset
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        with self._changed:
            self._failures.append(error)
            self._changed.notify_all()

    @property
    def acknowledged(self) -> int:
        return len(self._acknowledged)

    def wait_for(self, is_enough: Callable[[], bool], what: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._failures or is_enough(), DEADLINE_S)
            if self._failures:
                raise self._failures[0]
            if not is_enough():
                raise Late(f"{what} did not happen; {self.acknowledged} messages are acknowledged")

    def faults(self, records: Iterable[Record]) -> list[str]:
        """Every broken rule, in words; empty if all is well."""
        records = sorted(records, key=lambda record: (record.partition, record.offset))
        return [*self._lost(records), *self._repeated(records), *self._disordered(records), *_gaps(records)]

    def _lost(self, records: list[Record]) -> list[str]:
        places = {record.value: (record.partition, record.offset) for record in records}
        found = []
        for value, offset in self._acknowledged.items():
            told, stands = (self._sent[value].partition, offset), places.get(value)
            if stands is None:
                found.append(f"lost: {value!r}, acknowledged at {told}")
            elif stands != told:
                found.append(f"moved: {value!r}, acknowledged at {told}, stands at {stands}")
        return found

    def _repeated(self, records: list[Record]) -> list[str]:
        counts = Counter(record.value for record in records)
        found = [f"{count} times there: {value!r}" for value, count in counts.items() if count > 1]
        return found + [f"sent by nobody: {value!r}" for value in counts if value is None or value not in self._sent]

    def _disordered(self, records: list[Record]) -> list[str]:
        last: dict[tuple[str, int], int] = defaultdict(lambda: -1)
        found = []
        for record in records:
            sent = self._sent.get(record.value or b"")
            if sent is not None:
                line = sent.producer, record.partition
                if sent.number < last[line]:
                    found.append(f"out of order: {record.value!r} behind number {last[line]} in {record.partition}")
                last[line] = max(last[line], sent.number)
        return found


def _gaps(records: list[Record]) -> list[str]:
    expected: dict[int, int] = defaultdict(int)
    found = []
    for record in records:
        if record.offset != expected[record.partition]:
            found.append(f"gap: offset {expected[record.partition]} of partition {record.partition} is not there")
        expected[record.partition] = record.offset + 1
    return found
