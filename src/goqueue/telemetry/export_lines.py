"""Spans as JSON, one line each."""

from collections.abc import Iterable

import msgspec

from goqueue.telemetry.spans import Span

_encode = msgspec.json.Encoder().encode


def lines_of(spans: Iterable[Span]) -> bytes:
    """Fields that say nothing are left out."""
    return b"".join(_encode(_fields(span)) + b"\n" for span in spans)


def _fields(span: Span) -> dict[str, object]:
    fields = {name: value for name, value in span._asdict().items() if value not in ("", ())}
    if span.links:
        fields["links"] = [link._asdict() for link in span.links]
    return fields
