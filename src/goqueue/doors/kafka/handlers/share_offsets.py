"""Where share groups stand: everything below a start offset is settled. To describe, to set, to forget."""

from collections.abc import Callable, Sequence
from functools import partial

from goqueue.doors.kafka.handlers.share_groups import is_kept
from goqueue.doors.kafka.request import Request, failure_code
from goqueue.machines.deliveries.commands import Place, Stand
from goqueue.machines.groups.share import facts as share_commands
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import GROUP_ID_CHARS_MAX
from goqueue.model.refusal import Refused
from goqueue.model.starts import EARLIEST
from goqueue.wire.kafka.messages import share_offsets as wire
from goqueue.wire.kafka.notation import NO_UUID


def handle_describe_offsets(request: Request) -> None:
    response = wire.DescribeShareGroupOffsetsResponse()
    groups = request.message.groups
    waiting = len(groups) + 1

    def collect(code: Code, asked: wire.DescribeShareGroupOffsetsRequestGroup) -> None:
        group = wire.DescribeShareGroupOffsetsResponseGroup(asked.group_id)
        response.groups.append(group)
        if code in (Code.NONE, Code.NON_EMPTY_GROUP):
            _describe(request, asked, group, described)
        else:
            group.error_code, group.error_message = code, "there is no such share group"
            described()

    def described() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            request.answer(response)

    request.each(
        groups,
        lambda asked: _with_state(request, asked.group_id, lambda code: collect(code, asked)),
        described,
    )


