"""The controller: who may make, change and delete topics, and that its facts rebuild it."""

from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.machines.controller import Controller
from goqueue.machines.controller_commands import (
    AddPartitions,
    Copies,
    CreateTopic,
    DeleteTopic,
    ForgetSchedule,
    ListChange,
    NameCluster,
    PlaceSchedule,
    ProducerIdBlock,
    Result,
    SetOptions,
    TakeProducerIds,
    Transact,
    Transacted,
)
from goqueue.machines.controller_facts import STORED_FACTS, TopicStored
from goqueue.model.codes import Code
from goqueue.model.partition_limits import PartitionLimits
from goqueue.model.topics import OPTION_NAMES

ID = b"i" * 16
PARTITIONS_MAX = PartitionLimits().per_topic


def do(controller: Controller, command: Any) -> Result:
    outcome = controller.decide(command, 1, 0)
    for fact in outcome.facts:
        controller.apply(fact)
    ((ticket, reply),) = outcome.replies
    assert ticket == 1
    assert isinstance(reply, Result)
    return reply


def living(controller: Controller) -> dict[str, TopicStored]:
    return {name: stored for name, stored in controller.topics.items() if not stored.is_deleting}


def deleting(controller: Controller) -> dict[str, TopicStored]:
    return {name: stored for name, stored in controller.topics.items() if stored.is_deleting}


def transact(controller: Controller, expected: dict[str, int], topics: dict[str, TopicStored | None]) -> bool:
    outcome = controller.decide(Transact(expected, topics), 1, 0)
    for fact in outcome.facts:
        controller.apply(fact)
    ((_, reply),) = outcome.replies
    assert isinstance(reply, Transacted)
    return reply.is_done


def removed(controller: Controller, name: str) -> None:
    assert transact(controller, {name: controller.revision_of(name)}, {name: None})


