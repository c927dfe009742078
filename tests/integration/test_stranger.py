"""A closed node and somebody whom it does not know: every operation of every API is tried, and none tells anything.
What there is to try is taken from the tables of the APIs, so that a new operation is tried, too.
"""

import asyncio
import re
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from struct import pack
from typing import Any

import grpc
import httpx
import pytest
from google.protobuf import descriptor_pool

from goqueue.doors.grpc import door
from goqueue.doors.grpc.permissions import PERMISSIONS
from goqueue.doors.http.operation import Route
from goqueue.doors.http.routes.table import ROUTES
from goqueue.doors.kafka.handlers.table import HANDLERS
from goqueue.doors.sqs.handlers.table import ACTIONS
from goqueue.model.access import OPEN
from goqueue.wire.kafka.apis import APIS
from goqueue.wire.rest.common import ErrorReply
from tests.integration.process import DEADLINE_S, Node, wait_until
from tests.integration.wire import Wire

SECRET = "payroll"
"""The name of a topic and of a group."""
AT_ONCE = 40
LOGINS = frozenset({"log_in", "log_in_elsewhere", "logged_in_elsewhere"})
"""They are for strangers: without a password or an identity provider they refuse."""
SERVICES = door
"""It imports what describes all services of gRPC."""
UNKNOWN = f"gqk_k0123456789abcdef_{'ab' * 32}"
Headers = dict[str, str]

_PLACE = re.compile(r"{(\w+)}")
_IN_PATH = {"partition": "0", "offset": "0"}


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = Node(tmp_path_factory.mktemp("closed"), is_closed=True)
    try:
        node.start()
        with admin(node) as http:
            http.post("/topics", json={"name": SECRET, "num_partitions": 1}).raise_for_status()
            http.post(f"/topics/{SECRET}/messages", json={"messages": [{"value": SECRET}]}).raise_for_status()
        yield node
    finally:
        node.clean_up()


def admin(node: Node) -> httpx.Client:
    return httpx.Client(base_url=node.url, timeout=DEADLINE_S, headers={"x-api-key": node.first_key})


def state(node: Node) -> list[Any]:
    with admin(node) as http:
        paths = ("/topics", f"/topics/{SECRET}", "/groups", "/admin/keys", "/admin/users", "/admin/acls", "/schedules")
        found = [http.get(path).raise_for_status().json() for path in paths]
    for key in found[paths.index("/admin/keys")]["keys"]:
        del key["last_used_at"]  # by these questions
    return found


def strangers(node: Node) -> list[Headers]:
    """What they show: keys that nobody has, one that has been deleted, one that is over, and no key at all."""
    with admin(node) as http:
        gone = http.post("/admin/keys", json={"name": "gone", "roles": ["admin"], "expires_in": "1h"}).json()
        http.delete(f"/admin/keys/{gone['id']}").raise_for_status()
        over = http.post("/admin/keys", json={"name": "over", "roles": ["admin"], "expires_in": "1s"}).json()["key"]
    ask = partial(httpx.get, f"{node.url}/topics", headers={"x-api-key": over}, timeout=DEADLINE_S)
    wait_until(lambda: ask().status_code == httpx.codes.UNAUTHORIZED, "the end of a key")
    shown = (gone["key"], SECRET, UNKNOWN, over)
    return [{"authorization": f"Bearer {shown[0]}"}, *({"x-api-key": each} for each in shown[1:])]


def path_of(route: Route) -> str:
    return _PLACE.sub(lambda place: _IN_PATH.get(place[1], SECRET), route.operation.path)


