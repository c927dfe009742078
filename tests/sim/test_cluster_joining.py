"""A node that has lost its session begins another life, once, however busy it is."""

import errno
from collections.abc import Iterator, Sequence

import pytest

from goqueue.cluster.etcd.port import KeyValue
from goqueue.cluster.registration import KnownEpoch
from goqueue.node.membership import OwnDirectory
from goqueue.testing.simulation import Simulation
from goqueue.testing.virtual_etcd import VirtualEtcd
from goqueue.testing.virtual_etcd_client import Watch

NODE = 1
LAG_MS = 2500


def lose_session(etcd: VirtualEtcd, number: int) -> list[int]:
    """The incarnations that the node of this number will have."""
    key = next(key for key in etcd.keys if key.endswith(b"/live/%d" % number))
    lives: list[int] = []

    def changed(revision: int, changes: Sequence[KeyValue]) -> None:
        lives.extend(revision for one in changes if one.key == key and one.value is not None)

    etcd.on_change.append(changed)
    etcd.do_revoke(etcd.keys[key].lease)
    return lives


def test_a_node_that_is_told_late_of_its_own_session_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its watch is seconds behind. What it is told at first is from before that session, and of the end of the last."""

    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("8s")
        node, etcd, tell = sim.nodes[NODE], sim.etcd, Watch.tell
        assert etcd is not None

        def tell_late(self: Watch, revision: int, events: Sequence[KeyValue]) -> None:
            if self.host == node.name:
                etcd.time.call_after(LAG_MS, lambda: tell(self, revision, events))
            else:
                tell(self, revision, events)

        monkeypatch.setattr(Watch, "tell", tell_late)
        lives = lose_session(etcd, node.number)
        await sim.let_pass("30s")
        assert len(lives) == 1
        assert node.broker.topics.image.nodes[node.number].incarnation == lives[0]
        assert not sim.loop.exceptions

    Simulation(seed=1, nodes=3, cluster=True).run(scenario, limit="2m")


def test_a_node_that_cannot_look_into_its_directory_for_a_moment_joins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when no more files may be open."""

    async def scenario(sim: Simulation) -> None:
        await sim.let_pass("8s")
        etcd, epochs, failed = sim.etcd, OwnDirectory.epochs, list[OwnDirectory]()
        assert etcd is not None

        def epochs_or_none(self: OwnDirectory) -> Iterator[KnownEpoch]:
            if not failed:
                failed.append(self)
                raise OSError(errno.EMFILE, "too many open files")
            return epochs(self)

        monkeypatch.setattr(OwnDirectory, "epochs", epochs_or_none)
        lives = lose_session(etcd, sim.nodes[NODE].number)
        await sim.let_pass("10s")
        assert failed
        assert len(lives) == 1

    Simulation(seed=2, nodes=3, cluster=True).run(scenario, limit="2m")
