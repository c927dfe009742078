"""Offsets and slots in two arrays do what a dictionary would do."""

from array import array
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from goqueue.machines.delays import index as delay_index
from goqueue.machines.delays.index import NOWHERE, OffsetIndex

steps = st.one_of(
    st.tuples(st.sampled_from(["add", "remove", "first"]), st.integers(0, 40), st.just(1)),
    st.tuples(st.sampled_from(["many", "remove many"]), st.integers(0, 40), st.integers(1, 5)),
)


@given(st.lists(steps, max_size=60))
def test_it_does_what_a_dictionary_would_do(walk: list[tuple[str, int, int]]) -> None:
    with patch.object(delay_index, "_DEAD_MIN", 1), patch.object(delay_index, "_STRAYS_MIN", 2):
        index = OffsetIndex()
        known: dict[int, int] = {}
        slot = 0
        for step, offset, count in walk:
            if step == "add" and offset not in known:
                index.add(offset, slot)
                known[offset] = slot
            elif step == "many" and known.keys().isdisjoint(range(offset, offset + count)):
                index.add_many(array("q", range(offset, offset + count)), range(slot, slot + count))
                known.update(zip(range(offset, offset + count), range(slot, slot + count)))
            elif step == "remove":
                assert index.remove(offset) == known.pop(offset, NOWHERE)
            elif step == "remove many":
                offsets = range(offset, offset + count)
                removed = [known.pop(each) for each in offsets if each in known]
                assert index.remove_many(array("q", offsets)).tolist() == removed
            elif step == "first":
                assert index.first() == min(known, default=None)
            slot += count
            assert len(index) == len(known)
            assert index.find(offset) == known.get(offset, NOWHERE)
        assert list(index.walk()) == sorted(known.items())
        assert list(index.walk(20)) == sorted((key, value) for key, value in known.items() if key > 20)
        assert index.slots() == [known[key] for key in sorted(known)]


def test_what_was_removed_does_not_pile_up() -> None:
    index = OffsetIndex()
    for offset in range(100_000):
        index.add(offset, 1)
        if offset >= 10:
            index.remove(offset - 10)
    assert len(index) == 10
    assert len(index._offsets) < 200
