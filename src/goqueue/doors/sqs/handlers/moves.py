"""Message move tasks: what is in a dead-letter queue goes back to work."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import msgspec

from goqueue.doors.sqs.call import Call
from goqueue.doors.sqs.queue import GROUP
from goqueue.model.codes import Code
from goqueue.model.error_codes import code_of
from goqueue.model.errors import GoQueueError
from goqueue.model.moves import Move, MoveStatus
from goqueue.model.refusal import Refused
from goqueue.wire.sqs.checks import check_range, need
from goqueue.wire.sqs.errors import OLD, SqsError, invalid_parameter
from goqueue.wire.sqs.requests import CancelMessageMoveTask, ListMessageMoveTasks, StartMessageMoveTask

RATE_MAX = 500
TASKS_MAX = 10


class Handle(msgspec.Struct):
    """Names a task; what its client gets is opaque."""

    task: int
    source: str


def _named(call: Call, arn: str | None, parameter: str) -> str:
    name = call.naming.name_of_arn(need(arn, parameter))
    if name is None or call.queues.find(name) is None:
        raise SqsError(
            "ResourceNotFoundException", f"The resource that you specified for the {parameter} parameter doesn't exist."
        )
    return name


def source_of(call: Call, request: Any) -> str:
    """The queue whose messages are moved."""
    if isinstance(request, CancelMessageMoveTask):
        return _parse(need(request.task_handle, "TaskHandle")).source
    return _named(call, request.source_arn, "SourceArn")


async def start_message_move_task(call: Call, request: StartMessageMoveTask) -> dict[str, Any]:
    source = _named(call, request.source_arn, "SourceArn")
    to = None if request.destination_arn is None else _named(call, request.destination_arn, "DestinationArn")
    rate = request.max_number_of_messages_per_second
    if rate is not None:
        check_range(rate, "MaxNumberOfMessagesPerSecond", 1, RATE_MAX)
    if all(queue.dead_letters != source for queue in call.queues):
        raise invalid_parameter("Source queue must be configured as a Dead Letter Queue.")
    if to == source:
        raise invalid_parameter("Source queue and destination queue cannot be the same.")
    try:
        elsewhere: int = await call.ask(lambda done: call.broker.moves.count_elsewhere(GROUP, source, done))
        move = call.broker.moves.start(GROUP, source, to, rate or 0, elsewhere)
    except Refused as refusal:
        if refusal.code is not Code.INVALID_REQUEST:
            raise
        raise invalid_parameter(
            "There is already a task running. Only one active task is allowed for a source queue arn at a given time."
        ) from None
    return {"TaskHandle": _handle(move)}


async def list_message_move_tasks(call: Call, request: ListMessageMoveTasks) -> dict[str, Any]:
    source = _named(call, request.source_arn, "SourceArn")
    most = 1 if request.max_results is None else check_range(request.max_results, "MaxResults", 1, TASKS_MAX)
    found = [_described(call, move) for move in list(call.broker.moves.of(source))[:most]]
    return {"Results": found} if found else {}


async def cancel_message_move_task(call: Call, request: CancelMessageMoveTask) -> dict[str, Any]:
    handle = _parse(need(request.task_handle, "TaskHandle"))
    if call.queues.find(handle.source) is None:
        raise SqsError(
            "ResourceNotFoundException", "The resource that you specified for the SourceArn parameter doesn't exist."
        )
    move = next((each for each in call.broker.moves.of(handle.source) if each.number == handle.task), None)
    if move is None:
        raise SqsError("ResourceNotFoundException", "Task does not exist.")
    if move.status is not MoveStatus.RUNNING:
        raise invalid_parameter("Only active tasks can be cancelled.")
    call.broker.moves.cancel(handle.source, handle.task)
    return {"ApproximateNumberOfMessagesMoved": move.moved}


def _described(call: Call, move: Move) -> dict[str, Any]:
    about: dict[str, Any] = {
        "Status": move.status.value,
        "SourceArn": call.naming.arn(move.source),
        "ApproximateNumberOfMessagesMoved": move.moved,
        "ApproximateNumberOfMessagesToMove": move.records,
        "StartedTimestamp": move.started_ms,
    }
    if move.status is MoveStatus.RUNNING:
        about["TaskHandle"] = _handle(move)
    if move.to is not None:
        about["DestinationArn"] = call.naming.arn(move.to)
    if move.rate:
        about["MaxNumberOfMessagesPerSecond"] = move.rate
    if move.error is not None:
        about["FailureReason"] = _why(move.error)
    return about


def _why(error: GoQueueError) -> str:
    code = code_of(error)
    if code is Code.INVALID_REQUEST:
        return "CouldNotDetermineMessageSource"
    return OLD + "NonExistentQueue" if code is Code.UNKNOWN_TOPIC_OR_PARTITION else f"InternalError: {error}"


def _handle(move: Move) -> str:
    return urlsafe_b64encode(msgspec.json.encode(Handle(move.number, move.source))).decode()


def _parse(text: str) -> Handle:
    try:
        return msgspec.json.decode(urlsafe_b64decode(text), type=Handle)
    except (ValueError, msgspec.DecodeError):
        raise invalid_parameter("Value for parameter TaskHandle is invalid.") from None
