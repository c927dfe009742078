"""Offsets as a tenant is told them: each is one record, and says nothing of the others."""

import hashlib
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from goqueue.broker.accounts.hidden_offsets import OLDEST, HiddenOffsets

LARGEST = 2**52 - 2


@given(st.binary(min_size=1, max_size=32), st.integers(0, LARGEST))
def test_what_was_told_leads_back(key: bytes, offset: int) -> None:
    hidden = HiddenOffsets(key)
    told = hidden.told(offset)
    assert OLDEST < told < 2**52, "JSON tells it exactly"
    assert hidden.found(told) == offset


@given(st.integers(0, 2**63))
def test_what_was_never_told_leads_anywhere_and_does_no_harm(told: int) -> None:
    assert 0 <= HiddenOffsets(b"key").found(told) <= LARGEST


def test_neighbours_are_told_by_numbers_that_have_neither_order_nor_distance() -> None:
    one, other = HiddenOffsets(b"one"), HiddenOffsets(b"other")
    told = [one.told(offset) for offset in range(2000)]
    assert len(set(told)) == len(told)
    rising = sum(1 for before, after in pairwise(told) if before < after)
    assert 850 < rising < 1150, "as of dice"
    assert not set(told) & {other.told(offset) for offset in range(2000)}
    assert one.found(OLDEST) == 0


def test_the_numbers_of_a_key_stay_as_they_are() -> None:
    """Whoever has kept one comes back with it, after an upgrade too."""
    hidden = HiddenOffsets(hashlib.sha256(b"a secret").digest())
    assert [hidden.told(offset) for offset in (0, 1, 1000)] == [229650530890655, 2486200936047743, 1262747589379846]
