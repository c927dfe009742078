"""Every role and every operation of every API: it is allowed or refused as the right that the operation declares says,
in the words of that API, and what is refused changes nothing. The tables of the APIs are walked over, so that a new
operation cannot be forgotten.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import cache

import pytest

from goqueue.model.access import CODES, OPEN, ROLES, Kind, Operation
from goqueue.model.grants import Grants
from tests.unit.doors.asking import DOORS, SUBJECT, Door, Recording, Told
from tests.unit.doors.http.bare import GROUP, TOPIC

NOBODY = ""
"""The role of who has none."""
Needed = tuple[Kind, Operation, str]

LISTS: Mapping[str, frozenset[str]] = {
    "http": frozenset(
        {
            "all_lags",
            "all_rebalance_stats",
            "console_reading",
            "healthz",
            "list_groups",
            "list_schedules",
            "list_schemas",
            "list_subjects",
            "list_subjects_below_schemas",
            "list_topics",
            "priority_stats",
            "readyz",
            "stats",
        }
    ),
    "sqs": frozenset({"ListQueues"}),
    "grpc": frozenset({"goqueue.v1.TopicService.ListTopics", "goqueue.v1.GroupService.ListGroups"}),
    "kafka": frozenset(
        {"ListGroups 0", "ListGroups 5", "ListPartitionReassignments 0", "ListTransactions 0", "ListTransactions 2"}
    ),
}
"""They leave out what may not be seen."""
FOR_GROUPS = frozenset({"where_is", "console_reading"})
"""Of groups that may not be described it tells nothing."""
BY_NUMBER = ("get_schema", "get_schema_text", "list_schema_subjects", "list_schema_versions")
HIDDEN = frozenset(
    {"delete_schedule", "describe_schedule", "pause_schedule", "resume_schedule", "run_schedule"}
    | {f"{name}{below}" for name in BY_NUMBER for below in ("", "_below_schemas")}
)
"""Found in a list, or by a number: to who may not see it there is none."""
NAMELESS = {
    "CancelMessageMoveTask",
    "ListGroups 0",
    "ListGroups 5",
    "ListTransactions 0",
    "ListTransactions 2",
    "all_rebalance_stats",
    "describe_trace",
    "goqueue.v1.PublishService.PublishStream",
    "goqueue.v1.TransactionService.DescribeTransaction",
    "goqueue.v1.TransactionService.InitProducer",
    "log_out",
    "who_am_i",
}
"""Operations whose sample names nothing that there is, so that no right is asked for."""


@cache
def grants(role: str) -> Grants:
    return Grants("User:someone", "", (role,) if role else (), ())


async def needs(door: Door, operation: str) -> tuple[set[Needed], Told]:
    """What the sample of an operation is asked for, by somebody who may do everything."""
    recording = Recording()
    async with door.furnish() as house:
        told = await house.ask(operation, recording)
    declared = door.permissions[operation].needs
    # Others are asked for by what tells clients their rights.
    return {each for each in recording.asked if each[1] in declared.get(each[0], ())}, told


def missing(role: str, needed: Iterable[Needed]) -> set[Kind]:
    return {kind for kind, operation, name in needed if not grants(role).allows(kind, operation, name)}


def words_of(door: str, kinds: set[Kind]) -> set[str]:
    """How the API may say that a right is missing."""
    codes = {CODES[kind].name if kind in CODES else "FORBIDDEN" for kind in kinds}
    match door:
        case "kafka":
            return codes | ({"UNKNOWN_TOPIC_ID"} if Kind.TOPIC in kinds else set())
        case "grpc":
            return {"PERMISSION_DENIED"}
        case "sqs":
            return {"AccessDeniedException", "403"}
    return codes | {"403"}


async def walk(name: str) -> list[str]:
    door, problems = DOORS[name], []
    needed: dict[str, set[Needed]] = {}
    for operation, permission in door.permissions.items():
        needed[operation], told = await needs(door, operation)
        if told.codes or told.is_fault:
            problems.append(f"{operation} does more than it declares: {sorted(told.codes)} {told.text[:200]}")
        if (permission is OPEN or operation in NAMELESS) != (not needed[operation]):
            problems.append(f"{operation} declares {permission} and asks for {needed[operation]}")
    for role in (NOBODY, *ROLES):
        problems += [f"{role or 'nobody'}: {each}" for each in await walk_as(role, name, needed)]
    return problems


async def walk_as(role: str, name: str, needed: Mapping[str, set[Needed]]) -> list[str]:
    door, problems = DOORS[name], []
    may_read = grants(role).allows(Kind.TOPIC, Operation.READ, TOPIC)
    refused = {operation: kinds for operation, asked in needed.items() if (kinds := missing(role, asked))}
    async with door.furnish() as house:
        before = house.state()
        for operation, kinds in refused.items():
            told = await house.ask(operation, grants(role))
            if told.is_fault or house.state() != before:
                problems.append(f"{operation} was refused, and did something: {told}")
            if operation in FOR_GROUPS and kinds == {Kind.GROUP}:
                is_right = not told.codes and GROUP not in told.text
            elif operation in LISTS[name] and Kind.CLUSTER not in kinds:
                is_right = not told.codes and not any(each in told.text for each in (f'"{TOPIC}"', f'"{SUBJECT}"'))
            elif operation in HIDDEN:
                is_right = '"status":404' in told.text
            else:
                is_right = bool(told.codes) and told.codes <= words_of(name, kinds)
            if not is_right or (told.has_mark and not may_read):
                problems.append(f"{operation} has to be refused for {sorted(kinds)}: {told}")
    async with door.furnish() as house:
        for operation in sorted(needed.keys() - refused.keys(), key=lambda each: ("elete" in each, each)):
            told = await house.ask(operation, grants(role))
            if told.is_fault or told.codes & words_of(name, set(Kind)) - {"UNKNOWN_TOPIC_ID"}:
                problems.append(f"{operation} has to be allowed: {told}")
            if told.has_mark and not may_read:
                problems.append(f"{operation} tells what messages hold: {told}")
    return problems


@pytest.mark.parametrize("door", DOORS)
def test_every_role_may_do_what_operations_declare_and_nothing_else(door: str) -> None:
    assert asyncio.run(walk(door)) == []
