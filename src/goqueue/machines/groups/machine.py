"""All groups and their offsets as one machine: a group decides for itself, what concerns any kind is settled here."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from goqueue.machines.find_names import FindNames, FoundNames, page_of
from goqueue.machines.groups.classic.group import ClassicGroup
from goqueue.machines.groups.commands import (
    CLASSIC,
    CONSUMER,
    SHARE,
    CodeReply,
    CommitOffsets,
    CommitReply,
    CommitTransactionOffsets,
    DeleteGroup,
    DeleteOffsets,
    DeleteOffsetsReply,
    DescribedGroup,
    DescribeGroup,
    EndTransactionOffsets,
    FetchOffsets,
    FetchOffsetsReply,
    GroupOptions,
    KnownTopics,
    ListedGroup,
    ListGroups,
    ListReply,
    ResetOffsets,
    TopicDeleted,
    TopicsChanged,
    key_parts,
)
from goqueue.machines.groups.consumer.group import ConsumerGroup
from goqueue.machines.groups.deadlines import GroupDeadlines, TimePassed
from goqueue.machines.groups.kinds import FirstUse, GroupKind, OneGroup, classic_kind, first_use, unused_since
from goqueue.machines.groups.limits import GroupLimits, is_group_id, is_too_long
from goqueue.machines.groups.migration import can_upgrade, downgraded, turned_away, upgraded
from goqueue.machines.groups.offsets import CoordinatorNoted, GroupOffsets, OffsetCommitted, OffsetPending
from goqueue.machines.groups.readers import Announced, GroupReaders
from goqueue.machines.machine import Fact, Outcome, Tick
from goqueue.machines.name_table import NameTable, page_of_all
from goqueue.model.codes import Code
from goqueue.model.topic_partition import TopicPartition

DEAD = "Dead"
"""How Kafka describes a group that there is not."""
PER_TURN = 200
"""Groups that are looked at before others get their turn."""


class Groups:
    """Invariant: a group exists while it has a machine in `_groups` or something in `_offsets`; with offsets alone it
    is a classic group. A group without members may change between classic and consumer, and its offsets stay. A share
    group has no offsets, and nothing else becomes one."""

    def __init__(self, options: GroupOptions | None = None, kinds: Sequence[GroupKind] = ()) -> None:
        self._options = options or GroupOptions()
        all_kinds = (classic_kind(self._options), *kinds)
        self._kind_of_key = {name: kind for kind in all_kinds for name in (kind.name, *kind.part_names)}
        self._exclusive = {kind.name for kind in all_kinds if kind.is_exclusive}
        self._hearers: dict[type, set[str]] = {}
        for kind in all_kinds:
            for command in kind.announcements:
                self._hearers.setdefault(command, set()).add(kind.name)
        self._kind_of_command = {command: kind for kind in all_kinds for command in kind.commands}
        self._kind_of_fact = {fact: kind for kind in all_kinds for fact in kind.facts}
        self.groups = self._groups = NameTable[OneGroup]()  # for others to read
        self._offsets = GroupOffsets(self._options)
        self._known = KnownTopics()
        self._readers = GroupReaders()
        self._limits = GroupLimits(self._options.all_bytes_max)
        self._deadlines = GroupDeadlines()
        self._next_expiry_ms = 0
        """When to look for offsets and groups that nobody needs; 0: the first tick tells the time."""
        self._expiry_after: str | None = None
        """Where this look goes on: a page of groups at a time."""

    # The machine

    def decide(self, command: Any, ticket: int, now_ms: int) -> Outcome:
        handler = self._HANDLERS.get(type(command))
        if handler is not None:
            facts, reply = handler(self, command, now_ms)
            return Outcome(facts, [(ticket, reply)])
        kind = self._kind_of_command.get(type(command))
        if kind is not None:
            return self._decide_in_group(kind, command, ticket, now_ms)
        if isinstance(command, FindNames):
            return self._find_names(command, ticket)
        return self._tick(now_ms) if isinstance(command, Tick) else self._announce(command, ticket, now_ms)

    def apply(self, fact: Any) -> None:
        if type(fact) is OffsetCommitted:  # most facts by far
            self._offsets.commit(fact)
        elif fact.is_tombstone:
            self.forget(fact.key())
        elif isinstance(fact, OffsetPending | CoordinatorNoted):
            self._offsets.apply(fact)
        elif isinstance(fact, TimePassed):
            self._next_expiry_ms, self._expiry_after = fact.next_expiry_ms, fact.expiry_after
            self._deadlines.pass_until(fact.now_ms, self._group_deadline_ms)
        elif isinstance(fact, Announced):
            self._known.topics = fact.command.topics
        else:
            self._apply_in_group(fact)

    def _apply_in_group(self, fact: Any) -> None:
        kind, group_id = self._kind_of_fact[type(fact)], fact.group_id
        group = self._groups.get(group_id)
        if group is None or group.kind != kind.name:
            group = self._groups[group_id] = self._make(kind, group_id)
        group.apply(fact)
        self._limits.note(group_id, group.held_bytes())
        if kind.announcements:
            self._readers.add(group_id, kind.topics_in(fact))
        self._deadlines.note(group_id, group.deadline_set_ms(fact))

    def forget(self, key: bytes) -> None:
        name, group_id = map(str, key_parts(key)[:2])
        kind = self._kind_of_key.get(name)
        if kind is None:
            self._offsets.forget(key)
            return
        group = self._groups.get(group_id)
        if group is None or group.kind != kind.name:
            return
        if name == kind.name:
            del self._groups[group_id]
            self._deadlines.drop(group_id)
            self._readers.drop(group_id)
        else:
            group.forget(key)
        self._limits.note(group_id, 0 if name == kind.name else group.held_bytes())

    def facts(self) -> Iterator[Fact]:
        for group in self._groups.values():
            yield from group.facts()
        yield from self._offsets.facts()

    def next_deadline_ms(self) -> int | None:
        if not self._groups and not self._offsets.has_any():
            return None
        earliest_ms = self._deadlines.earliest_ms()
        return self._next_expiry_ms if earliest_ms is None else min(earliest_ms, self._next_expiry_ms)

    def _group_deadline_ms(self, group_id: str) -> int | None:
        group = self._groups.get(group_id)
        return None if group is None else group.next_deadline_ms()

    # Commands of one kind of group

    def _decide_in_group(self, kind: GroupKind, command: Any, ticket: int, now_ms: int) -> Outcome:
        group, present = self._groups.get(command.group_id), self.kind_of(command.group_id)
        refusal = self._limits.refusal(command, group)
        if refusal is not Code.NONE:
            return Outcome([], [(ticket, kind.refuse(command, refusal))])
        if present is not None and present != kind.name and (kind.is_exclusive or present in self._exclusive):
            return Outcome([], [(ticket, kind.refuse_foreign(command))])
        if group is None:
            return self._decide_in_new(kind, command, ticket, now_ms)
        if group.kind == kind.name or group.empty_since_ms() is None:
            return self._decide_in_known(kind, group, command, ticket, now_ms)
        if not kind.opens(command):
            return Outcome([], [(ticket, kind.refuse_foreign(command))])
        facts, replies, *_ = self._decide_in_new(kind, command, ticket, now_ms)
        return Outcome([*group.retire(), *facts] if facts else [], replies)

    def _decide_in_known(self, kind: GroupKind, group: OneGroup, command: Any, ticket: int, now_ms: int) -> Outcome:
        """Members of the classic protocol are welcome in a consumer group, and the other way round."""
        if group.kind == kind.name or (kind.name == CLASSIC and isinstance(group, ConsumerGroup)):
            return self._decided(group, command, ticket, now_ms)
        is_consumer = kind.name == CONSUMER and kind.opens(command)
        if is_consumer and isinstance(group, ClassicGroup) and can_upgrade(group.state):
            return self._upgrade(kind, group, command, ticket, now_ms)
        return Outcome([], [(ticket, kind.refuse_foreign(command))])

    def _decided(self, group: OneGroup, command: Any, ticket: int, now_ms: int) -> Outcome:
        outcome = group.decide(command, ticket, now_ms)
        if isinstance(group, ConsumerGroup):
            return downgraded(group.state, command, outcome, self._options, now_ms)
        return outcome

    def _upgrade(self, kind: GroupKind, group: ClassicGroup, command: Any, ticket: int, now_ms: int) -> Outcome:
        made = upgraded(command.group_id, group.state, self._known.topics or {}, now_ms)
        facts, replies, *_ = self._decide_in_new(kind, command, ticket, now_ms, made)
        if not facts:
            return Outcome([], replies)
        return Outcome([*group.retire(), *facts], [*turned_away(group.state), *replies])

    def _decide_in_new(
        self, kind: GroupKind, command: Any, ticket: int, now_ms: int, made: Sequence[Fact] = ()
    ) -> Outcome:
        """The group comes to be when its facts are applied; a refused command leaves none. `made`: what it is before
        the command.
        """
        group = self._make(kind, command.group_id)
        for fact in made:
            group.apply(fact)
        facts, replies, *_ = group.decide(command, ticket, now_ms)
        return Outcome([*made, *facts] if facts else [], replies)

    def _make(self, kind: GroupKind, group_id: str) -> OneGroup:
        group = kind.make(group_id)
        group.know(self._known)
        return group

    def _announce(self, command: TopicsChanged, ticket: int, now_ms: int) -> Outcome:
        hearers = self._hearers[type(command)]
        outcome = Outcome([Announced(command)], [(ticket, CodeReply(Code.NONE))])
        is_partial = command.names is not None and self._known.topics is not None
        asked = self._readers.of(command.names or ()) if is_partial else self._groups
        for group in (self._groups[each] for each in asked if each in self._groups):
            if group.kind in hearers:
                outcome.facts.extend(group.decide(command, 0, now_ms).facts)
        return outcome

    # Offsets

    def _commit(self, command: CommitOffsets, now_ms: int) -> tuple[list[Fact], CommitReply]:
        refusal, facts = self._admit(command, now_ms)
        if refusal is not Code.NONE:
            return [], CommitReply((refusal,) * len(command.offsets))
        commits, codes = self._offsets.commits(command.group_id, command.offsets, now_ms)
        return [*commits, *facts], CommitReply(codes)

    def _commit_transaction(self, command: CommitTransactionOffsets, now_ms: int) -> tuple[list[Fact], CommitReply]:
        refusal, facts = self._admit(command, now_ms) if command.group_id else (Code.INVALID_GROUP_ID, [])
        if refusal is not Code.NONE:
            return [], CommitReply((refusal,) * len(command.offsets))
        pending, codes = self._offsets.pends(command, now_ms)
        return [*pending, *facts], CommitReply(codes)

    def _admit(self, command: CommitOffsets | CommitTransactionOffsets, now_ms: int) -> tuple[Code, list[Fact]]:
        """Who does not use membership may commit to a group that has no members, or to one that there was not."""
        group = self._groups.get(command.group_id)
        if group is not None:
            return group.admit_commit(command, now_ms)
        if is_too_long(command.group_id):
            return Code.INVALID_GROUP_ID, []
        if command.generation < 0:
            return Code.NONE, []
        return (Code.GROUP_ID_NOT_FOUND if command.knows_group_not_found else Code.ILLEGAL_GENERATION), []

    def _reset(self, command: ResetOffsets, now_ms: int) -> tuple[list[Fact], CommitReply]:
        if not is_group_id(command.group_id):
            return [], CommitReply((Code.INVALID_GROUP_ID,) * len(command.offsets))
        if self.kind_of(command.group_id) == SHARE:
            return [], CommitReply((Code.GROUP_ID_NOT_FOUND,) * len(command.offsets))
        if self._has_members(command.group_id):
            return [], CommitReply((Code.NON_EMPTY_GROUP,) * len(command.offsets))
        commits, codes = self._offsets.commits(command.group_id, command.offsets, now_ms)
        return [*commits], CommitReply(codes)

    def _end_transaction(self, command: EndTransactionOffsets, _now_ms: int) -> tuple[list[Fact], CodeReply]:
        return self._offsets.ends(command)

    def _fetch(self, command: FetchOffsets, _now_ms: int) -> tuple[list[Fact], FetchOffsetsReply]:
        group = self._groups.get(command.group_id)
        refusal = Code.NONE if group is None else group.fetch_refusal(command)
        if refusal is not Code.NONE:
            return [], FetchOffsetsReply(refusal)
        return [], FetchOffsetsReply(Code.NONE, self._offsets.fetched(command, self._known.topics or {}))

    def _delete_offsets(self, command: DeleteOffsets, _now_ms: int) -> tuple[list[Fact], DeleteOffsetsReply]:
        group_id = command.group_id
        if not group_id:
            return [], DeleteOffsetsReply(Code.INVALID_GROUP_ID)
        if self.kind_of(group_id) in (None, SHARE):
            return [], DeleteOffsetsReply(Code.GROUP_ID_NOT_FOUND)
        subscribed: frozenset[str] | None = frozenset()
        if self._has_members(group_id):
            subscribed = self._groups[group_id].subscribed_topics()
        if subscribed is None:
            return [], DeleteOffsetsReply(Code.NON_EMPTY_GROUP)
        facts = self._offsets.forgets(group_id, [each for each in command.partitions if each.topic not in subscribed])
        codes = tuple(
            Code.GROUP_SUBSCRIBED_TO_TOPIC if each.topic in subscribed else Code.NONE for each in command.partitions
        )
        return facts, DeleteOffsetsReply(Code.NONE, codes)

    def _topic_deleted(self, command: TopicDeleted, _now_ms: int) -> tuple[list[Fact], CodeReply]:
        return self._offsets.forgets_topic(command), CodeReply(Code.NONE)

    # Operators

    def kind_of(self, group_id: str) -> str | None:
        """None: there is no such group."""
        group = self._groups.get(group_id)
        if group is not None:
            return group.kind
        return CLASSIC if self._offsets.has_group(group_id) else None

    def first_use(self, command: Any) -> FirstUse:
        """What a command would be to a group that there is not."""
        return first_use(self._kind_of_command.get(type(command)), command)

    def _has_members(self, group_id: str) -> bool:
        group = self._groups.get(group_id)
        return group is not None and group.empty_since_ms() is None

    def _delete_group(self, command: DeleteGroup, _now_ms: int) -> tuple[list[Fact], CodeReply]:
        if self.kind_of(command.group_id) is None:
            return [], CodeReply(Code.GROUP_ID_NOT_FOUND)
        if self._has_members(command.group_id):
            return [], CodeReply(Code.NON_EMPTY_GROUP)
        return self._retired(command.group_id), CodeReply(Code.NONE)

    def _find_names(self, command: FindNames, ticket: int) -> Outcome:
        names = page_of(command, self.page)
        gone = [(self._groups.get(each), self._retired(each)) for each in (names if command.forgets else ())]
        waiting = [one for group, _ in gone if isinstance(group, ClassicGroup) for one in turned_away(group.state)]
        return Outcome([one for _, some in gone for one in some], [*waiting, (ticket, FoundNames(tuple(names)))])

    def _retired(self, group_id: str) -> list[Fact]:
        group = self._groups.get(group_id)
        return [*self._offsets.forgets_group(group_id), *(() if group is None else group.retire())]

    def _describe(self, command: DescribeGroup, _now_ms: int) -> tuple[list[Fact], DescribedGroup]:
        group = self._groups.get(command.group_id)
        if isinstance(group, ClassicGroup):
            return [], group.described()
        if group is None and self._offsets.has_group(command.group_id):
            return [], ClassicGroup(command.group_id, self._options).described()
        return [], DescribedGroup(Code.GROUP_ID_NOT_FOUND, command.group_id, DEAD)

    def _list(self, command: ListGroups, _now_ms: int) -> tuple[list[Fact], ListReply]:
        found = [each for each in map(self._listed, command.names) if each is not None]
        return [], ListReply(tuple(map(self._with_topics, found) if command.with_topics else found))

    def _listed(self, group_id: str) -> ListedGroup | None:
        group = self._groups.get(group_id)
        if group is not None:
            return group.listed()
        # Offsets without a group: somebody commits who assigns partitions to himself.
        return ClassicGroup(group_id, self._options).listed() if self._offsets.has_group(group_id) else None

    def page(self, after: str | None, count: int) -> list[str]:
        """The next names of groups, sorted."""
        return page_of_all((self._groups, *self._offsets.tables()), after, count)

    def readers(self, topic: str) -> set[str]:
        """Groups that have committed to a topic, or whose members the coordinator assigns it to."""
        return self._offsets.groups_in(topic).union(self._readers.of((topic,)))

    def measured(self) -> Iterator[tuple[ListedGroup, Mapping[TopicPartition, OffsetCommitted]]]:
        """Every group, and what it has committed. Groups may come and go while somebody reads this."""
        page = self.page(None, PER_TURN)
        while page:
            for group in filter(None, map(self._listed, page)):
                yield group, self._offsets.committed(group.group_id)
            page = self.page(page[-1], PER_TURN)

    def _with_topics(self, listed: ListedGroup) -> ListedGroup:
        group = self._groups.get(listed.group_id)
        subscribed = None if group is None else group.subscribed_topics()
        return listed if subscribed is None else msgspec.structs.replace(listed, topics=tuple(sorted(subscribed)))

    # Time

    def _tick(self, now_ms: int) -> Outcome:
        outcome = Outcome([], [])
        for group_id in self._deadlines.due(now_ms):
            facts, replies, *_ = self._decided(self._groups[group_id], Tick(), 0, now_ms)
            outcome.facts.extend(facts)
            outcome.replies.extend(replies)
        next_expiry_ms, after = self._next_expiry_ms, self._expiry_after
        if next_expiry_ms <= now_ms:
            page = self.page(after, PER_TURN) if next_expiry_ms else []
            outcome.facts.extend(self._expired(page, now_ms))
            after = page[-1] if len(page) == PER_TURN else None
            next_expiry_ms = now_ms + (self._options.expiry_interval_ms if after is None else 0)
        outcome.facts.append(TimePassed(now_ms, next_expiry_ms, after))
        return outcome

    def _expired(self, page: Iterable[str], now_ms: int) -> Iterator[Fact]:
        for group_id in page:
            group = self._groups.get(group_id)
            facts = self._offsets.expires(group_id, unused_since(group), now_ms)
            is_kept = self._has_members(group_id) or (group is not None and group.keeps_progress())
            is_idle = not is_kept and self._group_deadline_ms(group_id) is None
            if is_idle and len(facts) == self._offsets.count(group_id):
                yield from self._retired(group_id)
            else:
                yield from facts

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any, int], tuple[list[Fact], Any]]]] = {
        CommitOffsets: _commit,
        CommitTransactionOffsets: _commit_transaction,
        ResetOffsets: _reset,
        EndTransactionOffsets: _end_transaction,
        FetchOffsets: _fetch,
        DeleteOffsets: _delete_offsets,
        DeleteGroup: _delete_group,
        TopicDeleted: _topic_deleted,
        DescribeGroup: _describe,
        ListGroups: _list,
    }
