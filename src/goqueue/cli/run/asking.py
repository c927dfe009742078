"""Commands that are nothing but one operation of the HTTP API: what they ask and show is in the table of commands."""

import sys
from importlib import import_module
from typing import Any

from msgspec.structs import asdict

from goqueue.cli.call import Call
from goqueue.cli.output import Column, plain, timed
from goqueue.cli.table import Asks, Shown
from goqueue.cli.values import pair
from goqueue.wire.rest.operation import Operation

PAGE = 1000


def operation_of(name: str) -> Operation[Any]:
    """Only its own module is imported."""
    module, _, constant = name.partition(".")
    found: Operation[Any] = getattr(import_module(f"goqueue.wire.rest.operations.{module}"), constant)
    return found


async def ask(call: Call) -> None:
    asks = call.command.asks
    assert asks is not None
    operation, said = operation_of(asks.operation), said_by(call)
    if asks.rows:
        items = await _items(call, operation, said, asks)
        call.out.rows(items, [column_of(each) for each in asks.columns], nothing=asks.nothing)
        return
    reply = await call.admin.call(operation, **said)
    if asks.says:
        told = plain(reply)
        call.out.done(asks.says.format_map(told), {name: told[name] for name in asks.keeps or told})
    else:
        call.out.facts(reply)


def said_by(call: Call) -> dict[str, Any]:
    """What was said on the command line, by the fields of the operation."""
    said: dict[str, Any] = {}
    for arg in call.command.args:
        value = getattr(call.given, arg.name)
        if arg.kind is pair:
            value = dict(value) or None
        said |= zip(arg.fields, value) if len(arg.fields) > 1 else {(*arg.fields, arg.name)[0]: value}
    return said


async def _items(call: Call, operation: Operation[Any], said: dict[str, Any], asks: Asks) -> list[Any]:
    """A list that the command does not limit is shown to its end."""
    field = asks.rows
    if "limit" in said or "skip" not in operation.places:
        reply = await call.admin.call(operation, **said)
        if asks.silent and getattr(reply, asks.silent):
            nodes = ", ".join(f"node-{each}" for each in getattr(reply, asks.silent))
            print(f"{nodes} did not answer: what it has is not shown", file=sys.stderr)
        return list(getattr(reply, field))
    found: list[Any] = []
    while True:
        page = getattr(await call.admin.call(operation, limit=PAGE, skip=len(found), **said), field)
        found += page
        if len(page) < PAGE:
            return found


def column_of(shown: Shown) -> Column:
    def value(item: Any) -> Any:
        if "{" in shown.value:
            return shown.value.format_map(asdict(item))
        return timed(shown.value, getattr(item, shown.value))

    return Column(shown.title, value, shown.is_number)
