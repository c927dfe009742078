"""Which action is handled by whom."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from goqueue.doors.sqs.call import Call
from goqueue.doors.sqs.handlers import attributes, moves, queues, receive, send, settle
from goqueue.wire.sqs import requests
from goqueue.wire.sqs.errors import SqsError


class Action(NamedTuple):
    decode: Callable[[bytes], Any]
    handle: Callable[[Call, Any], Awaitable[dict[str, Any]]]


async def not_offered(call: Call, request: requests.OfQueue) -> dict[str, Any]:
    """Permissions belong to accounts, and here is one account."""
    call.queue(request.queue_url)
    raise SqsError("UnsupportedOperation", "GoQueue has no permissions per queue.")


def _action(request: type[Any], handle: Callable[[Call, Any], Awaitable[dict[str, Any]]]) -> Action:
    return Action(msgspec.json.Decoder(request).decode, handle)


ACTIONS: dict[str, Action] = {
    "AddPermission": _action(requests.OfQueue, not_offered),
    "CancelMessageMoveTask": _action(requests.CancelMessageMoveTask, moves.cancel_message_move_task),
    "ChangeMessageVisibility": _action(requests.ChangeMessageVisibility, settle.change_message_visibility),
    "ChangeMessageVisibilityBatch": _action(
        requests.ChangeMessageVisibilityBatch, settle.change_message_visibility_batch
    ),
    "CreateQueue": _action(requests.CreateQueue, queues.create_queue),
    "DeleteMessage": _action(requests.DeleteMessage, settle.delete_message),
    "DeleteMessageBatch": _action(requests.DeleteMessageBatch, settle.delete_message_batch),
    "DeleteQueue": _action(requests.OfQueue, queues.delete_queue),
    "GetQueueAttributes": _action(requests.GetQueueAttributes, attributes.get_queue_attributes),
    "GetQueueUrl": _action(requests.GetQueueUrl, queues.get_queue_url),
    "ListDeadLetterSourceQueues": _action(requests.ListDeadLetterSourceQueues, queues.list_dead_letter_source_queues),
    "ListMessageMoveTasks": _action(requests.ListMessageMoveTasks, moves.list_message_move_tasks),
    "ListQueueTags": _action(requests.OfQueue, attributes.list_queue_tags),
    "ListQueues": _action(requests.ListQueues, queues.list_queues),
    "PurgeQueue": _action(requests.OfQueue, queues.purge_queue),
    "ReceiveMessage": _action(requests.ReceiveMessage, receive.receive_message),
    "RemovePermission": _action(requests.OfQueue, not_offered),
    "SendMessage": _action(requests.SendMessage, send.send_message),
    "SendMessageBatch": _action(requests.SendMessageBatch, send.send_message_batch),
    "SetQueueAttributes": _action(requests.SetQueueAttributes, attributes.set_queue_attributes),
    "StartMessageMoveTask": _action(requests.StartMessageMoveTask, moves.start_message_move_task),
    "TagQueue": _action(requests.TagQueue, attributes.tag_queue),
    "UntagQueue": _action(requests.UntagQueue, attributes.untag_queue),
}
