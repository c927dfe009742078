"""Which action is handled by whom."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from goqueue.doors.sqs.call import Call
from goqueue.doors.sqs.handlers import attributes, moves, queues, receive, send, settle
from goqueue.model.access import Kind, Operation, Permission
from goqueue.wire.home import EVERYWHERE, HERE, IN_PARTS, QUEUE, Home, at
from goqueue.wire.sqs import requests
from goqueue.wire.sqs.errors import SqsError


class Action(NamedTuple):
    decode: Callable[[bytes], Any]
    handle: Callable[[Call, Any], Awaitable[dict[str, Any]]]
    permission: Permission
    home: Home


async def not_offered(call: Call, request: requests.OfQueue) -> dict[str, Any]:
    """Permissions belong to accounts, and here is one account."""
    call.queue(request.queue_url)
    raise SqsError("UnsupportedOperation", "GoQueue has no permissions per queue.")


def _action(
    request: type[Any],
    handle: Callable[[Call, Any], Awaitable[dict[str, Any]]],
    permission: Permission,
    home: Home,
) -> Action:
    return Action(msgspec.json.Decoder(request).decode, handle, permission, home)


OF_QUEUE = at(QUEUE)
"""Move tasks run where the first partition of their source is led."""


TOPIC, GROUP = Kind.TOPIC, Kind.GROUP
"""A queue is a topic, and what is received belongs to a group of its own."""
CREATES = Permission({TOPIC: (Operation.CREATE, Operation.WRITE), GROUP: Operation.READ})
"""The queue of a redrive policy is written to."""
DESCRIBES = Permission({TOPIC: Operation.DESCRIBE, GROUP: Operation.DESCRIBE})
ALTERS = Permission({TOPIC: (Operation.ALTER_CONFIGS, Operation.WRITE)})
DELETES = Permission({TOPIC: Operation.DELETE})
PURGES = Permission({TOPIC: Operation.DELETE, GROUP: Operation.READ})
SENDS = Permission({TOPIC: Operation.WRITE})
RECEIVES = Permission({TOPIC: Operation.READ, GROUP: Operation.READ})
MOVES = Permission({TOPIC: (Operation.READ, Operation.WRITE), GROUP: Operation.READ}, is_change=True)

ACTIONS: dict[str, Action] = {
    "AddPermission": _action(requests.OfQueue, not_offered, ALTERS, HERE),
    "CancelMessageMoveTask": _action(requests.CancelMessageMoveTask, moves.cancel_message_move_task, MOVES, OF_QUEUE),
    "ChangeMessageVisibility": _action(
        requests.ChangeMessageVisibility, settle.change_message_visibility, RECEIVES, IN_PARTS
    ),
    "ChangeMessageVisibilityBatch": _action(
        requests.ChangeMessageVisibilityBatch, settle.change_message_visibility_batch, RECEIVES, IN_PARTS
    ),
    "CreateQueue": _action(requests.CreateQueue, queues.create_queue, CREATES, IN_PARTS),
    "DeleteMessage": _action(requests.DeleteMessage, settle.delete_message, RECEIVES, IN_PARTS),
    "DeleteMessageBatch": _action(requests.DeleteMessageBatch, settle.delete_message_batch, RECEIVES, IN_PARTS),
    "DeleteQueue": _action(requests.OfQueue, queues.delete_queue, DELETES, HERE),
    "GetQueueAttributes": _action(requests.GetQueueAttributes, attributes.get_queue_attributes, DESCRIBES, EVERYWHERE),
    "GetQueueUrl": _action(requests.GetQueueUrl, queues.get_queue_url, DESCRIBES, HERE),
    "ListDeadLetterSourceQueues": _action(
        requests.ListDeadLetterSourceQueues, queues.list_dead_letter_source_queues, DESCRIBES, HERE
    ),
    "ListMessageMoveTasks": _action(requests.ListMessageMoveTasks, moves.list_message_move_tasks, DESCRIBES, OF_QUEUE),
    "ListQueueTags": _action(requests.OfQueue, attributes.list_queue_tags, DESCRIBES, HERE),
    "ListQueues": _action(requests.ListQueues, queues.list_queues, DESCRIBES, HERE),
    "PurgeQueue": _action(requests.OfQueue, queues.purge_queue, PURGES, EVERYWHERE),
    "ReceiveMessage": _action(requests.ReceiveMessage, receive.receive_message, RECEIVES, IN_PARTS),
    "RemovePermission": _action(requests.OfQueue, not_offered, ALTERS, HERE),
    "SendMessage": _action(requests.SendMessage, send.send_message, SENDS, IN_PARTS),
    "SendMessageBatch": _action(requests.SendMessageBatch, send.send_message_batch, SENDS, IN_PARTS),
    "SetQueueAttributes": _action(requests.SetQueueAttributes, attributes.set_queue_attributes, ALTERS, HERE),
    "StartMessageMoveTask": _action(requests.StartMessageMoveTask, moves.start_message_move_task, MOVES, OF_QUEUE),
    "TagQueue": _action(requests.TagQueue, attributes.tag_queue, ALTERS, HERE),
    "UntagQueue": _action(requests.UntagQueue, attributes.untag_queue, ALTERS, HERE),
}
