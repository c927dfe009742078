"""Pairs between the parts of two combined schemas, so that each part is used once."""

from collections.abc import Callable

from goqueue.model.again import Again

PARTS_MAX = 200


def most_pairs(wanted: int, among: int, fits: Callable[[int, int], bool]) -> int:
    """How many of `wanted` find one of `among` that fits and that no other needs: a maximum matching."""
    if max(wanted, among) > PARTS_MAX:
        return 0
    edges = [[other for other in range(among) if fits(one, other)] for one in range(wanted)]
    taken: dict[int, int] = {}

    def place(again: Again, one: int, seen: set[int]) -> bool:
        for other in edges[one]:
            if other not in seen:
                seen.add(other)
                if other not in taken or again(taken[other], seen):
                    taken[other] = one
                    return True
        return False

    return sum(Again(place)(one, set()) for one in range(wanted))
