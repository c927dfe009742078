"""Groups: each belongs to one of several coordinators, by its name."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, TypeAlias, TypeVar

from goqueue.broker.groups.rebalances import Rebalances
from goqueue.broker.shards import REPLY_MS_MAX, SHARDS, shard_of_group
from goqueue.machines.groups import commands
from goqueue.machines.groups.commands import EndTransactionOffsets, GroupCommand
from goqueue.machines.groups.consumer import facts as consumer_commands
from goqueue.machines.groups.machine import Groups as GroupsMachine
from goqueue.machines.groups.offsets import OffsetCommitted
from goqueue.machines.machine import Command, Fact
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import MEMBER_ID_CHARS_MAX
from goqueue.model.topic_partition import TopicPartition
from goqueue.model.topics import Topic, TopicsChange
from goqueue.ports.dice import Dice, random_id
from goqueue.runtime.ahead import OnReply
from goqueue.runtime.clock import Clock
from goqueue.runtime.coordinator import Coordinator
from goqueue.runtime.coordinators import Coordinators
from goqueue.runtime.life import Life
from goqueue.telemetry.calls import call_each
from goqueue.telemetry.meters import NO_TOPIC, Meters

R = TypeVar("R")
RETRY_MS = 1000
OnListed: TypeAlias = Callable[[list[commands.ListedGroup] | GoQueueError], None]
_NONE: Final = Code.NONE  # looking up enum members costs
_CHANGES_GROUP = (consumer_commands.ConsumerGroupKept, consumer_commands.ConsumerMemberKept)


class Groups:
    def __init__(
        self, coordinators: Coordinators[int, GroupsMachine], clock: Clock, dice: Dice, meters: Meters
    ) -> None:
        self._coordinators = coordinators
        self._meters = meters
        self._clock = clock
        self._dice = dice
        self._topics: Mapping[str, Topic] = {}
        self._rebalances = Rebalances(meters)
        self._watchers: dict[str, dict[Callable[[], None], None]] = {}
        self.is_queue: Callable[[str], bool] = lambda _group_id: False
        """Whether records were delivered to a group of this name one by one. Then it is a share group, though all of
        its members may be gone."""
        self.ask_queue: Callable[[str, Callable[[bool | GoQueueError], None]], None] | None = None
        """In a cluster: the same, of all nodes."""
        self.may_begin: Callable[[str, Callable[[GoQueueError | None], None]], None] | None = None
        """Whether there may be one more group, by the quotas of its tenant."""
        self._beginning: Counter[str] = Counter()
        """Groups of which all nodes are being asked whether they are queues. They count as streams meanwhile: so, of
        two first uses at once, one sees the other."""
        self.on_member_gone: list[Callable[[str, str], None]] = []
        """Called with group and member, however that left: consumer groups only."""
        self.on_transaction_ended: Callable[[int, int], None] = lambda producer_id, shard: None
        """Called with a producer and a shard of groups in which its transaction is over."""
        coordinators.watch(self._added)

    def _added(self, _number: int, coordinator: Coordinator[GroupsMachine]) -> None:
        coordinator.before_apply = partial(self._applying, coordinator)
        coordinator.after_apply = partial(self._applied, coordinator)
        coordinator.on_loaded = partial(self._loaded, coordinator)
        coordinator.reply_ms_max = REPLY_MS_MAX

    def new_member_id(self, client_id: str) -> str:
        number = random_id(self._dice).hex()
        return f"{client_id[: MEMBER_ID_CHARS_MAX - len(number) - 1] or 'member'}-{number}"

    def watch(self, group_id: str, call: Callable[[], None]) -> None:
        """`call` whenever who has what in a consumer group changes, never from within a command."""
        self._watchers.setdefault(group_id, {})[call] = None

    def unwatch(self, group_id: str, call: Callable[[], None]) -> None:
        watching = self._watchers.get(group_id, {})
        watching.pop(call, None)
        if not watching:
            self._watchers.pop(group_id, None)

    def _loaded(self, coordinator: Coordinator[GroupsMachine]) -> None:
        """Who was loaded anew knows no topics. At the start they announce themselves."""
        if self._topics:
            self._tell(coordinator, commands.TopicsChanged(self._topics, None))

    def _applying(self, coordinator: Coordinator[GroupsMachine], facts: Iterable[Fact]) -> None:
        for fact in facts:
            if type(fact) is not OffsetCommitted:
                self._rebalances.learn(facts, coordinator.peek().groups)
                return

    def _applied(self, coordinator: Coordinator[GroupsMachine], facts: Iterable[Fact]) -> None:
        others = []
        committed = self._meters.committed
        for fact in facts:
            if type(fact) is not OffsetCommitted:
                others.append(fact)
            else:
                committed(fact.topic, fact.group_id)
        if not others:
            return  # as for most commands by far: somebody commits
        self._rebalances.see(others, coordinator.command)
        for fact in others:
            if isinstance(fact, consumer_commands.ConsumerMemberGone):
                self._clock.call_soon(lambda fact=fact: self._tell_gone(fact))  # type: ignore[misc]
            elif not isinstance(fact, _CHANGES_GROUP):
                continue
            if fact.group_id in self._watchers:
                self._clock.call_soon(lambda group_id=fact.group_id: self._tell_changed(group_id))  # type: ignore[misc]

    def _tell_gone(self, fact: consumer_commands.ConsumerMemberGone) -> None:
        call_each(partial(call, fact.group_id, fact.member_id) for call in self.on_member_gone)

    def _tell_changed(self, group_id: str) -> None:
        call_each(list(self._watchers.get(group_id, ())))

    def topics_changed(self, change: TopicsChange) -> None:
        """Groups hear of new partitions at once, and forget what they committed to topics that are gone."""
        self._topics = change.image.topics
        for coordinator in self._coordinators:
            for topic in change.gone:
                self._tell(coordinator, commands.TopicDeleted(topic.name, topic.id))
            names = change.names if change.before.revision else None
            self._tell(coordinator, commands.TopicsChanged(change.image.topics, names))

    def _tell(
        self, coordinator: Coordinator[GroupsMachine], news: commands.TopicDeleted | commands.TopicsChanged
    ) -> None:
        """News must not be lost for want of room on the disk; those told later say how topics are then."""

        def again() -> None:
            if isinstance(news, commands.TopicsChanged):
                self._tell(coordinator, commands.TopicsChanged(self._topics, news.names))
            else:
                self._tell(coordinator, news)

        def answered(reply: object) -> None:
            # One that was unloaded is led elsewhere: who leads it tells it.
            if isinstance(reply, GoQueueError) and reply.retriable and coordinator.life is not Life.UNLOADED:
                self._clock.call_after(RETRY_MS, again)

        coordinator.submit(news, answered)

    def submit(self, command: GroupCommand[R], on_reply: Callable[[R | GoQueueError], None]) -> None:
        """Commands of the groups machine."""
        group_id = command.group_id
        try:
            coordinator = self._of(group_id)
        except GoQueueError as error:
            on_reply(error)
            return
        # One that is not active answers for itself; and of a group that it has, the machine knows better.
        if coordinator.is_active and coordinator.peek().kind_of(group_id) is None:
            self._first_use(coordinator, command, on_reply)
        else:
            self._decide(coordinator, command, on_reply)

    def _first_use(
        self, coordinator: Coordinator[GroupsMachine], command: GroupCommand[R], on_reply: OnReply[R]
    ) -> None:
        group_id = command.group_id
        opens, refused = coordinator.peek().first_use(command)

        def begin(error: GoQueueError | None = None) -> None:
            if error is not None:
                on_reply(error)
            elif refused is not None and self.ask_queue is not None:
                self._begin(coordinator, command, refused, on_reply)
            else:
                self._decide(coordinator, command, on_reply)

        if refused is not None and self.is_queue(group_id):
            on_reply(refused)
        elif self.may_begin is not None and opens:
            self.may_begin(group_id, begin)
        else:
            begin()

    def _begin(
        self, coordinator: Coordinator[GroupsMachine], command: GroupCommand[R], refused: R, on_reply: OnReply[R]
    ) -> None:
        """In a cluster: a group that its coordinator does not know may be a queue on any node."""
        group_id = command.group_id
        self._beginning[group_id] += 1

        def known(is_queue: bool | GoQueueError) -> None:
            if is_queue is False:
                self._decide(coordinator, command, on_reply)
            else:
                on_reply(refused if is_queue is True else is_queue)
            self._beginning[group_id] -= 1
            if not self._beginning[group_id]:
                del self._beginning[group_id]

        assert self.ask_queue is not None
        self.ask_queue(group_id, known)

    def _decide(self, coordinator: Coordinator[GroupsMachine], command: GroupCommand[R], on_reply: OnReply[R]) -> None:
        if type(command) is commands.CommitOffsets:
            on_reply = self._measured_commit(command, on_reply)  # type: ignore[arg-type,assignment]  # R is CommitReply
        coordinator.submit(command, on_reply)

    def ask(self, command: GroupCommand[R], on_reply: Callable[[R | GoQueueError], None]) -> None:
        """As `submit`; in a cluster, of the node that coordinates the group. For questions, and for those who need not
        know which node that is."""
        shard = shard_of_group(command.group_id)
        if self._coordinators.is_here(shard):
            self.submit(command, on_reply)
        else:
            self._coordinators.of(shard).submit(command, on_reply)

    def find_queue(self, group_id: str, on_kind: Callable[[bool | GoQueueError], None]) -> None:
        """Whether records were delivered to it one by one, on whichever node."""
        if self.ask_queue is None:
            on_kind(self.is_queue(group_id))
        else:
            self.ask_queue(group_id, on_kind)

    def kind_of(self, group_id: str) -> str | None:
        """As Kafka calls it; None: there is no such group."""
        kind = self._kind_of(group_id)
        return commands.SHARE if kind is None and self.is_queue(group_id) else kind

    def is_stream(self, group_id: str) -> bool:
        """Whether there is a group of this name that commits offsets, or is about to be."""
        return group_id in self._beginning or self._kind_of(group_id) in (commands.CLASSIC, commands.CONSUMER)

    def _kind_of(self, group_id: str) -> str | None:
        found = self._coordinators.find(shard_of_group(group_id))
        return None if found is None else found.peek().kind_of(group_id)

    def _measured_commit(
        self, command: commands.CommitOffsets, on_reply: OnReply[commands.CommitReply]
    ) -> OnReply[commands.CommitReply]:
        monotonic_s = self._clock.monotonic_s
        started_s = monotonic_s()

        def replied(reply: commands.CommitReply | GoQueueError) -> None:
            codes = [code_of(reply)] * len(command.offsets) if isinstance(reply, GoQueueError) else reply.codes
            taken = codes.count(_NONE)
            if taken:
                self._meters.commits_took(command.group_id, monotonic_s() - started_s)
            if taken != len(codes):
                for each, code in zip(command.offsets, codes, strict=True):
                    if code is not _NONE:
                        topic = each.topic if each.topic in self._topics else NO_TOPIC
                        self._meters.commit_refused(topic, command.group_id, code.name)
            on_reply(reply)

        return replied

    def listed(self, names: Iterable[str], on_reply: OnListed, *, with_topics: bool = False) -> None:
        """What there is of these groups, a page of them. Those of which only deliveries are known are not among it."""
        of_each: dict[int, list[str]] = {}
        for name in names:
            if self._coordinators.find(self.partition_of(name)) is not None:
                of_each.setdefault(self.partition_of(name), []).append(name)
        replies: list[commands.ListReply | GoQueueError] = []

        def collect(reply: commands.ListReply | GoQueueError) -> None:
            replies.append(reply)
            if len(replies) == len(of_each):
                failure = next((one for one in replies if isinstance(one, GoQueueError)), None)
                listed = [each for one in replies if isinstance(one, commands.ListReply) for each in one.groups]
                on_reply(failure or listed)

        if not of_each:
            on_reply([])
        for number, some in of_each.items():
            self._coordinators.of(number).submit(commands.ListGroups(some, with_topics), collect)

    def end_transaction(
        self, group_id: str, command: EndTransactionOffsets, on_reply: OnReply[commands.CodeReply]
    ) -> None:
        """What a transaction committed to this group counts now, or is forgotten. A GoQueueError: ask again."""
        try:
            self._end_transaction(shard_of_group(group_id), command, on_reply)
        except GoQueueError as error:
            on_reply(error)

    def _end_transaction(
        self, shard: int, command: EndTransactionOffsets, on_reply: OnReply[commands.CodeReply]
    ) -> None:
        if self._coordinators.is_here(shard):
            self.end_transaction_here(shard, command, on_reply)
        else:
            self._coordinators.of(shard).submit(command, on_reply)

    def is_led(self, shard: int) -> bool:
        """Whether this node is the coordinator of the groups in it."""
        return self._coordinators.find(shard) is not None

    def submit_to(self, shard: int, command: Command[R], on_reply: OnReply[R]) -> None:
        """For another node. A command about one group goes where all of them go."""
        if isinstance(command, GroupCommand):
            self.submit(command, on_reply)
        else:
            self._coordinators.here(shard).submit(command, on_reply)

    def end_transaction_here(
        self, shard: int, command: EndTransactionOffsets, on_reply: OnReply[commands.CodeReply]
    ) -> None:
        """A GoQueueError: it cannot be."""
        self.on_transaction_ended(command.producer_id, shard)
        self._coordinators.of_or_new(shard).submit(command, on_reply)

    def evict(self, group_id: str, on_done: Callable[[], None]) -> None:
        """Turn all members out. They hear of it with their next heartbeat, join again, and go on from what is committed
        then.
        """

        def described_classic(reply: commands.DescribedGroup | GoQueueError) -> None:
            if not isinstance(reply, GoQueueError) and reply.members:
                leaving = tuple(commands.LeavingMember(each.member_id, each.instance_id) for each in reply.members)
                self.submit(commands.LeaveGroup(group_id, leaving), lambda reply: None)

        def described(reply: consumer_commands.ConsumerGroupDescription | GoQueueError) -> None:
            if not isinstance(reply, GoQueueError):
                # Without members of the new protocol it is a classic group: these go first.
                for each in sorted(reply.members, key=lambda each: bool(each.classic_protocols)):
                    self._dismiss(group_id, each)
            on_done()

        self.submit(commands.DescribeGroup(group_id), described_classic)
        self.submit(consumer_commands.DescribeConsumerGroup(group_id), described)

    def _dismiss(self, group_id: str, member: consumer_commands.ConsumerMember) -> None:
        member_id, instance_id = member.member_id, member.instance_id
        if member.classic_protocols:
            leaving = (commands.LeavingMember(member_id, instance_id),)
            self.submit(commands.LeaveGroup(group_id, leaving), lambda reply: None)
        else:
            leave = consumer_commands.LEAVE_EPOCH
            heartbeat = consumer_commands.ConsumerHeartbeat(group_id, member_id, leave, instance_id)
            self.submit(heartbeat, lambda reply: None)

    def page(self, after: str | None, count: int) -> list[str]:
        """The next names, sorted, of all groups but those of which only deliveries are known. A refusal: a coordinator
        is not active."""
        pages = (coordinator.peek().page(after, count) for coordinator in self._coordinators)
        return sorted(name for page in pages for name in page)[:count]

    def readers(self, topic: str) -> set[str]:
        """Groups that have committed to a topic, or whose members it is assigned to by us. A refusal: as `names`."""
        return {name for coordinator in self._coordinators for name in coordinator.peek().readers(topic)}

    def measured(self) -> Iterator[tuple[commands.ListedGroup, Mapping[TopicPartition, OffsetCommitted]]]:
        """Every group, and what it has committed; but for those whose coordinators are not active."""
        for _, coordinator in self._coordinators.active():
            yield from coordinator.peek().measured()

    @property
    def partitions(self) -> int:
        """Of the ledger that groups are kept in."""
        return SHARDS

    def partition_of(self, group_id: str) -> int:
        return shard_of_group(group_id)

    def _of(self, group_id: str) -> Coordinator[GroupsMachine]:
        """Its shard is made when it is first needed. A GoQueueError: it cannot be."""
        return self._coordinators.of_or_new(shard_of_group(group_id))
