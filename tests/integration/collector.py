"""An OTLP collector as far as a test needs one: it takes what is posted and decodes it by the published definitions."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

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
        self.services: set[str] = set()
        self.requests = 0
        self.is_down = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1/traces"

    def __enter__(self) -> "Collector":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, body: bytes) -> None:
        self.requests += 1
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            about = {each.key: each.value.string_value for each in resource.resource.attributes}
            self.services.add(f"{about['service.name']} {about['service.instance.id']}")
            for scope in resource.scope_spans:
                self.spans += [_collected(span) for span in scope.spans]

    def find(self, wanted: Callable[[Collected], bool]) -> Collected | None:
        return next((span for span in list(self.spans) if wanted(span)), None)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                is_right = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
                status = 400 if not is_right else (503 if collector.is_down else 200)
                if status == 200:
                    collector.take(body)
                reply = ExportTraceServiceResponse().SerializeToString()
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
