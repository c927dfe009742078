import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_CODE_UNSPECIFIED: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_ARGUMENT: _ClassVar[ErrorCode]
    ERROR_CODE_TOPIC_NOT_FOUND: _ClassVar[ErrorCode]
    ERROR_CODE_TOPIC_ALREADY_EXISTS: _ClassVar[ErrorCode]
    ERROR_CODE_PARTITION_NOT_FOUND: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_PARTITION: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_TOPIC: _ClassVar[ErrorCode]
    ERROR_CODE_OFFSET_OUT_OF_RANGE: _ClassVar[ErrorCode]
    ERROR_CODE_GROUP_NOT_FOUND: _ClassVar[ErrorCode]
    ERROR_CODE_NOT_GROUP_MEMBER: _ClassVar[ErrorCode]
    ERROR_CODE_REBALANCE_IN_PROGRESS: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_GENERATION: _ClassVar[ErrorCode]
    ERROR_CODE_SESSION_TIMEOUT: _ClassVar[ErrorCode]
    ERROR_CODE_NOT_ASSIGNED: _ClassVar[ErrorCode]
    ERROR_CODE_GROUP_NOT_EMPTY: _ClassVar[ErrorCode]
    ERROR_CODE_MESSAGE_TOO_LARGE: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_MESSAGE: _ClassVar[ErrorCode]
    ERROR_CODE_RECEIPT_HANDLE_INVALID: _ClassVar[ErrorCode]
    ERROR_CODE_RECEIPT_HANDLE_EXPIRED: _ClassVar[ErrorCode]
    ERROR_CODE_MESSAGE_NOT_FOUND: _ClassVar[ErrorCode]
    ERROR_CODE_ALREADY_SETTLED: _ClassVar[ErrorCode]
    ERROR_CODE_TRANSACTION_NOT_FOUND: _ClassVar[ErrorCode]
    ERROR_CODE_TRANSACTION_TIMEOUT: _ClassVar[ErrorCode]
    ERROR_CODE_PRODUCER_FENCED: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID_TXN_STATE: _ClassVar[ErrorCode]
    ERROR_CODE_OUT_OF_ORDER_SEQUENCE: _ClassVar[ErrorCode]
    ERROR_CODE_PRODUCER_NOT_FOUND: _ClassVar[ErrorCode]
    ERROR_CODE_NOT_LEADER: _ClassVar[ErrorCode]
    ERROR_CODE_LEADER_NOT_AVAILABLE: _ClassVar[ErrorCode]
    ERROR_CODE_BROKER_NOT_AVAILABLE: _ClassVar[ErrorCode]
    ERROR_CODE_REPLICATION_FAILED: _ClassVar[ErrorCode]

class Durability(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DURABILITY_UNSPECIFIED: _ClassVar[Durability]
    DURABILITY_OS: _ClassVar[Durability]
    DURABILITY_DISK: _ClassVar[Durability]

class AckMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACK_MODE_LEADER: _ClassVar[AckMode]
    ACK_MODE_NONE: _ClassVar[AckMode]
    ACK_MODE_ALL: _ClassVar[AckMode]
ERROR_CODE_UNSPECIFIED: ErrorCode
ERROR_CODE_INVALID_ARGUMENT: ErrorCode
ERROR_CODE_TOPIC_NOT_FOUND: ErrorCode
ERROR_CODE_TOPIC_ALREADY_EXISTS: ErrorCode
ERROR_CODE_PARTITION_NOT_FOUND: ErrorCode
ERROR_CODE_INVALID_PARTITION: ErrorCode
ERROR_CODE_INVALID_TOPIC: ErrorCode
ERROR_CODE_OFFSET_OUT_OF_RANGE: ErrorCode
ERROR_CODE_GROUP_NOT_FOUND: ErrorCode
ERROR_CODE_NOT_GROUP_MEMBER: ErrorCode
ERROR_CODE_REBALANCE_IN_PROGRESS: ErrorCode
ERROR_CODE_INVALID_GENERATION: ErrorCode
ERROR_CODE_SESSION_TIMEOUT: ErrorCode
ERROR_CODE_NOT_ASSIGNED: ErrorCode
ERROR_CODE_GROUP_NOT_EMPTY: ErrorCode
ERROR_CODE_MESSAGE_TOO_LARGE: ErrorCode
ERROR_CODE_INVALID_MESSAGE: ErrorCode
ERROR_CODE_RECEIPT_HANDLE_INVALID: ErrorCode
ERROR_CODE_RECEIPT_HANDLE_EXPIRED: ErrorCode
ERROR_CODE_MESSAGE_NOT_FOUND: ErrorCode
ERROR_CODE_ALREADY_SETTLED: ErrorCode
ERROR_CODE_TRANSACTION_NOT_FOUND: ErrorCode
ERROR_CODE_TRANSACTION_TIMEOUT: ErrorCode
ERROR_CODE_PRODUCER_FENCED: ErrorCode
ERROR_CODE_INVALID_TXN_STATE: ErrorCode
ERROR_CODE_OUT_OF_ORDER_SEQUENCE: ErrorCode
ERROR_CODE_PRODUCER_NOT_FOUND: ErrorCode
ERROR_CODE_NOT_LEADER: ErrorCode
ERROR_CODE_LEADER_NOT_AVAILABLE: ErrorCode
ERROR_CODE_BROKER_NOT_AVAILABLE: ErrorCode
ERROR_CODE_REPLICATION_FAILED: ErrorCode
DURABILITY_UNSPECIFIED: Durability
DURABILITY_OS: Durability
DURABILITY_DISK: Durability
ACK_MODE_LEADER: AckMode
ACK_MODE_NONE: AckMode
ACK_MODE_ALL: AckMode

class Message(_message.Message):
    __slots__ = ("topic", "partition", "offset", "timestamp", "deliver_at", "key", "value", "headers", "priority", "trace_id", "retry_count", "receipt_handle", "binary_headers", "lease_until")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class BinaryHeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    DELIVER_AT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    RETRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_HANDLE_FIELD_NUMBER: _ClassVar[int]
    BINARY_HEADERS_FIELD_NUMBER: _ClassVar[int]
    LEASE_UNTIL_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: int
    timestamp: _timestamp_pb2.Timestamp
    deliver_at: _timestamp_pb2.Timestamp
    key: bytes
    value: bytes
    headers: _containers.ScalarMap[str, str]
    priority: int
    trace_id: str
    retry_count: int
    receipt_handle: str
    binary_headers: _containers.ScalarMap[str, bytes]
    lease_until: _timestamp_pb2.Timestamp
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., timestamp: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deliver_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., headers: _Optional[_Mapping[str, str]] = ..., priority: _Optional[int] = ..., trace_id: _Optional[str] = ..., retry_count: _Optional[int] = ..., receipt_handle: _Optional[str] = ..., binary_headers: _Optional[_Mapping[str, bytes]] = ..., lease_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "message", "details", "retry_after")
    class DetailsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    code: ErrorCode
    message: str
    details: _containers.ScalarMap[str, str]
    retry_after: _duration_pb2.Duration
    def __init__(self, code: _Optional[_Union[ErrorCode, str]] = ..., message: _Optional[str] = ..., details: _Optional[_Mapping[str, str]] = ..., retry_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class TopicPartition(_message.Message):
    __slots__ = ("topic", "partition")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ...) -> None: ...
