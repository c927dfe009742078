"""Which action is handled by whom."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from goqueue.doors.sqs.call import Call
from goqueue.doors.sqs.handlers import attributes, moves, queues, receive, send, settle
from goqueue.model.access import Kind, Operation, Permission
from goqueue.wire.sqs import requests
from goqueue.wire.sqs.errors import SqsError


class Action(NamedTuple):
    decode: Callable[[bytes], Any]
    handle: Callable[[Call, Any], Awaitable[dict[str, Any]]]
    permission: Permission


async def not_offered(call: Call, request: requests.OfQueue) -> dict[str, Any]:
    """Permissions belong to accounts, and here is one account."""
    call.queue(request.queue_url)
    raise SqsError("UnsupportedOperation", "GoQueue has no permissions per queue.")


def _action(
    request: type[Any],
    handle: Callable[[Call, Any], Awaitable[dict[str, Any]]],
    permission: Permission,
) -> Action:
    return Action(msgspec.json.Decoder(request).decode, handle, permission)


TOPIC, GROUP = Kind.TOPIC, Kind.GROUP
"""A queue is a topic, and what is received belongs to a group of its own."""
CREATES = Permission({TOPIC: Operation.CREATE, GROUP: Operation.READ})
DESCRIBES = Permission({TOPIC: Operation.DESCRIBE, GROUP: Operation.DESCRIBE})
ALTERS = Permission({TOPIC: Operation.ALTER_CONFIGS})
DELETES = Permission({TOPIC: Operation.DELETE})
PURGES = Permission({TOPIC: Operation.DELETE, GROUP: Operation.READ})
SENDS = Permission({TOPIC: Operation.WRITE})
RECEIVES = Permission({TOPIC: Operation.READ, GROUP: Operation.READ})
MOVES = Permission({TOPIC: (Operation.READ, Operation.WRITE), GROUP: Operation.READ})

ACTIONS: dict[str, Action] = {
    "AddPermission": _action(requests.OfQueue, not_offered, ALTERS),
    "CancelMessageMoveTask": _action(requests.CancelMessageMoveTask, moves.cancel_message_move_task, MOVES),
    "ChangeMessageVisibility": _action(requests.ChangeMessageVisibility, settle.change_message_visibility, RECEIVES),
    "ChangeMessageVisibilityBatch": _action(
        requests.ChangeMessageVisibilityBatch, settle.change_message_visibility_batch, RECEIVES
    ),
    "CreateQueue": _action(requests.CreateQueue, queues.create_queue, CREATES),
    "DeleteMessage": _action(requests.DeleteMessage, settle.delete_message, RECEIVES),
    "DeleteMessageBatch": _action(requests.DeleteMessageBatch, settle.delete_message_batch, RECEIVES),
    "DeleteQueue": _action(requests.OfQueue, queues.delete_queue, DELETES),
    "GetQueueAttributes": _action(requests.GetQueueAttributes, attributes.get_queue_attributes, DESCRIBES),
    "GetQueueUrl": _action(requests.GetQueueUrl, queues.get_queue_url, DESCRIBES),
    "ListDeadLetterSourceQueues": _action(
        requests.ListDeadLetterSourceQueues, queues.list_dead_letter_source_queues, DESCRIBES
    ),
    "ListMessageMoveTasks": _action(requests.ListMessageMoveTasks, moves.list_message_move_tasks, DESCRIBES),
    "ListQueueTags": _action(requests.OfQueue, attributes.list_queue_tags, DESCRIBES),
    "ListQueues": _action(requests.ListQueues, queues.list_queues, DESCRIBES),
    "PurgeQueue": _action(requests.OfQueue, queues.purge_queue, PURGES),
    "ReceiveMessage": _action(requests.ReceiveMessage, receive.receive_message, RECEIVES),
    "RemovePermission": _action(requests.OfQueue, not_offered, ALTERS),
    "SendMessage": _action(requests.SendMessage, send.send_message, SENDS),
    "SendMessageBatch": _action(requests.SendMessageBatch, send.send_message_batch, SENDS),
    "SetQueueAttributes": _action(requests.SetQueueAttributes, attributes.set_queue_attributes, ALTERS),
    "StartMessageMoveTask": _action(requests.StartMessageMoveTask, moves.start_message_move_task, MOVES),
    "TagQueue": _action(requests.TagQueue, attributes.tag_queue, ALTERS),
    "UntagQueue": _action(requests.UntagQueue, attributes.untag_queue, ALTERS),
}
