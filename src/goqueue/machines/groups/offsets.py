"""Committed offsets of all groups: the latest fact per partition is the state, so a snapshot is just these facts.

Who may commit is decided by the group; here it is decided what may be committed, and what becomes of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final

from goqueue.machines.groups.commands import (
    CodeReply,
    CommitTransactionOffsets,
    EndTransactionOffsets,
    FetchedOffset,
    FetchOffsets,
    GroupOptions,
    OffsetToCommit,
    TopicDeleted,
    key_parts,
    ledger_key,
)
from goqueue.machines.machine import Fact
from goqueue.machines.name_table import NameTable
from goqueue.model.codes import Code
from goqueue.model.topic_partition import TopicPartition
from goqueue.model.topics import Topic

_NONE: Final = Code.NONE  # looking up enum members costs
OFFSET = "offset"
PENDING = "pending"
COORDINATOR = "transaction_coordinator"


class OffsetCommitted(Fact, frozen=True, tag="OffsetCommitted"):
    group_id: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    topic_id: bytes | None
    committed_at_ms: int
    order: int
    """Counts commits of all groups: a transactional commit that was overtaken by another one must not undo it."""

    def key(self) -> bytes:
        return ledger_key(OFFSET, self.group_id, self.topic, self.partition)


class OffsetForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    group_id: str
    topic: str
    partition: int

    def key(self) -> bytes:
        return ledger_key(OFFSET, self.group_id, self.topic, self.partition)


class OffsetPending(Fact, frozen=True, tag="OffsetPending"):
    """Will be committed if its producer's transaction is."""

    producer_id: int
    producer_epoch: int
    commit: OffsetCommitted

    def key(self) -> bytes:
        commit = self.commit
        return ledger_key(PENDING, commit.group_id, commit.topic, commit.partition, self.producer_id)


class PendingForgotten(Fact, frozen=True):
    is_tombstone: ClassVar[bool] = True
    group_id: str
    topic: str
    partition: int
    producer_id: int

    def key(self) -> bytes:
        return ledger_key(PENDING, self.group_id, self.topic, self.partition, self.producer_id)


class CoordinatorNoted(Fact, frozen=True, tag="CoordinatorNoted"):
    """The highest epoch in which the leader of a shard of transactions has ended one here, even if there was nothing to
    end: whoever led that shard before is refused. Without it a late word of the old leader could end the next
    transaction of the same producer.
    """

    shard: int
    epoch: int

    def key(self) -> bytes:
        return ledger_key(COORDINATOR, self.shard)


