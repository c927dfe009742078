"""Faults of the machine that decides about metadata, in a cluster: who asked is told, the state is what etcd says."""

from random import Random
from typing import Any

import pytest

from goqueue.client import Admin, ClientError
from goqueue.cluster.controller import ClusterController
from goqueue.cluster.etcd.store import EtcdStore
from goqueue.machines.controller import Controller
from goqueue.machines.group_options import GroupOptionsStored, SetGroupOptions
from goqueue.model.codes import Code
from goqueue.model.errors import CoordinatorFailed
from goqueue.model.partition_limits import PartitionLimits
from goqueue.testing import Cluster, cluster
from goqueue.testing.virtual_clock import VirtualClock
from goqueue.testing.virtual_etcd import VirtualEtcd


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.etcd = VirtualEtcd(self.clock, Random(7))
        self.controller = self.node("node-1")
        self.other = self.node("node-2")

    def node(self, host: str) -> ClusterController:
        store = EtcdStore(self.etcd.client(host), "/goqueue/main/", self.clock)
        controller = ClusterController(store, 1, self.clock, PartitionLimits(), 0)
        ready: list[None] = []
        controller.start(lambda: ready.append(None))
        self.clock.advance(50)
        assert ready
        return controller

    def set(self, group_id: str, lease_ms: str, controller: ClusterController | None = None) -> Any:
        replies: list[Any] = []
        (controller or self.controller).submit(SetGroupOptions(group_id, {"lease.ms": lease_ms}), replies.append)
        self.clock.advance(200)
        (reply,) = replies
        return reply


@pytest.fixture
def world() -> World:
    return World()


def options_of(controller: ClusterController) -> dict[str, Any]:
    """As the machine has them."""
    return dict(controller.mirror.machine.groups.table.items())


def test_who_asked_for_what_cannot_be_decided_is_told_and_the_next_is_served(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Controller, "decide", lambda *_: 1 // 0)
        reply = world.set("workers", "1000")
    assert isinstance(reply, CoordinatorFailed)
    assert "a fault of the node" in str(reply)
    assert world.controller.faults == 1
    assert world.set("workers", "2000") is Code.NONE
    assert options_of(world.controller) == options_of(world.other) == {"workers": {"lease.ms": "2000"}}


def test_after_a_fault_in_what_is_told_the_machine_is_made_anew_from_what_etcd_says(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.set("before", "1000") is Code.NONE
    apply, left = Controller.apply, [1]

    def fails_once(machine: Controller, fact: Any) -> None:
        if machine is world.controller.mirror.machine and left:
            left.clear()
            machine.groups.table.clear()  # and leaves half a state
            raise RuntimeError("a bug")
        apply(machine, fact)

    monkeypatch.setattr(Controller, "apply", fails_once)
    seen = world.controller.access.revision
    assert world.set("workers", "1000") is Code.NONE
    assert not left
    assert options_of(world.controller) == {"before": {"lease.ms": "1000"}, "workers": {"lease.ms": "1000"}}
    assert (world.controller.faults, world.controller.mirror.skipped_facts) == (1, 0)
    assert world.controller.access.revision >= seen


def test_what_can_never_be_applied_is_counted_and_costs_nothing_else(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = Controller.apply

    def fails(machine: Controller, fact: Any) -> None:
        if isinstance(fact, GroupOptionsStored) and fact.group_id == "bad":
            raise RuntimeError("a bug")
        apply(machine, fact)

    with monkeypatch.context() as broken:
        broken.setattr(Controller, "apply", fails)
        world.set("bad", "1000", world.other)
        assert world.set("good", "1000", world.other) is Code.NONE
        assert options_of(world.controller) == {"good": {"lease.ms": "1000"}}
        assert world.controller.mirror.skipped_facts == 1
        assert world.controller.faults >= 1
    assert world.set("bad", "2000", world.other) is Code.NONE
    assert options_of(world.controller) == {"good": {"lease.ms": "1000"}, "bad": {"lease.ms": "2000"}}


def test_a_client_gets_a_clear_error_and_health_and_metrics_tell_of_the_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(c: Cluster) -> None:
        async with Admin(c.http, **c.ports) as admin:
            with monkeypatch.context() as broken:
                broken.setattr(Controller, "decide", lambda *_: 1 // 0)
                with pytest.raises(ClientError, match="a fault of the node"):
                    await admin.create_topic("orders", partitions=1)
            await admin.create_topic("orders", partitions=1)
        health = c.node(1).broker.health
        assert health.faults()["metadata-0"] >= 1
        page = dict(c.node(1).broker.metrics.page().column("goqueue_runtime_coordinator_faults_total"))
        assert page["metadata-0",] >= 1

    cluster(nodes=1).run(scenario)
