"""/healthz, /metrics and /status of the service, on an address of its own."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from goqueue.spark.iceberg.service import Service

TEXT, JSON = "text/plain; version=0.0.4; charset=utf-8", "application/json"
PATIENCE_S = 10
_FAMILIES: tuple[tuple[str, str, type[CounterMetricFamily] | type[GaugeMetricFamily], str], ...] = (
    ("lag", "lag_messages", GaugeMetricFamily, "Messages of the topic that its table does not have."),
    ("lag_seconds", "lag_seconds", GaugeMetricFamily, "How long the oldest of them is known to be there."),
    ("rows", "rows", CounterMetricFamily, "Rows committed to the table."),
    ("bad_rows", "bad_rows", CounterMetricFamily, "Messages that could not be decoded, in the table of dead letters."),
    ("files", "files", CounterMetricFamily, "Data files committed to the table."),
    ("commits", "commits", CounterMetricFamily, "Commits of the table."),
    ("restarts", "restarts", CounterMetricFamily, "Times that its query was started again after a failure."),
)
"""Of each table: its key in /status, the metric's name, kind and meaning."""


class TableMetrics(Collector):
    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        tables = [kept.shown() for kept in list(self._service.kept.values())]
        for key, name, kind, meaning in _FAMILIES:
            family = kind(f"goqueue_table_{name}", meaning, labels=["topic"])
            for table in tables:
                family.add_metric([table["topic"]], table[key])
            yield family
        running = GaugeMetricFamily("goqueue_table_running", "1: its query runs.", labels=["topic"])
        for table in tables:
            running.add_metric([table["topic"]], float(table["state"] == "running"))
        yield running
        yield GaugeMetricFamily("goqueue_pipeline_tables", "Topics that are tables.", value=len(tables))


def _answers(service: Service) -> dict[str, Callable[[], tuple[int, str, bytes]]]:
    registry = CollectorRegistry()
    registry.register(TableMetrics(service))

    def health() -> tuple[int, str, bytes]:
        failing = sorted(topic for topic, kept in list(service.kept.items()) if kept.state == "failing")
        said = {"status": "ok" if service.is_well else "stuck", "failing": failing, "error": service.error}
        return (200 if service.is_well else 503), JSON, _json(said)

    def status() -> tuple[int, str, bytes]:
        tables = [kept.shown() for _, kept in sorted(service.kept.items())]
        return 200, JSON, _json({"tables": tables, "error": service.error})

    return {"/healthz": health, "/status": status, "/metrics": lambda: (200, TEXT, generate_latest(registry))}


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever goes before he has his answer is no news, and no stack for a log."""


@contextmanager
def served(service: Service, host: str, port: int) -> Iterator[str]:
    """Gives the address. OSError: it is taken."""
    answers = _answers(service)

    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE_S

        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0])
            code, kind, body = answer() if answer else (404, JSON, _json({"error": f"there are {', '.join(answers)}"}))
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Whoever looks every second shall not fill a log."""

    server = _Server((host, port), Handler)
    thread = threading.Thread(target=server.serve_forever, name="goqueue pages", daemon=True)
    thread.start()
    try:
        yield f"{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
