"""The schema registry's machine: versions, ids that are never given again, deletes, levels and modes."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from goqueue.machines.machine import Fact
from goqueue.machines.schemas.facts import (
    SCHEMA_FACTS,
    DeleteSubject,
    DeleteVersion,
    NewSchema,
    Register,
    Result,
    SetLevel,
    SetMode,
)
from goqueue.machines.schemas.machine import SchemaMachine
from goqueue.model.schemas import EVERYWHERE, Level, Mode, Reference, RegistryCode, SchemaKind

OK = RegistryCode.NONE


class Registry:
    """A machine, and the log of what it decided."""

    def __init__(self) -> None:
        self.machine = SchemaMachine()
        self.log: list[Fact] = []

    def ask(self, command: Any) -> Result:
        outcome = self.machine.decide(command, 7, 0)
        for fact in outcome.facts:
            self.machine.apply(fact)
            assert fact.is_tombstone or isinstance(fact, SCHEMA_FACTS)
        self.log += outcome.facts
        ((ticket, result),) = outcome.replies
        assert ticket == 7
        assert isinstance(result, Result)
        return result

    def register(self, subject: str, text: str, *references: Reference, **place: int) -> Result:
        return self.ask(Register(subject, schema(text, *references), **place))

    def codes(self, *commands: Any) -> list[RegistryCode]:
        return [self.ask(command).code for command in commands]

    def replayed(self) -> SchemaMachine:
        """From the log as compaction leaves it."""
        kept: dict[bytes, Fact] = {}
        for fact in self.log:
            kept.pop(fact.key(), None)
            kept[fact.key()] = fact
        machine = SchemaMachine()
        for key, fact in kept.items():
            if fact.is_tombstone:
                machine.forget(key)
            else:
                machine.apply(fact)
        return machine


def schema(text: str, *references: Reference, kind: SchemaKind = SchemaKind.JSON) -> NewSchema:
    return NewSchema(kind, text, text.encode(), references)


def state(machine: SchemaMachine) -> Any:
    return sorted(map(repr, machine.facts()))


def test_versions_count_up_and_the_same_schema_keeps_its_place() -> None:
    registry = Registry()
    first, again, second = (registry.register("a", text) for text in ("x", "x", "y"))
    assert (first.schema_id, first.version) == (again.schema_id, again.version) == (1, 1)
    assert (second.schema_id, second.version) == (2, 2)
    other = registry.register("b", "y")
    assert (other.schema_id, other.version) == (2, 1)  # one schema, one id, everywhere
    assert registry.machine.subjects() == ["a", "b"]
    assert [(each.subject, each.version) for each in registry.machine.uses(2)] == [("a", 2), ("b", 1)]


def test_format_references_and_rules_tell_schemas_apart() -> None:
    registry = Registry()
    registry.register("part", "p")
    ids = {
        registry.register("a", "x").schema_id,
        registry.register("a", "x", Reference("p", "part", 1)).schema_id,
        registry.ask(Register("a", schema("x", kind=SchemaKind.AVRO))).schema_id,
        registry.ask(Register("a", NewSchema(SchemaKind.JSON, "x", b"x", extras=b"{}"))).schema_id,
    }
    assert ids == {2, 3, 4, 5}


def test_an_id_is_never_given_again() -> None:
    registry = Registry()
    registry.register("a", "x")
    registry.register("a", "y")
    assert registry.codes(DeleteSubject("a"), DeleteSubject("a", True)) == [OK, OK]
    assert registry.machine.schema_ids() == []
    for machine in (registry.machine, registry.replayed()):
        registry.machine = machine
        assert machine.decide(Register("a", schema("x")), 1, 0).replies[0][1].schema_id == 3


def test_a_soft_deleted_schema_comes_back_as_a_new_version_with_its_id() -> None:
    registry = Registry()
    registry.register("a", "x")
    assert registry.ask(DeleteVersion("a", 1)).version == 1
    back = registry.register("a", "x")
    assert (back.schema_id, back.version) == (1, 2)
    assert [each.version for each in registry.machine.versions("a")] == [2]
    assert [each.version for each in registry.machine.versions("a", True)] == [1, 2]
    assert registry.codes(DeleteVersion("a", 1, True)) == [OK]
    assert registry.machine.schema(1) is not None  # version 2 has it


def test_deletes_go_in_two_steps() -> None:
    registry = Registry()
    registry.register("a", "x")
    assert registry.codes(
        DeleteVersion("a", 1, True),
        DeleteSubject("a", True),
        DeleteVersion("a", 2),
        DeleteVersion("b", 1),
        DeleteSubject("b"),
        DeleteVersion("a", 1),
        DeleteVersion("a", 1),
        DeleteSubject("a"),
        DeleteVersion("a", 1, True),
        DeleteSubject("a", True),
    ) == [
        RegistryCode.VERSION_NOT_SOFT_DELETED,
        RegistryCode.SUBJECT_NOT_SOFT_DELETED,
        RegistryCode.VERSION_NOT_FOUND,
        RegistryCode.SUBJECT_NOT_FOUND,
        RegistryCode.SUBJECT_NOT_FOUND,
        OK,
        RegistryCode.VERSION_SOFT_DELETED,
        RegistryCode.SUBJECT_SOFT_DELETED,
        OK,
        RegistryCode.SUBJECT_NOT_FOUND,
    ]


def test_what_is_referred_to_stays() -> None:
    registry = Registry()
    registry.register("part", "p")
    registry.register("whole", "w", Reference("p", "part", 1))
    assert registry.machine.referenced_by("part", 1) == [2]
    assert registry.codes(DeleteVersion("part", 1), DeleteSubject("part")) == [RegistryCode.REFERENCE_EXISTS] * 2
    assert registry.codes(DeleteSubject("whole"), DeleteSubject("part")) == [OK, OK]
    assert registry.codes(DeleteSubject("part", True)) == [RegistryCode.REFERENCE_EXISTS]  # it may come back
    assert registry.codes(DeleteSubject("whole", True), DeleteSubject("part", True)) == [OK, OK]


def test_levels_are_of_a_subject_or_of_all() -> None:
    registry = Registry()
    machine = registry.machine
    assert machine.level("a") is Level.BACKWARD
    registry.codes(SetLevel(EVERYWHERE, Level.FULL), SetLevel("a", Level.NONE))
    assert (machine.level("a"), machine.level("b"), machine.level("b", False)) == (Level.NONE, Level.FULL, None)
    assert registry.codes(SetLevel("a", None), SetLevel("a", None), SetLevel(EVERYWHERE, None)) == [
        OK,
        RegistryCode.SUBJECT_COMPATIBILITY_NOT_CONFIGURED,
        OK,
    ]
    assert machine.level("a") is Level.BACKWARD


def test_a_read_only_subject_takes_nothing() -> None:
    registry = Registry()
    registry.register("a", "x")
    assert registry.codes(SetMode("a", Mode.READONLY)) == [OK]
    refused = [registry.register("a", "y").code, *registry.codes(DeleteSubject("a"), DeleteVersion("a", 1))]
    assert refused == [RegistryCode.OPERATION_NOT_PERMITTED] * 3
    assert registry.register("b", "y").code is OK
    assert registry.codes(SetMode("a", None), SetMode("a", None)) == [OK, RegistryCode.SUBJECT_MODE_NOT_CONFIGURED]
    assert registry.register("a", "y").code is OK


def test_an_import_chooses_ids_and_versions_and_never_one_that_was_given() -> None:
    registry = Registry()
    assert registry.register("a", "x", schema_id=9).code is RegistryCode.OPERATION_NOT_PERMITTED
    registry.ask(SetMode(EVERYWHERE, Mode.IMPORT))
    placed = registry.register("a", "x", schema_id=9, version=4)
    assert (placed.schema_id, placed.version) == (9, 4)
    assert registry.register("b", "x", schema_id=12).code is RegistryCode.ID_DOES_NOT_MATCH
    assert registry.register("b", "y", schema_id=9).code is RegistryCode.OPERATION_NOT_PERMITTED
    assert registry.register("b", "y", schema_id=3).code is RegistryCode.OPERATION_NOT_PERMITTED
    assert registry.register("a", "y", schema_id=10, version=4).code is RegistryCode.OPERATION_NOT_PERMITTED
    registry.ask(SetMode(EVERYWHERE, None))
    assert registry.register("b", "y").schema_id == 10
    assert registry.codes(SetMode(EVERYWHERE, Mode.IMPORT), SetMode(EVERYWHERE, Mode.IMPORT, True)) == [
        RegistryCode.OPERATION_NOT_PERMITTED,
        OK,
    ]


SUBJECTS = st.sampled_from("ab")
NUMBERS = st.integers(1, 4)


class AtRandom(RuleBasedStateMachine):
    """Whatever is asked: ids stay with their schemas, and a restart changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry()
        self.given: dict[int, str] = {}

    @rule(subject=SUBJECTS, text=st.sampled_from("wxyz"))
    def register(self, subject: str, text: str) -> None:
        result = self.registry.register(subject, text)
        if result.code is OK:
            assert self.given.setdefault(result.schema_id, text) == text
            found = self.registry.machine.version(subject, result.version)
            assert found is not None
            assert (found.schema_id, found.is_deleted) == (result.schema_id, False)

    @rule(subject=SUBJECTS, version=NUMBERS, is_permanent=st.booleans())
    def delete_version(self, subject: str, version: int, is_permanent: bool) -> None:
        self.registry.ask(DeleteVersion(subject, version, is_permanent))

    @rule(subject=SUBJECTS, is_permanent=st.booleans())
    def delete_subject(self, subject: str, is_permanent: bool) -> None:
        self.registry.ask(DeleteSubject(subject, is_permanent))

    @rule(subject=st.sampled_from(["", "a"]), mode=st.sampled_from([None, Mode.READONLY, Mode.READWRITE]))
    def set_mode(self, subject: str, mode: Mode | None) -> None:
        self.registry.ask(SetMode(subject, mode))

    @invariant()
    def survives(self) -> None:
        machine = self.registry.machine
        assert state(self.registry.replayed()) == state(machine)
        copied = SchemaMachine()
        for fact in machine.facts():
            copied.apply(fact)
        assert state(copied) == state(machine)
        for schema_id in machine.schema_ids():
            found = machine.schema(schema_id)
            assert found is not None
            assert found.text == self.given[schema_id]
            assert machine.uses(schema_id, True)


AtRandom.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
test_at_random = AtRandom.TestCase
