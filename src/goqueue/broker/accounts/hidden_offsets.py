"""Offsets of a trail that others write to as well, as one of its readers is told them: numbers that say where a record
is, and neither how many others there are nor which of two came first.

A Feistel network makes a permutation of all numbers of 52 bits, which JSON can tell exactly.
"""

import hashlib
import hmac

HALF_BITS = 26
ROUNDS = 8
_HALF = (1 << HALF_BITS) - 1
OLDEST = 0
"""Stands for the beginning of a trail; no record is told by it."""


class HiddenOffsets:
    def __init__(self, key: bytes) -> None:
        self._rounds = [hmac.digest(key, bytes([number]), "sha256") for number in range(ROUNDS)]

    def told(self, offset: int) -> int:
        value = self._permuted(offset + 1)
        while value == OLDEST:
            value = self._permuted(value)
        return value

    def found(self, told: int) -> int:
        """What was never told leads anywhere."""
        if told == OLDEST:
            return 0
        value = self._restored(told & (_HALF << HALF_BITS | _HALF))
        while value == 0:
            value = self._restored(value)
        return value - 1

    def _permuted(self, value: int) -> int:
        left, right = value >> HALF_BITS, value & _HALF
        for key in self._rounds:
            left, right = right, left ^ _mixed(key, right)
        return left << HALF_BITS | right

    def _restored(self, value: int) -> int:
        left, right = value >> HALF_BITS, value & _HALF
        for key in reversed(self._rounds):
            left, right = right ^ _mixed(key, left), left
        return left << HALF_BITS | right


def _mixed(key: bytes, half: int) -> int:
    return int.from_bytes(hashlib.blake2b(half.to_bytes(4, "big"), key=key, digest_size=4).digest(), "big") & _HALF
