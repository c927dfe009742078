"""What redriving and moving ask a dead letter: whose it is, where it came from, whether somebody dealt with it."""

from collections.abc import Iterator, Sequence
from typing import Any

from goqueue.model.ranges import Range
from goqueue.records import dead_letters
from goqueue.records.decode import DecodedRecord


class InRanges:
    """Membership in ranges, asked in rising order."""

    def __init__(self, ranges: list[Range]) -> None:
        self._ranges = ranges
        self._at = 0

    def __contains__(self, offset: int) -> bool:
        while self._at < len(self._ranges) and self._ranges[self._at][1] < offset:
            self._at += 1
        return self._at < len(self._ranges) and self._ranges[self._at][0] <= offset


def runs_by_target(records: Sequence[DecodedRecord], to: str | None) -> Iterator[tuple[str, list[DecodedRecord]]]:
    run: list[DecodedRecord] = []
    topic = ""
    for record in records:
        target = target_of(record, to)
        if run and target != topic:
            yield topic, run
            run = []
        topic = target
        run.append(record)
    if run:
        yield topic, run


def target_of(letter: DecodedRecord, to: str | None) -> str:
    return to or (dict(letter.headers).get(dead_letters.TOPIC) or b"").decode(errors="replace")


def is_from(topic: str, about: dict[str, bytes | None]) -> bool:
    return about.get(dead_letters.TOPIC) == topic.encode()


def number_in(about: dict[str, Any], name: str) -> int:
    text = about.get(name) or b"0"
    return int(text) if text.isdigit() else 0
