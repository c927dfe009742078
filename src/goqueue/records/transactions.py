"""How the transactions of a log ended, told by its batches in log order: a marker decides what its producer wrote."""

from bisect import bisect_right

from goqueue.records.batch import Batch
from goqueue.records.control import ControlKind, decode_control

FOR_EVER = 1 << 63


class Transactions:
    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        """First offset of each producer's transaction that has no marker yet."""
        self.aborted: dict[int, list[tuple[int, int]]] = {}
        """Of each producer: first offset and marker of its transactions that were given up. They do not overlap."""

    def wrote(self, producer_id: int, base_offset: int) -> None:
        self.open.setdefault(producer_id, base_offset)

    def ended(self, marker: Batch) -> None:
        """CorruptBatch: it does not say how; the transaction counts as open."""
        said = decode_control(marker)
        if said is None or said.kind is ControlKind.UNKNOWN:
            return
        self.end(marker.producer_id, marker.base_offset, is_commit=said.kind is ControlKind.COMMIT)

    def end(self, producer_id: int, marker_offset: int, *, is_commit: bool) -> None:
        first_offset = self.open.pop(producer_id, None)
        if not is_commit and first_offset is not None:
            self.aborted.setdefault(producer_id, []).append((first_offset, marker_offset))

    def end_of_decided(self) -> int:
        """Every transactional record below it belongs to a transaction whose end is known."""
        return min(self.open.values(), default=FOR_EVER)

    def is_aborted(self, producer_id: int, base_offset: int) -> bool:
        spans = self.aborted.get(producer_id, [])
        following = bisect_right(spans, base_offset, key=_marker_of)
        return following < len(spans) and spans[following][0] <= base_offset


def _marker_of(span: tuple[int, int]) -> int:
    return span[1]
