"""Changes over a dict: they read as if made, and are not until they are merged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.machines.overlay import Overlay

keys = st.sampled_from("abcde")
changes = st.lists(st.tuples(keys, st.none() | st.integers(0, 9)))


@given(base=st.dictionaries(keys, st.integers(0, 9)), changes=changes)
def test_it_reads_like_the_dict_that_it_becomes(base: dict[str, int], changes: list[tuple[str, int | None]]) -> None:
    before, expected = dict(base), dict(base)
    overlay = Overlay(base)
    for key, value in changes:
        if value is not None:
            overlay[key] = expected[key] = value
        else:
            assert overlay.pop(key, None) == expected.pop(key, None)
        assert overlay == expected
        assert len(overlay) == len(expected) == len(list(overlay))
        assert [key in overlay for key in "abcde"] == [key in expected for key in "abcde"]
    assert base == before, "nothing is done before it is merged"
    assert set(overlay.changed()) <= set(expected.values())
    order = list(overlay)
    assert overlay.merge() is base
    assert base == expected
    assert list(base) == order


def test_what_stays_keeps_its_place_and_what_is_new_comes_last() -> None:
    overlay = Overlay({"a": 1, "b": 2, "c": 3})
    overlay["d"] = 4
    overlay["b"] = 5
    del overlay["a"]
    assert list(overlay.items()) == [("b", 5), ("c", 3), ("d", 4)]
    for key in overlay:
        overlay[key] = 0  # as a dict allows it
    assert list(overlay.merge().items()) == [("b", 0), ("c", 0), ("d", 0)]


def test_what_is_not_there_cannot_be_taken_away() -> None:
    overlay = Overlay({"a": 1})
    del overlay["a"]
    for key in ("a", "b"):
        with pytest.raises(KeyError):
            del overlay[key]
        with pytest.raises(KeyError):
            overlay[key]
