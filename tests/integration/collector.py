"""An OTLP collector as far as a test needs one: it takes what is posted and decodes it by the published definitions."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as OtlpMetric
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

SPANS, METRICS = "/v1/traces", "/v1/metrics"
REPLIES = {SPANS: ExportTraceServiceResponse(), METRICS: ExportMetricsServiceResponse()}
KINDS = {OtlpSpan.SPAN_KIND_PRODUCER: "producer", OtlpSpan.SPAN_KIND_CONSUMER: "consumer"}


class Collected(NamedTuple):
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_span_id: str
    attributes: dict[str, object]
    is_error: bool
    duration_ns: int
    links: list[tuple[str, str]]

    @property
    def place(self) -> tuple[object, ...]:
        about = self.attributes
        return about["messaging.destination.name"], about["messaging.goqueue.offset"], about["messaging.goqueue.event"]


class Collector:
    """For `with Collector() as collector`. `is_down`: it answers 503."""

    def __init__(self) -> None:
        self.spans: list[Collected] = []
        self.metrics: list[dict[str, OtlpMetric]] = []
        """By name, of each request."""
        self.services: set[str] = set()
        self.requests = 0
        self.refused = 0
        self.is_down = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    def endpoint(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_port}{path}"

    def __enter__(self) -> "Collector":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, path: str, body: bytes) -> None:
        self.requests += 1
        if path == METRICS:
            for resource_metrics in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self._meet(resource_metrics.resource)
                for scope_metrics in resource_metrics.scope_metrics:
                    self.metrics.append({metric.name: metric for metric in scope_metrics.metrics})
            return
        for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
            self._meet(resource_spans.resource)
            for scope_spans in resource_spans.scope_spans:
                self.spans += [_collected(span) for span in scope_spans.spans]

    def _meet(self, resource: Resource) -> None:
        about = {each.key: each.value.string_value for each in resource.attributes}
        self.services.add(f"{about['service.name']} {about['service.instance.id']}")

    def find(self, wanted: Callable[[Collected], bool]) -> Collected | None:
        return next((span for span in list(self.spans) if wanted(span)), None)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_right = self.path in REPLIES and self.headers["Content-Type"] == "application/x-protobuf"
                status = 400 if not is_right else (503 if collector.is_down else 200)
                if status == 200:
                    collector.take(self.path, body)
                else:
                    collector.refused += 1
                reply = REPLIES[self.path].SerializeToString()
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, format: str, *args: object) -> None:
                """Nobody reads it."""

        return Handler


def _collected(span: OtlpSpan) -> Collected:
    return Collected(
        span.name,
        KINDS.get(span.kind, "internal"),
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        {each.key: each.value.string_value or each.value.int_value for each in span.attributes},
        span.status.code == span.status.STATUS_CODE_ERROR,
        span.end_time_unix_nano - span.start_time_unix_nano,
        [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
    )
