"""Spans to a collector: OTLP over HTTP, by the OpenTelemetry SDK. Imported only where it is switched on."""

from collections.abc import Mapping, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import Link as OtelLink
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from goqueue.model.tenancy import tenant_said
from goqueue.telemetry.otlp import MS_NS, NOT_TAKEN, SCOPE, TIMEOUT_S, resource
from goqueue.telemetry.spans import Span

SPANS_PER_REQUEST = 512

_KINDS = {"producer": SpanKind.PRODUCER, "consumer": SpanKind.CONSUMER, "internal": SpanKind.INTERNAL}
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class OtlpSink:
    name = "otlp"

    def __init__(self, endpoint: str, about: Mapping[str, str]) -> None:
        self._resource = resource(about)
        self._exporter = OTLPSpanExporter(endpoint=endpoint, timeout=TIMEOUT_S)

    def write(self, spans: Sequence[Span]) -> None:
        for first in range(0, len(spans), SPANS_PER_REQUEST):
            some = [self._made(span) for span in spans[first : first + SPANS_PER_REQUEST]]
            if self._exporter.export(some) is not SpanExportResult.SUCCESS:
                raise OSError(NOT_TAKEN)

    def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _made(self, span: Span) -> ReadableSpan:
        parent = None
        if span.parent_span_id:
            parent = _context(span.trace_id, span.parent_span_id, is_remote=span.is_parent_remote)
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace_id, span.span_id),
            parent=parent,
            resource=self._resource,
            attributes=_attributes(span),
            links=[OtelLink(_context(*link)) for link in span.links],
            kind=_KINDS[span.kind],
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
            start_time=span.start_ms * MS_NS,
            end_time=span.end_ms * MS_NS,
            instrumentation_scope=SCOPE,
        )


def _context(trace_id: str, span_id: str, is_remote: bool = False) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote, _SAMPLED)


def _attributes(span: Span) -> dict[str, str | int]:
    """By the names that OpenTelemetry has for messaging, where it has one."""
    attributes: dict[str, str | int] = {
        "messaging.system": "goqueue",
        "messaging.destination.name": span.topic,
        "messaging.destination.partition.id": str(span.partition),
        "messaging.goqueue.offset": span.offset,
        "messaging.goqueue.event": span.event,
        "goqueue.tenant": tenant_said(span.topic),
    }
    if span.consumer_group:
        attributes["messaging.consumer.group.name"] = span.consumer_group
    if span.consumer_id:
        attributes["messaging.client.id"] = span.consumer_id
    return attributes
