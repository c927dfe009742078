"""A coordinator may be thrown away and read from its ledger again at any moment: what it has to do outside is done all
the same, once, and what it has to be told after a load it is told.
"""

import gc
import weakref
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.broker.schemas.schemas import Given
from goqueue.machines.controller_commands import CreateTopic
from goqueue.machines.deliveries.commands import Place
from goqueue.machines.groups.commands import CommitOffsets, OffsetToCommit
from goqueue.machines.groups.consumer import facts as consumer_commands
from goqueue.machines.transactions.commands import EndTransaction
from goqueue.model.codes import Code
from goqueue.model.topics import Image
from goqueue.records.messages import NewMessage
from goqueue.runtime.life import Life
from tests.sim.test_transaction_crash_points import ALL, NAME, NOTHING, Bank

KINDS = ["metadata", "groups", "deliveries", "delays", "transactions", "schemas"]


def throw_away(bank: Bank, *kinds: str) -> None:
    for kind in kinds:
        found = list(bank.broker.health._coordinators.of_kind(kind))
        assert found, kind
        for each in found:
            each.unload()
            each.load()


def shown(image: Image) -> dict[str, Any]:
    return {topic.name: (topic.id, topic.partitions, dict(topic.overrides)) for topic in image.topics.values()}


def are_active(bank: Bank) -> bool:
    return bank.broker.health.coordinator_lives()[Life.ACTIVE] == len(list(bank.broker.health._coordinators))


@pytest.fixture
def bank() -> Bank:
    made = Bank()
    made.create("orders", 2)
    made.create("jobs", 1)
    jobs = [NewMessage(b"now"), NewMessage(b"late", delay_ms=1000)]
    assert [each.error for each in made.ask(partial(made.broker.sender.send, "jobs"), jobs)] == [None, None]
    assert made.ask(partial(made.broker.queues.open, Place("workers", "jobs", 0)), "earliest") is None
    return made


@pytest.mark.parametrize("kinds", [*([kind] for kind in KINDS), KINDS], ids="+".join)
@pytest.mark.parametrize("moment", ["begun", "decided", "durable", "marked"])
@pytest.mark.parametrize(("commit", "expected"), [(True, ALL), (False, NOTHING)])
def test_a_transaction_ends_everywhere_whoever_was_thrown_away_meanwhile(
    bank: Bank, kinds: list[str], moment: str, commit: bool, expected: Any
) -> None:
    identity = bank.begin()
    if moment == "begun":
        throw_away(bank, *kinds)
        bank.commit()
    replies: list[Any] = []
    bank.broker.transactions.submit(EndTransaction(NAME, *identity, commit=commit), replies.append)
    if moment == "decided":
        throw_away(bank, *kinds)
    if moment == "durable":
        bank.committer.run_once()
        throw_away(bank, *kinds)
    bank.clock.run()
    if moment == "marked":
        bank.committer.run_once()
        bank.clock.run()
        throw_away(bank, *kinds)
    with capture_logs():
        bank.commit()
        bank.clock.advance(5000)
        bank.commit()
    assert bank.settled() == expected
    assert are_active(bank)
    assert bank.broker.topics.replica("jobs", 0).high_watermark == 3, (
        "what was delayed is there as it was sent, and as it came, once"
    )
    (reply,) = replies
    was_told = not isinstance(reply, Exception)
    assert was_told or "transactions" in kinds, "only who asked the one that went has to ask again"


@pytest.mark.parametrize("kind", KINDS)
def test_a_machine_that_was_thrown_away_is_freed_without_the_collector_of_cycles(bank: Bank, kind: str) -> None:
    """A node hardly ever runs that, and never over what was there at its start: its memory would be lost."""
    bank.begin()
    bank.commit()
    machines = [weakref.ref(each.peek()) for each in bank.broker.health._coordinators.of_kind(kind) if each.is_active]
    assert machines
    gc.disable()
    try:
        throw_away(bank, kind)
        bank.commit()
        assert [each() for each in machines if each() is not None] == []
    finally:
        gc.enable()
    assert are_active(bank)


def test_topics_are_known_to_a_group_coordinator_that_was_loaded_anew(bank: Bank) -> None:
    assert bank.ask(bank.broker.groups.submit, CommitOffsets("readers", (OffsetToCommit("orders", 0, 0),))).codes
    throw_away(bank, "groups")
    bank.commit()
    beat = consumer_commands.ConsumerHeartbeat(
        "readers",
        "member-1",
        consumer_commands.JOIN_EPOCH,
        None,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=("orders",),
        owned=(),
    )
    reply = bank.ask(bank.broker.groups.submit, beat)
    assert reply.code is Code.NONE
    assert reply.assignment is not None
    assert [sorted(each.partitions) for each in reply.assignment] == [[0, 1]]


def test_topics_stay_what_they_were_when_their_coordinator_is_loaded_anew(bank: Bank) -> None:
    before = bank.broker.topics.image
    heard: list[Any] = []
    bank.broker.topics.on_change.append(heard.append)
    throw_away(bank, "metadata")
    bank.commit()
    assert shown(bank.broker.topics.image) == shown(before)
    assert [change.gone for change in heard if change.gone] == []
    assert bank.broker.topics.image.revision >= before.revision
    bank.create("more", 1)
    assert set(bank.broker.topics.image.topics) == {"orders", "jobs", "more"}
    assert bank.broker.topics.image.revision > before.revision


def test_a_topic_that_was_made_while_its_coordinator_went_is_there(bank: Bank) -> None:
    replies: list[Any] = []
    bank.broker.topics.submit(CreateTopic("late", b"late".ljust(16, b"."), 1), replies.append)
    throw_away(bank, "metadata")
    bank.commit()
    assert set(bank.broker.topics.image.topics) == {"orders", "jobs", "late"}
    assert len(replies) == 1


def test_schemas_keep_their_ids_when_the_registry_is_loaded_anew(bank: Bank) -> None:
    def register(subject: str, text: str) -> Any:
        replies: list[Any] = []
        bank.broker.schemas.register(subject, Given(text), replies.append)
        bank.commit()
        return replies[0]

    first = register("a", '"string"')
    throw_away(bank, "schemas")
    bank.commit()
    assert register("a", '"string"') == first
    assert register("b", '"long"') != first
    assert bank.broker.schemas.subjects() == ["a", "b"]
