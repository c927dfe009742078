"""Who may write to a copy, whom a change of the leader fails, and what a follower keeps."""

from collections.abc import Callable

import pytest

from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError, StaleEpoch
from goqueue.model.refusal import NotLeader
from goqueue.records.batch import Batch
from goqueue.records.control import ControlKind
from goqueue.records.decode import decode
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Leading, Reign
from tests.brokers import Parts
from tests.unit.replica.test_replica import append, batch, marker, produced


def stored(replica: Replica) -> list[tuple[int, bytes | None]]:
    return [(one.offset, one.value) for each in replica.batches_from(replica.start_offset) for one in decode(each)]


def batches(replica: Replica, offset: int = 0) -> list[Batch]:
    return [one for one in replica.batches_from(replica.start_offset) if one.base_offset >= offset]


def follower(parts: Parts | None = None, epoch: int = 3) -> Replica:
    replica = (parts or Parts()).replica("copy")
    replica.follow(epoch, leader=2)
    return replica


# -- writing


@pytest.mark.parametrize(
    "write",
    [
        lambda replica: replica.append(batch(b"x"), 0),
        lambda replica: replica.append_marker(marker(ControlKind.COMMIT), 0, 0),
    ],
)
def test_a_copy_that_does_not_lead_takes_no_writes(write: Callable[[Replica], object]) -> None:
    replica = follower()
    with pytest.raises(NotLeader) as refused:
        write(replica)
    assert refused.value.code is Code.NOT_LEADER_OR_FOLLOWER
    assert refused.value.retriable
    assert replica.end_offset == 0


def test_a_run_of_batches_is_refused_by_a_copy_that_does_not_lead() -> None:
    replica = follower()
    results = replica.append_all([batch(b"x"), batch(b"y")], 0)
    assert [type(one) for one in results] == [NotLeader, NotLeader]
    assert replica.end_offset == 0


def test_an_append_that_was_decided_in_another_epoch_is_refused() -> None:
    replica = Parts().replica()
    decided_in = replica.leader_epoch
    replica.append(batch(b"a"), 0, decided_in)
    replica.lead(Reign(decided_in + 1))
    for epoch in (decided_in, decided_in + 2):
        with pytest.raises(NotLeader):
            replica.append(batch(b"b"), 0, epoch)
    replica.append(batch(b"c"), 0, decided_in + 1)
    assert stored(replica) == [(0, b"a"), (1, b"c")]


def test_epochs_never_fall() -> None:
    replica = Parts().replica()
    replica.lead(Reign(5))
    for epoch in (4, 5):
        with pytest.raises(StaleEpoch):
            replica.lead(Reign(epoch))
        with pytest.raises(StaleEpoch):
            replica.follow(epoch, leader=2)
    assert replica.leader_epoch == 5
    append(replica, batch(b"x"))


# -- waiting


def waiting(replica: Replica, offset: int, told: list[GoQueueError | None]) -> None:
    replica.when_reached(offset, lambda: told.append(replica.failure))


def test_whoever_waits_is_failed_before_the_next_reign_begins() -> None:
    """The watermark of the next leader must not acknowledge what was written under the last one."""
    parts = Parts()
    replica = parts.replica()
    append(replica, batch(b"x"))
    told: list[GoQueueError | None] = []
    waiting(replica, 1, told)
    replica.lead(Reign(replica.leader_epoch + 1))
    assert [type(one) for one in told] == [NotLeader]
    parts.commit()
    assert [type(one) for one in told] == [NotLeader]
    assert replica.high_watermark == 1


def test_a_waiter_that_was_due_and_not_yet_called_is_failed_too() -> None:
    parts = Parts()
    replica = parts.replica()
    append(replica, batch(b"x"))
    told: list[GoQueueError | None] = []
    waiting(replica, 1, told)
    woken: list[Callable[[], None]] = []
    replica.defer = woken.append
    parts.committer.run_once()  # durable, but nobody has been woken yet
    assert told == []
    replica.follow(replica.leader_epoch + 1, leader=2)
    for wake in woken:
        wake()
    assert woken
    assert [type(one) for one in told] == [NotLeader]


