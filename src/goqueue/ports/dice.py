"""Dice as a port: ids, secrets and jitter come from whoever starts a node or a client, so that a seed repeats a run.

The methods are those of `random.Random`. `Random(seed)` is therefore the dice of a test, and `SystemRandom`, which asks
the kernel each time, the dice of a real process: ids and secrets must not be guessed.
"""

from collections.abc import MutableSequence
from random import SystemRandom
from typing import Any, Protocol
from uuid import UUID

ID_BYTES = 16


class Dice(Protocol):
    def randbytes(self, n: int, /) -> bytes: ...

    def getrandbits(self, k: int, /) -> int: ...

    def uniform(self, a: float, b: float, /) -> float: ...

    def shuffle(self, x: MutableSequence[Any], /) -> None: ...


def system_dice() -> Dice:
    return SystemRandom()


def random_id(dice: Dice) -> bytes:
    """Of a topic, for instance."""
    return dice.randbytes(ID_BYTES)


def random_uuid(dice: Dice) -> str:
    return str(UUID(bytes=dice.randbytes(ID_BYTES), version=4))
