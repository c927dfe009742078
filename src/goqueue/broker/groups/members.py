"""Members that speak when they want something: one request each for joining, showing that they live, leaving. They are
members of consumer groups like those of Kafka clients, and read as a queue. What they own is what the group says.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

from goqueue.broker.groups.groups import Groups
from goqueue.broker.groups.member_progress import MemberProgress, failure_of
from goqueue.broker.queues.queues import Queues
from goqueue.broker.topics.topics import Topics
from goqueue.machines.deliveries.commands import GiveBack, Place
from goqueue.machines.groups import commands
from goqueue.machines.groups.consumer import facts as consumer_commands
from goqueue.machines.groups.consumer.facts import ConsumerMember, FoundConsumerMember, packed, unpacked
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.members import ANY_GENERATION, Joining, Membership, NotAssigned, Who
from goqueue.model.refusal import Refused
from goqueue.model.topic_partition import TopicPartition
from goqueue.runtime.clock import Clock

OnMembership: TypeAlias = Callable[[Membership | GoQueueError], None]
OnMember: TypeAlias = Callable[[ConsumerMember | GoQueueError], None]


class Members:
    """Nothing of a member is remembered here: a restart of the node loses nothing."""

    def __init__(self, groups: Groups, queues: Queues, topics: Topics, clock: Clock) -> None:
        self.groups = groups
        self.queues = queues
        self.clock = clock
        self.progress = MemberProgress(groups, queues, topics)
        self._topics = topics
        groups.on_member_gone.append(self._gone)

    def _gone(self, group_id: str, member_id: str) -> None:
        self.queues.give_back(GiveBack(group_id, member_id))

    # -- requests

    def join(self, wanted: Joining, on_reply: OnMembership) -> None:
        missing = [name for name in wanted.topics if name not in self._topics.image.topics]
        if missing:
            on_reply(Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {missing[0]!r}"))
            return
        command = consumer_commands.ConsumerHeartbeat(
            group_id=wanted.group_id,
            member_id=wanted.member_id or self.groups.new_member_id(wanted.client_id),
            member_epoch=consumer_commands.JOIN_EPOCH,
            rebalance_timeout_ms=wanted.rebalance_ms,
            subscribed_topic_names=wanted.topics,
            owned=(),
            client_id=wanted.client_id,
            client_host=wanted.client_host,
            session_ms=_rounded(wanted.session_ms),
            is_cooperative=wanted.is_cooperative,
            has_leases=True,
        )

        def joined(reply: consumer_commands.ConsumerHeartbeatReply | GoQueueError) -> None:
            failure = failure_of(reply)
            if isinstance(failure, Refused) and failure.code is Code.GROUP_ID_NOT_FOUND:
                words = f"group {wanted.group_id!r} is a share group, or has members that speak the classic protocol"
                failure = Refused(Code.INCONSISTENT_GROUP_PROTOCOL, words)
            if failure is not None:
                on_reply(failure)
            else:
                self.describe(Who(wanted.group_id, command.member_id), on_reply)

        self.groups.submit(command, joined)

    def describe(self, who: Who, on_reply: OnMembership) -> None:
        self.find(who, lambda found: on_reply(self._membership(found)))

    def beat(self, who: Who, on_reply: OnMembership, *, is_cooperative: bool = False) -> None:
        """A member shows that it lives, and takes what it is given. What it shall give up it gives up at once, unless
        it is cooperative: then it hears of it and says when it has.
        """

        def beaten(member: ConsumerMember | GoQueueError) -> None:
            if isinstance(member, GoQueueError):
                on_reply(member)
            else:
                self.describe(Who(who.group_id, who.member_id), on_reply)

        def found(reply: FoundConsumerMember | GoQueueError) -> None:
            if isinstance(reply, GoQueueError):
                on_reply(reply)
                return
            assert reply.member is not None
            if is_cooperative:
                self._heartbeat(who.group_id, reply.member, None, beaten)
            else:
                self.take(who.group_id, reply.member, beaten)

        self.find(who, found)

    def revoke(self, who: Who, revoked: Collection[TopicPartition] | None, on_reply: OnMembership) -> None:
        """A cooperative member has given up what it was asked to (None: all of it). What it still holds there is
        delivered to others now.
        """

        def found(reply: FoundConsumerMember | GoQueueError) -> None:
            if isinstance(reply, GoQueueError):
                on_reply(reply)
                return
            member = reply.member
            assert member is not None
            going = [each for each in self.named(member.revoking) if revoked is None or each in revoked]
            if not going:
                on_reply(self._membership(reply))
                return
            kept = {*self.named(member.assigned), *self.named(member.revoking)}.difference(going)
            owned = packed((self._topics.image.topics[each.topic].id, each.partition) for each in kept)
            places = tuple(Place(who.group_id, *each) for each in going)
            self.queues.give_back(GiveBack(who.group_id, who.member_id, places))

            def even(error: GoQueueError | None) -> None:
                if error is not None:
                    on_reply(error)
                else:
                    self._heartbeat(who.group_id, member, owned, beaten)

            self.progress.even_out(who.group_id, member, going, even)

        def beaten(member: ConsumerMember | GoQueueError) -> None:
            if isinstance(member, GoQueueError):
                on_reply(member)
            else:
                self.describe(Who(who.group_id, who.member_id), on_reply)

        self.find(who, found)

    def leave(self, who: Who, on_reply: Callable[[GoQueueError | None], None]) -> None:
        """What it holds is delivered to others at once."""

        def found(reply: FoundConsumerMember | GoQueueError) -> None:
            if isinstance(reply, GoQueueError):
                on_reply(reply)
                return
            member = reply.member
            assert member is not None
            command = consumer_commands.ConsumerHeartbeat(
                who.group_id, who.member_id, consumer_commands.LEAVE_EPOCH, member.instance_id
            )

            def even(error: GoQueueError | None) -> None:
                if error is not None:
                    on_reply(error)
                else:
                    self.groups.submit(command, lambda reply: on_reply(failure_of(reply)))

            self.progress.even_out(
                who.group_id, member, [*self.named(member.assigned), *self.named(member.revoking)], even
            )

        self.find(who, found)

    def commit(
        self, who: Who, offsets: Mapping[TopicPartition, int], on_reply: Callable[[GoQueueError | None], None]
    ) -> None:
        """All before these offsets is done: for the group's stream readers and as a queue. All of them or none."""
        if not who.member_id:
            self.progress.commit(who.group_id, who.member_id, commands.NO_GENERATION, offsets, on_reply)
            return

        def found(reply: FoundConsumerMember | GoQueueError) -> None:
            if isinstance(reply, GoQueueError):
                on_reply(reply)
                return
            member = reply.member
            assert member is not None
            own = {*self.named(member.assigned), *self.named(member.revoking)}
            foreign = [each for each in offsets if each not in own]
            if foreign:
                place = f"{foreign[0].topic}/{foreign[0].partition}"
                on_reply(NotAssigned(f"{place} is not assigned to this member"))
                return
            generation = who.generation or member.epoch
            self.progress.commit(who.group_id, who.member_id, generation, offsets, on_reply)

        self.find(Who(who.group_id, who.member_id), found)

    # -- parts of them

    def find(self, who: Who, on_found: Callable[[FoundConsumerMember | GoQueueError], None]) -> None:
        """A member may speak as of the generation before its own: the answer that told it of the new one may have been
        lost.
        """

        def found(reply: FoundConsumerMember | GoQueueError) -> None:
            failure = failure_of(reply)
            if failure is not None or isinstance(reply, GoQueueError):
                on_found(failure or reply)
                return
            member = reply.member
            assert member is not None, "one that was found"
            if who.generation in (ANY_GENERATION, member.epoch, member.previous_epoch):
                on_found(reply)
            else:
                message = f"generation {who.generation} is not {member.epoch}: join again"
                on_found(Refused(Code.STALE_MEMBER_EPOCH, message))

        self.groups.submit(consumer_commands.FindConsumerMember(who.group_id, who.member_id), found)

    def serve(self, group_id: str, member: ConsumerMember, on_taken: OnMember) -> None:
        """A heartbeat of a member that wants something else: it gives up what it shall, unless it is cooperative."""
        if member.is_cooperative:
            self._heartbeat(group_id, member, None, on_taken)
        else:
            self.take(group_id, member, on_taken)

    def take(self, group_id: str, member: ConsumerMember, on_taken: OnMember) -> None:
        """A heartbeat; what the member shall give up is given up with it."""

        def beaten(after: ConsumerMember | GoQueueError) -> None:
            if isinstance(after, GoQueueError) or not after.revoking:
                on_taken(after)
            else:
                self._give_up(group_id, after, on_taken)

        if member.revoking:
            self._give_up(group_id, member, on_taken)
        else:
            self._heartbeat(group_id, member, None, beaten)

    def _give_up(self, group_id: str, member: ConsumerMember, on_done: OnMember) -> None:
        """Not what it holds there: it is still at work on that."""

        def even(error: GoQueueError | None) -> None:
            if error is not None:
                on_done(error)
            else:
                self._heartbeat(group_id, member, member.assigned, on_done)

        self.progress.even_out(group_id, member, self.named(member.revoking), even)

    def _heartbeat(
        self,
        group_id: str,
        member: ConsumerMember,
        owned: consumer_commands.Assignment | None,
        on_beaten: OnMember,
    ) -> None:
        command = consumer_commands.ConsumerHeartbeat(
            group_id,
            member.member_id,
            member.epoch,
            member.instance_id,
            owned=owned,
            client_id=member.client_id,
            client_host=member.client_host,
        )

        def beaten(reply: consumer_commands.ConsumerHeartbeatReply | GoQueueError) -> None:
            failure = failure_of(reply)
            if failure is not None or isinstance(reply, GoQueueError):
                assert failure is not None
                on_beaten(failure)
            else:
                assert reply.member is not None  # since it was not refused
                on_beaten(reply.member)

        self.groups.submit(command, beaten)

    # -- as doors see it

    def named(self, assignment: Iterable[consumer_commands.TopicPartitions]) -> tuple[TopicPartition, ...]:
        """By name; topics that are gone are left out."""
        found = ((self._topics.image.by_id(topic_id), number) for topic_id, number in unpacked(assignment))
        return tuple(sorted(TopicPartition(topic.name, number) for topic, number in found if topic is not None))

    def _membership(self, found: FoundConsumerMember | GoQueueError) -> Membership | GoQueueError:
        if isinstance(found, GoQueueError):
            return found
        member = found.member
        assert member is not None
        return Membership(
            member.member_id,
            member.epoch,
            self.named(member.assigned),
            self.named(member.revoking),
            found.is_stable,
            found.session_ms,
            found.revocation_due_ms,
        )


def _rounded(session_ms: int) -> int:
    """To whole seconds, since members with sessions of one length cost less."""
    return -(-session_ms // 1000) * 1000
