"""What groups hear of topics, and what becomes of their offsets when they hear it late or never."""

from itertools import permutations
from typing import Any

import pytest

from goqueue.broker.groups.groups import RETRY_MS
from goqueue.broker.groups.view import view_group
from goqueue.machines.controller_commands import AddPartitions, CreateTopic, DeleteTopic
from goqueue.machines.groups import commands
from goqueue.machines.groups.consumer import facts as consumer_commands
from goqueue.model.codes import Code
from goqueue.model.errors import DiskFull
from goqueue.model.topic_partition import TopicPartition
from goqueue.runtime.ledger import Ledger
from tests.brokers import TestBroker

GROUP = "readers"


class Library(TestBroker):
    def tell(self, command: Any) -> Any:
        return self.ask(self.broker.groups.submit, command)

    def change(self, command: Any) -> None:
        assert self.ask(self.broker.topics.submit, command).code is Code.NONE

    def set_offset(self, offset: int) -> None:
        topic = self.broker.topics.image.topics["orders"]
        wanted = commands.OffsetToCommit("orders", 0, offset, topic_id=topic.id)
        assert self.tell(commands.CommitOffsets(GROUP, (wanted,))).codes == (Code.NONE,)

    def offset(self) -> int:
        (one,) = self.tell(commands.FetchOffsets(GROUP, (TopicPartition("orders", 0),))).offsets
        found: int = one.offset
        listed = self.tell(commands.FetchOffsets(GROUP, None)).offsets
        assert [each.offset for each in listed] == ([found] if found >= 0 else [])
        return found

    def beat(self, epoch: int = 0) -> Any:
        is_join = not epoch
        return self.tell(
            consumer_commands.ConsumerHeartbeat(
                GROUP,
                "member",
                epoch,
                rebalance_timeout_ms=1000 if is_join else -1,
                subscribed_topic_names=("orders",) if is_join else None,
                owned=() if is_join else None,
            )
        )


@pytest.fixture
def library() -> Library:
    made = Library()
    made.change(CreateTopic("orders", b"1" * 16, 1))
    return made


@pytest.fixture
def full_ledgers(library: Library, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No room under the groups, until it is undone."""
    of_groups = {id(coordinator._ledger) for coordinator in library.broker.groups._coordinators}
    append = Ledger.append

    def is_full(self: Ledger, facts: Any, now_ms: int) -> int:
        if id(self) in of_groups and any(fact.durable for fact in facts):
            raise DiskFull("no room")
        return append(self, facts, now_ms)

    monkeypatch.setattr(Ledger, "append", is_full)
    return monkeypatch


def test_offsets_end_with_their_topic(library: Library) -> None:
    library.set_offset(7)
    library.change(DeleteTopic("orders"))
    library.change(CreateTopic("orders", b"2" * 16, 1))
    assert library.offset() == -1


def test_offsets_of_a_deleted_topic_never_count_for_one_that_is_made_again(library: Library) -> None:
    """Though the group could not be told: it would skip what it has never seen."""
    library.set_offset(7)
    before = library.offset()
    groups = library.broker.groups
    groups._tell = lambda coordinator, news: None  # type: ignore[method-assign]  # the power goes before this
    library.change(DeleteTopic("orders"))
    again = Library(library.disk.crashed(), library.clock)
    again.change(CreateTopic("orders", b"2" * 16, 1))
    assert (before, again.offset()) == (7, -1)
    again.set_offset(3)
    assert again.offset() == 3


def test_a_group_hears_of_a_deleted_topic_when_there_is_room_again(
    library: Library, request: pytest.FixtureRequest
) -> None:
    library.set_offset(7)
    full: pytest.MonkeyPatch = request.getfixturevalue("full_ledgers")
    library.change(DeleteTopic("orders"))
    library.clock.advance(3 * RETRY_MS)
    assert library.offset() == 7, "there is no such topic, so it does no harm"
    full.undo()
    library.clock.advance(RETRY_MS)
    library.commit()
    assert library.offset() == -1


def test_a_group_hears_of_new_partitions_when_there_is_room_again(
    library: Library, request: pytest.FixtureRequest
) -> None:
    reply = library.beat()
    full: pytest.MonkeyPatch = request.getfixturevalue("full_ledgers")
    library.change(AddPartitions("orders", 2))
    library.change(AddPartitions("orders", 3))
    library.clock.advance(RETRY_MS - 1)
    full.undo()
    assert library.beat(reply.member_epoch).assignment is None
    library.clock.advance(1)
    library.commit()
    (assigned,) = library.beat(reply.member_epoch).assignment
    assert assigned.partitions == (0, 1, 2)
    assert library.clock.timers < 10, "older news are not told again"


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_a_group_is_shown_whichever_question_about_it_is_answered_last(
    library: Library, monkeypatch: pytest.MonkeyPatch, order: tuple[int, ...]
) -> None:
    """The node that coordinates it may have changed between two of them, and the first have been repeated."""
    joined = library.beat()
    groups, questions, views = library.broker.groups, list[Any](), list[Any]()
    with monkeypatch.context() as slow:
        slow.setattr(groups, "ask", lambda *question: questions.append(question))
        view_group(library.broker, GROUP, views.append)
    for command, on_reply in (questions[number] for number in order):
        groups.ask(command, on_reply)
        library.commit()
    (view,) = views
    assert (view.type, [member.member_id for member in view.members]) == (commands.CONSUMER, [joined.member_id])