def test_who_asks_a_follower_to_wait_is_told_at_once_that_it_does_not_lead() -> None:
    told: list[GoQueueError | None] = []
    waiting(follower(), 0, told)
    assert [type(one) for one in told] == [NotLeader]


def test_watchers_are_woken_by_a_change_of_the_leader() -> None:
    parts = Parts()
    replica = parts.replica()
    woken: list[int] = []
    replica.watch("me", lambda: woken.append(1))
    replica.follow(replica.leader_epoch + 1, leader=2)
    parts.clock.run()
    assert woken == [1]


# -- the high watermark


def test_with_others_in_sync_the_watermark_waits_for_them() -> None:
    parts = Parts()
    replica = parts.replica()
    replica.lead(Reign(4, me=1, isr=(1, 2), replicas=2))
    append(replica, batch(b"x"))
    told: list[GoQueueError | None] = []
    waiting(replica, 1, told)
    parts.commit()
    assert (replica.high_watermark, told) == (0, [])
    assert isinstance(replica.role, Leading)
    replica.role.view.set_isr((1,))
    append(replica, batch(b"y"))
    parts.commit()
    assert (replica.high_watermark, told) == (2, [None])


def test_a_new_leader_knows_its_end_once_all_that_it_found_is_committed() -> None:
    parts = Parts()
    replica = parts.replica()
    append(replica, batch(b"x"))
    replica.lead(Reign(4, me=1, isr=(1, 2), replicas=2))
    parts.commit()
    assert not replica.knows_end
    replica.lead(Reign(5))
    assert (replica.knows_end, replica.high_watermark) == (True, 1)
    append(replica, batch(b"y"))
    assert replica.knows_end


def test_the_watermark_does_not_fall_when_a_topic_becomes_durable_on_disk() -> None:
    parts = Parts()
    replica = parts.replica(durability="os")
    append(replica, batch(b"x"))
    assert replica.high_watermark == 1
    options = parts.replica("other").options
    replica.set_options(options, parts.replica("other").log.options)
    assert replica.high_watermark == 1
    append(replica, batch(b"y"))
    assert replica.high_watermark == 1
    parts.commit()
    assert replica.high_watermark == 2


def test_a_topic_that_need_not_wait_for_the_disk_any_more_is_acknowledged_at_once() -> None:
    parts = Parts()
    replica, other = parts.replica(), parts.replica("other", durability="os")
    append(replica, batch(b"x"))
    told: list[GoQueueError | None] = []
    waiting(replica, 1, told)
    replica.set_options(other.options, other.log.options)
    parts.clock.run()
    assert (replica.high_watermark, told) == (1, [None])


def test_retention_takes_nothing_above_the_watermark() -> None:
    parts = Parts()
    replica = parts.replica(retention_ms="1", segment_bytes="16384")
    for _ in range(6):
        append(replica, batch(b"x" * 9000))
    replica.log.sync()
    replica.lead(Reign(4, me=1, isr=(1, 2), replicas=2))
    replica.high_watermark = 2
    parts.clock.advance(10_000_000)
    parts.replicas.maintain(parts.clock.now_ms(), 1000.0)
    assert replica.start_offset == 2


# -- following


def led(*, in_transaction: bool = False) -> Replica:
    leader = Parts().replica()
    append(leader, produced(0, 2, in_transaction=in_transaction))
    append(leader, produced(2, 1, in_transaction=in_transaction))
    append(leader, batch(b"of nobody"))
    return leader


def test_a_follower_has_what_its_leader_has_and_knows_its_producers() -> None:
    parts, leader = Parts(), led()
    copy = follower(parts)
    copy.append_copied(batches(leader), 3, 0)
    assert stored(copy) == stored(leader)
    assert copy.high_watermark == 3
    copy.lead(Reign(9))
    again = copy.append(produced(2, 1), 0)
    assert again.base_offset == 2, "known from before, and not stored twice"
    assert copy.end_offset == 4
    with pytest.raises(GoQueueError):
        append(copy, produced(7, 1))
    append(copy, produced(3, 1))


