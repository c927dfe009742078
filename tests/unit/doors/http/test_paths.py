"""Paths to applications: each path finds its own, and a word goes before a slot."""

from typing import Any, cast

import pytest

from goqueue.doors.http.paths import Paths
from goqueue.wire.rest.operations.table import OPERATIONS


def paths(*given: str) -> Any:
    """A path stands for its application."""
    return Paths(cast(Any, {path: path for path in given}))


def test_every_path_of_the_table_finds_itself() -> None:
    table = sorted({operation.path for operation in OPERATIONS})
    routes = paths(*table)
    for path in table:
        words = [word[1:-1] for word in path.split("/") if word.startswith("{")]
        asked = path.replace("{", "x-").replace("}", "")
        assert routes.find(asked) == (path, {word: f"x-{word}" for word in words})


def test_a_word_goes_before_a_slot_and_a_dead_end_is_left_again() -> None:
    routes = paths("/a/b/c", "/a/{x}/d", "/a/{x}", "/a/b")
    assert routes.find("/a/b") == ("/a/b", {})
    assert routes.find("/a/z") == ("/a/{x}", {"x": "z"})
    assert routes.find("/a/b/d") == ("/a/{x}/d", {"x": "b"})


@pytest.mark.parametrize("path", ["", "/", "//", "/a", "/a/", "/a//d", "/b/b", "/a/b/c/d", "/a/z/", "a/b"])
def test_what_is_not_there_is_not_found(path: str) -> None:
    assert paths("/a/b/c", "/a/{x}/d").find(path) is None


def test_slots_at_one_place_may_have_other_names_but_one_path_has_one_application() -> None:
    routes = paths("/a/{x}", "/a/{y}/{z}")
    assert routes.find("/a/1") == ("/a/{x}", {"x": "1"})
    assert routes.find("/a/1/2") == ("/a/{y}/{z}", {"y": "1", "z": "2"})
    with pytest.raises(AssertionError, match="two places"):
        paths("/a/{x}", "/a/{y}")
