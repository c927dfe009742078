"""The table of operations is sound in itself: names, paths and types fit each other."""

import re
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest
from msgspec.structs import fields

from goqueue.wire.rest import operations
from goqueue.wire.rest.operation import Operation
from goqueue.wire.rest.operations.schemas import SCHEMAS
from goqueue.wire.rest.operations.table import OPERATIONS

SLOT = re.compile(r"{(\w+)}")


def named() -> dict[str, Operation[Any]]:
    modules = [import_module(f"{operations.__name__}.{each.name}") for each in iter_modules(operations.__path__)]
    return {name: value for module in modules for name, value in vars(module).items() if isinstance(value, Operation)}


def test_every_operation_is_in_the_table_under_its_own_name() -> None:
    found = named()
    assert [constant for constant, operation in found.items() if operation.name.upper() != constant] == []
    assert set(found.values()) | set(SCHEMAS.below.values()) == set(OPERATIONS)
    assert len(OPERATIONS) == len(set(OPERATIONS))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_a_path_has_the_slots_that_its_struct_has(operation: Operation[Any]) -> None:
    kind = operation.path_type
    assert set(SLOT.findall(operation.path)) == ({each.encode_name for each in fields(kind)} if kind else set())


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_no_name_is_meant_in_query_and_body(operation: Operation[Any]) -> None:
    """A name that the path has, too, is meant there; of the others each has one place."""
    query, body = (
        {each.name for each in fields(kind)} if kind else set() for kind in (operation.query_type, operation.body_type)
    )
    assert query & body == set()
    assert operation.method != "GET" or operation.body_type is None
