"""Every state that a crash of a short trace can leave behind."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from goqueue.testing.memory_disk import MemoryDisk


@dataclass
class Trace:
    """What a scenario did, and when: the number of disk operations that had been made by then."""

    disk: MemoryDisk = field(default_factory=MemoryDisk)
    promised: list[tuple[int, Any]] = field(default_factory=list)

    def promise(self, fact: Any) -> None:
        """From here on, whatever crashes, `fact` holds."""
        self.promised.append((self.disk.op_count, fact))

    def last_promise(self, upto: int) -> Any:
        return next((fact for at, fact in reversed(self.promised) if at <= upto), None)


def images(disk: MemoryDisk, upto: int) -> Iterator[tuple[str, MemoryDisk]]:
    """A crash after `upto` operations: all, none and each single un-synced one lost, the last write torn at each
    sector."""
    unsynced = disk.unsynced(upto)
    yield f"after {upto}: nothing lost", disk.crashed(upto)
    if unsynced:
        yield f"after {upto}: all of {unsynced} lost", disk.crashed(upto, lost=unsynced)
    for lost in unsynced:
        yield f"after {upto}: {lost} lost", disk.crashed(upto, lost=[lost])
        others = [one for one in unsynced if one != lost]
        yield f"after {upto}: only {lost} kept", disk.crashed(upto, lost=others)
    for torn in reversed(unsynced):
        with suppress(ValueError):  # not a write
            for cut in disk.sector_cuts(torn):
                yield f"after {upto}: {torn} torn at {cut}", disk.crashed(upto, torn=(torn, cut))
            return


def images_by_file(disk: MemoryDisk, upto: int, count_max: int = 64) -> Iterator[tuple[str, MemoryDisk]]:
    """Power fails after `upto` operations: every log keeps more or less of its own un-synced end, whatever others
    keep. All combinations, as far as there are not too many; then whole ends only. Other files are kept: what becomes
    of a log without them is tried elsewhere."""
    by_file = {name: numbers for name, numbers in disk.unsynced_by_file(upto).items() if name.endswith(".log")}
    cuts = [range(len(numbers) + 1) for numbers in by_file.values()]
    if prod(map(len, cuts)) > count_max:
        cuts = [range(0, len(numbers) + 1, len(numbers)) for numbers in by_file.values()]
    assert prod(map(len, cuts)) <= count_max, by_file
    for kept in product(*cuts):
        lost = [number for numbers, count in zip(by_file.values(), kept) for number in numbers[count:]]
        what = ", ".join(f"{name} {count} of {len(by_file[name])}" for name, count in zip(by_file, kept))
        yield f"after {upto}: kept {what or 'all'}", disk.crashed(upto, lost=lost)


def all_images(disk: MemoryDisk) -> Iterator[tuple[int, str, MemoryDisk]]:
    for upto in range(disk.op_count + 1):
        for label, image in images(disk, upto):
            yield upto, label, image
