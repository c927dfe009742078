"""Machines of today take what any version stored: facts come back in the next snapshot, tombstones remove them."""

import ast
from collections.abc import Callable, Iterable

import pytest

from goqueue.machines.controller import Controller
from goqueue.machines.delays.machine import Delays
from goqueue.machines.deliveries.machine import Deliveries
from goqueue.machines.entries import Entries
from goqueue.machines.groups.commands import GroupOptions
from goqueue.machines.groups.consumer.facts import CONSUMER_GROUPS
from goqueue.machines.groups.consumer.kind import consumer_kind
from goqueue.machines.groups.machine import Groups
from goqueue.machines.groups.share.kind import share_kind
from goqueue.machines.machine import Fact, Machine, apply_at
from goqueue.machines.retired import RETIRED
from goqueue.machines.schemas.machine import SchemaMachine
from goqueue.machines.transactions.machine import TransactionMachine
from tests.golden.lines import read_lines
from tests.golden.samples import LEDGERS, TOPIC_ID, decoder_of

LEDGER_OFFSET = 5


def groups() -> Machine:
    kinds = consumer_kind(CONSUMER_GROUPS), share_kind()
    return Groups(GroupOptions(), kinds=kinds)


MACHINES: dict[str, Callable[[], Machine]] = {
    "metadata": Controller,
    "groups": groups,
    "deliveries": Deliveries,
    "delays": lambda: Delays("reminders", TOPIC_ID, 1),
    "transactions": TransactionMachine,
    "schemas": SchemaMachine,
    "store": Entries,
}
PACKS = "delays"
"""Its snapshots say the same in other facts."""


def facts_of(kind: str) -> list[Fact]:
    """Of all formats, but for those that need more than a machine."""
    retired = {each.tag for each in RETIRED if each.kind == kind}
    lines = [line for line in read_lines() if line.kind == kind and line.hex and line.tag not in retired]
    return [decoder_of(kind)(bytes.fromhex(line.hex)) for line in lines]


def tombstones_of(kind: str) -> set[bytes]:
    lines = [line for line in read_lines() if line.kind == kind and not line.hex]
    return {ast.literal_eval(key) for line in lines for key in line.keys}


def replayed(kind: str, facts: Iterable[Fact]) -> Machine:
    machine = MACHINES[kind]()
    for fact in facts:
        apply_at(machine, fact, LEDGER_OFFSET)
    return machine


@pytest.mark.parametrize("kind", LEDGERS)
def test_what_any_version_stored_is_in_the_next_snapshot(kind: str) -> None:
    facts = facts_of(kind)
    together = list(replayed(kind, facts).facts())
    assert together
    # A group id has one kind, so that some facts about it stand only where the others do not.
    lost = [fact for fact in facts if fact not in together and fact not in replayed(kind, [fact]).facts()]
    assert [type(fact).__name__ for fact in lost if kind != PACKS] == []


@pytest.mark.parametrize("kind", LEDGERS)
def test_tombstones_of_any_version_remove_what_they_name(kind: str) -> None:
    machine = replayed(kind, facts_of(kind))
    tombstones = tombstones_of(kind)
    before = {fact.key() for fact in machine.facts()}
    assert before & tombstones
    for key in tombstones:
        machine.forget(key)
    assert {fact.key() for fact in machine.facts()} & tombstones == set()
