"""Reading again: a queue group sent back to an earlier place, or given part of the log once more, or a fork of it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from goqueue.broker.groups.groups import Groups
from goqueue.broker.queues.companions import Spot
from goqueue.broker.queues.promotion import OnStep, Promotion, PromotionStep, step_here
from goqueue.broker.queues.queue_groups import for_each
from goqueue.broker.queues.queues import Queues
from goqueue.broker.queues.restoring import restore
from goqueue.broker.reading.scan import scan
from goqueue.broker.topics.topics import Topics
from goqueue.machines.deliveries.commands import GroupState, Place, PlaceState, Replay, ReplayReply
from goqueue.machines.groups import commands
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.ranges import Range, count, merge, subtract
from goqueue.model.refusal import Refused
from goqueue.model.starts import EARLIEST, LATEST
from goqueue.model.topic_partition import TopicPartition
from goqueue.model.topics import Topic
from goqueue.records.decode import DecodedRecord
from goqueue.records.replays import NOWHERE, Difference, Moved, Replayed, ReplayRequest, Where
from goqueue.replica.replica import Replica
from goqueue.runtime.clock import Clock

OnMoved = Callable[[list[Moved] | GoQueueError], None]


class LedElsewhere(Protocol):
    """In a cluster: what leaders of other partitions know of a group that reads them as a queue."""

    def look(self, group_id: str, topic: str, where: Where, partitions: Sequence[int], on_looked: OnMoved) -> None: ...

    def places(self, group_id: str, on_places: Callable[[list[Place] | GoQueueError], None]) -> None: ...

    def at_leaders(self, step: PromotionStep, spots: Sequence[Spot], on_done: OnStep) -> None: ...


class Replays:
    def __init__(self, queues: Queues, groups: Groups, topics: Topics, clock: Clock) -> None:
        self._queues = queues
        self._groups = groups
        self._topics = topics
        self._clock = clock
        self.elsewhere: LedElsewhere | None = None

    def places(self, group_id: str, on_places: Callable[[list[Place] | GoQueueError], None]) -> None:
        """Where a group reads as a queue, whoever leads it."""
        if self.elsewhere is None:
            on_places(list(self._queues.places(group_id)))
        else:
            self.elsewhere.places(group_id, on_places)

    def look(
        self, group_id: str, topic: str, where: Where, partitions: Sequence[int] | None, on_looked: OnMoved
    ) -> None:
        """Where a queue group is, and where `where` would move it, partition by partition, whoever leads them."""
        try:
            chosen = range(self._topic(topic).partitions) if partitions is None else partitions
            if self.elsewhere is None:
                on_looked(self.look_here(group_id, topic, where, chosen))
            else:
                self.elsewhere.look(group_id, topic, where, chosen, on_looked)
        except GoQueueError as error:
            on_looked(error.kept())

    def look_here(self, group_id: str, topic: str, where: Where, partitions: Sequence[int]) -> list[Moved]:
        """GoQueueError: one of them is not here, or has no such place."""
        looked = []
        for partition in partitions:
            place = Place(group_id, topic, partition)
            machine = self._queues.peek_at(place)
            before = machine.measure(place).start_offset if place in machine.places(group_id) else NOWHERE
            looked.append(Moved(partition, before, self.resolve(topic, partition, where)))
        return looked

    def resolve(self, topic: str, partition: int, where: Where) -> int:
        """The offset that `where` means in one partition. Refused: outside of the log, or no place at all."""
        if sum(each is not None for each in where) != 1 or where.end not in (None, EARLIEST, LATEST):
            raise Refused(Code.INVALID_REQUEST, f"{where} is not one of earliest, latest, an offset or a moment")
        replica = self._topics.replica(topic, partition)
        if where.end is not None:
            return replica.start_offset if where.end == EARLIEST else replica.high_watermark
        if where.moment_ms is not None:
            found = replica.first_at_or_after(where.moment_ms)
            return replica.high_watermark if found is None else min(found.offset, replica.high_watermark)
        assert where.offset is not None
        if not replica.start_offset <= where.offset <= replica.high_watermark:
            raise Refused(
                Code.OFFSET_OUT_OF_RANGE,
                f"offset {where.offset} of {topic}/{partition} lies outside of "
                f"{replica.start_offset} to {replica.high_watermark}",
            )
        return where.offset

    def seek(
        self,
        group_id: str,
        topic: str,
        where: Where,
        on_done: Callable[[list[Moved] | GoQueueError], None],
        *,
        partitions: Sequence[int] | None = None,
        is_dry_run: bool = False,
    ) -> None:
        """Let a queue group go on from elsewhere, now, whoever is receiving."""

        def looked(moves: list[Moved] | GoQueueError) -> None:
            if isinstance(moves, GoQueueError) or is_dry_run:
                on_done(moves)
            else:
                for_each(moves, move, lambda error: on_done(error or moves))

        def move(one: Moved, done: Callable[[object], None]) -> None:
            place = Place(group_id, topic, one.partition)
            self._open(place, done, lambda: self._queues.seek(place, one.after, done))

        self.look(group_id, topic, where, partitions, looked)

    def seek_stream(
        self,
        group_id: str,
        topic: str,
        where: Where,
        on_done: Callable[[list[Moved] | GoQueueError], None],
        *,
        partitions: Sequence[int] | None = None,
        is_dry_run: bool = False,
        is_live: bool = False,
    ) -> None:
        """Let a group of stream readers go on from elsewhere. Refused with NON_EMPTY_GROUP while it has members, unless
        `is_live`: then they are turned out, and begin there when they come back.
        """
        found = self._topics.image.topics.get(topic)
        topic_id = None if found is None else found.id  # or else it is refused soon
        after: dict[int, int] = {}

        def looked(moves: list[Moved] | GoQueueError) -> None:
            if isinstance(moves, GoQueueError):
                on_done(moves)
                return
            after.update((each.partition, each.after) for each in moves)
            places = tuple(TopicPartition(topic, number) for number in after)
            self._groups.submit(commands.FetchOffsets(group_id, places), fetched)

        def fetched(reply: commands.FetchOffsetsReply | GoQueueError) -> None:
            before = {} if isinstance(reply, GoQueueError) else {each.partition: each.offset for each in reply.offsets}
            moves = [Moved(number, before.get(number, NOWHERE), offset) for number, offset in after.items()]
            if isinstance(reply, GoQueueError) or is_dry_run:
                on_done(reply if isinstance(reply, GoQueueError) else moves)
                return
            offsets = tuple(
                commands.OffsetToCommit(topic, each.partition, each.after, topic_id=topic_id) for each in moves
            )

            def reset() -> None:
                self._groups.submit(
                    commands.ResetOffsets(group_id, offsets), lambda reply: on_done(_refusal(reply, group_id) or moves)
                )

            if is_live:
                self._groups.evict(group_id, reset)
            else:
                reset()

        self.look(group_id, topic, where, partitions, looked)

    def replay(self, request: ReplayRequest, on_done: Callable[[list[Replayed] | GoQueueError], None]) -> None:
        """Deliver [start, stop) of a topic again, all of it or what the filter takes."""
        done: list[Replayed] = []
        try:
            spans = [
                (
                    number,
                    self.resolve(request.topic, number, request.start),
                    self.resolve(request.topic, number, request.stop),
                )
                for number in self._partitions(request.topic, request.partitions)
            ]
        except GoQueueError as error:
            on_done(error)
            return

        def one(span: tuple[int, int, int], finished: Callable[[object], None]) -> None:
            self._replay_one(request, span, done, finished)

        def begin(error: GoQueueError | None = None) -> None:
            if error is not None:
                on_done(error)
            else:
                for_each(spans, one, lambda error: on_done(error or done))

        if request.fork_as is None or request.is_dry_run:
            begin()
        else:
            self.fork(request.group_id, request.fork_as, begin)

    def _replay_one(
        self,
        request: ReplayRequest,
        span: tuple[int, int, int],
        done: list[Replayed],
        finished: Callable[[object], None],
    ) -> None:
        partition, first, following = span
        place = Place(request.fork_as or request.group_id, request.topic, partition)
        chosen: list[Range] = []

        def take(records: list[DecodedRecord]) -> bool:
            chosen.extend((each.offset, each.offset) for each in records if request.filter.matches(each))
            return True

        def chose(error: GoQueueError | None) -> None:
            ranges = merge(chosen)
            if error is not None or request.is_dry_run or not ranges:
                again = self._settled_of(place._replace(group_id=request.group_id), ranges)
                done.append(Replayed(partition, first, following, count(again)))
                finished(error)
                return
            command = Replay(place, first, following, tuple(ranges), request.records_per_second)
            self._open(place, finished, lambda: self._queues.submit(command, replayed))

        def replayed(reply: ReplayReply | GoQueueError) -> None:
            if isinstance(reply, GoQueueError):
                finished(reply)
                return
            if reply.code is not Code.NONE:
                finished(Refused(reply.code))
                return
            done.append(Replayed(partition, first, following, reply.records))
            finished(None)

        if first >= following:
            chose(None)
            return
        try:
            replica: Replica = self._topics.replica(request.topic, partition)
        except GoQueueError as error:
            finished(error)
            return
        scan(replica, (first, following), self._clock, take, chose)

    def _settled_of(self, place: Place, ranges: list[Range]) -> list[Range]:
        """What of `ranges` would be delivered again; the rest has still to be delivered anyway. A group that was never
        there begins at the end, so that all lies behind it.
        """
        machine = self._queues.peek_at(place)
        if place not in machine.places(place.group_id):
            return ranges
        settled = _settled(machine.state_of(place.group_id))[place.topic, place.partition]
        return subtract(ranges, subtract(ranges, settled))

    def _open(self, place: Place, failed: Callable[[object], None], then: Callable[[], None]) -> None:
        if self._queues.is_open(place):
            then()
        else:
            self._queues.open(place, LATEST, lambda error: failed(error) if error is not None else then())

    def _partitions(self, topic: str, partitions: Sequence[int] | None) -> Sequence[int]:
        found = self._topic(topic)
        return self._topics.led(topic, range(found.partitions) if partitions is None else partitions)

    def _topic(self, name: str) -> Topic:
        found = self._topics.image.topics.get(name)
        if found is None:
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}")
        return found

    # -- forks

    def fork(self, group_id: str, fork_id: str, on_done: Callable[[GoQueueError | None], None]) -> None:
        """A copy of what a group has settled, under another name, that goes its own way."""
        if self._queues.places(fork_id) or self._queues.is_stream(fork_id):
            on_done(Refused(Code.NON_EMPTY_GROUP, f"there is a group {fork_id!r} already"))
            return
        self._copy(group_id, fork_id, on_done, origin=group_id)

    def forks(self, group_id: str) -> list[str]:
        """Groups that were forked from this one and read here, sorted."""
        return self._queues.forks(group_id)

    def promote(self, fork_id: str, group_id: str, on_done: Callable[[GoQueueError | None], None]) -> None:
        """The group takes over what its fork has settled, wherever that reads; the fork is dropped when all is done. In
        places that only the group has it stays as it is."""
        if fork_id == group_id:
            on_done(Refused(Code.INVALID_REQUEST, f"{group_id!r} cannot take over from itself"))
            return

        def placed(places: list[Place] | GoQueueError) -> None:
            if isinstance(places, GoQueueError):
                on_done(places)
            elif not places:
                on_done(Refused(Code.GROUP_ID_NOT_FOUND, f"there is no queue group {fork_id!r}"))
            else:
                self._check_no_stream(group_id, lambda error: on_done(error) if error is not None else begin(places))

        def begin(places: list[Place]) -> None:
            topics = sorted({place.topic for place in places})
            try:
                spots = [(name, number) for name in topics for number in range(self._topic(name).partitions)]
            except GoQueueError as error:
                on_done(error.kept())
                return
            Promotion(self._queues, self._at_leaders, (fork_id, group_id), spots, places, on_done).start()

        self.places(fork_id, placed)

    def _at_leaders(self, step: PromotionStep, spots: Sequence[Spot], on_done: OnStep) -> None:
        if self.elsewhere is None:
            step_here(self._queues, step, spots, on_done)
        else:
            self.elsewhere.at_leaders(step, spots, on_done)

    def _check_no_stream(self, group_id: str, on_checked: Callable[[GoQueueError | None], None]) -> None:
        """Of one that reads nothing as a queue yet."""

        def placed(places: list[Place] | GoQueueError) -> None:
            if isinstance(places, GoQueueError) or places:
                on_checked(places if isinstance(places, GoQueueError) else None)
            elif self._queues.ask_stream is None:
                known(self._queues.is_stream(group_id))
            else:
                self._queues.ask_stream(group_id, known)

        def known(is_stream: bool | GoQueueError) -> None:
            if is_stream is True:
                on_checked(Refused(Code.INCONSISTENT_GROUP_PROTOCOL, f"{group_id!r} is a consumer group"))
            else:
                on_checked(None if is_stream is False else is_stream)

        self.places(group_id, placed)

    def _copy(
        self, source_id: str, target_id: str, on_done: Callable[[GoQueueError | None], None], *, origin: str | None
    ) -> None:
        if not self._queues.places(source_id):
            on_done(Refused(Code.GROUP_ID_NOT_FOUND, f"there is no queue group {source_id!r}"))
            return
        if not self._queues.places(target_id) and self._queues.is_stream(target_id):
            on_done(Refused(Code.INCONSISTENT_GROUP_PROTOCOL, f"{target_id!r} is a consumer group"))
            return
        state = self._queues.state_of(source_id)
        restore(self._queues, target_id, state, self._topic, lambda reply: on_done(_error(reply)), origin=origin)

    def compare(self, first_id: str, second_id: str) -> list[Difference]:
        """Partition by partition, what only one of two groups has settled. Only places that differ."""
        first, second = (_settled(self._queues.state_of(each)) for each in (first_id, second_id))
        found = []
        for place in sorted(first.keys() | second.keys()):
            left, right = first.get(place, []), second.get(place, [])
            difference = Difference(*place, tuple(subtract(left, right)), tuple(subtract(right, left)))
            if difference.only_first or difference.only_second:
                found.append(difference)
        return found


def _settled(state: GroupState) -> dict[tuple[str, int], list[Range]]:
    return {(each.topic, each.partition): _ranges(each) for each in state.places}


def _ranges(place: PlaceState) -> list[Range]:
    below = [(0, place.start_offset - 1)] if place.start_offset > 0 else []
    return merge([*below, *place.settled])


def _refusal(reply: commands.CommitReply | GoQueueError, group_id: str) -> GoQueueError | None:
    if isinstance(reply, GoQueueError):
        return reply
    code = next((code for code in reply.codes if code is not Code.NONE), None)
    return None if code is None else Refused(code, f"group {group_id!r} cannot be moved: {code.name}")


def _error(reply: object) -> GoQueueError | None:
    return reply if isinstance(reply, GoQueueError) else None