class GroupOffsets:
    """Invariant: `_pending` and `_pending_of` hold the same facts, by place and by producer.
    Invariant: a group is a key of `_committed` or `_pending` only while it has something there.
    """

    def __init__(self, options: GroupOptions) -> None:
        self._options = options
        self._committed: NameTable[dict[TopicPartition, OffsetCommitted]] = NameTable()
        self._pending: NameTable[dict[TopicPartition, dict[int, OffsetPending]]] = NameTable()
        self._pending_of: dict[int, dict[bytes, OffsetPending]] = {}
        self._by_topic: dict[str, dict[tuple[str, TopicPartition], None]] = {}
        """Where something is committed, by topic: groups and partitions."""
        self._order = 0
        self._coordinators: dict[int, int] = {}
        """By shard of transactions: the highest epoch of its leader that was heard of."""

    # State

    def apply(self, fact: OffsetPending | CoordinatorNoted) -> None:
        if isinstance(fact, CoordinatorNoted):
            self._coordinators[fact.shard] = fact.epoch
        else:
            self.pend(fact)

    def commit(self, fact: OffsetCommitted) -> None:
        places = self._committed.get(fact.group_id)
        if places is None:
            places = self._committed[fact.group_id] = {}
        place = TopicPartition(fact.topic, fact.partition)
        if place not in places:
            self._by_topic.setdefault(fact.topic, {})[fact.group_id, place] = None
        places[place] = fact
        if fact.order > self._order:
            self._order = fact.order

    def pend(self, fact: OffsetPending) -> None:
        place = TopicPartition(fact.commit.topic, fact.commit.partition)
        places = self._pending.setdefault(fact.commit.group_id, {})
        places.setdefault(place, {})[fact.producer_id] = fact
        self._pending_of.setdefault(fact.producer_id, {})[fact.key()] = fact
        self._order = max(self._order, fact.commit.order)

    def forget(self, key: bytes) -> None:
        """Also of what is not there: a ledger may keep a tombstone longer than what it covers."""
        match key_parts(key):
            case [kind, str(group_id), str(topic), int(partition)] if kind == OFFSET:
                place = TopicPartition(topic, partition)
                _drop(self._committed, group_id, place)
                _drop(self._by_topic, topic, (group_id, place))
            case [kind, str(group_id), str(topic), int(partition), int(producer_id)] if kind == PENDING:
                place = TopicPartition(topic, partition)
                places = self._pending.get(group_id, {})
                if producer_id in places.get(place, {}):
                    _drop(places, place, producer_id)
                    if not places:
                        del self._pending[group_id]
                    _drop(self._pending_of, producer_id, key)
            case _:
                raise ValueError(f"no key of an offset: {key!r}")

    def facts(self) -> Iterator[Fact]:
        for places in self._committed.values():
            yield from places.values()
        for pending in self._pending_of.values():
            yield from pending.values()
        for shard, epoch in self._coordinators.items():
            yield CoordinatorNoted(shard, epoch)

    def committed(self, group_id: str) -> Mapping[TopicPartition, OffsetCommitted]:
        return self._committed.get(group_id, {})

    def tables(self) -> tuple[NameTable[Any], ...]:
        """In which groups have something."""
        return self._committed, self._pending

    def groups_in(self, topic: str) -> set[str]:
        """That have committed something there."""
        return {group_id for group_id, _ in self._by_topic.get(topic, ())}

    def has_any(self) -> bool:
        return bool(self._committed or self._pending)

    def has_group(self, group_id: str) -> bool:
        return group_id in self._committed or group_id in self._pending

    # Commit

    def commits(
        self, group_id: str, offsets: tuple[OffsetToCommit, ...], now_ms: int
    ) -> tuple[list[OffsetCommitted], tuple[Code, ...]]:
        """What may be committed of these, and a code for each."""
        facts: list[OffsetCommitted] = []
        codes: list[Code] = []
        order, metadata_chars_max = self._order, self._options.metadata_chars_max
        for wanted in offsets:
            if not wanted.exists:
                codes.append(Code.UNKNOWN_TOPIC_OR_PARTITION)
            elif len(wanted.metadata) > metadata_chars_max:
                codes.append(Code.OFFSET_METADATA_TOO_LARGE)
            else:
                codes.append(_NONE)
                order += 1
                facts.append(
                    OffsetCommitted(
                        group_id,
                        wanted.topic,
                        wanted.partition,
                        wanted.offset,
                        wanted.leader_epoch,
                        wanted.metadata,
                        wanted.topic_id,
                        now_ms,
                        order,
                    )
                )
        return facts, tuple(codes)

    # Transactions

    def pends(self, command: CommitTransactionOffsets, now_ms: int) -> tuple[list[Fact], tuple[Code, ...]]:
        newest_epoch = max(
            (each.producer_epoch for each in self._pending_of.get(command.producer_id, {}).values()), default=-1
        )
        if command.producer_epoch < newest_epoch:
            return [], (Code.INVALID_PRODUCER_EPOCH,) * len(command.offsets)
        commits, codes = self.commits(command.group_id, command.offsets, now_ms)
        return [OffsetPending(command.producer_id, command.producer_epoch, commit) for commit in commits], codes

    def ends(self, command: EndTransactionOffsets) -> tuple[list[Fact], CodeReply]:
        """What becomes of the transaction here, or that its coordinator was deposed.

        Offsets that a fenced producer slipped in under an older epoch are dropped, whatever the transaction became.

        Commits come before tombstones: were the ledger cut between them, the transaction would be ended again.
        """
        known_epoch = self._coordinators.get(command.coordinator, -1)
        if command.coordinator_epoch < known_epoch:
            return [], CodeReply(Code.TRANSACTION_COORDINATOR_FENCED)
        facts: list[Fact] = []
        if command.coordinator_epoch > known_epoch:
            facts.append(CoordinatorNoted(command.coordinator, command.coordinator_epoch))
        pending = self._pending_of.get(command.producer_id, {}).values()
        for each in pending:
            commit = each.commit
            current = self._committed.get(commit.group_id, {}).get(TopicPartition(commit.topic, commit.partition))
            is_latest = current is None or current.order < commit.order
            if command.committed and each.producer_epoch == command.written_epoch and is_latest:
                facts.append(commit)
        facts += (_tombstone(each) for each in pending if each.producer_epoch <= command.producer_epoch)
        return facts, CodeReply(_NONE)

    # Fetch

    def fetched(self, command: FetchOffsets, topics: Mapping[str, Topic]) -> tuple[FetchedOffset, ...]:
        """`topics`: those there are. What was committed to another one of that name, whose end a crash kept from us,
        is nowhere in this one.
        """
        committed = self._committed.get(command.group_id, {})
        places: Iterable[TopicPartition] | None = command.partitions
        if places is None:
            places = (place for place, fact in committed.items() if not _is_of_another(fact, topics))
        found = ((place, committed.get(place)) for place in places)
        return tuple(
            self._fetched(command, place, None if fact is None or _is_of_another(fact, topics) else fact)
            for place, fact in found
        )

    def _fetched(self, command: FetchOffsets, place: TopicPartition, fact: OffsetCommitted | None) -> FetchedOffset:
        if command.require_stable and place in self._pending.get(command.group_id, {}):
            return FetchedOffset(*place, code=Code.UNSTABLE_OFFSET_COMMIT)
        if fact is None:
            return FetchedOffset(*place)
        return FetchedOffset(
            fact.topic,
            fact.partition,
            fact.offset,
            fact.leader_epoch,
            fact.metadata,
            fact.topic_id,
            committed_at_ms=fact.committed_at_ms,
        )

    # Delete

    def forgets(self, group_id: str, places: Iterable[TopicPartition]) -> list[Fact]:
        """Tombstones for what is committed at these places. What is pending there is up to its transaction."""
        committed = self._committed.get(group_id, {})
        return [OffsetForgotten(group_id, *place) for place in dict.fromkeys(places) if place in committed]

    def forgets_group(self, group_id: str) -> list[Fact]:
        facts = self.forgets(group_id, self._committed.get(group_id, {}))
        for pending in self._pending.get(group_id, {}).values():
            facts += map(_tombstone, pending.values())
        return facts

    def forgets_topic(self, command: TopicDeleted) -> list[Fact]:
        def is_gone(fact: OffsetCommitted) -> bool:
            of_other_topic = None not in (command.topic_id, fact.topic_id) and command.topic_id != fact.topic_id
            return fact.topic == command.topic and not of_other_topic

        facts: list[Fact] = [
            OffsetForgotten(group_id, *place)
            for group_id, place in self._by_topic.get(command.topic, ())
            if is_gone(self._committed[group_id][place])
        ]
        for pending in self._pending_of.values():
            facts += (_tombstone(each) for each in pending.values() if is_gone(each.commit))
        return facts

    def expires(self, group_id: str, unused_since_ms: Callable[[str], int | None], now_ms: int) -> list[Fact]:
        """Tombstones for offsets that neither a commit nor a consumer has touched for the time of retention.

        `unused_since_ms` tells it of a topic; None: it is in use.
        """
        pending = self._pending.get(group_id, {})
        facts: list[Fact] = []
        for place, fact in self._committed.get(group_id, {}).items():
            since_ms = unused_since_ms(place.topic)
            if since_ms is None or place in pending:
                continue
            if max(since_ms, fact.committed_at_ms) + self._options.offset_retention_ms <= now_ms:
                facts.append(OffsetForgotten(group_id, *place))
        return facts

    def count(self, group_id: str) -> int:
        return len(self._committed.get(group_id, {})) + len(self._pending.get(group_id, {}))


def _tombstone(pending: OffsetPending) -> Fact:
    commit = pending.commit
    return PendingForgotten(commit.group_id, commit.topic, commit.partition, pending.producer_id)


def _is_of_another(fact: OffsetCommitted, topics: Mapping[str, Topic]) -> bool:
    topic = topics.get(fact.topic)
    return topic is not None and fact.topic_id is not None and topic.id != fact.topic_id


def _drop(outer: dict[Any, dict[Any, Any]], first: Any, second: Any) -> None:
    """Remove outer[first][second], and outer[first] with its last."""
    inner = outer.get(first, {})
    inner.pop(second, None)
    if not inner:
        outer.pop(first, None)
