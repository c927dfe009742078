"""The copies that this node keeps, by topic and partition, each opened with its topic's options; and its ledgers, which
have a table of their own: whoever looks for a topic, by whatever name a client chose, never finds a ledger.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import NamedTuple

from goqueue.model.errors import GoQueueError, LogPoisoned
from goqueue.model.names import LEDGER_PREFIX
from goqueue.model.placements import NOBODY, Placement
from goqueue.model.topics import Topic, TopicOptions
from goqueue.records.batch import NO_EPOCH
from goqueue.replica.companion_names import CompanionName
from goqueue.replica.companions import Companions
from goqueue.replica.opening import Opening
from goqueue.replica.replica import Replica
from goqueue.replica.roles import Following, Reign
from goqueue.replica.saved_watermarks import SavedWatermarks
from goqueue.replica.standing import Defer
from goqueue.storage.crew import SideBySide, one_by_one
from goqueue.storage.data_directory import DataDirectory
from goqueue.storage.options import Cleanup, Durability, LogOptions
from goqueue.storage.pending_sync import PendingSync
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.logs import get_logger

events = get_logger("replica")

PartitionName = tuple[str, int]
OWN_LEDGERS = (f"{LEDGER_PREFIX}journeys",)
"""Which every node keeps for itself, in a cluster too."""


class Seat(NamedTuple):
    """Who a node is in its cluster, in one of its lives."""

    node_id: int
    incarnation: int


class Replicas:
    def __init__(
        self,
        directory: DataDirectory,
        *,
        defaults: TopicOptions,
        disk_reserve_bytes: int,
        sync_interval_ms: int,
        defer: Defer,
    ) -> None:
        self.directory = directory
        self.defaults = defaults
        """What a topic gets that does not say otherwise."""
        self.disk_reserve_bytes = disk_reserve_bytes
        self._sync_interval_ms = sync_interval_ms
        self._defer = defer
        self._replicas: dict[PartitionName, Replica] = {}
        """Of topics."""
        self._ledgers: dict[PartitionName, Replica] = {}
        self._own: dict[str, set[int]] = {}
        """Ledgers that whoever opened them has here, wherever else they are."""
        self.companions = Companions(directory, self._opening_companion, self._options_of)
        self.companions.on_made = self._tell_role
        self.epoch = NO_EPOCH
        """In which this node leads whatever nobody else says more of. NO_EPOCH: each log goes on behind its last."""
        self.seat: Seat | None = None
        """Who this node is in its cluster. None: it is on its own, and has and leads everything."""
        self.saved: SavedWatermarks | None = None
        """In a cluster: by which copies are judged that are opened."""
        self.side_by_side: SideBySide = one_by_one
        """How many logs are opened or closed together."""
        self.on_open: Callable[[Replica], None] = lambda replica: None
        self.on_role: list[Callable[[Replica], None]] = []
        """Called with a copy, of a topic or a ledger, that was opened or has another role."""
        self._hosts: dict[bytes, tuple[Placement, ...]] = {}
        """In a cluster: where the partitions of a topic are, by its id."""
        self._maintained_s: float | None = None
        self.failed: dict[PartitionName, GoQueueError] = {}
        """Copies that could not be opened, and why. The others are served."""
        self.made_anew: list[str] = []
        """Logs that this start should have found and did not."""

    def get(self, topic: str, partition: int) -> Replica | None:
        """Of a topic, never a ledger."""
        return self._replicas.get((topic, partition))

    def __iter__(self) -> Iterator[Replica]:
        """Those of topics."""
        return iter(self._replicas.values())

    @property
    def ledgers(self) -> Sequence[Replica]:
        """With the companions of partitions."""
        return [*self._ledgers.values(), *self.companions]

    def hosts(self) -> list[Replica]:
        """Of topics and of the ledgers that other nodes may have too, without companions."""
        shared = (each for (name, number), each in self._ledgers.items() if number not in self._own.get(name, ()))
        return [*self._replicas.values(), *shared]

    def all(self) -> Iterator[Replica]:
        """Of topics, ledgers and companions."""
        return chain(self._replicas.values(), self._ledgers.values(), self.companions)

    def companion(self, kind: str, topic_id: bytes, partition: int, durability: str, now_ms: int) -> Replica:
        """The log of this kind (`deliveries` or `delays`) that belongs to a partition, made if there is none. It has
        the durability that was asked for last, from then on. LogPoisoned if it cannot be opened.

        Costs no sync, also when it is made: its files become durable with its first append, before that is
        acknowledged. `companions.on_disk()` names those that a start finds, open or not; `companions.find(name)` makes
        none. `Topics` removes them with their topic.
        """
        return self.companions.find_or_make(CompanionName(kind, topic_id, partition), durability, now_ms)

    def _options_of(self, topic: Topic) -> tuple[TopicOptions, LogOptions]:
        options = topic.options(self.defaults)
        return options, self._log_options(options)

    def _opening_companion(self, topic: Topic, partition: int, now_ms: int) -> Opening:
        """LogPoisoned: in a cluster, if its host is not here."""
        role = self.companions.role(topic.id, partition)
        if role is None and self.seat is not None:
            raise LogPoisoned(f"{topic.name}/{partition} belongs to a partition that is not on this node")
        return self.opening(topic, [partition], now_ms, is_lazy=True, role=role)

    def host_changed(self, replica: Replica, now_ms: int) -> None:
        """A copy of a topic was opened, or has another role: so have its companions. Those who want to know are told
        of them as of any copy."""
        for each in self.companions.host_changed(replica.log.state.topic_id, replica.place[1], replica, now_ms):
            self._tell_role(each)

    def open_ledger(
        self, name: str, partition: int, overrides: Mapping[str, str], now_ms: int, *, is_lazy: bool = False
    ) -> Replica:
        """A log of the broker's own, which no topic can be called like: its name begins with `@`. It belongs to whoever
        opens it, on this node alone; LogPoisoned if it cannot be opened. `is_lazy`: one that is made costs no sync, its
        files become durable with its first append."""
        assert name.startswith(LEDGER_PREFIX), name
        topic = Topic(name, b"", partition + 1, overrides)
        opening = self.opening(topic, [partition], now_ms, is_lazy=is_lazy, role=Reign(self.epoch))
        opening.run()
        replica = opening.opened.get(partition)
        if replica is None:
            raise LogPoisoned(f"ledger {name}/{partition} cannot be opened: {opening.failed[partition]}")
        self.directory.adopt(name, partition, replica.log)
        self._ledgers[name, partition] = replica
        self._own.setdefault(name, set()).add(partition)
        return replica

    def __len__(self) -> int:
        return len(self._replicas)

    def open(self, topic: Topic, partition: int, now_ms: int) -> Replica | None:
        """None: it cannot be opened; the reason is kept in `failed` and logged."""
        if self.missing(topic, [partition]):
            opening = self.opening(topic, [partition], now_ms)
            opening.run()
            self.adopt(opening)
        return self.find(topic.name, partition)

    def missing(self, topic: Topic, partitions: Iterable[int]) -> list[int]:
        """Those of them that are neither open nor known to have failed."""
        names, table = ((topic.name, partition) for partition in partitions), self._table(topic.name)
        return [name[1] for name in names if name not in table and name not in self.failed]

    def opening(
        self,
        topic: Topic,
        partitions: Sequence[int],
        now_ms: int,
        *,
        is_lazy: bool = False,
        role: Reign | Following | None = None,
    ) -> Opening:
        """Of missing ones: to be run, in whatever thread, and then to be adopted. `role`: if not the metadata says."""
        options, log_options = self._options_of(topic)
        roles = {number: role or self._role(topic, number) for number in partitions}
        return Opening(
            self.directory,
            topic,
            partitions,
            options,
            log_options,
            self._defer,
            now_ms,
            roles=roles,
            is_lazy=is_lazy,
            judge=None if self.saved is None else self.saved.judge,
            side_by_side=self.side_by_side,
        )

    # -- places and roles

    def placed(self, topic: Topic, numbers: Sequence[int] | None = None) -> list[int]:
        """The partitions, of these or of all, of which this node is to have a copy."""
        if self.seat is None:
            return list(range(topic.partitions)) if numbers is None else list(numbers)
        me, placements = self.seat.node_id, topic.placements
        some = range(len(placements)) if numbers is None else numbers
        return [at for at in some if me in placements[at].replicas or me in placements[at].adding]

    def misplaced(self, topic: Topic, numbers: Sequence[int] | None = None) -> list[int]:
        """Those of which there is a copy in service here, and should be none."""
        if self.seat is None:
            return []
        wanted, table = set(self.placed(topic, numbers)), self._table(topic.name)
        wanted |= self._own.get(topic.name, set())
        if numbers is not None:
            return [number for number in numbers if number not in wanted and (topic.name, number) in table]
        return [number for name, number in table if name == topic.name and number not in wanted]

    def _role(self, topic: Topic, partition: int) -> Reign | Following:
        placements = topic.placements or self._hosts.get(topic.id, ())  # a companion is where its partition is
        if topic.name in OWN_LEDGERS:
            return Reign(max(self.epoch, 0))
        if partition >= len(placements):
            return Reign(self.epoch) if self.seat is None else Following(NO_EPOCH, NOBODY)
        one = placements[partition]
        if self.seat is None:
            return Reign(one.epoch, one.leader, one.isr, len(one.replicas))
        if one.leader == self.seat.node_id and one.incarnation == self.seat.incarnation:
            return Reign(one.epoch, one.leader, one.isr, len(one.replicas), one.revision, is_given=True)
        return Following(one.epoch, one.leader)

    def take_roles(self, topic: Topic, numbers: Sequence[int] | None = None) -> None:
        """Those that the metadata gives to the copies here, of these partitions or of all. Whoever wants to know of a
        new one is told."""
        if self.seat is None:
            return
        self._hosts[topic.id] = topic.placements
        for number in self.misplaced(topic, numbers):
            self._step_down(self._table(topic.name)[topic.name, number])
        for number in self.placed(topic, numbers):
            replica = self._table(topic.name).get((topic.name, number))
            if replica is None:
                continue
            role = self._role(topic, number)
            if role.epoch > replica.leader_epoch:
                if isinstance(role, Reign):
                    replica.lead(role)
                else:
                    replica.follow(role.epoch, role.leader)
                self._tell_role(replica)
            elif isinstance(role, Reign):
                replica.set_isr(role.isr, role.revision)
                self.companions.host_isr(topic.id, number)

    def step_down(self) -> None:
        """This life of the node is over: it leads nothing from now on that others have too."""
        for replica in list(self.all()):
            name, number = replica.place
            if number not in self._own.get(name, ()):
                self._step_down(replica)

    def _step_down(self, replica: Replica) -> None:
        """Also of a copy that is to be elsewhere: until it is put aside it would take writes that nobody else gets."""
        if replica.role.is_leader:
            replica.step_down()
            self._tell_role(replica)

    def stand_still(self) -> None:
        """Nothing that others have too is led or followed, until other epochs begin."""
        for replica in list(self.all()):
            name, number = replica.place
            if number not in self._own.get(name, ()) and replica.stand_still():
                self._tell_role(replica)

    def _tell_role(self, replica: Replica) -> None:
        call_each(partial(call, replica) for call in self.on_role)

    def _table(self, name: str) -> dict[PartitionName, Replica]:
        return self._ledgers if name.startswith(LEDGER_PREFIX) else self._replicas

    def find(self, name: str, partition: int) -> Replica | None:
        """Of a topic or a ledger: not for clients."""
        return self._table(name).get((name, partition))

    def is_missed(self, topic: Topic, replica: Replica) -> bool:
        """The metadata says that there was a copy of this partition here."""
        return self.seat is None or self.seat.node_id in topic.placements[replica.place[1]].isr

    def note_made_anew(self, replica: Replica) -> None:
        """It should have been there: the metadata knows of it from before this start."""
        self.made_anew.append(replica.name)
        events.warning(
            "log made anew",
            log=replica.name,
            note="its files were gone; normal if the node was killed while it was made",
        )

    def adopt(self, opening: Opening) -> None:
        """What was opened is in service from now on."""
        for partition in opening.partitions:
            name = opening.topic, partition
            replica = opening.opened.get(partition)
            if replica is None:
                self.failed[name] = opening.failed.get(partition) or LogPoisoned(f"{name} was not opened")
                continue
            self.directory.adopt(*name, replica.log)
            self._table(name[0])[name] = replica
            if not name[0].startswith(LEDGER_PREFIX):
                self.on_open(replica)
            self._tell_role(replica)

    def set_options(self, topic: Topic) -> None:
        """What was changed holds from now on, for the segments to come."""
        options, log_options = self._options_of(topic)
        for partition in range(topic.partitions):
            replica = self.find(topic.name, partition)
            if replica is not None:
                replica.set_options(options, log_options)

    def retire(self, topic: str, partitions: Iterable[int]) -> Callable[[], None]:
        """Take copies out of service. Returns what removes their files, which any thread may do."""
        numbers = list(partitions)
        remove = self.directory.retire(topic, numbers)
        self._abandon(topic, numbers)
        return remove

    def displace(self, topic: str, partitions: Iterable[int]) -> Callable[[], None]:
        """The same where nobody has said that their records may go: the files are put aside."""
        numbers = list(partitions)
        put_aside = self.directory.put_aside_later(topic, numbers)
        self._abandon(topic, numbers)
        return put_aside

    def _abandon(self, topic: str, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.failed.pop((topic, number), None)
            replica = self._table(topic).pop((topic, number), None)
            if replica is not None:
                replica.abandoned()

    def maintain(self, now_ms: int, monotonic_s: float) -> None:
        """To be called now and then. `now_ms`: records that are too old by it go. `monotonic_s`: durations are measured
        by it.
        """
        passed_ms = 0 if self._maintained_s is None else round((monotonic_s - self._maintained_s) * 1000)
        self._maintained_s = monotonic_s
        self.directory.maintain(now_ms)
        with suppress(OSError):
            self.directory.look_at_room(self.disk_reserve_bytes)
        for replica in self.all():
            replica.tell_start()
            replica.producers.expire(passed_ms)
            replica.producers.open_transactions.drop_below(replica.start_offset)
            replica.producers.open_transactions.forget_decided(replica.high_watermark)

    def sync(self) -> None:
        """So that whoever waits for an acknowledgement gets it. Several logs at a time, those alone that need it."""
        logs = [one.log for one in self.all() if one.log.failure is None and one.log.needs_sync]
        pending = [PendingSync(log) for log in logs]
        errors: dict[PendingSync, OSError] = {}

        def run(one: PendingSync) -> None:
            try:
                one.run()
            except OSError as error:
                errors[one] = error

        self.side_by_side([partial(run, one) for one in pending])
        for log, one in zip(logs, pending, strict=True):
            log.finish_sync(one, errors.get(one))

    def close(self) -> None:
        """Several at a time: each waits for the disk three times or more."""
        self.sync()
        opened = list(self.all())
        self.side_by_side([partial(_close_log, replica) for replica in opened])
        for replica in opened:
            replica.close()
        self.directory.close()

    def _log_options(self, options: TopicOptions) -> LogOptions:
        return LogOptions(
            durability=Durability(options.durability),
            cleanup=Cleanup(options.cleanup_policy),
            batch_bytes_max=options.max_message_bytes + 1,
            segment_bytes=options.segment_bytes,
            segment_ms=options.segment_ms,
            retention_ms=options.retention_ms,
            retention_bytes=options.retention_bytes,
            disk_reserve_bytes=self.disk_reserve_bytes,
            sync_interval_ms=self._sync_interval_ms,
            dirty_ratio_min=options.min_cleanable_dirty_ratio,
            tombstone_ms=options.delete_retention_ms,
            compaction_lag_ms_min=options.min_compaction_lag_ms,
            compaction_lag_ms_max=options.max_compaction_lag_ms,
        )


def _close_log(replica: Replica) -> None:
    try:
        replica.close_log()
    except GoQueueError as error:
        events.error("copy not closed cleanly", copy=replica.name, reason=str(error))
