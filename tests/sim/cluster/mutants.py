"""Rules that are broken on purpose: each must be found, or the simulation proves nothing."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from goqueue.cluster.etcd.keys import key_path
from goqueue.cluster.etcd.port import KeyPut
from goqueue.cluster.etcd.store import EtcdStore
from goqueue.machines.cluster import election, steward
from goqueue.machines.cluster.election import Partition
from goqueue.machines.partitions.following import Asking, FollowerView, OwnLog
from goqueue.machines.partitions.replication import BeginAnew, Diverged, LeaderView
from goqueue.model.metadata import Conflict, LiveKey, Step
from goqueue.model.placements import Placement
from goqueue.records.batch import NO_EPOCH
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Leading
from goqueue.replica.standing import Standing
from goqueue.storage import shortening
from goqueue.storage.log import Log
from goqueue.storage.pending_sync import PendingSync
from goqueue.storage.snapshots import SnapshotFiles
from goqueue.telemetry.calls import call_each
from tests.sim.cluster import duties
from tests.sim.cluster.checker import PREFIX
from tests.sim.cluster.duties import DutifulLife
from tests.sim.cluster.world import World

Mutate = Callable[[pytest.MonkeyPatch], None]


def truncate_to_the_watermark(mutated: pytest.MonkeyPatch) -> None:
    def on_follow(self: DutifulLife) -> None:
        assert self.replica is not None
        self.replica.truncate(max(self.replica.start_offset, self.replica.high_watermark))

    mutated.setattr(DutifulLife, "on_follow", on_follow)


def acknowledge_before_the_sync(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(PendingSync, "run", lambda self: None)


def unsynced_fetch_offset(mutated: pytest.MonkeyPatch) -> None:
    def fetch(self: FollowerView, own: OwnLog, last_epoch: int) -> Asking:
        return Asking(self.epoch, own.end, last_epoch, self.told_bound)

    mutated.setattr(FollowerView, "fetch", fetch)


def no_floor(mutated: pytest.MonkeyPatch) -> None:
    proposal = LeaderView.proposal

    def without(self: LeaderView, *args: Any, **more: Any) -> Any:
        with patch.object(self, "minimum", 1):
            return proposal(self, *args, **more)

    mutated.setattr(LeaderView, "proposal", without)
    mutated.setattr(Partition, "floor", 1)


def floor_in_the_proposal_only(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(duties, "elect", lambda partition, *rest: election.elect(partition._replace(minimum=1), *rest))


def pending_isr_counts_for_the_minimum(mutated: pytest.MonkeyPatch) -> None:
    advance = LeaderView.advance

    def counting(self: LeaderView, own_end: int) -> int:
        with patch.object(self, "isr", self.isr | self.pending_isr):
            return advance(self, own_end)

    mutated.setattr(LeaderView, "advance", counting)


def act_on_an_isr_before_it_is_confirmed(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(LeaderView, "propose", lambda self, isr: self.set_isr(isr))


def same_epoch_after_a_restart(mutated: pytest.MonkeyPatch) -> None:
    def placement(self: DutifulLife) -> Placement | None:
        event = self.known.get(self.node.world.key)
        value = event.value if event is not None else None
        if not isinstance(value, Placement):
            return None
        return value._replace(incarnation=self.incarnation) if value.leader == self.node.node_id else value

    mutated.setattr(DutifulLife, "placement", property(placement))


def no_incarnation_in_isr_growth(mutated: pytest.MonkeyPatch) -> None:
    change, may_join = election.change_isr, LeaderView.may_join

    def forgetful(partition: Partition, isr: Any, joining: Any) -> Step | None:
        step = change(partition, isr, joining)
        return Step(step.compares[:2], step.puts) if step is not None else None

    mutated.setattr(duties, "change_isr", forgetful)
    mutated.setattr(DutifulLife, "knows_life", lambda self, fetched, incarnation: True)
    mutated.setattr(
        LeaderView, "may_join", lambda self, node, start, companions=(), life=None: may_join(self, node, start)
    )


def no_last_epoch_check(mutated: pytest.MonkeyPatch) -> None:
    def parted(offset: int, _last: int, _told: int, ends: Any, _epoch_end: Any) -> Diverged | BeginAnew | None:
        return Diverged(_last, ends.end) if offset > ends.end else None

    mutated.setattr(LeaderView, "_parted", staticmethod(parted))


def last_epoch_taken_from_the_leader(mutated: pytest.MonkeyPatch) -> None:
    fetch = FollowerView.fetch

    def told(self: FollowerView, own: OwnLog, last_epoch: int) -> Asking | None:
        return fetch(self, own, self.epoch if own.end else last_epoch)

    mutated.setattr(FollowerView, "fetch", told)


def a_fetch_of_another_epoch_counts(mutated: pytest.MonkeyPatch) -> None:
    on_fetch = LeaderView.on_fetch
    mutated.setattr(
        LeaderView,
        "on_fetch",
        lambda self, follower, _epoch, *rest: on_fetch(self, follower, self.epoch, *rest),
    )


def pending_isr_forgotten_after_an_unchanged_read(mutated: pytest.MonkeyPatch) -> None:
    def on_placement(self: LeaderView, isr: Any, revision: int) -> None:
        if revision >= self.revision:
            self.revision, self.is_unsure = revision, False
            self.set_isr(isr)

    mutated.setattr(LeaderView, "on_placement", on_placement)


def indeterminate_transaction_repeated(mutated: pytest.MonkeyPatch) -> None:
    """And the answer to the second taken for that to the first."""

    def asking(self: DutifulLife, role: Leading, step: Step) -> None:
        def answered(outcome: Any) -> None:
            if self.leading is not role:
                return
            if isinstance(outcome, Conflict):
                role.view.is_unsure = False
            elif not hasattr(outcome, "revision"):
                asking(self, role, step)
                return
            self._isr_answered(role, outcome)

        self._isr_is_asked = True
        self.txn(step, answered)

    mutated.setattr(DutifulLife, "_ask_isr", asking)


def key_deleted_and_lease_left(mutated: pytest.MonkeyPatch) -> None:
    def declare(_self: World, declarer: Any, dead: Any) -> None:
        key = (PREFIX + key_path(LiveKey(dead.node_id))).encode()
        declarer.etcd.txn((), [KeyPut(key, None)], lambda _: None)

    mutated.setattr(World, "declare", declare)


def doubtful_mark_forgotten_by_a_restart(mutated: pytest.MonkeyPatch) -> None:
    opened = Log.open.__func__  # type: ignore[attr-defined]

    def forget(cls: type[Log], *args: Any, **more: Any) -> Log:
        log: Log = opened(cls, *args, **more)
        log.state.is_doubtful = False
        return log

    mutated.setattr(Log, "open", classmethod(forget))


def doubtful_replicas_stand(mutated: pytest.MonkeyPatch) -> None:
    stand = election.stand_after_ms
    mutated.setattr(duties, "stand_after_ms", lambda *rest, is_doubtful: stand(*rest, is_doubtful=False))


def producer_state_survives_a_truncation(mutated: pytest.MonkeyPatch) -> None:
    def follow_log(self: Replica, _cut: int) -> None:
        self.high_watermark = min(self.high_watermark, self.end_offset)

    mutated.setattr(Replica, "_follow_log", follow_log)


def snapshot_survives_a_truncation(mutated: pytest.MonkeyPatch) -> None:
    """And knows nothing of epochs, by which it would be passed over."""
    made = SnapshotFiles.__init__

    def make(self: Any, *args: Any, **more: Any) -> None:
        made(self, *args, **more)
        self._epoch_before = lambda offset: NO_EPOCH

    mutated.setattr(SnapshotFiles, "__init__", make)
    mutated.setattr(shortening, "remove_behind", lambda *_: None)
    mutated.setattr(Replica, "save_producers", _save_at_once)


def _save_at_once(self: Replica) -> None:
    if self.failure is None:
        self._snapshots.save(self.end_offset, self.producers.encode())


def waiters_survive_a_demotion(mutated: pytest.MonkeyPatch) -> None:
    def change(self: Standing, role: Any) -> None:
        role.waiters = self.role.waiters
        self.role, self.leader_epoch = role, role.epoch
        call_each([])
        self._wake_soon()
        self._tell_end()

    mutated.setattr(Standing, "_change_role", change)


def no_freshness_for_reads(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(World, "is_fresh", lambda self, life: True)


def deadline_counted_from_the_answer(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(DutifulLife, "counted_from", lambda self, sent_ms: self.now_ms())


def watch_skips_a_compaction(mutated: pytest.MonkeyPatch) -> None:
    list_anew = EtcdStore._list_anew

    def skip(self: Any) -> None:
        if not self.revision:
            list_anew(self)
            return
        self.revision = self._etcd._server.revision
        self._watch(self._round)

    mutated.setattr(EtcdStore, "_list_anew", skip)


def removing_leaves_before_adding_are_in(mutated: pytest.MonkeyPatch) -> None:
    finish = steward.finish_reassignment

    def early(partition: Partition) -> Step | None:
        placement = partition.placement
        isr = tuple(dict.fromkeys((*placement.isr, *placement.adding)))
        step = finish(partition._replace(placement=placement._replace(isr=isr)))
        if step is None:
            return None
        value = step.puts[0].value
        assert isinstance(value, Placement)
        kept = tuple(node_id for node_id in value.isr if node_id in placement.isr)
        return Step(step.compares, (step.puts[0]._replace(value=value._replace(isr=kept)),)) if kept else None

    mutated.setattr(steward, "finish_reassignment", early)
