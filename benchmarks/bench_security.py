"""What TLS, logins, rules and quotas cost a node: one node with three Kafka listeners, measured in turn.

Each figure is CPU time of the node for one message. The client is librdkafka, in this process.
"""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import QUIET, Row, own_host, row, serving, workplace
from benchmarks.tls_sink import TlsSink
from goqueue.cli.bench.broker import Broker
from goqueue.cli.bench.librdkafka import own_topic
from goqueue.cli.bench.load import Load
from goqueue.cli.bench.process import Process
from goqueue.cli.bench.throughput import consume, produce
from goqueue.client import Security
from tests.certificates import Authority

TURNS = 3
RULES = 1000
PLAIN, TLS, ALL = "plain", "TLS", "TLS, SASL, 1,000 rules and quotas"
SINGLE = Load(messages=20_000, value_bytes=100, batch=1)
LARGE = Load(messages=60_000, value_bytes=1000, batch=100)
SMALL = Load(messages=200_000, value_bytes=100, batch=1000)
PASSWORD = "a password of nobody"
RECORDS = {
    "plain": None,
    "TLS, records of 16 kB": (16384,) * 6,
    "TLS, records as librdkafka makes them": (1000, 9) * 77 + (16384, 7000),
}
"""Counted at a node: librdkafka makes 160 records of a request of 100 messages, one for each piece of it."""


def run() -> list[Row]:
    with workplace() as directory, secured(directory) as brokers:
        return [
            *measured(brokers, "produce, one message of 100 bytes a request", SINGLE, aim="> 0.74"),
            *measured(brokers, "produce, batches, 1,000 bytes", LARGE, aim="+2 us at most"),
            *measured(brokers, "fetch, 100 bytes", SMALL, is_fetch=True),
            *sunk(directory),
        ]


def sunk(directory: Path) -> list[Row]:
    """The same bytes to a process that only receives: what a node can not do for less."""
    sink = TlsSink(directory, "127.0.0.1")
    best: dict[str, float] = {}
    for _ in range(TURNS):
        for name, records in RECORDS.items():
            best[name] = min(best.get(name, 1e9), sink.cpu_us_per_kb(records))
    return [
        row(f"raw: received and thrown away: {name}", us, "us CPU/kB", best["plain"], is_cost=True)
        for name, us in best.items()
    ]


def measured(
    brokers: dict[str, Broker], title: str, load: Load, *, aim: str | None = None, is_fetch: bool = False
) -> list[Row]:
    best: dict[str, float] = {}
    for _ in range(TURNS):
        for name, broker in brokers.items():
            with own_topic(broker, load, QUIET) as topic:
                spent = produce(broker, topic, load, QUIET)
                topic.check_stored(load.messages)
                if is_fetch:
                    spent = consume(broker, topic, load, QUIET)
            assert spent.broker_cpu_s is not None
            best[name] = min(best.get(name, 1e9), spent.broker_cpu_s / load.messages * 1e6)
    return [
        row(f"{title}: {name}", us, "us CPU/message", best[PLAIN], aim if name == TLS else None, is_cost=True)
        for name, us in best.items()
    ]


@contextmanager
def secured(directory: Path) -> Iterator[dict[str, Broker]]:
    host = own_host()
    authority = Authority(directory)
    pair = authority.sign("node", addresses=[host])
    listeners = (
        f"kafka://{host}:9092?name=plain,kafka://{host}:9093?name=tls&protocol=SSL,"
        f"kafka://{host}:9094?name=sasl&protocol=SASL_SSL,http://{host}:8080"
    )
    arguments = ["--authentication", "off", "--listeners", listeners, "--grpc", f"{host}:9000"]
    arguments += ["--tls-cert-file", str(pair.cert), "--tls-key-file", str(pair.key)]
    with serving(directory, *arguments) as process:
        _make_accounts(f"http://{host}:8080")
        node, ca = Process(process.pid), authority.ca
        login = Security(user="bench", password=PASSWORD, tls=True, ca_file=ca)
        yield {
            PLAIN: Broker(f"{host}:9092", node),
            TLS: Broker(f"{host}:9093", node, security=Security(tls=True, ca_file=ca)),
            ALL: Broker(f"{host}:9094", node, security=login),
        }


def _make_accounts(url: str) -> None:
    """Everybody is an admin where no login is asked for."""

    def post(path: str, body: object, method: str = "POST") -> None:
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(url + path, json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request) as answer:
            assert answer.status in (200, 201), answer.read()

    post("/admin/users", {"name": "bench", "password": PASSWORD, "roles": []})
    about = {"principal": "User:bench", "operation": "all"}
    for number in range(RULES - 2):
        post("/admin/acls", {**about, "resource_type": "topic", "resource_name": f"other-{number}*"})
    post("/admin/acls", {**about, "resource_type": "topic", "resource_name": "goqueue-bench-*"})
    post("/admin/acls", {**about, "resource_type": "group", "resource_name": "*"})
    post("/admin/quotas", {"user": "bench", "producer_byte_rate": 1e12, "consumer_byte_rate": 1e12}, "PUT")