def test_a_followers_watermark_is_what_it_is_told_and_not_beyond_its_end() -> None:
    leader, copy = led(), follower()
    first, *rest = batches(leader)
    copy.append_copied([first], 100, 0)
    assert copy.high_watermark == 2
    copy.append_copied(rest, 3, 0)
    assert copy.high_watermark == 3
    copy.append_copied([], 2, 0)
    assert copy.high_watermark == 3


def test_truncation_takes_back_what_was_known_of_producers() -> None:
    parts, leader = Parts(), led()
    copy = follower(parts)
    copy.append_copied(batches(leader), 2, 0)
    copy.truncate(2)
    assert stored(copy) == stored(leader)[:2]
    copy.lead(Reign(9))
    assert append(copy, produced(2, 1)) == 2, "what was cut off is new again"


def test_truncation_takes_back_an_open_transaction() -> None:
    leader, copy = led(in_transaction=True), follower()
    copy.append_copied(batches(leader), 4, 0)
    assert copy.last_stable_offset == 0
    copy.truncate(0)
    copy.append_copied([], 0, 0)
    assert copy.last_stable_offset == copy.end_offset == 0


def test_a_snapshot_of_producers_does_not_outlive_what_it_knows() -> None:
    parts = Parts()
    copy = parts.replica("copy")
    append(copy, produced(0, 2))
    append(copy, produced(2, 1))
    parts.commit()
    copy.save_producers()
    copy.follow(copy.leader_epoch + 1, leader=2)
    copy.truncate(2)
    again = Parts(parts.disk.crashed()).replica("copy")
    assert stored(again) == [(0, b"0"), (1, b"0")]
    assert append(again, produced(2, 1)) == 2


def test_producers_are_not_saved_above_the_watermark() -> None:
    parts = Parts()
    replica = parts.replica()
    replica.lead(Reign(4, me=1, isr=(1, 2), replicas=2))
    append(replica, produced(0, 1))
    parts.commit()
    replica.save_producers()
    parts.commit()
    replica.close()
    assert not [name for name in parts.disk.list("logs/orders/0") if name.startswith("snapshot")]


def test_a_follower_begins_anew_where_its_leader_says() -> None:
    parts = Parts()
    copy = parts.replica("copy")
    append(copy, produced(0, 2))
    copy.follow(7, leader=2)
    copy.restart(40)
    assert (copy.start_offset, copy.end_offset, copy.high_watermark) == (40, 40, 40)
    assert copy.log.state.is_doubtful
    again = Parts(parts.disk.crashed()).replica("copy")
    assert append(again, produced(0, 1)) == 40, "nothing is known of producers"


@pytest.mark.parametrize(("isr", "lacks"), [((1,), True), ((1, 2), False), ((1, 2, 3), False)])
def test_a_topic_lacks_copies_by_how_many_are_in_sync(isr: tuple[int, ...], lacks: bool) -> None:
    parts = Parts()
    replica = parts.replica(min_insync_replicas="2")
    replica.lead(Reign(4, me=1, isr=isr, replicas=3))
    assert (replica.lacks_copies, replica.copies_in_sync) == (lacks, len(isr))


def test_the_watermark_stands_while_fewer_are_in_sync_than_the_topic_asks_for() -> None:
    parts = Parts()
    replica = parts.replica(min_insync_replicas="2")
    replica.lead(Reign(4, me=1, isr=(1,), replicas=3))
    append(replica, batch(b"x"))
    parts.commit()
    assert replica.high_watermark == 0
    alone = parts.replica("alone", min_insync_replicas="2")
    append(alone, batch(b"x"))
    parts.commit()
    assert alone.high_watermark == 1, "it has all the copies that it can have"


def test_a_doubtful_copy_that_leads_is_doubtful_no_more() -> None:
    """Else nobody could lead after its next start: it is alone in sync, and would not stand."""
    parts = Parts()
    copy = parts.replica("copy")
    copy.follow(copy.leader_epoch + 1, leader=2)
    copy.restart(3)
    doubts = [copy.is_doubtful]
    copy.lead(Reign(copy.leader_epoch + 1, me=1, isr=(1,), replicas=3, is_given=True))
    doubts += [copy.is_doubtful, Parts(parts.disk.crashed()).replica("copy").is_doubtful]
    assert doubts == [True, False, False]
