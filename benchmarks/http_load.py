"""One message a request over HTTP and SQS, by bare connections that send prebuilt bytes, each with one request under
way. Every answer is checked.
"""

import json
import re
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benchmarks.peers.loads import CLIENT, CPU, FLOW, Figures
from benchmarks.senders import NOTHING_S_MAX, connect
from goqueue.cli.bench.broker import OwnBroker

MESSAGES, WARM_UP = 8_000, 1_000
FILL = 100
VALUE = "x" * 100
TOPIC, GROUP = "bench", "workers"
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Api(NamedTuple):
    make: Callable[[], bytes]
    """What makes the topic."""
    publish: Callable[[], bytes]
    receive: Callable[[], bytes]
    settle: Callable[[bytes], bytes]
    receipt: "re.Pattern[bytes]"


def _request(path: str, body: object, *headers: str) -> bytes:
    data = json.dumps(body).encode()
    head = [f"POST {path} HTTP/1.1", "Host: localhost", *headers, f"Content-Length: {len(data)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + data


def _rest(path: str, body: object) -> bytes:
    return _request(path, body, "Content-Type: application/json")


def _sqs(action: str, **body: object) -> bytes:
    return _request("/", body, "Content-Type: application/x-amz-json-1.0", f"X-Amz-Target: AmazonSQS.{action}")


URL = f"http://localhost/000000000000/{TOPIC}"

HTTP = Api(
    lambda: _rest("/topics", {"name": TOPIC, "num_partitions": 1, "options": {"durability": "os"}}),
    lambda: _rest(f"/topics/{TOPIC}/messages", {"messages": [{"value": VALUE}]}),
    lambda: _rest(f"/topics/{TOPIC}/receive", {"group": GROUP, "max_messages": 1}),
    lambda receipt: _rest("/messages/ack", {"receipt_handle": receipt.decode()}),
    re.compile(rb'"receipt_handle": ?"([^"]+)"'),
)
SQS = Api(
    HTTP.make,
    lambda: _sqs("SendMessage", QueueUrl=URL, MessageBody=VALUE),
    lambda: _sqs("ReceiveMessage", QueueUrl=URL, MaxNumberOfMessages=1),
    lambda receipt: _sqs("DeleteMessage", QueueUrl=URL, ReceiptHandle=receipt.decode()),
    re.compile(rb'"ReceiptHandle": ?"([^"]+)"'),
)


def publish_over(api: Api, connections: int) -> Callable[[OwnBroker], Figures]:
    request = api.publish()

    def work() -> Iterator[bytes]:
        while True:
            yield request

    def run(broker: OwnBroker) -> Figures:
        ask(broker.http, api.make())
        return measure(broker, connections, lambda: talk(work(), lambda _: True))

    return run


def receive_over(api: Api, connections: int) -> Callable[[OwnBroker], Figures]:
    """Two requests for each message."""

    def consumer() -> "Talk":
        receive = api.receive()
        answer = yield receive
        while True:
            found = api.receipt.search(answer)
            assert found is not None, answer
            yield api.settle(found[1])
            answer = yield receive

    def run(broker: OwnBroker) -> Figures:
        ask(broker.http, api.make())
        first = json.loads(ask(broker.http, _rest(f"/topics/{TOPIC}/receive", {"group": GROUP, "max_messages": 1})))
        assert not first["messages"]
        ask(broker.http, api.receive())
        body = {"messages": [{"value": VALUE}] * FILL}
        for _ in range((MESSAGES + WARM_UP + 2 * connections) // FILL + 1):
            ask(broker.http, _rest(f"/topics/{TOPIC}/messages", body))
        return measure(broker, connections, consumer, requests=2)

    return run


Talk = Any
"""A generator of requests, which is given the answers."""


def talk(requests: Iterator[bytes], is_good: Callable[[bytes], bool]) -> "Talk":
    for request in requests:
        answer = yield request
        assert is_good(answer), answer


def measure(broker: OwnBroker, connections: int, make: Callable[[], Talk], requests: int = 1) -> Figures:
    """`requests`: of one message."""
    links = [_Link(connect(broker.http), make()) for _ in range(connections)]
    try:
        drive(links, WARM_UP * requests)
        began_s, cpu_s, client_s = time.perf_counter(), broker.process.cpu_s(), time.process_time()
        done = drive(links, MESSAGES * requests) / requests
        took_s = time.perf_counter() - began_s
        cpu_us = (broker.process.cpu_s() - cpu_s) * 1e6 / done
        return {CPU: cpu_us, FLOW: done / took_s, CLIENT: (time.process_time() - client_s) / took_s}
    finally:
        for link in links:
            link.socket.close()


class _Link:
    def __init__(self, connection: socket.socket, talk: Talk) -> None:
        self.socket = connection
        self._talk = talk
        self._got = b""
        self._next = next(talk)

    def send(self) -> None:
        self.socket.sendall(self._next)

    def receive(self) -> bool:
        """Whether an answer is whole."""
        self._got += self.socket.recv(1 << 18)
        answer = whole(self._got)
        if answer is None:
            return False
        self._got = b""
        self._next = self._talk.send(answer)
        return True


def whole(answer: bytes) -> bytes | None:
    """Its body, if all of it is here."""
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return None
    assert head.startswith(b"HTTP/1.1 2"), answer
    length = _LENGTH.search(head)
    assert length is not None, answer
    return body if len(body) == int(length[1]) else None


def drive(links: list[_Link], count: int) -> int:
    """So many requests and a few more: how many were answered."""
    done = 0
    with selectors.EpollSelector() as selector:
        for link in links:
            selector.register(link.socket, selectors.EVENT_READ, link)
            link.send()
        under_way = len(links)
        while under_way:
            events = selector.select(NOTHING_S_MAX)
            assert events, f"no answer came for {NOTHING_S_MAX} s"
            for key, _ in events:
                if key.data.receive():
                    done += 1
                    if done + under_way <= count:
                        key.data.send()
                    else:
                        under_way -= 1
    return done


def ask(address: str, request: bytes) -> bytes:
    with connect(address) as connection:
        connection.sendall(request)
        got = b""
        while (body := whole(got)) is None:
            got += connection.recv(1 << 18)
        return body
