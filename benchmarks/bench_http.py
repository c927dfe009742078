"""The HTTP door, spoken to by bare sockets that send prebuilt bytes; the broker is a process of its own.

The baseline is a bare ASGI application that says hello, behind the same listener on the same event loop, in the same
run: what is above it is our router, our checks, JSON and the broker itself. The ratio is ours divided by the baseline.
"""

import json
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from benchmarks.harness import ROOT, Row, node, row
from goqueue.cli.bench.broker import stopping
from goqueue.cli.bench.process import Process

CONNECTIONS = 16
SECONDS = 4
WARM_UP_SECONDS = 1
VALUE = "x" * 100
TAKEN = 100

Address = tuple[str, int]


class Run(NamedTuple):
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    """Of the server, for each request."""


def run() -> list[Row]:
    rows: list[Row] = []
    with hello_server() as (address, process):
        hello = load(address, process, request("GET", "/", b""))
    rows += run_rows("hello, bare ASGI", hello, None, 0)
    with node() as broker:
        host, _, port = broker.http.rpartition(":")
        place = host, int(port)
        found = load(place, broker.process, request("GET", "/livez", b""))
        rows += run_rows("GET /livez", found, hello, 0)
        for durability in ("os", "disk"):
            topic = f"bench-{durability}"
            options = {"durability": durability}
            ask(place, "POST", "/topics", {"name": topic, "num_partitions": 1, "options": options}, 201)
            for count in (1, 100):
                body = json.dumps({"messages": [{"value": VALUE}] * count}).encode()
                found = load(place, broker.process, request("POST", f"/topics/{topic}/messages", body))
                rows += run_rows(f"publish {count} of 100 bytes, {durability}", found, hello, count)
        rows += receive_rows(place, broker.process, "bench-os")
    return rows


def run_rows(name: str, found: Run, hello: Run | None, messages: int) -> Iterator[Row]:
    for key, unit in zip(Run._fields, ("req/s", "ms", "ms", "us")):
        label = {"requests_per_s": "requests", "cpu_us": "server CPU per request"}.get(key, key.removesuffix("_ms"))
        yield row(f"{name}: {label}", getattr(found, key), unit, None if hello is None else getattr(hello, key))
    if messages:
        yield row(f"{name}: messages", found.requests_per_s * messages, "msg/s", None)
        yield row(f"{name}: server CPU per message", found.cpu_us / messages, "us", None)


def receive_rows(address: Address, process: Process, topic: str) -> Iterator[Row]:
    """One consumer: receive a hundred, acknowledge them together, again and again."""
    cpu, began, taken = process.cpu_s(), time.perf_counter(), 0
    with socket.create_connection(address) as connection:
        while time.perf_counter() - began < SECONDS:
            wanted = {"group": "bench", "max_messages": TAKEN, "wait": "1s"}
            messages = exchange(connection, "POST", f"/topics/{topic}/receive", wanted)["messages"]
            assert messages, "the topic was read to its end"
            receipts = [message["receipt_handle"] for message in messages]
            told = exchange(connection, "POST", "/messages/ack/batch", {"receipt_handles": receipts})
            assert all(each["success"] for each in told["results"]), told
            taken += len(messages)
    took = time.perf_counter() - began
    name = f"receive {TAKEN} and acknowledge them"
    yield row(f"{name}: messages", taken / took, "msg/s", None)
    yield row(f"{name}: server CPU per message", (process.cpu_s() - cpu) / taken * 1e6, "us", None)


# -- the load


def request(method: str, path: str, body: bytes) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    return head.encode() + b"\r\n\r\n" + body


def load(address: Address, process: Process, data: bytes) -> Run:
    """Every connection has one request under way. The connections are enough to keep the server busy."""
    connections = [socket.create_connection(address) for _ in range(CONNECTIONS)]
    try:
        drive(connections, data, WARM_UP_SECONDS)
        cpu, began = process.cpu_s(), time.perf_counter()
        times = drive(connections, data, SECONDS)
        took, cpu_s = time.perf_counter() - began, process.cpu_s() - cpu
    finally:
        for connection in connections:
            connection.close()
    times.sort()
    p50, p99 = (times[int(len(times) * share)] * 1e3 for share in (0.5, 0.99))
    return Run(len(times) / took, p50, p99, cpu_s / len(times) * 1e6)


def drive(connections: list[socket.socket], data: bytes, seconds: float) -> list[float]:
    """How long each request took. Answers of one load differ in a few digits only: the first says when one is whole."""
    times: list[float] = []
    with selectors.EpollSelector() as selector:
        sent = {}
        got: dict[socket.socket, bytes] = dict.fromkeys(connections, b"")
        now = time.perf_counter
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
            sent[connection] = now()
            connection.sendall(data)
        give_up = now() + seconds
        open_requests = len(connections)
        while open_requests:
            for key, _ in selector.select():
                ready: Any = key.fileobj
                answer = got[ready] + ready.recv(1 << 18)
                if not is_whole(answer):
                    got[ready] = answer
                    continue
                got[ready] = b""
                moment = now()
                times.append(moment - sent[ready])
                if moment < give_up:
                    sent[ready] = moment
                    ready.sendall(data)
                else:
                    open_requests -= 1
    return times


def is_whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    assert head.startswith(b"HTTP/1.1 2"), answer
    assert b'"error"' not in body, answer
    at = head.index(b"content-length: ") + 16
    return len(body) == int(head[at : head.find(b"\r", at) if b"\r" in head[at:] else None])


def exchange(connection: socket.socket, method: str, path: str, body: Any) -> Any:
    connection.sendall(request(method, path, json.dumps(body).encode()))
    answer = connection.recv(1 << 18)
    while not is_whole(answer):
        answer += connection.recv(1 << 18)
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def ask(address: Address, method: str, path: str, body: Any, status: int) -> None:
    with socket.create_connection(address) as connection:
        connection.sendall(request(method, path, json.dumps(body).encode()))
        answer = connection.recv(1 << 16)
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer


# -- the baseline


@contextmanager
def hello_server() -> Iterator[tuple[Address, Process]]:
    command = [sys.executable, "-c", "from benchmarks.bench_http import serve_hello; serve_hello()"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with stopping(process):
        assert process.stdout is not None
        yield ("127.0.0.1", int(process.stdout.readline())), Process(process.pid)


def serve_hello() -> None:
    """Until its stdin is closed."""
    import asyncio

    import uvloop

    from goqueue.doors.http.asgi import answer
    from goqueue.doors.http.door import HttpDoor
    from goqueue.wire.asgi import Receive, Scope, Send

    async def hello(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await answer(send, 200, b'{"hello":"world"}')

    async def inside() -> None:
        door = HttpDoor(hello)
        print((await door.open("127.0.0.1", 0))[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)
        await door.close()

    uvloop.run(inside())