def made(*commands: Any) -> Controller:
    controller = Controller()
    for command in (CreateTopic("orders", ID, 3, {"retention.ms": "5"}), *commands):
        assert do(controller, command).code is Code.NONE
    return controller


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (CreateTopic("clicks", ID, 1), Code.NONE),
        (CreateTopic("clicks", ID, PARTITIONS_MAX), Code.NONE),
        (CreateTopic("clicks", ID, 1, {"cleanup.policy": "compact"}), Code.NONE),
        (CreateTopic("orders", ID, 1), Code.TOPIC_ALREADY_EXISTS),
        (CreateTopic("going", ID, 1), Code.TOPIC_ALREADY_EXISTS),
        (CreateTopic("clicks", ID, 0), Code.INVALID_PARTITIONS),
        (CreateTopic("clicks", ID, -1), Code.INVALID_PARTITIONS),
        (CreateTopic("clicks", ID, PARTITIONS_MAX + 1), Code.INVALID_PARTITIONS),
        (CreateTopic("", ID, 1), Code.INVALID_TOPIC_EXCEPTION),
        (CreateTopic(".", ID, 1), Code.INVALID_TOPIC_EXCEPTION),
        (CreateTopic("..", ID, 1), Code.INVALID_TOPIC_EXCEPTION),
        (CreateTopic("a/b", ID, 1), Code.INVALID_TOPIC_EXCEPTION),
        (CreateTopic("x" * 250, ID, 1), Code.INVALID_TOPIC_EXCEPTION),
        (CreateTopic("__mine", ID, 1), Code.NONE),
        (CreateTopic("__consumer_offsets", ID, 1), Code.NONE),
        (CreateTopic("@mine", ID, 1), Code.INVALID_TOPIC_EXCEPTION),
        (CreateTopic("clicks", ID, 1, {"retention.ms": "soon"}), Code.INVALID_CONFIG),
        (CreateTopic("clicks", ID, 1, {"no.such": "1"}), Code.INVALID_CONFIG),
        (DeleteTopic("orders"), Code.NONE),
        (DeleteTopic("clicks"), Code.UNKNOWN_TOPIC_OR_PARTITION),
        (DeleteTopic("going"), Code.UNKNOWN_TOPIC_OR_PARTITION),
        (AddPartitions("orders", 4), Code.NONE),
        (AddPartitions("orders", 3), Code.INVALID_PARTITIONS),
        (AddPartitions("orders", 2), Code.INVALID_PARTITIONS),
        (AddPartitions("orders", PARTITIONS_MAX + 1), Code.INVALID_PARTITIONS),
        (AddPartitions("clicks", 4), Code.UNKNOWN_TOPIC_OR_PARTITION),
        (AddPartitions("going", 9), Code.UNKNOWN_TOPIC_OR_PARTITION),
        (SetOptions("orders", {"retention.ms": "9"}), Code.NONE),
        (SetOptions("orders", {"retention.ms": None, "segment.ms": None}), Code.NONE),
        (SetOptions("orders", {"retention.ms": "-2"}), Code.INVALID_CONFIG),
        (SetOptions("orders", {"no.such": "1"}), Code.INVALID_CONFIG),
        (SetOptions("orders", {"no.such": None}), Code.NONE),
        (SetOptions("orders", {"flush.ms": "1000", "preallocate": "true"}), Code.NONE),
        (SetOptions("orders", {"preallocate": "yes"}), Code.INVALID_CONFIG),
        (SetOptions("orders", {"min.insync.replicas": "2"}), Code.INVALID_CONFIG),
        (CreateTopic("clicks", ID, 1, {"min.insync.replicas": "2"}), Code.INVALID_CONFIG),
        (CreateTopic("clicks", ID, 1, {"min.insync.replicas": "1"}), Code.NONE),
        (
            CreateTopic("clicks", ID, 1, {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}),
            Code.INVALID_CONFIG,
        ),
        (CreateTopic("clicks", ID, 1, {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"}), Code.NONE),
        (SetOptions("clicks", {}), Code.UNKNOWN_TOPIC_OR_PARTITION),
        (SetOptions("going", {}), Code.UNKNOWN_TOPIC_OR_PARTITION),
    ],
    ids=repr,
)
def test_each_command_has_its_code_and_a_refused_one_changes_nothing(command: Any, code: Code) -> None:
    controller = made(CreateTopic("going", ID, 1), DeleteTopic("going"))
    before = list(controller.facts()), controller.revision
    result = do(controller, command)
    assert result.code is code, result.message
    assert (result.message == "") == (code is Code.NONE)
    if code is not Code.NONE:
        assert (list(controller.facts()), controller.revision) == before


@pytest.mark.parametrize(
    "command",
    [
        CreateTopic("clicks", ID, 2, {}, check_only=True),
        AddPartitions("orders", 9, check_only=True),
        SetOptions("orders", {"retention.ms": "9"}, check_only=True),
    ],
)
def test_a_check_says_what_would_be_and_changes_nothing(command: Any) -> None:
    controller = made()
    revision = controller.revision
    result = do(controller, command)
    assert result.topic is not None
    assert controller.revision == revision
    bad = msgspec.structs.replace(command, name="no such/topic")
    assert do(controller, bad).code is not Code.NONE


def test_options_are_changed_one_by_one_or_all_at_once() -> None:
    controller = made()
    do(controller, SetOptions("orders", {"segment.ms": "7"}))
    assert dict(living(controller)["orders"].overrides) == {"retention.ms": "5", "segment.ms": "7"}
    do(controller, SetOptions("orders", {"retention.ms": None}))
    assert dict(living(controller)["orders"].overrides) == {"segment.ms": "7"}
    do(controller, SetOptions("orders", {"lease.ms": "8"}, replace_all=True))
    assert dict(living(controller)["orders"].overrides) == {"lease.ms": "8"}


def test_one_bad_option_leaves_the_good_ones_unset() -> None:
    controller = made()
    assert do(controller, SetOptions("orders", {"lease.ms": "8", "segment.ms": "x"})).code is Code.INVALID_CONFIG
    assert dict(living(controller)["orders"].overrides) == {"retention.ms": "5"}


def test_the_name_of_a_topic_is_taken_until_its_logs_are_gone() -> None:
    controller = made(DeleteTopic("orders"))
    assert "orders" not in living(controller)
    assert [(one.name, one.partitions) for one in deleting(controller).values()] == [("orders", 3)]
    assert do(controller, CreateTopic("orders", b"j" * 16, 1)).code is Code.TOPIC_ALREADY_EXISTS
    removed(controller, "orders")
    assert deleting(controller) == {}
    assert do(controller, CreateTopic("orders", b"j" * 16, 1)).code is Code.NONE
    assert living(controller)["orders"].topic_id == b"j" * 16


def test_a_crash_between_the_two_steps_of_a_deletion_is_finished_later() -> None:
    again = replayed(made(DeleteTopic("orders")))
    assert "orders" not in living(again)
    assert list(deleting(again)) == ["orders"]
    removed(again, "orders")
    assert deleting(replayed(again)) == {}


def test_a_change_is_made_only_if_all_that_it_was_decided_from_is_as_it_was() -> None:
    controller = made(CreateTopic("clicks", b"c" * 16, 1))
    revision, other = controller.revision_of("orders"), controller.revision_of("clicks")
    assert transact(controller, {"orders": revision + 9}, {"orders": None}) is False
    assert transact(controller, {"orders": revision, "clicks": 0}, {"orders": None}) is False
    assert transact(controller, {"new": 0, "orders": revision, "clicks": other}, {"orders": None}) is True
    assert set(living(controller)) == {"clicks"}
    assert transact(controller, {"orders": revision}, {"orders": TopicStored("orders", ID, 1, {})}) is False
    assert transact(controller, {"orders": 0}, {"orders": TopicStored("orders", ID, 1, {})}) is True
    assert living(controller)["orders"].partitions == 1
    assert controller.revision_of("orders") > revision


def test_a_late_word_that_logs_are_gone_leaves_a_topic_alone_that_was_made_again() -> None:
    controller = made(DeleteTopic("orders"))
    revision = controller.revision_of("orders")
    removed(controller, "orders")
    do(controller, CreateTopic("orders", b"j" * 16, 1))
    assert transact(controller, {"orders": revision}, {"orders": None}) is False
    assert "orders" in living(controller)


def test_revisions_rise_also_when_the_machine_is_made_anew() -> None:
    revisions = count(1)
    controller = Controller(revisions=revisions)
    do(controller, CreateTopic("orders", ID, 1))
    again = Controller(revisions=revisions)
    for fact in controller.facts():
        again.apply(fact)
    assert again.revision_of("orders") > controller.revision_of("orders")


def test_a_cluster_is_named_once() -> None:
    controller = made()
    do(controller, NameCluster("first", b"one"))
    do(controller, NameCluster("second", b"two"))
    assert controller.cluster_id == "first"
    assert replayed(controller).cluster_id == "first"


def test_an_unknown_command_is_a_bug() -> None:
    with pytest.raises(TypeError):
        Controller().decide("nonsense", 1, 0)


def replayed(controller: Controller) -> Controller:
    again = Controller()
    for fact in controller.facts():
        assert isinstance(fact, STORED_FACTS)
        again.apply(fact)
    return again


def known(controller: Controller) -> Any:
    stored = {fact.name: fact for fact in controller.facts() if isinstance(fact, TopicStored)}
    return controller.cluster_id, stored, dict(living(controller))


NAMES = st.sampled_from(["a.b", "a_b", "__c", "bad name"])
OPTIONS = st.dictionaries(st.sampled_from(sorted(OPTION_NAMES)), st.sampled_from(["1", "disk", "-1", "on"]), max_size=2)
COMMANDS = st.one_of(
    st.builds(CreateTopic, NAMES, st.binary(min_size=16, max_size=16), st.integers(0, 3), OPTIONS, st.booleans()),
    st.builds(DeleteTopic, NAMES),
    st.builds(lambda name: Transact({}, {name: None}), NAMES),
    st.builds(AddPartitions, NAMES, st.integers(0, 5), st.booleans()),
    st.builds(SetOptions, NAMES, OPTIONS, st.booleans(), st.booleans()),
    st.builds(NameCluster, st.sampled_from(["x", "y"])),
)


@given(st.lists(COMMANDS, max_size=40))
def test_the_stored_facts_and_the_snapshot_give_the_living_machine(commands: list[Any]) -> None:
    live, from_ledger = Controller(), Controller()
    decoder = msgspec.msgpack.Decoder(STORED_FACTS[0] | STORED_FACTS[1])
    for command in commands:
        for fact in live.decide(command, 1, 0).facts:
            live.apply(fact)
            if fact.is_tombstone:
                from_ledger.forget(fact.key())
            else:
                from_ledger.apply(decoder.decode(msgspec.msgpack.encode(fact)))
    assert known(from_ledger) == known(live)
    assert known(replayed(live)) == known(live)


def test_a_refusal_says_which_limit_on_partitions_it_met() -> None:
    controller = Controller(PartitionLimits(per_topic=5, in_all=8))
    assert do(controller, CreateTopic("orders", ID, 6)) == Result(
        Code.INVALID_PARTITIONS, "6 partitions; a topic may have 1 to 5 (partitions_max)"
    )
    assert do(controller, CreateTopic("orders", ID, 3)).code is Code.NONE
    assert do(controller, CreateTopic("clicks", b"c" * 16, 4)).code is Code.NONE
    assert (
        do(controller, AddPartitions("orders", 6)).message == "6 partitions; a topic may have 1 to 5 (partitions_max)"
    )
    for command in (AddPartitions("orders", 5), CreateTopic("views", b"v" * 16, 2)):
        refused = do(controller, command)
        assert refused.code is Code.INVALID_PARTITIONS
        assert refused.message.endswith("this node may have 8, by its limit on open files")
    assert do(controller, AddPartitions("orders", 4)).code is Code.NONE
    assert do(controller, DeleteTopic("clicks")).code is Code.NONE
    assert do(controller, CreateTopic("views", b"v" * 16, 1)).code is Code.INVALID_PARTITIONS, "still open"
    removed(controller, "clicks")
    assert do(controller, CreateTopic("views", b"v" * 16, 4)).code is Code.NONE


def test_a_topic_that_asks_for_more_copies_than_there_are_can_still_be_changed() -> None:
    controller = made()
    controller.apply(TopicStored("old", ID, 1, {"min.insync.replicas": "2"}))
    assert do(controller, SetOptions("old", {"retention.ms": "7"})).code is Code.NONE
    assert do(controller, SetOptions("old", {"min.insync.replicas": None})).code is Code.NONE
    assert living(controller)["old"].overrides == {"retention.ms": "7"}


@pytest.mark.parametrize(
    ("before", "items", "is_added", "after"),
    [
        (None, "compact", True, "delete,compact"),
        ("compact", "delete", True, "compact,delete"),
        ("compact", "compact", True, "compact"),
        ("compact,delete", "compact", False, "delete"),
        ("compact,delete", "none", False, "compact,delete"),
    ],
)
def test_items_are_added_to_a_list_and_taken_from_it(
    before: str | None, items: str, is_added: bool, after: str
) -> None:
    controller = made(SetOptions("orders", {"cleanup.policy": before}))
    change = ListChange(items, is_added, default="delete")
    assert do(controller, SetOptions("orders", {"cleanup.policy": change})).code is Code.NONE
    assert living(controller)["orders"].overrides["cleanup.policy"] == after


def test_a_list_must_not_become_what_its_option_cannot_be() -> None:
    controller = made(SetOptions("orders", {"cleanup.policy": "compact"}))
    for items, is_added in (("compact", False), ("x", True)):
        change = ListChange(items, is_added, default="delete")
        assert do(controller, SetOptions("orders", {"cleanup.policy": change})).code is Code.INVALID_CONFIG
    assert living(controller)["orders"].overrides["cleanup.policy"] == "compact"


@pytest.mark.parametrize(("old", "new"), [("a.b", "a_b"), ("a_b", "a.b"), ("x.y_z", "x_y.z"), ("__a", "..a")])
def test_names_that_differ_in_dots_and_underscores_collide(old: str, new: str) -> None:
    controller = Controller()
    assert do(controller, CreateTopic(old, ID, 1)).code is Code.NONE
    refused = do(controller, CreateTopic(new, b"c" * 16, 1))
    assert refused.code is Code.INVALID_TOPIC_EXCEPTION
    assert f"collides with existing topic {old!r}" in refused.message
    assert do(controller, CreateTopic(new, b"c" * 16, 1, check_only=True)).code is Code.INVALID_TOPIC_EXCEPTION
    do(controller, DeleteTopic(old))
    assert do(controller, CreateTopic(new, b"c" * 16, 1)).code is Code.INVALID_TOPIC_EXCEPTION
    removed(controller, old)
    assert do(controller, CreateTopic(new, b"c" * 16, 1)).code is Code.NONE
    assert do(replayed(controller), CreateTopic(old, ID, 1)).code is Code.INVALID_TOPIC_EXCEPTION


def test_a_recurring_schedule_has_one_place_and_goes_with_its_topic() -> None:
    controller = made(CreateTopic("other", b"o" * 16, 1))
    assert do(controller, PlaceSchedule("a", ID, 2)).code is Code.NONE
    assert do(controller, PlaceSchedule("b", ID, 0)).code is Code.NONE
    assert do(controller, PlaceSchedule("b", b"o" * 16, 0)).code is Code.NONE
    assert do(controller, PlaceSchedule("c", ID, 3)).code is Code.UNKNOWN_TOPIC_OR_PARTITION
    assert controller.schedules() == {"a": (ID, 2), "b": (b"o" * 16, 0)}
    assert do(controller, DeleteTopic("orders")).code is Code.NONE
    assert controller.schedules() == {"b": (b"o" * 16, 0)}
    assert do(controller, PlaceSchedule("a", ID, 0)).code is Code.UNKNOWN_TOPIC_OR_PARTITION
    assert do(controller, ForgetSchedule("b")).code is Code.NONE
    assert do(controller, ForgetSchedule("b")).code is Code.NONE
    assert controller.schedules() == {}


def test_blocks_of_producer_ids_follow_each_other_and_change_no_revision() -> None:
    controller = made()
    revision = controller.revision
    blocks = []
    for _ in range(3):
        outcome = controller.decide(TakeProducerIds(1000), 1, 0)
        for fact in outcome.facts:
            controller.apply(fact)
        blocks.append(outcome.replies[0][1])
    assert blocks == [ProducerIdBlock(first, first + 1000) for first in (0, 1000, 2000)]
    assert controller.revision == revision
    again = Controller()
    for fact in controller.facts():
        again.apply(fact)
    assert again.producer_ids_end == 3000


class SpreadCopies(Copies):
    is_spread = True


def test_ids_that_are_unique_in_a_topic_need_one_partition_where_partitions_have_several_leaders() -> None:
    ids, of_keys = {"dedup.ms": "60000"}, {"dedup.ms": "60000", "dedup.scope": "key"}
    alone = Controller()
    assert do(alone, CreateTopic("many", ID, 3, ids)).code is Code.NONE
    spread = Controller(copies=SpreadCopies())
    assert do(spread, CreateTopic("many", ID, 3, ids)).code is Code.INVALID_CONFIG
    for name, partitions, options in (("one", 1, ids), ("keyed", 3, of_keys), ("plain", 3, {})):
        assert do(spread, CreateTopic(name, name.encode() * 16, partitions, options)).code is Code.NONE
    refused = [
        AddPartitions("one", 2),
        SetOptions("keyed", {"dedup.scope": None}),
        SetOptions("plain", {"dedup.ms": "60000"}),
    ]
    for command in refused:
        reply = do(spread, command)
        assert reply.code is Code.INVALID_CONFIG, command
        assert "set dedup.scope to key" in reply.message
    assert do(spread, SetOptions("plain", of_keys)).code is Code.NONE
    assert do(spread, AddPartitions("keyed", 6)).code is Code.NONE
