"""Which records a replay or a redrive takes: all conditions that are given must hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from goqueue.model.errors import InvalidFilter, InvalidMoment
from goqueue.model.moments import parse_moment_ms, shown
from goqueue.records.decode import DecodedRecord
from goqueue.records.native import Headers
from goqueue.records.wishes import lane_and_expiry, parse_lane

REASON = "gq-dlq-reason"
"""The header in which a dead letter says why it is one."""

HEADER_PREFIX = "header."
FIELDS = ("key", "header.NAME", "contains", "lane", "reason", "from", "to")


@dataclass(frozen=True)
class RecordFilter:
    key: bytes | None = None
    headers: Mapping[str, bytes] = field(default_factory=dict)
    """Each of these headers must be there with this value; of a repeated one, any."""
    contains: bytes | None = None
    """Bytes that the value must hold somewhere."""
    lanes: frozenset[int] | None = None
    reason: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    """The time of a record lies in [from_ms, to_ms). One that has no time lies in no span."""

    @property
    def is_empty(self) -> bool:
        """True: every record matches, so none has to be decoded."""
        return self == _TAKES_ALL

    def matches(self, record: DecodedRecord, lane: int | None = None) -> bool:
        """`lane`: what the batch says, if it does; else the headers of the record do."""
        if self.key is not None and record.key != self.key:
            return False
        if self.contains is not None and (record.value is None or self.contains not in record.value):
            return False
        return self._matches_time(record.timestamp) and self._matches_headers(record.headers, lane)

    def _matches_time(self, timestamp: int) -> bool:
        if self.from_ms is None and self.to_ms is None:
            return True
        if timestamp < 0 or (self.from_ms is not None and timestamp < self.from_ms):
            return False
        return self.to_ms is None or timestamp < self.to_ms

    def _matches_headers(self, headers: Headers, lane: int | None) -> bool:
        if self.reason is not None and (REASON, self.reason.encode()) not in headers:
            return False
        if not all(header in headers for header in self.headers.items()):
            return False
        if self.lanes is None:
            return True
        return (lane_and_expiry(headers)[0] if lane is None else lane) in self.lanes

    @classmethod
    def parse(cls, written: Mapping[str, str], now_ms: int) -> "RecordFilter":
        """From names and texts, as doors and the command line have them; `FIELDS` are the names."""
        found: dict[str, Any] = {}
        headers: dict[str, bytes] = {}
        problems: list[str] = []
        for name, text in written.items():
            if name in {"key", "contains"}:
                found[name] = text.encode()
            elif name == "reason":
                found[name] = text
            elif name == "lane":
                found["lanes"] = _parse_lanes(text, problems)
            elif name in {"from", "to"}:
                found[f"{name}_ms"] = _parse_moment(name, text, now_ms, problems)
            elif name.startswith(HEADER_PREFIX) and name != HEADER_PREFIX:
                headers[name.removeprefix(HEADER_PREFIX)] = text.encode()
            else:
                problems.append(f"unknown field {shown(name)}, possible are {', '.join(FIELDS)}")
        parsed = cls(headers=headers, **found)
        if parsed.from_ms is not None and parsed.to_ms is not None and parsed.from_ms >= parsed.to_ms:
            problems.append(f"from ({written['from']}) must lie before to ({written['to']})")
        if problems:
            raise InvalidFilter("; ".join(problems))
        return parsed


_TAKES_ALL = RecordFilter()


def _parse_lanes(text: str, problems: list[str]) -> frozenset[int]:
    lanes = {part.strip(): parse_lane(part.strip()) for part in text.split(",")}
    unknown = [shown(part) for part, lane in lanes.items() if lane is None]
    if unknown:
        problems.append(
            f"lane {', '.join(unknown)} does not exist, possible are critical, high, normal, low, background or 0 to 4"
        )
    return frozenset(lane for lane in lanes.values() if lane is not None)


def _parse_moment(name: str, text: str, now_ms: int, problems: list[str]) -> int | None:
    try:
        return parse_moment_ms(text, now_ms)
    except InvalidMoment as error:
        problems.append(f"{name}: {error}")
        return None
