"""Rules beside those of one copy, broken on purpose: companions, coordinators, transactions, a node's start and its
sessions. What they break is tested where it is; here each of those tests must fall."""

from collections.abc import Callable
from typing import Any

import pytest

from goqueue.broker.dead_letters.writing import DeadLetterWriter
from goqueue.broker.delays.partition import PartitionDelays
from goqueue.broker.transactions.transactions import Transactions
from goqueue.broker.transactions.verified import Verified
from goqueue.cluster import changes, isr, peers
from goqueue.cluster.registration import Registration
from goqueue.cluster.session import VALID_SHARE, Session
from goqueue.doors.kafka import peer_door
from goqueue.doors.kafka.handlers import fetch
from goqueue.machines.delays import hosts
from goqueue.machines.delays import machine as delays
from goqueue.machines.delays.facts import TargetKept
from goqueue.machines.delays.target import Target
from goqueue.machines.partitions.following import Answered, FollowerView, Take, Todo
from goqueue.machines.partitions.producer_state import ProducerStates
from goqueue.machines.partitions.replication import Ends, LeaderView
from goqueue.model.codes import Code
from goqueue.model.metadata import ABSENT, Compare, NodeKey, NodeValue, PartitionKey, Step
from goqueue.replica.standing import Standing
from goqueue.runtime.ledger import Ledger, Saving
from goqueue.runtime.standby import Standby
from goqueue.storage.data_directory import DataDirectory

# -- delays and the log of their partition


def up_to_survives_a_dropped_schedule(mutated: pytest.MonkeyPatch) -> None:
    follow = hosts.decide_follow

    def forgetful(state: Any, command: Any) -> Any:
        facts, is_more = follow(state, command)
        up_to = state.target.up_to
        kept = [
            fact if not isinstance(fact, TargetKept) else TargetKept(*_fields(fact, up_to=max(up_to, fact.up_to)))
            for fact in facts
        ]
        return kept, is_more

    mutated.setattr(delays, "decide_follow", forgetful)


def _fields(fact: TargetKept, up_to: int) -> tuple[Any, ...]:
    return fact.topic, fact.topic_id, fact.partition, up_to, fact.sequence, fact.epoch


def repeated_batch_below_up_to_is_known(mutated: pytest.MonkeyPatch) -> None:
    """Also where its schedules were lost."""
    mutated.setattr(Target, "knows", lambda self, epoch, offset: (epoch, offset) <= (self.epoch, self.up_to))


