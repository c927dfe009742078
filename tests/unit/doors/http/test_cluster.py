"""A node without etcd is a cluster of one, and answers as one. Others are made known to it by an image."""

from dataclasses import replace
from types import MappingProxyType

from goqueue.model.placements import NodeInfo, Placement
from goqueue.model.topics import Image, TopicsChange
from tests.unit.doors.http.door_client import Client, served


def lose_a_node(client: Client, isr: tuple[int, ...], *, leader_is_gone: bool = False) -> None:
    """From now on the image says that `orders` has copies on two more nodes, one of which is not there."""
    watch = client.b.broker.cluster
    me, before = watch.node_id, watch.image
    topic = before.topics["orders"]
    incarnation = before.nodes[me].incarnation
    placement = Placement(9 if leader_is_gone else me, incarnation, 4, isr, (me, 8, 9))
    nodes = MappingProxyType({**before.nodes, 8: NodeInfo(8, 80, kafka=("k8", 9092), rack="b", version="0.2.0")})
    changed = replace(topic, placements=(placement,), replication_factor=3)
    image = Image(before.revision + 1, {"orders": changed}, nodes)
    watch.changed(TopicsChange(before, image, frozenset({"orders"})))


@served
async def test_one_node_is_a_cluster_of_one(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=2, status=201)
    state = await client.get("/cluster")
    assert (state["nodes"], state["nodes_alive"], state["topics"], state["status"]) == (1, 1, 1, "pass")
    assert (state["partitions"], state["offline_partitions"], state["under_replicated_partitions"]) == (2, 0, 0)
    assert state["controller_id"] == state["node_id"]
    assert await client.get("/cluster/health") == {"status": "pass", "reasons": []}
    (node,) = (await client.get("/cluster/nodes"))["nodes"]
    assert (node["is_alive"], node["is_controller"], node["leaders"], node["replicas"]) == (True, True, 2, 2)
    told = await client.get("/cluster/partitions", topic="orders")
    assert [(each["partition"], each["state"]) for each in told["partitions"]] == [(0, "online"), (1, "online")]


@served
async def test_one_partition_tells_of_its_log(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=1, status=201)
    await client.post("/topics/orders/messages", messages=[{"value": "x"}, {"value": "y"}])
    info = await client.get("/cluster/partitions/orders/0")
    assert (info["role"], info["state"]) == ("leader", "online")
    assert (info["log_start_offset"], info["high_watermark"], info["log_end_offset"]) == (0, 2, 2)
    assert (await client.get("/cluster/partitions/orders/7", status=404))["code"] == "UNKNOWN_TOPIC_OR_PARTITION"


@served
async def test_a_missing_replica_is_a_warning_and_too_few_are_a_failure(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=1, status=201)
    me = client.b.broker.cluster.node_id
    lose_a_node(client, (me, 8))
    told = await client.get("/cluster/health")
    assert told["status"] == "warn"
    assert told["reasons"] == [
        "1 partitions miss replicas in sync",
        "1 nodes that should hold replicas are not there",
    ]
    nodes = (await client.get("/cluster/nodes"))["nodes"]
    assert {each["node_id"]: each["is_alive"] for each in nodes} == {me: True, 8: True, 9: False}
    lose_a_node(client, (me,))
    assert "too few replicas" in (await client.get("/cluster/health", status=503))["reasons"][0]
    lose_a_node(client, (me,), leader_is_gone=True)
    assert "no leader" in (await client.get("/cluster/health", status=503))["reasons"][0]
    offline = await client.get("/cluster/partitions", state="offline")
    assert [each["topic"] for each in offline["partitions"]] == ["orders"]


@served
async def test_events_are_told_from_where_one_knows_them(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=1, status=201)
    lose_a_node(client, (client.b.broker.cluster.node_id,))
    events = (await client.get("/cluster/events"))["events"]
    assert [each["number"] for each in events] == list(range(1, len(events) + 1))
    assert "node 8 is there" in [each["message"] for each in events]
    assert (await client.get("/cluster/events", after=str(events[-1]["number"])))["events"] == []


@served
async def test_a_node_by_itself_has_nothing_to_elect(client: Client) -> None:
    await client.post("/topics", name="orders", num_partitions=1, status=201)
    path = "/cluster/partitions/orders/0/elect"
    assert "without being asked" in (await client.post(path, unclean=False, status=400))["error"]
    assert "its own cluster" in (await client.post(path, unclean=True, status=409))["error"]
