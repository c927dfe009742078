"""Filters as they come in bodies and queries."""

from goqueue.records.filters import RecordFilter
from goqueue.wire.rest.dead_letters import DeadLetterQuery, Filter, FilterQuery


def filter_of(given: Filter | FilterQuery | None, now_ms: int) -> RecordFilter:
    """InvalidFilter: something in it cannot be understood."""
    if given is None:
        return RecordFilter()
    named: dict[str, str | int | None] = {"key": given.key, "contains": given.contains, "lane": given.lane}
    if isinstance(given, Filter | DeadLetterQuery):
        named |= {"reason": given.reason, "from": given.from_time, "to": given.to_time}
    written = {name: str(value) for name, value in named.items() if value is not None}
    headers: dict[str, str] = {}
    if isinstance(given, Filter):
        headers = given.headers or {}
    elif given.header is not None:
        name, _, value = given.header.partition(":")
        headers = {name: value}
    written |= {f"header.{name}": value for name, value in headers.items()}
    return RecordFilter.parse(written, now_ms)