def _with_state(request: Request, group_id: str, call: Callable[[Code], None]) -> None:
    """NONE: there is such a share group and it has no members; NON_EMPTY_GROUP: it has."""

    def told(reply: share_commands.ShareGroupDescription | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            call(failure_code(reply))
        elif reply.members:
            call(Code.NON_EMPTY_GROUP)
        else:
            exists = reply.epoch or is_kept(request, group_id)
            if exists:
                call(Code.NONE)
            else:
                request.broker.groups.find_queue(group_id, found)

    def found(is_queue: bool | GoQueueError) -> None:
        if isinstance(is_queue, GoQueueError):
            call(code_of(is_queue))
        else:
            call(Code.NONE if is_queue else Code.GROUP_ID_NOT_FOUND)

    request.broker.groups.submit(share_commands.DescribeShareGroup(group_id), told)


def _describe(
    request: Request,
    asked: wire.DescribeShareGroupOffsetsRequestGroup,
    group: wire.DescribeShareGroupOffsetsResponseGroup,
    then: Callable[[], object],
) -> None:
    """Each partition may take a look at its log, and be led by another node."""
    wanted: list[Place] | None = None
    tables: dict[str, wire.DescribeShareGroupOffsetsResponseTopic] = {}

    def table(name: str) -> wire.DescribeShareGroupOffsetsResponseTopic:
        if name not in tables:
            tables[name] = wire.DescribeShareGroupOffsetsResponseTopic(name, _topic_id(request, name), [])
            group.topics.append(tables[name])
        return tables[name]

    def told(stands: Sequence[Stand]) -> None:
        for one in stands:
            table(one.topic).partitions.append(_partition(one))
        then()

    if asked.topics is not None:
        for topic in asked.topics:
            table(topic.topic_name)
        wanted = [
            Place(asked.group_id, topic.topic_name, number) for topic in asked.topics for number in topic.partitions
        ]
    request.broker.queues.stands(asked.group_id, wanted, told)


def _topic_id(request: Request, name: str) -> bytes:
    topic = request.broker.topics.image.topics.get(name)
    return NO_UUID if topic is None else topic.id


def _partition(stand: Stand) -> wire.DescribeShareGroupOffsetsResponsePartition:
    return wire.DescribeShareGroupOffsetsResponsePartition(
        stand.partition, stand.start_offset, stand.leader_epoch, stand.lag, stand.code, stand.message or None
    )


def handle_alter_offsets(request: Request) -> None:
    message: wire.AlterShareGroupOffsetsRequest = request.message

    def alter(code: Code) -> None:
        """Kafka makes the group that is not there yet."""
        group_id = message.group_id
        if len(group_id) > GROUP_ID_CHARS_MAX:
            code = Code.INVALID_GROUP_ID
        is_new = code is Code.GROUP_ID_NOT_FOUND and bool(group_id) and request.broker.groups.kind_of(group_id) is None
        if code is not Code.NONE and not is_new:
            request.answer(wire.AlterShareGroupOffsetsResponse(error_code=code, error_message=_why(code)))
        else:
            _alter(request, message)

    _with_state(request, message.group_id, alter)


def _why(code: Code) -> str:
    return code.name.lower().replace("_", " ")


def _alter(request: Request, message: wire.AlterShareGroupOffsetsRequest) -> None:
    response = wire.AlterShareGroupOffsetsResponse()
    waiting = 1

    def done() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            request.answer(response)

    def sought(result: wire.AlterShareGroupOffsetsResponsePartition, reply: Code | GoQueueError) -> None:
        if isinstance(reply, GoQueueError):
            result.error_code, result.error_message = code_of(reply), str(reply)
        elif reply is not Code.NONE:
            result.error_code, result.error_message = reply, _why(reply)
        done()

    def seek(one: tuple[Place, int, wire.AlterShareGroupOffsetsResponsePartition]) -> None:
        place, offset, result = one
        _seek(request, place, offset, partial(sought, result))

    wanted = []
    for topic in message.topics:
        answered = wire.AlterShareGroupOffsetsResponseTopic(topic.topic_name, _topic_id(request, topic.topic_name))
        response.responses.append(answered)
        for one in topic.partitions:
            result = wire.AlterShareGroupOffsetsResponsePartition(one.partition_index)
            answered.partitions.append(result)
            place = Place(message.group_id, topic.topic_name, one.partition_index)
            wanted.append((place, one.start_offset, result))
    waiting += len(wanted)
    request.each(wanted, seek, done)


def _seek(request: Request, place: Place, offset: int, on_reply: Callable[[Code | GoQueueError], None]) -> None:
    topics = request.broker.topics
    try:
        is_elsewhere = topics.exists(place.topic, place.partition) and not topics.leads(place.topic, place.partition)
        end_offset = offset if is_elsewhere else topics.replica(place.topic, place.partition).high_watermark
        if not 0 <= offset <= end_offset:  # of one that another node leads, that looks
            raise Refused(Code.OFFSET_OUT_OF_RANGE, f"{offset} is not from 0 to {end_offset}")
    except GoQueueError as error:
        on_reply(error)
        return

    def opened(error: GoQueueError | None) -> None:
        if error is not None:
            on_reply(error)
        else:
            request.broker.queues.seek(place, offset, on_reply)

    request.broker.queues.open(place, EARLIEST, opened)


def handle_delete_offsets(request: Request) -> None:
    message: wire.DeleteShareGroupOffsetsRequest = request.message

    def delete(code: Code) -> None:
        if code is not Code.NONE:
            request.answer(wire.DeleteShareGroupOffsetsResponse(error_code=code, error_message=_why(code)))
        else:
            _delete(request, message)

    _with_state(request, message.group_id, delete)


def _delete(request: Request, message: wire.DeleteShareGroupOffsetsRequest) -> None:
    known = request.broker.topics.image.topics
    names = [topic.topic_name for topic in message.topics]

    def dropped(reply: object) -> None:
        failed = code_of(reply) if isinstance(reply, GoQueueError) else Code.NONE
        response = wire.DeleteShareGroupOffsetsResponse()
        for name in names:
            code = failed if name in known else Code.UNKNOWN_TOPIC_OR_PARTITION
            response.responses.append(
                wire.DeleteShareGroupOffsetsResponseTopic(
                    name, _topic_id(request, name), code, _why(code) if code else None
                )
            )
        request.answer(response)

    request.broker.queues.drop(message.group_id, [name for name in names if name in known], dropped)
