import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from goqueue.wire.grpc import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AckRequest(_message.Message):
    __slots__ = ("group_id", "receipt_handle", "topic", "partition", "offset", "member_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_HANDLE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    receipt_handle: str
    topic: str
    partition: int
    offset: int
    member_id: str
    def __init__(self, group_id: _Optional[str] = ..., receipt_handle: _Optional[str] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., member_id: _Optional[str] = ...) -> None: ...

class AckResponse(_message.Message):
    __slots__ = ("success",)
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    success: bool
    def __init__(self, success: _Optional[bool] = ...) -> None: ...

class NackRequest(_message.Message):
    __slots__ = ("group_id", "receipt_handle", "visibility_timeout", "topic", "partition", "offset", "member_id", "reason")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_HANDLE_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    receipt_handle: str
    visibility_timeout: _duration_pb2.Duration
    topic: str
    partition: int
    offset: int
    member_id: str
    reason: str
    def __init__(self, group_id: _Optional[str] = ..., receipt_handle: _Optional[str] = ..., visibility_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., member_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class NackResponse(_message.Message):
    __slots__ = ("success", "next_visible_at", "dlq_topic")
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    NEXT_VISIBLE_AT_FIELD_NUMBER: _ClassVar[int]
    DLQ_TOPIC_FIELD_NUMBER: _ClassVar[int]
    success: bool
    next_visible_at: _timestamp_pb2.Timestamp
    dlq_topic: str
    def __init__(self, success: _Optional[bool] = ..., next_visible_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., dlq_topic: _Optional[str] = ...) -> None: ...

class RejectRequest(_message.Message):
    __slots__ = ("group_id", "receipt_handle", "reason", "topic", "partition", "offset", "member_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_HANDLE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    receipt_handle: str
    reason: str
    topic: str
    partition: int
    offset: int
    member_id: str
    def __init__(self, group_id: _Optional[str] = ..., receipt_handle: _Optional[str] = ..., reason: _Optional[str] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., member_id: _Optional[str] = ...) -> None: ...

class RejectResponse(_message.Message):
    __slots__ = ("success", "dlq_topic")
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    DLQ_TOPIC_FIELD_NUMBER: _ClassVar[int]
    success: bool
    dlq_topic: str
    def __init__(self, success: _Optional[bool] = ..., dlq_topic: _Optional[str] = ...) -> None: ...

class ExtendVisibilityRequest(_message.Message):
    __slots__ = ("group_id", "receipt_handle", "visibility_timeout")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_HANDLE_FIELD_NUMBER: _ClassVar[int]
    VISIBILITY_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    receipt_handle: str
    visibility_timeout: _duration_pb2.Duration
    def __init__(self, group_id: _Optional[str] = ..., receipt_handle: _Optional[str] = ..., visibility_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ExtendVisibilityResponse(_message.Message):
    __slots__ = ("success", "new_deadline")
    SUCCESS_FIELD_NUMBER: _ClassVar[int]
    NEW_DEADLINE_FIELD_NUMBER: _ClassVar[int]
    success: bool
    new_deadline: _timestamp_pb2.Timestamp
    def __init__(self, success: _Optional[bool] = ..., new_deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class BatchAckRequest(_message.Message):
    __slots__ = ("group_id", "receipt_handles", "offsets", "member_id")
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_HANDLES_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ID_FIELD_NUMBER: _ClassVar[int]
    group_id: str
    receipt_handles: _containers.RepeatedScalarFieldContainer[str]
    offsets: _containers.RepeatedCompositeFieldContainer[OffsetAck]
    member_id: str
    def __init__(self, group_id: _Optional[str] = ..., receipt_handles: _Optional[_Iterable[str]] = ..., offsets: _Optional[_Iterable[_Union[OffsetAck, _Mapping]]] = ..., member_id: _Optional[str] = ...) -> None: ...

class OffsetAck(_message.Message):
    __slots__ = ("topic", "partition", "offset")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class BatchAckResponse(_message.Message):
    __slots__ = ("success_count", "failures")
    SUCCESS_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    success_count: int
    failures: _containers.RepeatedCompositeFieldContainer[AckError]
    def __init__(self, success_count: _Optional[int] = ..., failures: _Optional[_Iterable[_Union[AckError, _Mapping]]] = ...) -> None: ...

class AckError(_message.Message):
    __slots__ = ("receipt_handle", "topic", "partition", "offset", "error")
    RECEIPT_HANDLE_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    receipt_handle: str
    topic: str
    partition: int
    offset: int
    error: _common_pb2.Error
    def __init__(self, receipt_handle: _Optional[str] = ..., topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...
