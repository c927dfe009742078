"""Secrets with a mark go in through every API, right and wrong ones; the mark must come out nowhere."""

import base64
from collections.abc import Iterator
from pathlib import Path

import grpc
import httpx
import pytest
from confluent_kafka import Producer

from goqueue.wire.grpc.topic_pb2 import ListTopicsRequest, ListTopicsResponse
from tests.certificates import Authority
from tests.integration.goqueue_command import Command
from tests.integration.process import DEADLINE_S, Node, own_host

PASSWORD, WRONG, TOKEN = "MARKED-password-7f3", "MARKED-wrong-7f3", "MARKED.token.7f3"
KEY_PASSWORD = "MARKED-key-7f3"
MASTER = "fe" * 32
HOST = own_host()
DOCUMENTS = ("/openapi.json", "/metrics", "/admin/audit", "/admin/users", "/admin/keys", "/health", "/version")


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Node]:
    master = tmp_path / "master.key"
    master.write_text(f"{MASTER}\n")
    master.chmod(0o600)
    tls = Authority(tmp_path).sign("node", addresses=[HOST], password=KEY_PASSWORD.encode())
    unlock = tmp_path / "unlock"
    unlock.write_text(KEY_PASSWORD)
    unlock.chmod(0o600)
    files = ("--tls-cert-file", str(tls.cert), "--tls-key-file", str(tls.key), "--tls-key-password-file", str(unlock))
    listeners = (f"http://{HOST}:8080", f"http://{HOST}:8443?protocol=SSL&name=SSL")
    loud = ("--audit", "all", "--log-level", "debug", "--trace-export", "file", "--trace-file", str(tmp_path / "spans"))
    more = ("--master-key-file", str(master), *files, "--listeners", ",".join(listeners), *loud)
    node = Node(tmp_path, *more, is_closed=True, host=HOST)
    yield node
    node.clean_up()


def by_kafka(server: str, user: str, password: str, mechanism: str) -> None:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
    producer = Producer(
        {"bootstrap.servers": server, "sasl.username": user, "sasl.password": password, **settings}
        | {"message.timeout.ms": 3000, "log_level": 0}
    )
    producer.produce("orders", b"x")
    producer.flush(DEADLINE_S)


def by_grpc(server: str, authorization: str) -> str:
    """What is told of a refusal."""
    with grpc.insecure_channel(server) as channel:
        call = channel.unary_unary(
            "/goqueue.v1.TopicService/ListTopics", ListTopicsRequest.SerializeToString, ListTopicsResponse.FromString
        )
        try:
            call(ListTopicsRequest(), metadata=(("authorization", authorization),), timeout=DEADLINE_S)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.UNAUTHENTICATED
            return f"{error.details()} {error.trailing_metadata()}"
    return ""


def basic(user: str, password: str) -> str:
    return base64.b64encode(f"{user}:{password}".encode()).decode()


def of_a_session(http: httpx.Client) -> list[str]:
    """What a browser and a page keep secret, after it was used in right and wrong ways."""
    assert http.post("/session", json={"user": "bob", "password": WRONG}).status_code == 401
    begun = http.post("/session", json={"user": "alice", "password": PASSWORD}).raise_for_status()
    cookie, csrf = http.cookies["gq-dev"], begun.json()["csrf_token"]
    for origin, status in (("https://evil.example", 403), (f"http://{http.base_url.netloc.decode()}", 200)):
        shown = {"x-goqueue-csrf": csrf, "origin": origin}
        assert http.delete("/session", headers=shown).status_code == status
    assert http.get("/session", headers={"cookie": f"gq-dev={cookie}"}).status_code == 401
    return [cookie, csrf]


def test_no_secret_comes_out_anywhere(closed: Node, tmp_path: Path) -> None:
    closed.start()
    goqueue = Command(tmp_path, closed.url)
    goqueue.environment["GOQUEUE_API_KEY"] = closed.first_key
    goqueue.run("topic", "create", "orders")
    goqueue.run("user", "create", "bob", "--password-file", "-", stdin=f"{PASSWORD}\n")
    goqueue.run("user", "create", "alice", "--role", "admin", "--password-file", "-", stdin=f"{PASSWORD}\n")
    alice = httpx.BasicAuth("alice", PASSWORD)
    answers: list[str] = []

    def keep(response: httpx.Response) -> None:
        response.read()
        if response.is_error:
            answers.append(f"{response.headers} {response.text}")

    hooks = {"response": [keep]}
    with httpx.Client(base_url=closed.url, timeout=DEADLINE_S, event_hooks=hooks) as http:
        made = http.post("/admin/keys", auth=alice, json={"name": "shop", "roles": ["producer"], "for_sqs": True})
        assert made.status_code == 201, made.text
        key = made.json()["key"]
        secret = key.rpartition("_")[2]
        for authorization in (f"Bearer {TOKEN}", f"Basic {basic('alice', WRONG)}", f"Bearer gqk_{WRONG}", WRONG):
            assert http.get("/topics", headers={"authorization": authorization}).status_code == 401
            answers.append(by_grpc(closed.grpc, authorization))
        by_grpc(closed.grpc, f"Bearer {key}")
        assert http.get(f"/topics?api_key={WRONG}").status_code == 400
        broken = '{"name": "x", "password": "' + WRONG
        assert http.post(
            "/admin/users", auth=alice, content=broken, headers={"content-type": "application/json"}
        ).is_error
        assert http.put("/admin/users/alice", auth=alice, json={"password": WRONG * 100}).is_error
        session = of_a_session(http)
        sqs = {"x-amz-target": "AmazonSQS.ListQueues", "content-type": "application/x-amz-json-1.0"}
        for given in (key, WRONG):
            http.post("/", headers={**sqs, "x-api-key": given}, json={})
        # librdkafka tries wrong passwords again and again: bob is locked out by it, alice reads the documents
        for user, password in (("alice", PASSWORD), ("bob", WRONG), (key.split("_")[1], secret)):
            by_kafka(closed.address, user, password, "PLAIN")
        by_kafka(closed.address, "bob", WRONG, "SCRAM-SHA-256")
        told = {path: http.get(path, auth=alice).raise_for_status().text for path in DOCUMENTS}
    closed.stop()
    marks = [PASSWORD, WRONG, TOKEN, KEY_PASSWORD, secret, closed.first_key.rpartition("_")[2], MASTER]
    marks += session
    marks += [base64.b64encode(each.encode()).decode() for each in (PASSWORD, WRONG)]
    marks += [basic("alice", each) for each in (PASSWORD, WRONG)]
    found = {f"{path} tells": text.encode() for path, text in told.items()}
    assert len(answers) > 10
    found |= {f"answer {number}": text.encode() for number, text in enumerate(answers)}
    own = ("master.key", "bootstrap.key", "unlock")
    kept = [each for each in tmp_path.rglob("*") if each.is_file() and each.name not in own]
    assert any(each.is_relative_to(closed.data_dir) for each in kept)
    assert closed.log_file in kept
    found |= {str(each): each.read_bytes() for each in kept}
    wanted = [each.encode() for each in marks] + [bytes.fromhex(each) for each in (secret, MASTER)]
    leaks = [(where, mark) for where, data in found.items() for mark in wanted if mark in data]
    assert leaks == []
    names = [where for where, data in found.items() if b"alice" in data]  # what is no secret is found by this search
    assert {"/admin/users tells", "/admin/audit tells"} <= set(names)
    assert any(Path(where).is_relative_to(closed.data_dir) for where in names)
    assert all(data for where, data in found.items() if where.endswith("tells"))
