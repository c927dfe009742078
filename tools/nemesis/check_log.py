"""The log of each partition: what was acknowledged is there, at its offset, once, in order, and nothing read vanishes.

Operations: `send` asks topic, partition and value and is answered with the offset, or with None by a client that knows
that it was stored and not where; `read` asks topic and partition and is answered with `records`, pairs of offset and
value that stand one behind another. A read with `final` was made when all was healed and reaches from the start to the
end; without one nothing can be said to be lost. Values are unique.

The kinds of faults: lost, moved, phantom, duplicate, two values, reorder, gap, vanished.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from tools.nemesis.history import FAIL, Fault, Operation

Place = tuple[str, int]
"""Topic and partition."""


def check_logs(history: Iterable[Operation], *, is_dense: bool = True) -> list[Fault]:
    """`is_dense`: offsets have no gaps, as where there are no transactions and no compaction."""
    sends: dict[Place, list[Operation]] = defaultdict(list)
    reads: dict[Place, list[Operation]] = defaultdict(list)
    for operation in history:
        if operation.what in {"send", "read"}:
            place = operation.asked["topic"], operation.asked["partition"]
            (sends if operation.what == "send" else reads)[place].append(operation)
    found: list[Fault] = []
    for place in sorted(sends.keys() | reads.keys()):
        log = _Log(place, sends[place], [read for read in reads[place] if read.is_ok])
        found += log.faults(is_dense)
    return found


class _Log:
    def __init__(self, place: Place, sends: Sequence[Operation], reads: Sequence[Operation]) -> None:
        self._name = f"{place[0]}/{place[1]}"
        self._sends = sends
        self._reads = reads
        self._sent: dict[Any, Operation] = {send.asked["value"]: send for send in sends}
        finals = [read for read in reads if read.asked.get("final")]
        self._final = finals[-1] if finals else None
        self._stands: dict[Any, int] = {}
        """Where each value stands: by the last reading of everything, or by whatever was read."""
        for read in [self._final] if self._final else reads:
            self._stands |= {value: offset for offset, value in read.answer["records"]}

    def faults(self, is_dense: bool) -> list[Fault]:
        found = [*self._lost(), *self._phantoms(), *self._values_of_offsets(), *self._duplicates()]
        found += [*self._disorder(), *self._vanished()]
        return [*found, *self._gaps()] if is_dense else found

    def _lost(self) -> Iterator[Fault]:
        if self._final is None:
            return
        begin = _first_offset(self._final)
        for send in self._sends:
            if not send.is_ok:
                continue
            value, told = send.asked["value"], send.answer["offset"]
            stands = self._stands.get(value)
            if stands is None and (told is None or told >= begin):
                yield Fault("lost", f"{value!r} was acknowledged at {self._name}/{told} and is not there")
            elif stands is not None and told is not None and stands != told:
                yield Fault("moved", f"{value!r} was acknowledged at {self._name}/{told} and stands at {stands}")

    def _phantoms(self) -> Iterator[Fault]:
        for value, offset in sorted(_seen(self._reads), key=lambda seen: seen[1]):
            send = self._sent.get(value)
            if send is None:
                yield Fault("phantom", f"{value!r} at {self._name}/{offset} was sent by nobody")
            elif send.outcome == FAIL:
                yield Fault("phantom", f"{value!r} at {self._name}/{offset} was refused")

    def _values_of_offsets(self) -> Iterator[Fault]:
        values: dict[int, set[Any]] = defaultdict(set)
        for value, offset in _seen(self._reads):
            values[offset].add(value)
        for send in self._sends:
            if send.is_ok and send.answer["offset"] is not None:
                values[send.answer["offset"]].add(send.asked["value"])
        for offset, several in sorted(values.items()):
            if len(several) > 1:
                yield Fault("two values", f"{self._name}/{offset} was {' and '.join(map(repr, sorted(several)))}")

    def _duplicates(self) -> Iterator[Fault]:
        for read in [self._final] if self._final else self._reads:
            offsets: dict[Any, list[int]] = defaultdict(list)
            for offset, value in read.answer["records"]:
                offsets[value].append(offset)
            for value, several in offsets.items():
                if len(several) > 1:
                    yield Fault("duplicate", f"{value!r} stands in {self._name} at {several}")

    def _disorder(self) -> Iterator[Fault]:
        """Whoever sends in turn finds it in turn; and what was sent after an answer stands behind what was answered."""
        placed = []
        for send in self._sends:
            offset = send.answer["offset"] if send.is_ok else None
            if offset is None:
                offset = self._stands.get(send.asked["value"])
            if offset is not None:
                placed.append((send, offset))
        last: dict[str, tuple[int, Any]] = {}
        for send, offset in placed:
            before = last.get(send.process, (-1, None))
            if offset < before[0]:
                text = f"{send.asked['value']!r} stands at {self._name}/{offset}, and {before[1]!r}, which"
                yield Fault("reorder", f"{text} {send.process} sent before it, at {before[0]}")
            last[send.process] = max(before, (offset, send.asked["value"]), key=lambda pair: pair[0])
        yield from self._late(placed)

    def _late(self, placed: list[tuple[Operation, int]]) -> Iterator[Fault]:
        answered = sorted((pair for pair in placed if pair[0].is_ok), key=lambda pair: pair[0].ended)
        highest, value, at = -1, None, 0
        for send, offset in placed:  # in the order in which they began
            while at < len(answered) and answered[at][0].ended < send.began:
                if answered[at][1] > highest:
                    highest, value = answered[at][1], answered[at][0].asked["value"]
                at += 1
            if offset < highest:
                text = f"{send.asked['value']!r} was sent after the answer for {value!r} at {self._name}/{highest}"
                yield Fault("reorder", f"{text} and stands at {offset}")

    def _vanished(self) -> Iterator[Fault]:
        if self._final is None:
            return
        begin = _first_offset(self._final)
        for value, offset in sorted(_seen(self._reads), key=lambda seen: seen[1]):
            if offset >= begin and self._stands.get(value) != offset:
                yield Fault("vanished", f"{value!r} was read at {self._name}/{offset} and is not there any more")

    def _gaps(self) -> Iterator[Fault]:
        for read in self._reads:
            offsets = [offset for offset, _ in read.answer["records"]]
            for before, after in pairwise(offsets):
                if after != before + 1:
                    yield Fault("gap", f"a reading of {self._name} went from {before} to {after}")


def _seen(reads: Iterable[Operation]) -> set[tuple[Any, int]]:
    return {(value, offset) for read in reads for offset, value in read.answer["records"]}


def _first_offset(final: Operation) -> int:
    """What was deleted in front of it by retention is not lost."""
    start = final.asked.get("start")
    return int(start) if start is not None else 0
