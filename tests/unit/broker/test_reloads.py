"""A coordinator may be thrown away and read from its ledger again at any moment: what it has to do outside is done all
the same, once, and what it has to be told after a load it is told.
"""

from typing import Any

import pytest
from structlog.testing import capture_logs

from goqueue.broker.groups.groups import consumer_commands
from goqueue.broker.schemas.schemas import Given
from goqueue.broker.topics.topics import CreateTopic
from goqueue.broker.transactions.transactions import EndTransaction
from goqueue.model.codes import Code
from goqueue.model.topics import Image
from goqueue.runtime.life import Life
from tests.sim.test_transaction_crash_points import ALL, NAME, NOTHING, Bank

KINDS = ["metadata", "groups", "deliveries", "delays", "transactions", "schemas"]


def throw_away(bank: Bank, *kinds: str) -> None:
    for kind in kinds:
        for each in bank.broker.health._coordinators.of_kind(kind):
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
    (reply,) = replies
    was_told = not isinstance(reply, Exception)
    assert was_told or "transactions" in kinds, "only who asked the one that went has to ask again"


def test_topics_are_known_to_a_group_coordinator_that_was_loaded_anew(bank: Bank) -> None:
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
    assert set(bank.broker.topics.image.topics) == {"orders", "more"}
    assert bank.broker.topics.image.revision > before.revision


def test_a_topic_that_was_made_while_its_coordinator_went_is_there(bank: Bank) -> None:
    replies: list[Any] = []
    bank.broker.topics.submit(CreateTopic("late", b"late".ljust(16, b"."), 1), replies.append)
    throw_away(bank, "metadata")
    bank.commit()
    assert set(bank.broker.topics.image.topics) == {"orders", "late"}
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
