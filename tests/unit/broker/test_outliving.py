"""A batch whose leader changes before it is acknowledged: kept by the next one, it is acknowledged; cut off, never."""

from goqueue.broker.publishing.outliving import PATIENCE_MS, Outliving
from goqueue.model.refusal import NotLeader
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Reign
from tests.brokers import Parts
from tests.unit.replica.test_replica import batch


class Waiting:
    """For the acknowledgement of one batch, appended by a leader with another copy, which has not fetched it."""

    def __init__(self) -> None:
        self.parts = Parts()
        self.replica: Replica = self.parts.replica()
        self.replica.lead(Reign(4, me=1, isr=(1, 2), replicas=2))
        appended = self.replica.append(batch(b"a"), 0)
        self.ended = 0
        self.outliving = Outliving(self.replica, appended.next_offset, self.parts.clock)
        self.outliving.when_reached(appended.next_offset, self._end)
        self.parts.commit()
        self.replica.follow(5, leader=2)
        self.parts.commit()
        assert self.ended == 0, "nobody knows"

    def _end(self) -> None:
        self.ended += 1


def test_what_the_next_leader_commits_is_acknowledged() -> None:
    waiting = Waiting()
    waiting.replica.append_copied([], 1, 0)
    waiting.parts.commit()
    assert (waiting.ended, waiting.outliving.failure) == (1, None)
    waiting.parts.clock.advance(PATIENCE_MS)
    assert waiting.ended == 1


def test_what_was_cut_off_is_not_whatever_comes_in_its_place() -> None:
    waiting = Waiting()
    other = Parts().replica()
    other.append(batch(b"b"), 0)
    waiting.replica.truncate(0)
    waiting.replica.append_copied(list(other.batches_from(0)), 1, 0)
    assert waiting.replica.high_watermark == 1
    waiting.parts.commit()
    assert waiting.ended == 1
    assert isinstance(waiting.outliving.failure, NotLeader)


def test_a_copy_that_hears_nothing_is_not_waited_for_any_longer() -> None:
    waiting = Waiting()
    waiting.parts.clock.advance(PATIENCE_MS)
    assert waiting.ended == 1
    assert isinstance(waiting.outliving.failure, NotLeader)
    waiting.replica.append_copied([], 1, 0)
    waiting.parts.commit()
    assert waiting.ended == 1


def test_a_leader_that_leads_on_acknowledges_as_ever() -> None:
    parts = Parts()
    replica = parts.replica()
    appended = replica.append(batch(b"a"), 0)
    outliving = Outliving(replica, appended.next_offset, parts.clock)
    ended: list[object] = []
    outliving.when_reached(appended.next_offset, lambda: ended.append(outliving.failure))
    parts.commit()
    assert ended == [None]
