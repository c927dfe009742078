"""One table from our errors to gRPC's statuses and the codes of `goqueue.v1`. Nothing that a client sends may end as
UNKNOWN or INTERNAL.
"""

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc import StatusCode

from goqueue.model.codes import Code
from goqueue.model.credentials import AccessTooOld
from goqueue.model.error_codes import code_of
from goqueue.model.errors import (
    BatchTooLarge,
    GoQueueError,
    Indeterminate,
    InvalidFilter,
    InvalidMoment,
    InvalidName,
    InvalidOption,
    InvalidWish,
    MalformedReceipt,
    NotReached,
)
from goqueue.model.members import NotAssigned
from goqueue.model.quotas import QuotaExceeded
from goqueue.model.refusal import Refused
from goqueue.wire.grpc import common_pb2 as pb

DETAILS = "grpc-status-details-bin"
RETRY_AFTER_MS = 1000
MESSAGE_CHARS_MAX = 1000

Known = tuple[StatusCode, pb.ErrorCode]

NOT_FOUND, EXISTS, INVALID = StatusCode.NOT_FOUND, StatusCode.ALREADY_EXISTS, StatusCode.INVALID_ARGUMENT
ABORTED, UNAVAILABLE, UNAUTHENTICATED = StatusCode.ABORTED, StatusCode.UNAVAILABLE, StatusCode.UNAUTHENTICATED
PRECONDITION, TOO_MUCH = StatusCode.FAILED_PRECONDITION, StatusCode.RESOURCE_EXHAUSTED

FORBIDDEN: Known = (StatusCode.PERMISSION_DENIED, pb.ERROR_CODE_UNSPECIFIED)

