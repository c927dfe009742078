"""What a stored fact is called in ledgers is chosen, and does not follow the name of its class."""

import ast
from pathlib import Path

import msgspec
import pytest

import goqueue
from goqueue.machines.machine import Fact


def test_a_stored_fact_without_a_tag_is_refused_where_it_is_defined() -> None:
    with pytest.raises(TypeError, match="NewlyStored is stored and needs a tag"):

        class NewlyStored(Fact, frozen=True):
            def key(self) -> bytes:
                return b"new"


def test_a_stored_fact_does_not_take_over_the_tag_of_the_one_it_extends() -> None:
    class Kept(Fact, frozen=True, tag="Kept"):
        def key(self) -> bytes:
            return b"kept"

    with pytest.raises(TypeError, match="Saved is stored and needs a tag"):

        class Saved(Kept, frozen=True):
            pass


def test_a_tag_that_follows_the_name_of_the_class_is_refused() -> None:
    with pytest.raises(TypeError, match="needs a tag that stays"):

        class Named(Fact, frozen=True, tag=True):
            def key(self) -> bytes:
                return b"named"


def test_a_renamed_class_reads_what_was_stored_under_its_tag() -> None:
    class Before(Fact, frozen=True, array_like=True, tag="Renamed"):
        number: int

        def key(self) -> bytes:
            return b"renamed"

    class After(Fact, frozen=True, array_like=True, tag="Renamed"):
        number: int

        def key(self) -> bytes:
            return b"renamed"

    assert msgspec.msgpack.decode(msgspec.msgpack.encode(Before(7)), type=After) == After(7)


def test_volatile_facts_and_tombstones_need_no_tag() -> None:
    class Volatile(Fact, frozen=True):
        durable = False

    class Tombstone(Fact, frozen=True):
        is_tombstone = True

        def key(self) -> bytes:
            return b"gone"

    assert not Volatile.is_stored()
    assert not Tombstone.is_stored()


def test_tags_in_the_source_are_literals() -> None:
    """One that is put together from other names would change with them."""
    computed = [
        f"{path}:{node.lineno}"
        for path in Path(goqueue.__file__).parent.rglob("*.py")
        if "tag=" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        for keyword in node.keywords
        if keyword.arg == "tag" and not isinstance(keyword.value, ast.Constant)
    ]
    assert computed == []
