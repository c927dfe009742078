"""Whatever is sent to the HTTP port: a clear answer or a closed connection, and nobody else notices."""

import json
import random
import socket
import struct
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.process import DEADLINE_S, Node, wait_until

HOST = b"Host: localhost\r\n"
GET = b"GET /health HTTP/1.1\r\n" + HOST
POST = b"POST /topics HTTP/1.1\r\nContent-Type: application/json\r\n" + HOST


def connect(node: Node) -> socket.socket:
    url = httpx.URL(node.url)
    assert url.port is not None
    return socket.create_connection((url.host, url.port), timeout=DEADLINE_S)


def read_all(connection: socket.socket) -> bytes:
    """Until the node hangs up."""
    pieces = []
    try:
        while piece := connection.recv(1 << 16):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    return b"".join(pieces)


def read_answer(connection: socket.socket) -> bytes:
    """One with a length."""
    answer = b""
    while not answer.endswith(b"}"):
        piece = connection.recv(1 << 16)
        assert piece, answer
        answer += piece
    return answer


def exchange(node: Node, data: bytes) -> bytes:
    with connect(node) as connection:
        connection.sendall(data)
        return read_all(connection)


def parse(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body


def status_and_body(answer: bytes) -> tuple[int, Any]:
    status, headers, body = parse(answer)
    assert headers["content-type"] == "application/json"
    assert len(body) == int(headers["content-length"])
    return status, json.loads(body)


@pytest.fixture
def bystander(node: Node) -> Iterator[None]:
    """A client that is answered before and after on the connection that it has had all the time."""
    with connect(node) as connection:
        connection.sendall(GET + b"\r\n")
        assert status_and_body(read_answer(connection))[0] == 200
        yield
        connection.sendall(GET + b"\r\n")
        assert status_and_body(read_answer(connection))[0] == 200
    assert '"stack"' not in node.log_tail
    assert "Traceback" not in node.log_tail


REFUSED = {
    "tls": bytes.fromhex("1603010200010001fc0303") + bytes(512),
    "kafka": struct.pack(">ihhih", 14, 18, 0, 1, 4) + b"bare",
    "zeroes": bytes(1000),
    "http 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no such method": b"FETCH /health HTTP/1.1\r\n\r\n",
    "tunnel": b"CONNECT example.org:443 HTTP/1.1\r\n" + HOST + b"\r\n",
    "no path": b"GET http://goqueue HTTP/1.1\r\n" + HOST + b"\r\n",
    "raw bytes in the path": b"GET /topics/\xff\xfe HTTP/1.1\r\n" + HOST + b"\r\n",
    "NUL in the path": b"GET /topics/\x00 HTTP/1.1\r\n" + HOST + b"\r\n",
    "NUL in a header": GET + b"X-Thing: a\x00b\r\n\r\n",
    "NUL in a name": GET + b"X-\x00Thing: ab\r\n\r\n",
    "space before the colon": GET + b"X-Thing : ab\r\n\r\n",
    "folded header": GET + b"X-Thing: a\r\n b\r\n\r\n",
    "bare line feed and rubbish": b"GET /health HTTP/1.1\nwhat\n\n",
    "length is no number": POST + b"Content-Length: many\r\n\r\n{}",
    "length is negative": POST + b"Content-Length: -1\r\n\r\n{}",
    "length is signed": POST + b"Content-Length: +2\r\n\r\n{}",
    "length is too long": POST + b"Content-Length: 99999999999999999999999\r\n\r\n{}",
    "two lengths": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "length and chunks": POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks and length": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
    "chunks that are not last": POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "unknown coding": POST + b"Transfer-Encoding: rot13\r\n\r\n{}",
    "chunk size is no number": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "chunk is longer than its size": POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
    "chunk size is too long": POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_http_gets_a_reason_and_is_cut_off(node: Node, bystander: None, name: str) -> None:
    status, body = status_and_body(exchange(node, REFUSED[name]))
    assert (status, body["status"], body["code"]) == (400, 400, "INVALID_HTTP")
    assert body["error"].startswith("not HTTP/1.1: ")


ODD = {
    "percent that encodes nothing": (b"GET /topics/%zz HTTP/1.1\r\n", 400),
    "percent at the end": (b"GET /topics/a% HTTP/1.1\r\n", 400),
    "percent of half a letter": (b"GET /topics/%c3 HTTP/1.1\r\n", 400),
    "encoded NUL": (b"GET /topics/a%00b HTTP/1.1\r\n", 400),
    "encoded slash": (b"GET /topics/a%2fb HTTP/1.1\r\n", 404),
    "dots": (b"GET /topics/../../etc/passwd HTTP/1.1\r\n", 404),
    "encoded dots": (b"GET /topics/%2e%2e HTTP/1.1\r\n", 400),
    "asterisk": (b"OPTIONS * HTTP/1.1\r\n", 405),
    "nothing": (b"GET // HTTP/1.1\r\n", 404),
    "version only": (b"GET /v1 HTTP/1.1\r\n", 200),
    "long path": (b"GET /topics/" + b"a" * 60_000 + b" HTTP/1.1\r\n", 400),
    "many query fields": (b"GET /readyz?" + b"a=1&" * 15_000 + b" HTTP/1.1\r\n", 400),
    "long query": (b"GET /readyz?verbose=" + b"a" * 60_000 + b" HTTP/1.1\r\n", 400),
    "half a letter in the query": (b"GET /readyz?verbose=%c3 HTTP/1.1\r\n", 400),
    "method of another path": (b"DELETE /health HTTP/1.1\r\n", 405),
    "whole address": (b"GET http://elsewhere/health HTTP/1.1\r\n", 200),
    "fragment": (b"GET /health#a HTTP/1.1\r\n", 200),
    "upgrade": (b"GET /health HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n", 200),
    "web socket": (b"GET /health HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", 200),
    "header twice": (b"GET /health HTTP/1.1\r\nX-Request-ID: a\r\nX-Request-ID: b\r\n", 200),
    "id of two lines": (b"GET /health HTTP/1.1\r\nX-Request-ID: a b\r\n", 200),
    "http 1.0": (b"GET /health HTTP/1.0\r\n", 200),
    "unknown expectation": (b"GET /health HTTP/1.1\r\nExpect: wonders\r\n", 200),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_requests_are_answered(node: Node, bystander: None, name: str) -> None:
    line, wanted = ODD[name]
    status, body = status_and_body(exchange(node, line + HOST + b"Connection: close\r\n\r\n"))
    assert status == wanted
    assert status == 200 or body["status"] == status


BODIES = {
    "not JSON": b"{",
    "not an object": b"[]",
    "null": b"null",
    "bad UTF-8": b'{"name": "\xff"}',
    "half a surrogate": b'{"name": "\\ud800"}',
    "nested": b'{"options": {"a": ' + b"[" * 400_000 + b"]" * 400_000 + b"}}",
    "nested from the start": b"[" * 400_000,
    "many digits": b'{"name": "a", "num_partitions": ' + b"9" * 100_000 + b"}",
    "a large exponent": b'{"name": "a", "num_partitions": 1e400}',
    "NaN": b'{"name": "a", "num_partitions": NaN}',
    "unknown field": b'{"name": "a", "colour": 1}',
    "NUL in a name": b'{"name": "a\\u0000"}',
    "no name": b"",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("is_chunked", [False, True], ids=["whole", "chunked"])
def test_a_bad_body_is_refused_and_the_connection_goes_on(
    node: Node, bystander: None, name: str, is_chunked: bool
) -> None:
    body = BODIES[name]
    if is_chunked:
        pieces = [body[at : at + 50_000] for at in range(0, len(body), 50_000)]
        sent = b"Transfer-Encoding: chunked\r\n\r\n"
        sent += b"".join(b"%x;note=1\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\nTrailer: x\r\n\r\n"
    else:
        sent = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    answer = exchange(node, POST + sent + GET + b"Connection: close\r\n\r\n")
    first, second = answer.split(b"HTTP/1.1 ")[1:]
    status, refused = status_and_body(b"HTTP/1.1 " + first)
    assert (status, refused["status"], refused["code"]) == (400, 400, "INVALID_REQUEST")
    assert parse(b"HTTP/1.1 " + second)[0] == 200


def test_a_length_of_many_zeroes_is_a_length(node: Node, bystander: None) -> None:
    sent = POST + b"Content-Length: " + b"0" * 5000 + b"2\r\nConnection: close\r\n\r\n{}"
    status, body = status_and_body(exchange(node, sent))
    assert (status, body["code"]) == (400, "INVALID_REQUEST")


@pytest.mark.parametrize("sent", [GET + b"X-Long: " + b"a" * 70_000 + b"\r\n\r\n", GET + b"X-Some: some\r\n" * 8000])
def test_a_head_that_is_too_large_is_told_so(node: Node, bystander: None, sent: bytes) -> None:
    status, body = status_and_body(exchange(node, sent))
    assert (status, body["code"]) == (431, "HEAD_TOO_LARGE")


def test_a_second_head_that_is_too_large_does_not_hold_up_the_first_request(node: Node, bystander: None) -> None:
    answer = exchange(node, GET + b"\r\n" + GET + b"X-Long: " + b"a" * 600_000)
    assert parse(answer)[0] == 200
    assert answer.count(b"HTTP/1.1 ") <= 2


@pytest.mark.parametrize("is_chunked", [False, True], ids=["whole", "chunked"])
def test_a_body_that_is_too_large_is_refused_before_it_is_read(node: Node, bystander: None, is_chunked: bool) -> None:
    with connect(node) as connection:
        if is_chunked:
            piece = b"%x\r\n%b\r\n" % (1 << 16, bytes(1 << 16))
            connection.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n" + 17 * piece)
        else:
            connection.sendall(POST + b"Content-Length: 10000000\r\nExpect: 100-continue\r\n\r\n")
        status, body = status_and_body(read_answer(connection))
    assert (status, body["code"]) == (413, "BODY_TOO_LARGE")


def test_who_asks_before_sending_is_told_to_go_on(node: Node, bystander: None) -> None:
    with connect(node) as connection:
        connection.sendall(POST + b"Content-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
        assert connection.recv(1 << 16) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")
        assert parse(read_all(connection))[0] == 400


def test_the_answer_to_HEAD_has_no_body(node: Node, bystander: None) -> None:  # noqa: N802
    status, headers, body = parse(exchange(node, b"HEAD /version HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"))
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 0


def test_pipelined_requests_are_answered_in_order(node: Node, bystander: None) -> None:
    paths = [f"/no-such-{number}" for number in range(300)]
    sent = b"".join(f"GET {path} HTTP/1.1\r\n".encode() + HOST + b"\r\n" for path in paths)
    answer = exchange(node, sent + GET + b"Connection: close\r\n\r\n")
    bodies = [json.loads(each.partition(b"\r\n\r\n")[2]) for each in answer.split(b"HTTP/1.1 ")[1:]]
    assert [body["error"].split()[3] for body in bodies[:-1]] == paths
    assert bodies[-1]["status"] == "ok"


def test_what_came_before_rubbish_is_answered(node: Node, bystander: None) -> None:
    answer = exchange(node, GET + b"\r\n" + b"rubbish rubbish\r\n\r\n")
    assert parse(answer)[0] == 200


def test_one_that_only_listens_after_its_request_is_answered(node: Node, bystander: None) -> None:
    """Half-closed, as `nc -N` does."""
    with connect(node) as connection:
        connection.sendall(GET + b"\r\n" + GET + b"\r\n")
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection).count(b"HTTP/1.1 200 OK\r\n") == 2


def test_a_request_byte_by_byte_is_a_request(node: Node, bystander: None) -> None:
    with connect(node) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = POST + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}"
        for at in range(len(data)):
            connection.sendall(data[at : at + 1])
        assert parse(read_all(connection))[0] == 400


def test_random_bytes_never_bring_the_node_down(node: Node, bystander: None) -> None:
    seed = 20261116
    print(f"seed {seed}")
    dice = random.Random(seed)
    whole = POST + b"Content-Length: 40\r\n\r\n" + b'{"name": "a"}'.ljust(40)
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(len(data))
            data[at : at + dice.randrange(3)] = dice.randbytes(dice.randrange(3))
        with connect(node) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = read_all(connection)
        assert b"HTTP/1.1 5" not in answer, data


def test_babblers_do_not_fill_the_log(own_node: Node) -> None:
    for _ in range(40):
        assert parse(exchange(own_node, REFUSED["tls"]))[0] == 400
    for _ in range(40):
        assert parse(exchange(own_node, ODD["web socket"][0] + HOST + b"\r\n"))[0] == 200
    lines = [json.loads(line) for line in own_node.log_file.read_text("utf-8").splitlines()]
    complaints = [line for line in lines if line["level"] != "info" and line["logger"] != "node"]
    assert [line["event"] for line in complaints] == ["bad request"] * 10
    assert {line["logger"] for line in complaints} == {"http door"}


def test_a_node_restarts_on_its_port_while_clients_hold_connections(own_node: Node) -> None:
    with httpx.Client(base_url=own_node.url) as client, connect(own_node) as half:
        half.sendall(GET)
        assert client.get("/health").status_code == 200
        own_node.stop()
        assert read_all(half) == b""
        own_node.start()
        wait_until(lambda: client.get("/health").status_code == 200, "an answer of the new process")
