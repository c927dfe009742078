"""Every operation of every API says where it is at home, and whatever is asked of all nodes can be made one answer."""

import pytest

from goqueue.doors.grpc import homes as grpc_homes
from goqueue.doors.grpc.permissions import PERMISSIONS
from goqueue.doors.http.merging import MERGES, add_up
from goqueue.doors.sqs.handlers.table import ACTIONS
from goqueue.wire.home import DEAD_LETTER, GROUP, NEW_SCHEDULE, NODE, PARTITION, SCHEMAS, TRANSACTION, Home, Way
from goqueue.wire.rest.operations.table import OPERATIONS

KINDS = {PARTITION, DEAD_LETTER, GROUP, TRANSACTION, SCHEMAS, NEW_SCHEDULE, NODE}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_every_operation_of_http_says_where_it_is_at_home(operation: object) -> None:
    home = operation.home  # type: ignore[attr-defined]
    assert isinstance(home, Home)
    if home.way is Way.HOME:
        assert home.kind in KINDS
    parts = {"path": "path_type", "query": "query_type", "body": "body_type"}
    for field in home.fields:
        part, _, name = field.partition(".")
        assert name in getattr(operation, parts[part]).__struct_fields__


def test_all_that_is_asked_everywhere_becomes_one_answer() -> None:
    asked = {each.name for each in OPERATIONS if Way.EVERYWHERE in (each.home.way, each.home.otherwise)}
    assert asked == MERGES.keys()


def test_every_action_of_sqs_says_where_it_is_at_home() -> None:
    assert {action.home.way for action in ACTIONS.values()} <= {Way.HERE, Way.PARTS, Way.HOME, Way.EVERYWHERE}


def test_numbers_of_nodes_are_added_up_wherever_they_stand() -> None:
    one = {"total": 1, "by": {"a": 1, "b": 2}, "lanes": [1, 2], "name": "x", "least": None, "list": [{"p": 0}]}
    other = {"total": 2, "by": {"b": 1, "c": 1}, "lanes": [0, 5], "name": "x", "least": 7, "list": [{"p": 1}]}
    assert add_up(one, other) == {
        "total": 3,
        "by": {"a": 1, "b": 3, "c": 1},
        "lanes": [1, 7],
        "name": "x",
        "least": 7,
        "list": [{"p": 0}, {"p": 1}],
    }
    assert add_up(True, True) is True


def leases(*offsets: int, following: str | None = None) -> dict[str, object]:
    held = [{"group": "g", "topic": "t", "partition": 0, "first_offset": offset} for offset in offsets]
    return {"leases": held, "count": len(held), "next": following}


def test_a_page_of_all_nodes_shows_nothing_that_a_node_has_not_come_to() -> None:
    merged = MERGES["list_leases"]([leases(1, 3, following="g/t/0/3"), leases(2, 5)], {"limit": 2})
    assert [each["first_offset"] for each in merged["leases"]] == [1, 2]
    assert merged["next"] == "g/t/0/2"
    merged = MERGES["list_leases"]([leases(3), leases(5)], {"limit": 2})
    assert (merged["count"], merged["next"]) == (2, None)


def test_the_lag_of_a_group_is_that_which_leaders_know() -> None:
    unknown = {"topic": "t", "partition": 0, "end_offset": None, "lag": None}
    known = {"topic": "t", "partition": 0, "end_offset": 9, "lag": 4}
    group = {"group": "g", "type": "consumer", "state": "Stable", "total_lag": 0, "partitions": [unknown]}
    merged = MERGES["group_lag"]([group, {**group, "total_lag": 4, "partitions": [known]}], {})
    assert (merged["total_lag"], merged["partitions"]) == (4, [known])


def test_every_method_of_grpc_says_where_it_is_at_home() -> None:
    assert grpc_homes.HOMES.keys() == PERMISSIONS.keys()
    everywhere = {name for name, home in grpc_homes.HOMES.items() if home.way is Way.EVERYWHERE}
    assert everywhere == grpc_homes.MERGES.keys()
