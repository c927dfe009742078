"""Logs that belong to one partition: what queue groups have done with it, and what waits there for its time. They are
made when somebody first needs one, and go with their topic.

A companion is called `@{kind}.{topic id in hex}` and has the number of its partition. A topic that is made again under
the same name has another id, so it never finds the companions of the one before.
"""

from collections.abc import Callable, Iterator, Mapping

from goqueue.model.errors import GoQueueError, InvalidName, LogPoisoned
from goqueue.model.topics import Topic, TopicOptions
from goqueue.replica.companion_names import FOLLOWING, ID_BYTES, KINDS, CompanionName
from goqueue.replica.opening import Opening
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Following, Leading, Reign
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.options import LogOptions
from goqueue.telemetry.logs import get_logger

events = get_logger("replica")


LEDGER_OPTIONS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 * 1024 * 1024),
    # One command may store much at once: all delayed records of a batch, which may have come compressed.
    "max.message.bytes": str(15 * 1024 * 1024),
    "durability": "disk",
}


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
        self._hosts: dict[tuple[bytes, int], Replica] = {}
        """In a cluster: the copies that companions belong to, by topic id and partition."""
        self._known: set[CompanionName] | None = None
        """Those that are on the disk. None: nobody has looked."""
        self.on_made: Callable[[Replica], None] = lambda replica: None
        """Called with one that was opened in a cluster, whoever asked for it."""

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._open.values())

    def on_disk(self) -> list[CompanionName]:
        """All that there are, open or not: what a start has to load."""
        names = (CompanionName.parse(log, partition) for log, partition in self._directory.names())
        return [name for name in names if name is not None]

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
        host = self._hosts.get((name.topic_id, name.partition))
        minimum = None if host is None else host.options.min_insync_replicas
        opening = self._opening(_topic(name, durability, minimum), name.partition, now_ms)
        opening.run()
        replica = opening.opened.get(name.partition)
        if replica is None:
            raise LogPoisoned(f"ledger {name.log}/{name.partition} cannot be opened: {opening.failed[name.partition]}")
        self._directory.adopt(name.log, name.partition, replica.log)
        self._open[name] = replica
        if self._known is not None:
            self._known.add(name)
        if (name.topic_id, name.partition) in self._hosts:
            self.on_made(replica)
        return replica

    # -- in a cluster: they have the role of their host

    def role(self, topic_id: bytes, partition: int) -> Reign | Following | None:
        """Of a host, which is that of its companions. None: it is not here."""
        host = self._hosts.get((topic_id, partition))
        return None if host is None else role_of(host)

    def of_host(self, topic_id: bytes, partition: int) -> list[Replica]:
        """Those that are open."""
        names = (CompanionName(kind, topic_id, partition) for kind in KINDS)
        return [self._open[name] for name in names if name in self._open]

    def host_changed(self, topic_id: bytes, partition: int, host: Replica, now_ms: int) -> list[Replica]:
        """A copy was opened, or has another role: its companions, open or on the disk, have the same. Returns those
        that were open and have another role now; what is opened is told of by `on_made`."""
        self._hosts[topic_id, partition] = host
        changed = [each for each in self.of_host(topic_id, partition) if _take(each, host)]
        for kind in KINDS:
            name = CompanionName(kind, topic_id, partition)
            if name not in self._open and self._is_known(name):
                try:
                    durability = host.options.durability if kind in FOLLOWING else "disk"
                    self.find_or_make(name, durability, now_ms)
                except GoQueueError as error:
                    events.error("companion not opened", log=name.log, partition=partition, reason=str(error))
        return changed

    def host_isr(self, topic_id: bytes, partition: int) -> None:
        """The in-sync replicas of a host are others now, or soon."""
        host = self._hosts.get((topic_id, partition))
        if host is not None and isinstance(host.role, Leading):
            for each in self.of_host(topic_id, partition):
                each.copy_isr(host)

    def host_gone(self, topic_id: bytes, partition: int) -> None:
        """Its copy is not here any more."""
        self._hosts.pop((topic_id, partition), None)

    def _is_known(self, name: CompanionName) -> bool:
        if self._known is None:
            self._known = set(self.on_disk())
        return name in self._known

    def retire(self, topic_id: bytes) -> Callable[[], None]:
        """The topic is deleted: take its companions out of service. Returns what removes their files, which any thread
        may do."""
        for name in [name for name in self._open if name.topic_id == topic_id]:
            self._open.pop(name).abandoned()
        for key in [key for key in self._hosts if key[0] == topic_id]:
            del self._hosts[key]
        self._known = None if self._known is None else {name for name in self._known if name.topic_id != topic_id}
        removals = []
        for kind in KINDS:
            log = CompanionName(kind, topic_id, 0).log
            if self._directory.has(log):  # perhaps only the directory, if a crash came before that was removed
                removals.append(self._directory.retire(log, self._directory.partitions_of(log)))

        def remove() -> None:
            for each in removals:
                each()

        return remove


def _topic(name: CompanionName, durability: str, minimum: int | None = None) -> Topic:
    """`minimum`: of in-sync replicas, as its host asks for."""
    overrides = {**LEDGER_OPTIONS, "durability": durability}
    if minimum is not None:
        overrides["min.insync.replicas"] = str(minimum)
    return Topic(name.log, name.topic_id, name.partition + 1, overrides)


def role_of(host: Replica) -> Reign | Following:
    """What its companions are, too."""
    role = host.role
    if isinstance(role, Leading):
        return Reign(role.epoch, role.view.me, role.view.isr, role.replicas, is_given=True)
    return Following(role.epoch, role.leader)


def _take(replica: Replica, host: Replica) -> bool:
    """False: it has this role already."""
    role = role_of(host)
    if role.epoch > replica.leader_epoch:
        if isinstance(role, Reign):
            replica.lead(role)
        else:
            replica.follow(role.epoch, role.leader)
        return True
    if isinstance(role, Reign):
        replica.copy_isr(host)
    elif replica.role.is_leader:  # the session of this node has ended
        replica.step_down()
        return True
    return False
