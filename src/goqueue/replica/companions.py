"""Logs that belong to one partition: what queue groups have done with it, and what waits there for its time. They are
made when somebody first needs one, and go with their topic.

A companion is called `@{kind}.{topic id in hex}` and has the number of its partition. A topic that is made again under
the same name has another id, so it never finds the companions of the one before.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from goqueue.model.errors import InvalidName, LogPoisoned
from goqueue.model.names import LEDGER_PREFIX
from goqueue.model.topics import Topic, TopicOptions
from goqueue.replica.opening import Opening
from goqueue.replica.replica import Replica
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.options import LogOptions

KINDS = ("deliveries", "delays")
FOLLOWING = ("deliveries",)
"""Those that have the durability of their topic. Delays are always on the disk: see ADR 0040."""
ID_BYTES = 16

LEDGER_OPTIONS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 * 1024 * 1024),
    # One command may store much at once: all delayed records of a batch, which may have come compressed.
    "max.message.bytes": str(15 * 1024 * 1024),
    "durability": "disk",
}


class CompanionName(NamedTuple):
    kind: str
    """One of KINDS."""
    topic_id: bytes
    """Of the partition's topic."""
    partition: int

    @property
    def log(self) -> str:
        return f"{LEDGER_PREFIX}{self.kind}.{self.topic_id.hex()}"


Begin = Callable[[Topic, int, int], Opening]
"""Of one new log: its topic, its number, now."""
OptionsOf = Callable[[Topic], tuple[TopicOptions, LogOptions]]


class Companions:
    """`find_or_make` costs no sync: the files of a new one become durable with its first append, before that is
    acknowledged."""

    def __init__(self, directory: DataDirectory, opening: Begin, options_of: OptionsOf) -> None:
        self._directory = directory
        self._opening = opening
        self._options_of = options_of
        self._open: dict[CompanionName, Replica] = {}

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._open.values())

    def on_disk(self) -> list[CompanionName]:
        """All that there are, open or not: what a start has to load."""
        found = []
        for log, partition in self._directory.names():
            kind, _, text = log.removeprefix(LEDGER_PREFIX).partition(".")
            if log.startswith(LEDGER_PREFIX) and kind in KINDS and (topic_id := _topic_id(text)) is not None:
                found.append(CompanionName(kind, topic_id, partition))
        return found

    def find(self, name: CompanionName) -> Replica | None:
        """None: nobody has asked for it since the start."""
        return self._open.get(name)

    def find_or_make(self, name: CompanionName, durability: str, now_ms: int) -> Replica:
        """LogPoisoned if it cannot be opened. One that is there gets the durability that is asked for now."""
        replica = self._open.get(name)
        if replica is not None:
            if replica.options.durability != durability:
                replica.set_options(*self._options_of(_topic(name, durability)))
            return replica
        if name.kind not in KINDS or len(name.topic_id) != ID_BYTES:
            raise InvalidName(f"{name} is no companion of a partition")
        opening = self._opening(_topic(name, durability), name.partition, now_ms)
        opening.run()
        replica = opening.opened.get(name.partition)
        if replica is None:
            raise LogPoisoned(f"ledger {name.log}/{name.partition} cannot be opened: {opening.failed[name.partition]}")
        self._directory.adopt(name.log, name.partition, replica.log)
        self._open[name] = replica
        return replica

    def retire(self, topic_id: bytes) -> Callable[[], None]:
        """The topic is deleted: take its companions out of service. Returns what removes their files, which any thread
        may do."""
        for name in [name for name in self._open if name.topic_id == topic_id]:
            self._open.pop(name).abandoned()
        removals = []
        for kind in KINDS:
            log = CompanionName(kind, topic_id, 0).log
            if self._directory.has(log):  # perhaps only the directory, if a crash came before that was removed
                removals.append(self._directory.retire(log, self._directory.partitions_of(log)))

        def remove() -> None:
            for each in removals:
                each()

        return remove


def _topic(name: CompanionName, durability: str) -> Topic:
    return Topic(name.log, name.topic_id, name.partition + 1, {**LEDGER_OPTIONS, "durability": durability})


def _topic_id(text: str) -> bytes | None:
    try:
        topic_id = bytes.fromhex(text)
    except ValueError:
        return None
    return topic_id if len(topic_id) == ID_BYTES and topic_id.hex() == text else None
