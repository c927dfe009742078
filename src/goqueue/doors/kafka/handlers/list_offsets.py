"""Offsets by time and by epoch: ListOffsets, OffsetForLeaderEpoch."""

from goqueue.broker.durable import confirm_appended
from goqueue.broker.reading.fetch import check_epoch
from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.refusal import Refused
from goqueue.replica.replica import Replica
from goqueue.wire.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartitionResult,
    OffsetForLeaderTopicResult,
)

READ_COMMITTED = 1
EPOCH_FROM = 4
LATEST, EARLIEST, NEWEST_TIMESTAMP, EARLIEST_LOCAL = -1, -2, -3, -4
NEVER_TIERED = (-5, -6)
UNKNOWN_END = Code.OFFSET_NOT_AVAILABLE
UNKNOWN_END_FROM = 5
"""The version from which on clients know what it means, and try again."""


def handle_list_offsets(request: Request) -> None:
    """The newest record may not be durable yet: then the answer waits for it."""
    unsure: list[Replica] = []
    response = _looked_up(request, unsure)
    confirm_appended(unsure, lambda error: request.answer(response if error is None else _looked_up(request, [])))


def _looked_up(request: Request, unsure: list[Replica]) -> ListOffsetsResponse:
    message: ListOffsetsRequest = request.message
    is_read_committed = message.isolation_level == READ_COMMITTED
    response = ListOffsetsResponse()
    for topic in message.topics:
        results = [_look_up(request, topic.name, wanted, is_read_committed, unsure) for wanted in topic.partitions]
        response.topics.append(ListOffsetsTopicResponse(topic.name, results))
    return response


def _look_up(
    request: Request, topic: str, wanted: ListOffsetsPartition, is_read_committed: bool, unsure: list[Replica]
) -> ListOffsetsPartitionResponse:
    result = ListOffsetsPartitionResponse(wanted.partition_index)
    try:
        replica = request.broker.topics.replica(topic, wanted.partition_index)
        check_epoch(replica, wanted.current_leader_epoch)
        replica.check_fresh()
        limit = replica.last_stable_offset if is_read_committed else replica.high_watermark
        if wanted.timestamp == LATEST:
            if not replica.knows_end:
                raise Refused(UNKNOWN_END if request.version >= UNKNOWN_END_FROM else Code.LEADER_NOT_AVAILABLE)
            result.offset = limit
        elif wanted.timestamp in (EARLIEST, EARLIEST_LOCAL):
            result.offset = replica.start_offset
        elif wanted.timestamp == NEWEST_TIMESTAMP:
            moment = replica.newest()
            if moment is not None:
                result.offset, result.timestamp = moment
                unsure.append(replica)
        elif wanted.timestamp not in NEVER_TIERED:
            moment = replica.first_at_or_after(wanted.timestamp)
            if moment is not None and moment.offset < limit:
                result.offset, result.timestamp = moment
        if result.offset >= 0 and request.version >= EPOCH_FROM:
            result.leader_epoch = replica.epoch_at(result.offset)
    except GoQueueError as error:
        result.error_code = code_of(error)
    return result


def handle_offset_for_leader_epoch(request: Request) -> None:
    message: OffsetForLeaderEpochRequest = request.message
    response = OffsetForLeaderEpochResponse()
    for topic in message.topics:
        results = []
        for wanted in topic.partitions:
            result = OffsetForLeaderPartitionResult(partition=wanted.partition)
            try:
                replica = request.broker.topics.replica(topic.topic, wanted.partition)
                check_epoch(replica, wanted.current_leader_epoch)
                result.leader_epoch, result.end_offset = replica.epoch_end(wanted.leader_epoch)
            except GoQueueError as error:
                result.error_code = code_of(error)
            results.append(result)
        response.topics.append(OffsetForLeaderTopicResult(topic.topic, results))
    request.answer(response)
