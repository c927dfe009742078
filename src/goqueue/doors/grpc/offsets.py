"""OffsetService: how far groups have come, and setting them back."""

from functools import partial

from goqueue.broker.groups.reset import Reset
from goqueue.doors.grpc.call import Call, named
from goqueue.doors.grpc.convert import moment_ms_of
from goqueue.doors.grpc.errors import GrpcError
from goqueue.machines.groups import commands
from goqueue.model.access import Kind, Operation
from goqueue.model.members import Who
from goqueue.model.topic_partition import TopicPartition
from goqueue.records.replays import Moved, Where
from goqueue.wire.grpc import offset_pb2 as pb

OFFSETS_MAX = 10_000
NEVER_THERE = -1


class OffsetService:
    def __init__(self, call: Call) -> None:
        self._call = call

    async def commit_offsets(self, request: pb.CommitOffsetsRequest) -> pb.CommitOffsetsResponse:
        call = self._call
        _check_count(len(request.offsets))
        wanted: dict[TopicPartition, int] = {}
        for each in request.offsets:
            if each.offset < 0:
                raise GrpcError(f"offset {each.offset} is below zero")
            wanted[TopicPartition(each.topic, call.partition(each.topic, each.partition))] = each.offset
        who = Who(named("group_id", request.group_id), request.member_id, request.generation)
        _: object = await call.ask(lambda done: call.broker.members.commit(who, wanted, done))
        return pb.CommitOffsetsResponse(
            results=[
                pb.OffsetCommitResult(topic=topic, partition=partition, success=True) for topic, partition in wanted
            ]
        )

    async def fetch_offsets(self, request: pb.FetchOffsetsRequest) -> pb.FetchOffsetsResponse:
        """What the group committed; or, where it has only acknowledged messages, the first that is not settled."""
        broker, group_id = self._call.broker, named("group_id", request.group_id)
        reply: commands.FetchOffsetsReply = await self._call.order_by_code(
            lambda done: broker.groups.ask(commands.FetchOffsets(group_id, None), done)
        )
        found = {(each.topic, each.partition): each.offset for each in reply.offsets if each.offset >= 0}
        words = {(each.topic, each.partition): each.metadata for each in reply.offsets}
        for place in broker.queues.places(group_id):
            if not broker.allowed(Kind.TOPIC, place.topic, (Operation.DESCRIBE,)):
                continue
            settled = broker.queues.settled_below(place)
            at = place.topic, place.partition
            if settled is not None and settled > found.get(at, NEVER_THERE):
                found[at] = settled
        wanted = [(each.topic, each.partition) for each in request.partitions] or sorted(found)
        return pb.FetchOffsetsResponse(
            offsets=[
                pb.OffsetFetchResult(
                    topic=at[0], partition=at[1], offset=found.get(at, NEVER_THERE), metadata=words.get(at) or ""
                )
                for at in wanted
            ]
        )

    async def reset_offsets(self, request: pb.ResetOffsetsRequest) -> pb.ResetOffsetsResponse:
        group_id = named("group_id", request.group_id)
        results = []
        moves = self._moves(request)
        for topic, where, partitions in moves:  # nothing is moved before all can be
            look = self._call.broker.replays.look
            await self._call.ask(partial(look, group_id, topic, where, partitions))
        for topic, where, partitions in moves:
            move = Reset(
                self._call.broker,
                group_id,
                topic,
                where,
                partitions,
                is_dry_run=request.dry_run,
                is_live=request.live,
            )
            moved: list[Moved] = await self._call.ask(move.run)
            results += [
                pb.OffsetResetResult(
                    topic=topic, partition=each.partition, old_offset=each.before, new_offset=each.after
                )
                for each in moved
            ]
        return pb.ResetOffsetsResponse(results=results)

    def _moves(self, request: pb.ResetOffsetsRequest) -> list[tuple[str, Where, list[int]]]:
        """Topic, where to, and which partitions."""
        call = self._call
        if request.strategy == pb.OFFSET_RESET_STRATEGY_OFFSET:
            _check_count(len(request.offsets))
            moves = [
                (each.topic, Where(offset=each.offset), [call.partition(each.topic, each.partition)])
                for each in request.offsets
            ]
        else:
            _check_count(len(request.partitions))
            where = _where(request)
            by_topic: dict[str, list[int]] = {}
            for each in request.partitions:
                by_topic.setdefault(each.topic, []).append(call.partition(each.topic, each.partition))
            moves = [(topic, where, partitions) for topic, partitions in by_topic.items()]
        return moves


def _where(request: pb.ResetOffsetsRequest) -> Where:
    match request.strategy:
        case pb.OFFSET_RESET_STRATEGY_EARLIEST:
            return Where("earliest")
        case pb.OFFSET_RESET_STRATEGY_LATEST:
            return Where("latest")
        case pb.OFFSET_RESET_STRATEGY_TIMESTAMP:
            if not request.HasField("timestamp"):
                raise GrpcError("to reset by time, say timestamp")
            return Where(moment_ms=moment_ms_of("timestamp", request.timestamp))
    raise GrpcError("say a strategy: EARLIEST, LATEST, TIMESTAMP or OFFSET")


def _check_count(count: int) -> None:
    if not 0 < count <= OFFSETS_MAX:
        raise GrpcError(f"say 1 to {OFFSETS_MAX} partitions, not {count}")
