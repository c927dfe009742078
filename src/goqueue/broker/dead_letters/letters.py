"""What redriving and moving ask a dead letter: whose it is, where it came from, whether somebody dealt with it."""

from typing import Any

from goqueue.model.ranges import Range
from goqueue.records import dead_letters

DIGITS_MAX = 18


class InRanges:
    """Membership in ranges, asked in rising order."""

    def __init__(self, ranges: list[Range]) -> None:
        self._ranges = ranges
        self._at = 0

    def __contains__(self, offset: int) -> bool:
        while self._at < len(self._ranges) and self._ranges[self._at][1] < offset:
            self._at += 1
        return self._at < len(self._ranges) and self._ranges[self._at][0] <= offset


def topic_in(about: dict[str, bytes | None]) -> str:
    """Where it says that it came from. Anybody can write that: see `DeadLetters.origin`."""
    return (about.get(dead_letters.TOPIC) or b"").decode(errors="replace")


def is_from(topic: str, about: dict[str, bytes | None]) -> bool:
    return about.get(dead_letters.TOPIC) == topic.encode()


def number_in(about: dict[str, Any], name: str) -> int:
    text = about.get(name) or b"0"
    return int(text) if text.isdigit() and len(text) <= DIGITS_MAX else 0
