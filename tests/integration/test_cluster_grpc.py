"""All methods of the gRPC API, asked of nodes of a real cluster that have only a part of what they are about."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from goqueue.doors.grpc.homes import HOMES
from tests.integration.dev_cluster import DevCluster
from tests.integration.grpc_walk import Asked, walk
from tests.integration.process import Node, wait_until

Told = list[tuple[str, Any]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    running = DevCluster(tmp_path_factory.mktemp("cluster"), 3).start_balanced()
    yield running
    running.clean_up()


def walked(addresses: list[str], topic: str, tenant: str = "") -> Told:
    ask = Asked(addresses, topic, tenant)
    try:
        walk(ask)
    finally:
        ask.close()
    return [(name, _named(told, topic)) for name, told in ask.told]


def _named(value: Any, topic: str) -> Any:
    """With one name for the topic of every walk."""
    if isinstance(value, dict):
        return {key: _named(one, topic) for key, one in value.items()}
    if isinstance(value, list):
        return [_named(one, topic) for one in value]
    return value.replace(topic, "TOPIC") if isinstance(value, str) else value


def with_a_tenant(cluster: DevCluster, topic: str) -> None:
    """Which will have a topic with the name of one of `default`, whose partitions are led by others."""
    urls = [f"http://{each['http']}" for each in cluster.nodes]
    assert httpx.post(f"{urls[0]}/admin/tenants", json={"id": "acme", "name": "Acme"}).status_code == 201
    assert httpx.post(f"{urls[0]}/topics", json={"name": topic, "num_partitions": 1}).status_code == 201
    known = [f"{url}/admin/tenants/acme" for url in urls]
    wait_until(lambda: all(httpx.get(each).status_code == 200 for each in known), "the tenant on all nodes")


def test_every_method_is_answered_as_by_one_node_alone(node: Node, cluster: DevCluster) -> None:
    alone = walked([node.grpc], "alone")
    assert {name for name, _ in alone} == HOMES.keys()
    addresses = [each["grpc"] for each in cluster.nodes]
    with_a_tenant(cluster, "walk-4")
    for number, asked in enumerate(([addresses[0]], [addresses[1]], [addresses[2]], addresses, addresses)):
        told = walked(asked, f"walk-{number}", "acme" if number == 4 else "")
        assert [name for name, _ in told] == [name for name, _ in alone]
        for (name, here), (_, there) in zip(told, alone):
            assert here == there, (name, asked)