TABLE: dict[Code, Known] = {
    Code.SASL_AUTHENTICATION_FAILED: (StatusCode.UNAUTHENTICATED, pb.ERROR_CODE_UNSPECIFIED),
    Code.TOPIC_AUTHORIZATION_FAILED: FORBIDDEN,
    Code.GROUP_AUTHORIZATION_FAILED: FORBIDDEN,
    Code.CLUSTER_AUTHORIZATION_FAILED: FORBIDDEN,
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: FORBIDDEN,
    Code.UNKNOWN_TOPIC_OR_PARTITION: (NOT_FOUND, pb.ERROR_CODE_TOPIC_NOT_FOUND),
    Code.UNKNOWN_TOPIC_ID: (NOT_FOUND, pb.ERROR_CODE_TOPIC_NOT_FOUND),
    Code.INVALID_TOPIC_EXCEPTION: (INVALID, pb.ERROR_CODE_INVALID_TOPIC),
    Code.INVALID_PARTITIONS: (INVALID, pb.ERROR_CODE_INVALID_PARTITION),
    Code.TOPIC_ALREADY_EXISTS: (EXISTS, pb.ERROR_CODE_TOPIC_ALREADY_EXISTS),
    Code.OFFSET_OUT_OF_RANGE: (StatusCode.OUT_OF_RANGE, pb.ERROR_CODE_OFFSET_OUT_OF_RANGE),
    Code.GROUP_ID_NOT_FOUND: (NOT_FOUND, pb.ERROR_CODE_GROUP_NOT_FOUND),
    Code.UNKNOWN_MEMBER_ID: (NOT_FOUND, pb.ERROR_CODE_NOT_GROUP_MEMBER),
    Code.ILLEGAL_GENERATION: (ABORTED, pb.ERROR_CODE_INVALID_GENERATION),
    Code.FENCED_MEMBER_EPOCH: (ABORTED, pb.ERROR_CODE_INVALID_GENERATION),
    Code.STALE_MEMBER_EPOCH: (ABORTED, pb.ERROR_CODE_INVALID_GENERATION),
    Code.FENCED_INSTANCE_ID: (ABORTED, pb.ERROR_CODE_NOT_GROUP_MEMBER),
    Code.UNRELEASED_INSTANCE_ID: (ABORTED, pb.ERROR_CODE_NOT_GROUP_MEMBER),
    Code.REBALANCE_IN_PROGRESS: (ABORTED, pb.ERROR_CODE_REBALANCE_IN_PROGRESS),
    Code.UNSTABLE_OFFSET_COMMIT: (ABORTED, pb.ERROR_CODE_REBALANCE_IN_PROGRESS),
    Code.INCONSISTENT_GROUP_PROTOCOL: (PRECONDITION, pb.ERROR_CODE_NOT_GROUP_MEMBER),
    Code.NON_EMPTY_GROUP: (PRECONDITION, pb.ERROR_CODE_GROUP_NOT_EMPTY),
    Code.GROUP_SUBSCRIBED_TO_TOPIC: (PRECONDITION, pb.ERROR_CODE_GROUP_NOT_EMPTY),
    Code.THROTTLING_QUOTA_EXCEEDED: (TOO_MUCH, pb.ERROR_CODE_UNSPECIFIED),
    Code.POLICY_VIOLATION: (TOO_MUCH, pb.ERROR_CODE_UNSPECIFIED),
    Code.GROUP_MAX_SIZE_REACHED: (TOO_MUCH, pb.ERROR_CODE_NOT_GROUP_MEMBER),
    Code.MESSAGE_TOO_LARGE: (TOO_MUCH, pb.ERROR_CODE_MESSAGE_TOO_LARGE),
    Code.RECORD_LIST_TOO_LARGE: (TOO_MUCH, pb.ERROR_CODE_MESSAGE_TOO_LARGE),
    Code.INVALID_RECORD: (INVALID, pb.ERROR_CODE_INVALID_MESSAGE),
    Code.INVALID_TIMESTAMP: (INVALID, pb.ERROR_CODE_INVALID_MESSAGE),
    Code.CORRUPT_MESSAGE: (INVALID, pb.ERROR_CODE_INVALID_MESSAGE),
    Code.INVALID_RECORD_STATE: (PRECONDITION, pb.ERROR_CODE_RECEIPT_HANDLE_EXPIRED),
    Code.TRANSACTIONAL_ID_NOT_FOUND: (NOT_FOUND, pb.ERROR_CODE_TRANSACTION_NOT_FOUND),
    Code.INVALID_PRODUCER_ID_MAPPING: (NOT_FOUND, pb.ERROR_CODE_PRODUCER_NOT_FOUND),
    Code.UNKNOWN_PRODUCER_ID: (NOT_FOUND, pb.ERROR_CODE_PRODUCER_NOT_FOUND),
    Code.PRODUCER_FENCED: (PRECONDITION, pb.ERROR_CODE_PRODUCER_FENCED),
    Code.INVALID_PRODUCER_EPOCH: (PRECONDITION, pb.ERROR_CODE_PRODUCER_FENCED),
    Code.TRANSACTION_COORDINATOR_FENCED: (PRECONDITION, pb.ERROR_CODE_PRODUCER_FENCED),
    Code.INVALID_TXN_STATE: (PRECONDITION, pb.ERROR_CODE_INVALID_TXN_STATE),
    Code.CONCURRENT_TRANSACTIONS: (ABORTED, pb.ERROR_CODE_INVALID_TXN_STATE),
    Code.OUT_OF_ORDER_SEQUENCE_NUMBER: (PRECONDITION, pb.ERROR_CODE_OUT_OF_ORDER_SEQUENCE),
    Code.DUPLICATE_SEQUENCE_NUMBER: (EXISTS, pb.ERROR_CODE_OUT_OF_ORDER_SEQUENCE),
    Code.REQUEST_TIMED_OUT: (StatusCode.DEADLINE_EXCEEDED, pb.ERROR_CODE_REPLICATION_FAILED),
    Code.NOT_ENOUGH_REPLICAS: (UNAVAILABLE, pb.ERROR_CODE_REPLICATION_FAILED),
    Code.NOT_LEADER_OR_FOLLOWER: (UNAVAILABLE, pb.ERROR_CODE_NOT_LEADER),
    Code.LEADER_NOT_AVAILABLE: (UNAVAILABLE, pb.ERROR_CODE_LEADER_NOT_AVAILABLE),
    Code.KAFKA_STORAGE_ERROR: (UNAVAILABLE, pb.ERROR_CODE_BROKER_NOT_AVAILABLE),
    Code.COORDINATOR_NOT_AVAILABLE: (UNAVAILABLE, pb.ERROR_CODE_BROKER_NOT_AVAILABLE),
    Code.COORDINATOR_LOAD_IN_PROGRESS: (UNAVAILABLE, pb.ERROR_CODE_BROKER_NOT_AVAILABLE),
    Code.NOT_COORDINATOR: (UNAVAILABLE, pb.ERROR_CODE_BROKER_NOT_AVAILABLE),
    Code.NOT_CONTROLLER: (UNAVAILABLE, pb.ERROR_CODE_BROKER_NOT_AVAILABLE),
}
"""All others are the mistake of whoever asked."""
OTHERS: Known = (INVALID, pb.ERROR_CODE_INVALID_ARGUMENT)

