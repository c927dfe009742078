"""Requests as boto3 sends them. Fields that must be there may be absent here: who needs one says so in SQS's words."""

import msgspec


class MessageAttribute(msgspec.Struct, rename="pascal", omit_defaults=True):
    data_type: str | None = None
    string_value: str | None = None
    binary_value: bytes | None = None

    @property
    def value(self) -> bytes:
        if self.binary_value is not None:
            return self.binary_value
        return (self.string_value or "").encode()


class Request(msgspec.Struct, rename="pascal"):
    pass


class OfQueue(Request):
    queue_url: str | None = None


class CreateQueue(Request):
    queue_name: str | None = None
    attributes: dict[str, str] = {}
    tags: dict[str, str] = msgspec.field(default_factory=dict, name="tags")


class GetQueueUrl(Request):
    queue_name: str | None = None


class ListQueues(Request):
    queue_name_prefix: str = ""
    next_token: str | None = None
    max_results: int | None = None


class ListDeadLetterSourceQueues(OfQueue):
    next_token: str | None = None
    max_results: int | None = None


class GetQueueAttributes(OfQueue):
    attribute_names: list[str] = []


class SetQueueAttributes(OfQueue):
    attributes: dict[str, str] | None = None


class TagQueue(OfQueue):
    tags: dict[str, str] | None = None


class UntagQueue(OfQueue):
    tag_keys: list[str] | None = None


class Outgoing(Request):
    """A message to be sent."""

    message_body: str | None = None
    delay_seconds: int | None = None
    message_attributes: dict[str, MessageAttribute] = {}
    message_system_attributes: dict[str, MessageAttribute] = {}
    message_deduplication_id: str | None = None
    message_group_id: str | None = None


class SendMessage(Outgoing):
    queue_url: str | None = None


class SendEntry(Outgoing):
    id: str | None = None


class SendMessageBatch(OfQueue):
    entries: list[SendEntry] | None = None


class ReceiveMessage(OfQueue):
    attribute_names: list[str] = []
    message_system_attribute_names: list[str] = []
    message_attribute_names: list[str] = []
    max_number_of_messages: int | None = None
    visibility_timeout: int | None = None
    wait_time_seconds: int | None = None
    receive_request_attempt_id: str | None = None


class DeleteEntry(Request):
    id: str | None = None
    receipt_handle: str | None = None


class DeleteMessage(OfQueue):
    receipt_handle: str | None = None


class DeleteMessageBatch(OfQueue):
    entries: list[DeleteEntry] | None = None


class VisibilityEntry(DeleteEntry):
    visibility_timeout: int | None = None


class ChangeMessageVisibility(DeleteMessage):
    visibility_timeout: int | None = None


class ChangeMessageVisibilityBatch(OfQueue):
    entries: list[VisibilityEntry] | None = None


class StartMessageMoveTask(Request):
    source_arn: str | None = None
    destination_arn: str | None = None
    max_number_of_messages_per_second: int | None = None


class ListMessageMoveTasks(Request):
    source_arn: str | None = None
    max_results: int | None = None


class CancelMessageMoveTask(Request):
    task_handle: str | None = None
