"""The rules of replication: how far the high watermark moves, and what a follower is told."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from goqueue.machines.partitions.replication import (
    FRESH_MS,
    LAG_MS_MAX,
    BeginAnew,
    Diverged,
    Ends,
    LeaderView,
    Proposal,
    Records,
    Unheard,
    Verdict,
)
from goqueue.records.batch import NO_EPOCH
from goqueue.records.epochs import EpochHistory

ME = 1


class Leader:
    """With a log of 100 records: epoch 1 wrote 0 to 39, epoch 3 wrote 40 to 79, epoch 5 leads."""

    def __init__(self, isr: tuple[int, ...] = (1, 2, 3), minimum: int = 1) -> None:
        self.view = LeaderView(ME, 5, isr, minimum, 0)
        self.epochs = EpochHistory([(1, 0), (3, 40), (5, 80)])
        self.ends = Ends(10, 100)
        self.synced = 90

    def fetch(self, follower: int, offset: int, last_epoch: int = 5, **more: Any) -> Verdict:
        given: dict[str, Any] = {"epoch": 5, "told_bound": 0, "sent_ms": 0, "now_ms": 0, **more}
        return self.view.on_fetch(
            follower,
            offset=offset,
            last_epoch=last_epoch,
            ends=self.ends,
            own_end=self.synced,
            epoch_end=lambda epoch: self.epochs.end_of(epoch, self.ends.end),
            **given,
        )


def test_alone_the_watermark_is_what_the_log_acknowledges() -> None:
    view = LeaderView(ME, 5, (ME,), 1, 3)
    assert view.advance(7) == 7
    assert view.advance(5) == 7


def test_the_watermark_is_the_lowest_of_what_all_in_sync_replicas_have_synced() -> None:
    leader = Leader()
    assert leader.fetch(2, 95) == Records(95, 0)  # the third was not heard yet
    assert leader.fetch(3, 60, last_epoch=3) == Records(60, 60)
    assert leader.fetch(3, 95) == Records(95, 90)  # its own sync is behind
    leader.synced = 100
    assert leader.view.advance(100) == 95


def test_a_pending_member_holds_the_watermark_back_and_counts_for_nothing_else() -> None:
    leader = Leader(isr=(1, 2), minimum=2)
    leader.view.set_isr((1, 2), pending=(1, 2, 3))
    leader.fetch(2, 90)
    assert leader.view.high_watermark == 0
    leader.fetch(3, 85)
    assert leader.view.high_watermark == 85
    few = Leader(isr=(1,), minimum=2)
    few.view.set_isr((1,), pending=(1, 2))
    few.fetch(2, 90)
    assert few.view.high_watermark == 0


def test_the_watermark_stands_while_fewer_are_in_sync_than_the_minimum() -> None:
    leader = Leader(isr=(1,), minimum=2)
    assert leader.view.advance(90) == 0
    leader.view.set_isr((1, 2))
    leader.fetch(2, 88)
    assert leader.view.high_watermark == 88
    leader.view.set_isr((1,))
    assert leader.view.advance(100) == 88
    leader.view.set_minimum(1)
    assert leader.view.advance(100) == 100


def test_a_fetch_of_another_epoch_says_nothing() -> None:
    leader = Leader()
    assert leader.fetch(2, 90, epoch=4) == Unheard()
    assert leader.fetch(2, 90, epoch=6) == Unheard()
    assert leader.view.noted(2) is None


def test_a_follower_that_has_more_of_an_epoch_than_the_leader_is_told_where_they_parted() -> None:
    leader = Leader()
    assert leader.fetch(2, 85, last_epoch=3) == Diverged(3, 80)
    assert leader.fetch(2, 45, last_epoch=2) == Diverged(1, 40)
    assert leader.fetch(2, 30, last_epoch=2) == Diverged(1, 30)
    assert leader.fetch(2, 120, last_epoch=5) == Diverged(5, 100)
    assert leader.view.noted(2) is None


def test_an_empty_follower_begins_where_it_stands_unless_that_is_beyond_the_end() -> None:
    leader = Leader()
    assert leader.fetch(2, 100, last_epoch=NO_EPOCH) == Records(100, 0)
    assert leader.fetch(2, 101, last_epoch=NO_EPOCH) == BeginAnew(10)
    assert leader.fetch(2, 9, last_epoch=NO_EPOCH) == BeginAnew(10)


def test_a_follower_that_missed_dropped_tombstones_begins_anew_once() -> None:
    leader = Leader()
    leader.ends = Ends(10, 100, tombstones_to=50)
    assert leader.fetch(2, 40, last_epoch=1) == BeginAnew(10)
    assert leader.fetch(2, 12, last_epoch=1, told_bound=50) == Records(12, 0)
    leader.ends = Ends(10, 100, tombstones_to=60)
    assert leader.fetch(2, 40, last_epoch=1, told_bound=50) == BeginAnew(10)
    assert leader.fetch(2, 60, last_epoch=3, told_bound=50) == Records(60, 0)


def test_a_leader_is_fresh_while_all_others_have_fetched_within_a_second() -> None:
    leader = Leader()
    assert not leader.view.is_fresh(0)
    leader.fetch(2, 90, sent_ms=1000)
    leader.fetch(3, 90, sent_ms=1500)
    assert leader.view.is_fresh(1000 + FRESH_MS)
    assert not leader.view.is_fresh(1001 + FRESH_MS)
    leader.view.set_isr((1, 3))
    assert leader.view.is_fresh(1001 + FRESH_MS)
    assert LeaderView(ME, 5, (ME,), 1, 0).is_fresh(1 << 40)


def test_a_follower_may_join_when_it_holds_all_that_was_acknowledged_and_all_of_earlier_leaders() -> None:
    leader = Leader(isr=(1,))
    leader.view.advance(90)
    leader.fetch(2, 85)
    assert not leader.view.may_join(2, reign_start=80)
    leader.fetch(2, 90)
    assert leader.view.may_join(2, reign_start=80)
    assert not leader.view.may_join(2, reign_start=95)
    assert not leader.view.may_join(3, reign_start=0)


@given(st.lists(st.tuples(st.sampled_from((2, 3, 0)), st.integers(10, 100)), max_size=30))
def test_the_watermark_never_falls_and_never_passes_a_member(steps: list[tuple[int, int]]) -> None:
    leader = Leader()
    synced = {1: 0, 2: 0, 3: 0}
    before = 0
    for who, offset in steps:
        if who == 0:
            leader.synced = synced[1] = max(leader.synced, offset)
            leader.view.advance(leader.synced)
        else:
            synced[who] = offset
            synced[1] = leader.synced
            leader.fetch(who, offset, last_epoch=leader.epochs.at(offset - 1))
        assert leader.view.high_watermark >= before
        before = leader.view.high_watermark
        assert before == 0 or before <= leader.synced


# -- who is in sync


class Watched(Leader):
    """Nodes 1, 2 and 3 are alive in the lives 10, 20 and 30."""

    nodes = {1: 10, 2: 20, 3: 30}  # noqa: RUF012  a test's

    def heard(self, follower: int, offset: int, now_ms: int = 0, life: int = 0, **more: Any) -> Verdict:
        return self.fetch(follower, offset, now_ms=now_ms, incarnation=life or follower * 10, **more)

    def wants(self, now_ms: int = 0, nodes: dict[int, int] | None = None, **more: Any) -> tuple[int, ...] | None:
        found = self.view.proposal(now_ms, self.nodes if nodes is None else nodes, (1, 2, 3), 80, **more)
        return found.isr if found is not None else None


def test_a_follower_is_proposed_with_the_life_in_which_it_fetched() -> None:
    leader = Watched(isr=(1, 2))
    leader.heard(2, 90)
    leader.heard(3, 89)
    assert leader.wants() is None
    leader.heard(3, 90)
    found = leader.view.proposal(0, leader.nodes, (1, 2, 3), 80)
    assert found == Proposal((1, 2, 3), {3: 30})
    assert leader.wants(nodes={1: 10, 2: 20, 3: 31}) is None, "it was started again and has not fetched since"
    assert leader.wants(nodes={1: 10, 2: 20}) is None


def test_a_fetch_of_another_life_than_the_image_knows_says_nothing() -> None:
    leader = Watched()
    assert leader.heard(2, 90, life=19, known_incarnation=20) == Unheard()
    assert leader.heard(2, 90, life=20, known_incarnation=20) == Records(90, 0)


def test_a_follower_joins_only_with_the_companions_of_the_partition() -> None:
    leader, companion = Watched(isr=(1, 2)), Watched(isr=(1, 2))
    leader.heard(3, 95)
    assert leader.wants(companions=[(companion.view, 50)]) is None
    companion.heard(3, 49)
    assert leader.wants(companions=[(companion.view, 50)]) is None
    companion.heard(3, 50)
    assert leader.wants(companions=[(companion.view, 50)]) == (1, 2, 3)


def test_a_member_that_was_not_at_the_end_for_long_is_taken_out() -> None:
    leader = Watched()
    assert leader.wants(1000) is None
    leader.heard(2, 100, now_ms=1500)
    leader.heard(3, 95, now_ms=1500)
    assert leader.wants(1000 + LAG_MS_MAX) is None
    assert leader.wants(1001 + LAG_MS_MAX) == (1, 2)
    assert leader.wants(1501 + LAG_MS_MAX) == (1,)


def test_a_member_keeps_up_where_writes_never_pause() -> None:
    leader = Watched()
    leader.wants(0)
    for second in range(60):
        leader.ends = Ends(10, 100 + 10 * second)
        for follower in (2, 3):
            leader.heard(follower, 90 + 10 * second, now_ms=1000 * second)
        assert leader.wants(1000 * second) is None


def test_a_dead_member_is_taken_out_at_once_but_never_below_the_minimum() -> None:
    leader = Watched(minimum=2)
    assert leader.wants(nodes={1: 10, 2: 20}) == (1, 2)
    assert leader.wants(nodes={1: 10}) == (1, 3), "one may go: the first of those that say nothing"
    leader.view.set_isr((1, 2))
    assert leader.wants(nodes={1: 10}) is None
    leader.heard(3, 95)
    assert leader.wants(nodes={1: 10, 3: 30}) == (1, 3), "one comes and one goes"


def test_a_member_that_lost_what_was_acknowledged_is_taken_out() -> None:
    leader = Watched()
    leader.heard(2, 90)
    leader.heard(3, 90)
    assert leader.view.high_watermark == 90
    leader.heard(3, 40, last_epoch=1)
    assert leader.view.fallen == {3: 40}
    assert leader.wants() == (1, 2)
    leader.heard(3, 9, last_epoch=NO_EPOCH)
    assert leader.view.noted(3) is None
    assert leader.wants() == (1, 2)
    leader.heard(3, 90)
    assert leader.wants() is None, "it has caught up"


def test_a_proposal_whose_answer_was_lost_is_pending_until_the_revision_moves() -> None:
    leader = Watched(isr=(1, 2))
    leader.view.on_placement((1, 2), 7)
    leader.heard(2, 90)
    leader.heard(3, 90)
    leader.view.propose((1, 2, 3))
    assert leader.wants() is None, "one at a time"
    leader.view.on_unsure()
    leader.view.on_placement((1, 2), 7)
    leader.view.on_refused()
    assert leader.view.pending_isr == {1, 2, 3}, "that nothing has changed says nothing"
    leader.synced = 100
    leader.heard(2, 100)
    assert leader.view.high_watermark == 90
    leader.view.on_placement((1, 2), 8)
    assert not leader.view.pending_isr
    assert leader.view.advance(100) == 100


def test_a_proposal_that_was_refused_is_over() -> None:
    leader = Watched(isr=(1, 2))
    leader.view.propose((1, 2, 3))
    leader.view.on_refused()
    assert not leader.view.pending_isr