def fired_above_the_watermark(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(PartitionDelays, "_when_places_are_durable", lambda self, job, publish: publish())


def schedules_not_checked_against_the_host(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(PartitionDelays, "_follow", lambda self: None)


def companion_not_needed_for_the_isr(mutated: pytest.MonkeyPatch) -> None:
    may_join = LeaderView.may_join

    def alone(self: LeaderView, follower: int, start: int, _companions: Any = (), life: int | None = None) -> bool:
        return may_join(self, follower, start, (), life)

    mutated.setattr(LeaderView, "may_join", alone)


# -- compacted logs


def tombstone_gap_not_checked(mutated: pytest.MonkeyPatch) -> None:
    parted = LeaderView._parted

    def blind(offset: int, last: int, told: int, ends: Ends, epoch_end: Callable[[int], tuple[int, int]]) -> Any:
        return parted(offset, last, told, ends._replace(tombstones_to=0), epoch_end)

    mutated.setattr(LeaderView, "_parted", staticmethod(blind))


def bound_told_by_another_leader_kept(mutated: pytest.MonkeyPatch) -> None:
    bounds = [0]

    def told(self: FollowerView) -> int:
        return bounds[0]

    def tell(self: FollowerView, bound: int) -> None:
        bounds[0] = max(bounds[0], bound)

    mutated.setattr(FollowerView, "told_bound", property(told, tell), raising=False)


def gaps_beyond_what_is_known_to_be_compacted(mutated: pytest.MonkeyPatch) -> None:
    on_answer = FollowerView.on_answer

    def unprepared(self: FollowerView, answer: Answered, *rest: Any) -> Todo:
        todo = on_answer(self, answer, *rest)
        return todo._replace(gaps_to=0) if isinstance(todo, Take) else todo

    mutated.setattr(FollowerView, "on_answer", unprepared)


# -- coordinators


def effect_before_commit(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(
        DeadLetterWriter, "_when_committed", lambda self, place, name, letters: self._publish(place, name, letters)
    )


def snapshot_at_the_synced_end(mutated: pytest.MonkeyPatch) -> None:
    """Of the log here, whatever others have of it."""

    def save(self: Any) -> None:
        if self.failure is None and self._snapshots.offset != self.end_offset:
            self._snapshots.save(self.end_offset, self.producers.encode())

    mutated.setattr("goqueue.replica.replica.Replica.save_producers", save)


def standbys_snapshot_at_the_synced_end(mutated: pytest.MonkeyPatch) -> None:
    made = Saving.__init__

    def at_the_end(self: Saving, offset: int, *rest: Any, **more: Any) -> None:
        made(self, offset + 1, *rest, **more)

    mutated.setattr(Saving, "__init__", at_the_end)


def standby_applies_above_the_watermark(mutated: pytest.MonkeyPatch) -> None:
    def look(self: Standby[Any]) -> None:
        if self._work is None and self._is_built and self._replica.end_offset > self._reading.until:
            self._reading.until = self._replica.end_offset
            self._work = self.ledger.read_on(self._machine, self._reading)
            build = self._builds
            self._clock.call_soon(lambda: self._turn(build))

    mutated.setattr(Standby, "_look", look)


def serves_before_the_start_of_its_reign_is_committed(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(Ledger, "when_durable", lambda self, call: call())


def no_freshness_for_leases(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(Standing, "is_fresh", property(lambda self: True))
    mutated.setattr(Standing, "check_fresh", lambda self: None)


# -- transactions


def marker_during_verification(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(Verified, "end", lambda self, question: True)


def verification_skipped(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(Transactions, "may_write", lambda self, producer_id, epoch, place: Code.NONE)
    mutated.setattr(Transactions, "verify_writer", lambda self, writer, place: Code.NONE)


def markers_without_coordinator_epoch(mutated: pytest.MonkeyPatch) -> None:
    check = ProducerStates.check_marker
    mutated.setattr(ProducerStates, "check_marker", lambda self, number, epoch, _: check(self, number, epoch, 2**31))


# -- metadata, starts and sessions


def second_maker_sets_back_what_leads(mutated: pytest.MonkeyPatch) -> None:
    def careless(compares: Any, puts: Any) -> Step:
        new = [one for one in compares if not _is_of_a_new_partition(one)]
        return Step(tuple(new), puts)

    mutated.setattr(changes, "Step", careless)


def _is_of_a_new_partition(compare: Any) -> bool:
    return isinstance(compare, Compare) and isinstance(compare.key, PartitionKey) and compare.revision == ABSENT


def absence_deletes(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(DataDirectory, "put_aside_later", DataDirectory.retire)


def topic_id_not_checked(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(DataDirectory, "_put_aside_foreign", lambda self, path, topic_id: None)


def wiped_disk_under_an_old_id(mutated: pytest.MonkeyPatch) -> None:
    next_step = Registration._next_step

    def trusting(self: Registration, known: Any) -> Any:
        key = NodeKey(self._me.node_id)
        if key in known and isinstance(known[key].value, NodeValue):
            mine = known[key].value._replace(directory=self._directory.directory)
            known = {**known, key: known[key]._replace(value=mine)}
        return next_step(self, known)

    mutated.setattr(Registration, "_next_step", trusting)


def restored_etcd_is_trusted(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(Registration, "_halting", lambda self, known, revision, seen: None)


def deadline_of_a_session_counted_from_the_answer(mutated: pytest.MonkeyPatch) -> None:
    def renewed(self: Session, lease: int, _sent_s: float) -> None:
        if lease == self.lease:
            self._valid_until_s = self.now_s() + self.ttl_s * VALID_SHARE

    mutated.setattr(Session, "renewed", renewed)


# -- other nodes


def replica_fetch_without_proof(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(peer_door, "is_proof", lambda *_: True)
    mutated.setattr(peers, "is_proof", lambda *_: True)


def replica_fetch_where_clients_do(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(fetch, "is_replica", lambda message: False)


def hand_over_before_the_target_is_at_the_end(mutated: pytest.MonkeyPatch) -> None:
    mutated.setattr(isr, "_is_at_end", lambda replica, follower: True)
