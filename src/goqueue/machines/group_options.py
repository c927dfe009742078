"""Options of groups, as the controller keeps them: a group has places in many partitions, and one set of options."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from goqueue.machines.machine import Command, Fact
from goqueue.machines.name_table import NameTable
from goqueue.model.codes import Code

GROUP_KEY = b"\0group/"  # no topic can be called that


class SetGroupOptions(Command[Code], frozen=True):
    """Options that go before those of topics; whoever asks has checked them. None: no longer."""

    group_id: str
    changes: Mapping[str, str | None]
    replace_all: bool = False
    """What is not named is no longer set."""


class GroupOptionsStored(Fact, frozen=True, tag="GroupOptionsStored"):
    group_id: str
    options: dict[str, str]

    def key(self) -> bytes:
        return GROUP_KEY + self.group_id.encode()


class GroupOptionsForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    group_id: str

    def key(self) -> bytes:
        return GROUP_KEY + self.group_id.encode()


class GroupOptions:
    """By group; of groups that have any."""

    def __init__(self) -> None:
        self.table: NameTable[dict[str, str]] = NameTable()

    def decide(self, command: SetGroupOptions) -> list[Fact]:
        before = self.table.get(command.group_id, {})
        changed = {**({} if command.replace_all else before), **command.changes}
        options = {name: text for name, text in changed.items() if text is not None}
        if options == before:
            return []
        return [GroupOptionsStored(command.group_id, options) if options else GroupOptionsForgotten(command.group_id)]

    def apply(self, fact: GroupOptionsStored | GroupOptionsForgotten) -> None:
        if isinstance(fact, GroupOptionsStored):
            self.table[fact.group_id] = fact.options
        else:
            self.table.pop(fact.group_id, None)

    def forget(self, key: bytes) -> bool:
        """Replay of a tombstone. False: it is none of these."""
        if not key.startswith(GROUP_KEY):
            return False
        self.table.pop(key.removeprefix(GROUP_KEY).decode(), None)
        return True

    def facts(self) -> Iterator[Fact]:
        return (GroupOptionsStored(group_id, options) for group_id, options in self.table.items())
