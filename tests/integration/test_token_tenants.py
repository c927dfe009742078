"""A node that is told by tokens whose somebody is (`oidc_tenant_claim`): over Kafka, HTTP and gRPC."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from goqueue.wire.grpc.topic_pb2 import ListTopicsRequest, ListTopicsResponse
from tests.integration.process import DEADLINE_S, Node, wait_until
from tests.integration.test_token_clients import LIST_TOPICS
from tests.tokens import ALL_KEYS, AUDIENCE, ISSUER, token

TENANTS = ("acme", "beta")
OK, UNAUTHORIZED = 200, 401


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """With two tenants, each with a topic `orders`."""
    directory: Path = tmp_path_factory.mktemp("tokens")
    keys = directory / "jwks.json"
    keys.write_bytes(ALL_KEYS)
    rules = ("--oidc-tenant-claim", "org", "--oidc-roles-claim", "roles")
    node = Node(
        directory,
        *("--oidc-issuer", ISSUER, "--oidc-audience", AUDIENCE, "--oidc-jwks", str(keys), *rules),
        is_closed=True,
    )
    node.start()
    try:
        for tenant in TENANTS:
            made = _by_key(node, "POST", "/admin/tenants", {"id": tenant, "name": tenant})
            assert made.status_code == 201, made.text
        yield node
    finally:
        node.clean_up()


def _by_key(node: Node, method: str, path: str, body: Any = None) -> httpx.Response:
    return httpx.request(method, node.url + path, json=body, headers={"X-API-Key": node.first_key}, timeout=DEADLINE_S)


def _token(**claims: Any) -> str:
    return token(int(time.time() * 1000), **{"roles": ["admin"], **claims})


def _listed(node: Node, **claims: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {_token(**claims)}"}
    return httpx.get(f"{node.url}/topics", headers=headers, timeout=DEADLINE_S)


def _kafka(node: Node, tenant: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": node.address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _config: (_token(org=tenant), time.time() + 300),
    }


def test_a_token_works_with_the_names_of_its_tenant_over_every_api(node: Node) -> None:
    for tenant in TENANTS:
        admin = AdminClient(_kafka(node, tenant))
        for made in admin.create_topics([NewTopic("orders", 1), NewTopic(f"of-{tenant}", 1)]).values():
            made.result(DEADLINE_S)
        producer = Producer(_kafka(node, tenant))
        producer.produce("orders", f"of {tenant}".encode())
        assert producer.flush(DEADLINE_S) == 0
    for tenant in TENANTS:
        consumer = Consumer({**_kafka(node, tenant), "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(DEADLINE_S)
        assert message is not None
        assert (message.error(), message.value()) == (None, f"of {tenant}".encode())
        consumer.close()
        assert _listed(node, org=tenant).json() == {"topics": [f"of-{tenant}", "orders"]}
        with grpc.insecure_channel(node.grpc) as channel:
            call = channel.unary_unary(
                LIST_TOPICS,
                request_serializer=ListTopicsRequest.SerializeToString,
                response_deserializer=ListTopicsResponse.FromString,
            )
            shown = (("authorization", f"Bearer {_token(org=tenant)}"),)
            listed = call(ListTopicsRequest(), metadata=shown, timeout=DEADLINE_S)
        assert sorted(listed.names) == [f"of-{tenant}", "orders"]
    kept = _by_key(node, "GET", "/topics").json()["topics"]
    assert kept == [], "the default tenant has none of them"


@pytest.mark.parametrize("claims", [{}, {"org": ""}, {"org": "nobody"}, {"org": "default~x"}, {"org": ["acme"]}])
def test_a_token_that_does_not_say_whose_it_is_is_refused(node: Node, claims: dict[str, Any]) -> None:
    assert _listed(node, **claims).status_code == UNAUTHORIZED


def test_a_token_of_one_tenant_does_not_act_for_another(node: Node) -> None:
    headers = {"Authorization": f"Bearer {_token(org='acme')}", "X-GoQueue-Tenant": "beta"}
    assert httpx.get(f"{node.url}/topics", headers=headers, timeout=DEADLINE_S).status_code >= UNAUTHORIZED
    made = httpx.post(f"{node.url}/admin/tenants", json={"id": "mine", "name": "x"}, headers=headers)
    assert made.status_code >= UNAUTHORIZED, "an admin of a tenant is none of the cluster"


def test_tokens_of_a_tenant_that_is_disabled_are_refused_until_it_is_active(node: Node) -> None:
    assert _listed(node, org="beta").status_code == OK
    assert _by_key(node, "POST", "/admin/tenants/beta/disable", {"reason": "gone"}).status_code == OK
    wait_until(lambda: _listed(node, org="beta").status_code == UNAUTHORIZED, "end of beta's tokens")
    assert _listed(node, org="acme").status_code == OK
    assert _by_key(node, "POST", "/admin/tenants/beta/activate").status_code == OK
    wait_until(lambda: _listed(node, org="beta").status_code == OK, "return of beta's tokens")
