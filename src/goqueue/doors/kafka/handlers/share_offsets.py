"""Where share groups stand: everything below a start offset is settled. To describe, to set, to forget."""

from collections.abc import Callable
from functools import partial
from typing import Any

from goqueue.broker.groups.groups import share_commands
from goqueue.broker.queues.queues import EARLIEST, Place
from goqueue.broker.topics.topics import code_of
from goqueue.doors.kafka.handlers.share_groups import is_kept
from goqueue.doors.kafka.request import Request, failure_code
from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError
from goqueue.model.ids import GROUP_ID_CHARS_MAX
from goqueue.model.refusal import Refused
from goqueue.wire.kafka.messages import share_offsets as wire
from goqueue.wire.kafka.notation import NO_UUID

NO_OFFSET = -1


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

    def told(reply: Any) -> None:
        code = failure_code(reply)
        if code is not None:
            call(code)
        elif reply.members:
            call(Code.NON_EMPTY_GROUP)
        else:
            exists = reply.epoch or is_kept(request, group_id)
            call(Code.NONE if exists else Code.GROUP_ID_NOT_FOUND)

    request.broker.groups.submit(share_commands.DescribeShareGroup(group_id), told)


def _describe(
    request: Request,
    asked: wire.DescribeShareGroupOffsetsRequestGroup,
    group: wire.DescribeShareGroupOffsetsResponseGroup,
    then: Callable[[], object],
) -> None:
    """Each partition may take a look at its log."""
    wanted: dict[str, list[int]] = {}
    if asked.topics is None:
        for place in sorted(request.broker.queues.places(asked.group_id)):
            wanted.setdefault(place.topic, []).append(place.partition)
    else:
        wanted = {topic.topic_name: topic.partitions for topic in asked.topics}
    places: list[tuple[wire.DescribeShareGroupOffsetsResponseTopic, Place]] = []
    for name, numbers in wanted.items():
        topic = wire.DescribeShareGroupOffsetsResponseTopic(name, _topic_id(request, name), [])
        group.topics.append(topic)
        places += [(topic, Place(asked.group_id, name, number)) for number in numbers]
    request.each(places, lambda one: one[0].partitions.append(_partition(request, one[1])), then)


def _topic_id(request: Request, name: str) -> bytes:
    topic = request.broker.topics.image.topics.get(name)
    return NO_UUID if topic is None else topic.id


def _partition(request: Request, place: Place) -> wire.DescribeShareGroupOffsetsResponsePartition:
    result = wire.DescribeShareGroupOffsetsResponsePartition(place.partition, NO_OFFSET)
    try:
        replica = request.broker.topics.replica(place.topic, place.partition)
        measure = request.broker.queues.measure(place)
    except GoQueueError as error:
        # A partition that the group has not read yet has no offset, and that is no error.
        if code_of(error) is not Code.GROUP_ID_NOT_FOUND:
            result.error_code, result.error_message = code_of(error), str(error)
        return result
    unsettled = sum(measure.ready) + sum(measure.leased) + measure.waiting + measure.held + measure.dead
    result.start_offset = measure.start_offset
    result.leader_epoch = replica.leader_epoch
    result.lag = unsettled + max(0, replica.high_watermark - measure.end_offset)
    return result


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

    def sought(result: wire.AlterShareGroupOffsetsResponsePartition, reply: Any) -> None:
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


def _seek(request: Request, place: Place, offset: int, on_reply: Callable[[Any], None]) -> None:
    try:
        end_offset = request.broker.topics.replica(place.topic, place.partition).high_watermark
        if not 0 <= offset <= end_offset:
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

    def dropped(reply: Any) -> None:
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
