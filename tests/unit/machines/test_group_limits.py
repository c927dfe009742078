"""What all groups of a coordinator may hold together, whichever protocol their members speak."""

from typing import Any

import pytest

from goqueue.machines.groups.commands import (
    CommitOffsets,
    CommitTransactionOffsets,
    GroupOptions,
    GroupProtocol,
    LeaveGroup,
    LeavingMember,
    ResetOffsets,
    SyncGroup,
    TopicsChanged,
)
from goqueue.machines.groups.consumer.facts import LEAVE_EPOCH, ConsumerGroupOptions, ConsumerHeartbeat
from goqueue.machines.groups.consumer.kind import consumer_kind
from goqueue.machines.groups.share.facts import ShareHeartbeat
from goqueue.machines.groups.share.kind import share_kind
from goqueue.model.codes import Code
from goqueue.model.ids import GROUP_ID_CHARS_MAX, MEMBER_ID_CHARS_MAX
from tests.unit.machines.group_driver import Driver, at, join

BYTES_MAX = 10_000
TOLD = 1000
ROOM = 7
"""So many such members: each has ids and something flat besides."""


def driver_of(bytes_max: int = BYTES_MAX) -> Driver:
    kinds = (consumer_kind(ConsumerGroupOptions()), share_kind())
    driver = Driver(GroupOptions(all_bytes_max=bytes_max), kinds)
    driver.ask(TopicsChanged({}))
    return driver


def joins(kind: str, group_id: str, told: int = TOLD, member_id: str = "m", **fields: Any) -> Any:
    names = ("t" * told,)
    if kind == "classic":
        protocols = (GroupProtocol("range", bytes(told)),)
        return join(group_id=group_id, new_id=member_id, protocols=protocols, knows_member_id_required=False, **fields)
    if kind == "consumer":
        return ConsumerHeartbeat(
            group_id, member_id, 0, rebalance_timeout_ms=1000, subscribed_topic_names=names, owned=(), **fields
        )
    return ShareHeartbeat(group_id, member_id, 0, subscribed_topic_names=names, **fields)


def leaves(kind: str, group_id: str) -> Any:
    if kind == "classic":
        return LeaveGroup(group_id, (LeavingMember("m"),))
    return (ConsumerHeartbeat if kind == "consumer" else ShareHeartbeat)(group_id, "m", LEAVE_EPOCH)


def code_of(driver: Driver, command: Any) -> Code:
    reply = driver.replies.get(driver.send(command))
    return Code.NONE if reply is None else reply.code  # a classic member waits for others


@pytest.mark.parametrize("kind", ["classic", "consumer", "share"])
def test_members_of_many_groups_fill_the_room_of_all_and_who_leaves_makes_some(kind: str) -> None:
    driver = driver_of()
    codes = [code_of(driver, joins(kind, f"g{number}")) for number in range(ROOM + 2)]
    assert codes == [Code.NONE] * ROOM + [Code.GROUP_MAX_SIZE_REACHED] * 2
    assert code_of(driver, joins(kind, "small", told=1)) is Code.NONE, "what fits is taken"
    driver.ask(leaves(kind, "small"))
    for other in ("classic", "consumer", "share"):
        assert code_of(driver, joins(other, "another")) is Code.GROUP_MAX_SIZE_REACHED
    driver.ask(leaves(kind, "g0"))
    assert code_of(driver, joins(kind, "another")) is Code.NONE


def test_a_member_may_say_the_same_again_when_there_is_no_room() -> None:
    driver = driver_of()
    for number in range(ROOM):
        assert code_of(driver, joins("consumer", f"g{number}")) is Code.NONE
    assert code_of(driver, joins("consumer", "g0")) is Code.NONE
    assert code_of(driver, joins("consumer", "g0", told=3 * TOLD)) is Code.GROUP_MAX_SIZE_REACHED


def test_assignments_count_too() -> None:
    driver = driver_of()
    generation = driver.stable("a")
    sync = SyncGroup("g", generation, "a", assignments=(("a", bytes(BYTES_MAX)),))
    assert code_of(driver, sync) is Code.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize("kind", ["classic", "consumer", "share"])
def test_ids_have_a_length(kind: str) -> None:
    driver = driver_of()
    longest = "g" * GROUP_ID_CHARS_MAX
    assert code_of(driver, joins(kind, longest, 1, client_id="c" * MEMBER_ID_CHARS_MAX)) is Code.NONE
    assert code_of(driver, joins(kind, longest + "g", 1)) is Code.INVALID_GROUP_ID
    assert code_of(driver, joins(kind, "h", 1, client_id="c" * (MEMBER_ID_CHARS_MAX + 1))) is Code.INVALID_REQUEST
    if kind != "share":
        too_long = "i" * (MEMBER_ID_CHARS_MAX + 1)
        assert code_of(driver, joins(kind, "h", 1, instance_id=too_long)) is Code.INVALID_REQUEST
    if kind != "classic":
        assert code_of(driver, joins(kind, "h", 1, "m" * (MEMBER_ID_CHARS_MAX + 1))) is Code.INVALID_REQUEST
    assert driver.machine.page(None, 10) == [longest]


def test_nobody_commits_to_a_group_whose_id_is_too_long() -> None:
    driver = driver_of()
    name, offsets = "g" * (GROUP_ID_CHARS_MAX + 1), (at("t", 0, 1),)
    for command in (
        CommitOffsets(name, offsets),
        CommitTransactionOffsets(name, 1, 0, offsets),
        ResetOffsets(name, offsets),
    ):
        assert driver.ask(command).codes == (Code.INVALID_GROUP_ID,)
    assert driver.machine.page(None, 10) == []
