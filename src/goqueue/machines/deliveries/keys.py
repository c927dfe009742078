"""Order by key inside a window: each record that waits behind another of its key is linked from it."""

from array import array

from goqueue.machines.deliveries.commands import NO_KEY


class KeyChains:
    """A chain links the records of one key that were not done when they were observed, in the order of offsets.

    Invariant: `_tails` has a key exactly while a record of its chain is not done, and then names the chain's last
    record. Invariant: the first record of a chain that is not done is its head; all behind it that are not done are
    held. Whoever makes a head done asks `next_head` for the one to let go.
    """

    def __init__(self) -> None:
        self._hashes = array("Q")
        self._steps = array("I")
        """How far it is to the next of the same key. 0: there is none."""
        self._tails: dict[int, int] = {}

    def extend(self, count: int) -> None:
        self._hashes.frombytes(bytes(self._hashes.itemsize * count))
        self._steps.frombytes(bytes(self._steps.itemsize * count))

    def trim(self, count: int) -> None:
        del self._hashes[:count]
        del self._steps[:count]

    def add(self, index: int, base: int, key_hash: int) -> bool:
        """The record at `base + index` is its key's last for now. False: behind another one."""
        self._hashes[index] = key_hash
        tail = self._tails.get(key_hash)
        self._tails[key_hash] = base + index
        if tail is None:
            return True
        self._steps[tail - base] = base + index - tail
        return False

    def next_head(self, index: int, kinds: bytearray, done_from: int) -> int | None:
        """The head at `index` is done: who comes next? Kinds from `done_from` on are done."""
        key_hash = self._hashes[index]
        if key_hash == NO_KEY:
            return None
        while step := self._steps[index]:
            index += step
            if kinds[index] < done_from:
                return index
        del self._tails[key_hash]
        return None

    def first_like(self, index: int, start: int, kinds: bytearray, done_from: int) -> int | None:
        """The first from `start` on, before the one at `index`, that has its key and is not done."""
        key_hash = self._hashes[index]
        while start < index:
            try:
                start = self._hashes.index(key_hash, start, index)
            except ValueError:
                return None
            if kinds[start] < done_from:
                return start
            start += 1
        return None

    def hash_at(self, index: int) -> int:
        return self._hashes[index]