OWN: tuple[tuple[type[GoQueueError], Known, str], ...] = (
    (InvalidName, (INVALID, pb.ERROR_CODE_INVALID_TOPIC), "INVALID_TOPIC"),
    (InvalidOption, OTHERS, "INVALID_CONFIG"),
    (InvalidMoment, OTHERS, "INVALID_TIME"),
    (InvalidFilter, OTHERS, "INVALID_FILTER"),
    (InvalidWish, (INVALID, pb.ERROR_CODE_INVALID_MESSAGE), "INVALID_RECORD"),
    (MalformedReceipt, (INVALID, pb.ERROR_CODE_RECEIPT_HANDLE_INVALID), "MALFORMED_RECEIPT"),
    (BatchTooLarge, (TOO_MUCH, pb.ERROR_CODE_MESSAGE_TOO_LARGE), "MESSAGE_TOO_LARGE"),
    (NotAssigned, (PRECONDITION, pb.ERROR_CODE_NOT_ASSIGNED), "NOT_ASSIGNED"),
    (NotReached, (UNAVAILABLE, pb.ERROR_CODE_LEADER_NOT_AVAILABLE), "NODE_NOT_REACHED"),
    (AccessTooOld, (UNAVAILABLE, pb.ERROR_CODE_BROKER_NOT_AVAILABLE), "ACCESS_TOO_OLD"),
    (Indeterminate, (StatusCode.DEADLINE_EXCEEDED, pb.ERROR_CODE_REPLICATION_FAILED), "INDETERMINATE"),
)


class GrpcError(GoQueueError):
    """A refusal of the door itself."""

    def __init__(
        self,
        message: str,
        status: StatusCode = INVALID,
        code: pb.ErrorCode = pb.ERROR_CODE_INVALID_ARGUMENT,
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.known: Known = (status, code)
        self.reason = reason or pb.ErrorCode.Name(code).removeprefix("ERROR_CODE_")


def look_up(error: GoQueueError) -> tuple[Known, str]:
    """Status and code, and our own name for it."""
    if isinstance(error, GrpcError):
        return error.known, error.reason
    if not isinstance(error, Refused):
        for kind, known, name in OWN:
            if isinstance(error, kind):
                return known, name
    code = code_of(error)
    return TABLE.get(code, OTHERS), code.name


def error_of(error: GoQueueError) -> pb.Error:
    (status, code), reason = look_up(error)
    told = pb.Error(code=code, message=str(error)[:MESSAGE_CHARS_MAX], details={"reason": reason})
    if status in (UNAVAILABLE, ABORTED):
        told.retry_after.CopyFrom(Duration(seconds=RETRY_AFTER_MS // 1000))
    elif isinstance(error, QuotaExceeded):
        told.retry_after.CopyFrom(_lasting(error.retry_ms))
    return told


def _lasting(ms: int) -> Duration:
    return Duration(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)


def status_of(error: GoQueueError) -> tuple[StatusCode, str, bytes]:
    """Status, words, and both with our `Error` as gRPC's rich status has it."""
    (status, _), _ = look_up(error)
    told = error_of(error)
    detail = AnyMessage()
    detail.Pack(told)
    details = [detail]
    if isinstance(error, QuotaExceeded):
        details.append(AnyMessage())
        details[-1].Pack(RetryInfo(retry_delay=_lasting(error.retry_ms)))
    number: int = status.value[0]
    return status, told.message, Status(code=number, message=told.message, details=details).SerializeToString()
