"""Committed offsets: commit (also within transactions), fetch, delete."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

from goqueue.doors.kafka.request import Request, failure_code
from goqueue.machines.groups import commands
from goqueue.model.access import Kind
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.topic_partition import TopicPartition
from goqueue.model.topics import Topic
from goqueue.wire.kafka.messages import offsets as wire
from goqueue.wire.kafka.messages import transactions as wire_transactions
from goqueue.wire.kafka.notation import NO_UUID

COMMIT_IDS_FROM, FETCH_IDS_FROM, TRANSACTION_IDS_FROM = 10, 10, 6
COMMIT_NOT_FOUND_FROM = 9
ABORTABLE_FROM = 4
GROUPS_FROM = 8


def handle_offset_commit(request: Request) -> None:
    message: wire.OffsetCommitRequest = request.message
    topics = _find_all(request, message.topics, by_id=request.version >= COMMIT_IDS_FROM)
    command = commands.CommitOffsets(
        message.group_id,
        _offsets(message.topics, topics),
        message.generation_id_or_member_epoch,
        message.member_id,
        message.group_instance_id,
        knows_group_not_found=request.version >= COMMIT_NOT_FOUND_FROM,
    )

    def answer(reply: commands.CommitReply | GoQueueError) -> None:
        codes = _codes(reply, len(command.offsets))
        response = wire.OffsetCommitResponse()
        for topic, found in zip(message.topics, topics):
            pairs = zip(topic.partitions, codes)
            results = [wire.OffsetCommitResponsePartition(one.partition_index, code) for one, code in pairs]
            if found is None and topic.topic_id != NO_UUID:
                for one in results:
                    one.error_code = Code.UNKNOWN_TOPIC_ID
            response.topics.append(wire.OffsetCommitResponseTopic(topic.name, topic.topic_id, results))
        request.answer(response)

    request.broker.groups.submit(command, answer)


def handle_txn_offset_commit(request: Request) -> None:
    message: wire_transactions.TxnOffsetCommitRequest = request.message
    topics = _find_all(request, message.topics, by_id=request.version >= TRANSACTION_IDS_FROM)
    command = commands.CommitTransactionOffsets(
        message.group_id,
        message.producer_id,
        message.producer_epoch,
        _offsets(message.topics, topics),
        message.generation_id_or_member_epoch,
        message.member_id,
        message.group_instance_id,
    )

    transactions = request.broker.transactions
    verdict = transactions.may_write(message.producer_id, message.producer_epoch, message.group_id)
    if verdict is Code.NOT_ENOUGH_REPLICAS:
        verdict = Code.COORDINATOR_LOAD_IN_PROGRESS
    if verdict is not Code.NONE:
        is_abortable = verdict is Code.INVALID_TXN_STATE and request.version >= ABORTABLE_FROM
        refuse_txn_offset_commit(request, Code.TRANSACTION_ABORTABLE if is_abortable else verdict)
        return

    def answer(reply: commands.CommitReply | GoQueueError) -> None:
        _answer_txn_offset_commit(request, topics, _codes(reply, len(command.offsets)))

    request.broker.groups.submit(command, answer)


def refuse_txn_offset_commit(request: Request, code: Code) -> None:
    message: wire_transactions.TxnOffsetCommitRequest = request.message
    topics = _find_all(request, message.topics, by_id=request.version >= TRANSACTION_IDS_FROM)
    _answer_txn_offset_commit(request, topics, repeat(code))


def _answer_txn_offset_commit(request: Request, topics: Iterable[Topic | None], codes: Iterator[Code]) -> None:
    response = wire_transactions.TxnOffsetCommitResponse()
    for topic, found in zip(request.message.topics, topics):
        results = [
            wire_transactions.TxnOffsetCommitResponsePartition(
                one.partition_index, _known(next(codes), found, topic.topic_id)
            )
            for one in topic.partitions
        ]
        response.topics.append(wire_transactions.TxnOffsetCommitResponseTopic(topic.name, topic.topic_id, results))
    request.answer(response)


def _find_all(request: Request, topics: Iterable[Any], *, by_id: bool) -> list[Topic | None]:
    image = request.broker.topics.image
    return [image.by_id(topic.topic_id) if by_id else image.topics.get(topic.name) for topic in topics]


def _offsets(topics: Iterable[Any], found: Iterable[Topic | None]) -> tuple[commands.OffsetToCommit, ...]:
    wanted: list[commands.OffsetToCommit] = []
    for topic, known in zip(topics, found):
        name, partitions, topic_id = (
            (topic.name, 0, None) if known is None else (known.name, known.partitions, known.id)
        )
        wanted += [
            commands.OffsetToCommit(
                name,
                one.partition_index,
                one.committed_offset,
                0 <= one.partition_index < partitions,
                one.committed_leader_epoch,
                one.committed_metadata or "",
                topic_id,
            )
            for one in topic.partitions
        ]
    return tuple(wanted)


def _codes(reply: commands.CommitReply | GoQueueError, count: int) -> Iterator[Code]:
    return iter((failure_code(reply),) * count if isinstance(reply, GoQueueError) else reply.codes)


def _known(code: Code, topic: Topic | None, topic_id: bytes) -> Code:
    return Code.UNKNOWN_TOPIC_ID if topic is None and topic_id != NO_UUID else code


def handle_offset_fetch(request: Request) -> None:
    message: wire.OffsetFetchRequest = request.message
    if request.version >= GROUPS_FROM:
        _fetch_groups(request, message)
        return
    request.broker.admit(Kind.GROUP, message.group_id)  # old answers have no room for an error of the group
    partitions = None
    if message.topics is not None:
        partitions = tuple(
            TopicPartition(topic.name, index) for topic in message.topics for index in topic.partition_indexes
        )

    def answer(reply: commands.FetchOffsetsReply | GoQueueError) -> None:
        code, offsets = _fetched(reply)
        response = wire.OffsetFetchResponse(error_code=code)
        if code is not Code.NONE:
            # Before version 2 there is no other place for it. Later, clients that look at partitions only (aiokafka)
            # would take a missing one for "nothing was committed" and read everything again.
            offsets = [commands.FetchedOffset(each.topic, each.partition, code=code) for each in partitions or ()]
        by_topic: dict[str, wire.OffsetFetchResponseTopic] = {}
        for one in offsets:
            topic = by_topic.setdefault(one.topic, wire.OffsetFetchResponseTopic(one.topic))
            topic.partitions.append(
                wire.OffsetFetchResponsePartition(one.partition, one.offset, one.leader_epoch, one.metadata, one.code)
            )
        response.topics = list(by_topic.values())
        request.answer(response)

    request.broker.groups.submit(commands.FetchOffsets(message.group_id, partitions, message.require_stable), answer)


def _fetched(reply: commands.FetchOffsetsReply | GoQueueError) -> tuple[Code, Sequence[commands.FetchedOffset]]:
    if isinstance(reply, GoQueueError):
        return failure_code(reply), ()
    return reply.code, reply.offsets


def _fetch_groups(request: Request, message: wire.OffsetFetchRequest) -> None:
    response = wire.OffsetFetchResponse()
    uses_ids = request.version >= FETCH_IDS_FROM
    image = request.broker.topics.image
    groups = list({each.group_id: each for each in message.groups}.values())

    def collect(reply: commands.FetchOffsetsReply | GoQueueError, asked: wire.OffsetFetchRequestGroup) -> None:
        code, offsets = _fetched(reply)
        group = wire.OffsetFetchResponseGroup(asked.group_id, error_code=code)
        response.groups.append(group)
        by_topic: dict[str, wire.OffsetFetchResponseTopics] = {}
        for one in offsets:
            known = image.topics.get(one.topic)
            topic_id = known.id if known and uses_ids else NO_UUID
            if uses_ids and known is None:
                continue
            topic = by_topic.setdefault(one.topic, wire.OffsetFetchResponseTopics(one.topic, topic_id))
            topic.partitions.append(
                wire.OffsetFetchResponsePartitions(one.partition, one.offset, one.leader_epoch, one.metadata, one.code)
            )
        group.topics = list(by_topic.values())
        for wanted in asked.topics or ():
            if uses_ids and image.by_id(wanted.topic_id) is None:
                unknown = [
                    wire.OffsetFetchResponsePartitions(index, -1, error_code=Code.UNKNOWN_TOPIC_ID)
                    for index in wanted.partition_indexes
                ]
                group.topics.append(wire.OffsetFetchResponseTopics("", wanted.topic_id, unknown))
        if len(response.groups) == len(groups):
            request.answer(response)

    def fetch(asked: wire.OffsetFetchRequestGroup) -> None:
        partitions = None if asked.topics is None else tuple(_wanted(request, asked.topics, uses_ids=uses_ids))
        command = commands.FetchOffsets(
            asked.group_id, partitions, message.require_stable, asked.member_id, asked.member_epoch
        )
        request.broker.groups.submit(command, lambda reply: collect(reply, asked))

    if not groups:
        request.answer(response)
    request.each(groups, fetch)


def _wanted(
    request: Request, topics: list[wire.OffsetFetchRequestTopics], *, uses_ids: bool
) -> Iterable[TopicPartition]:
    image = request.broker.topics.image
    for topic in topics:
        known = image.by_id(topic.topic_id) if uses_ids else None
        if uses_ids and known is None:
            continue
        for index in topic.partition_indexes:
            yield TopicPartition(known.name if known else topic.name, index)


def handle_offset_delete(request: Request) -> None:
    message: wire.OffsetDeleteRequest = request.message
    wanted = tuple(
        TopicPartition(topic.name, one.partition_index) for topic in message.topics for one in topic.partitions
    )

    def answer(reply: commands.DeleteOffsetsReply | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            request.answer(wire.OffsetDeleteResponse(error_code=failure_code(reply)))
            return
        response, codes = wire.OffsetDeleteResponse(error_code=reply.code), iter(reply.codes)
        if response.error_code == Code.NONE:
            for topic in message.topics:
                results = [
                    wire.OffsetDeleteResponsePartition(one.partition_index, next(codes)) for one in topic.partitions
                ]
                response.topics.append(wire.OffsetDeleteResponseTopic(topic.name, results))
        request.answer(response)

    request.broker.groups.submit(commands.DeleteOffsets(message.group_id, wanted), answer)