def test_no_http_operation_tells_a_stranger_anything(closed: Node) -> None:
    async def ask(http: httpx.AsyncClient, busy: asyncio.Semaphore, route: Route, headers: Headers) -> None:
        operation = route.operation
        async with busy:
            reply = await http.request(operation.method, path_of(route), headers=headers, json={})
        where = f"{operation.method} {operation.path} with {headers}: {reply.status_code} {reply.text}"
        if operation.name in LOGINS:
            assert reply.status_code in (400, 404), where
            assert SECRET not in reply.text, where
            return
        if route.is_open and (route.permission is OPEN or not headers):
            assert reply.status_code < 400, where
            assert SECRET not in reply.text, where
            return
        assert reply.status_code == 401, where
        is_registry = operation.error_type is not ErrorReply
        challenges = [each.split()[0] for each in reply.headers.get_list("www-authenticate")]
        assert challenges == (["Bearer", "Basic"] if is_registry else ["Bearer"]), where
        assert SECRET not in reply.text, where

    async def ask_all() -> None:
        busy = asyncio.Semaphore(AT_ONCE)
        async with (
            httpx.AsyncClient(base_url=closed.url, timeout=DEADLINE_S) as http,
            asyncio.TaskGroup() as tasks,
        ):
            wrong = cycle(shown)
            for route in ROUTES:
                for headers in ({}, next(wrong)):
                    tasks.create_task(ask(http, busy, route, headers))

    shown = strangers(closed)
    before = state(closed)
    asyncio.run(ask_all())
    assert state(closed) == before


def test_no_sqs_action_tells_a_stranger_anything(closed: Node) -> None:
    before = state(closed)
    with httpx.Client(base_url=closed.url, timeout=DEADLINE_S) as http:
        bodies = cycle(({"QueueUrl": f"{closed.url}/000000000000/{SECRET}", "QueueName": SECRET}, {}, [1]))
        for action in ACTIONS:
            reply = http.post("/", headers={"x-amz-target": f"AmazonSQS.{action}"}, json=next(bodies))
            told = reply.status_code, reply.json()["__type"].partition("#")[2]
            assert told == (403, "MissingAuthenticationToken"), action
            assert SECRET not in reply.text
    assert state(closed) == before


def test_no_grpc_method_tells_a_stranger_anything(closed: Node) -> None:
    async def ask(channel: grpc.aio.Channel, name: str, metadata: Any) -> grpc.StatusCode:
        method = descriptor_pool.Default().FindMethodByName(name)
        kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
        call = getattr(channel, kind)(f"/{method.containing_service.full_name}/{method.name}")
        asked = call(iter([b""]) if method.client_streaming else b"", metadata=metadata, timeout=DEADLINE_S)
        try:
            if method.server_streaming:
                await anext(aiter(asked))
                asked.cancel()
            else:
                await asked
        except grpc.aio.AioRpcError as error:
            assert SECRET not in str(error.details())
            return error.code()
        return grpc.StatusCode.OK

    async def ask_all() -> None:
        async with grpc.aio.insecure_channel(closed.grpc) as channel:
            wrong = cycle(shown)
            asked = [(name, headers) for name in PERMISSIONS for headers in ({}, next(wrong))]
            found = await asyncio.gather(*(ask(channel, name, tuple(headers.items())) for name, headers in asked))
        for (name, headers), code in zip(asked, found, strict=True):
            is_open = PERMISSIONS[name] is OPEN
            assert code is (grpc.StatusCode.OK if is_open else grpc.StatusCode.UNAUTHENTICATED), (name, headers)

    shown = strangers(closed)
    before = state(closed)
    asyncio.run(ask_all())
    assert state(closed) == before


def test_no_kafka_api_is_for_those_who_have_not_logged_in(closed: Node) -> None:
    before = state(closed)
    for key, api in APIS.items():
        if key in HANDLERS and HANDLERS[key].permission is OPEN:
            continue
        for version in api.versions:
            with Wire(closed) as wire:
                wire.send_frame(pack(">hhih", key, version, 1, -1) + bytes(16))
                assert wire.wait_closed() == b"", (key, version)
    assert state(closed) == before


def test_health_of_a_closed_node_says_how_it_is_and_not_why(closed: Node) -> None:
    with httpx.Client(base_url=closed.url, timeout=DEADLINE_S) as http:
        for path in ("/readyz", "/readyz?verbose=true", "/healthz", "/livez"):
            assert http.get(path).json().keys() == {"status", "timestamp", "uptime"}
    with admin(closed) as http:
        assert http.get("/readyz?verbose=true").json()["broker"]["topic_count"] == 1
