"""One table from our errors to statuses. Nothing that a client sends may end as a 500."""

from goqueue.model.codes import Code
from goqueue.model.credentials import AccessTooOld, NotAuthenticated
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
from goqueue.model.refusal import Refused
from goqueue.model.schemas import RegistryRefused
from goqueue.model.tenancy import TenantSuspended

BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, GONE = 400, 401, 403, 404, 409, 410
TOO_SLOW, TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, MISDIRECTED, TOO_MANY, HEAD_TOO_LARGE = 408, 413, 415, 421, 429, 431
SERVER_FAULT, UNAVAILABLE, TIMED_OUT = 500, 503, 504


class HttpError(GoQueueError):
    """A refusal of the door itself."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


STATUS: dict[Code, int] = {
    Code.UNKNOWN_TOPIC_OR_PARTITION: NOT_FOUND,
    Code.UNKNOWN_TOPIC_ID: NOT_FOUND,
    Code.GROUP_ID_NOT_FOUND: NOT_FOUND,
    Code.UNKNOWN_MEMBER_ID: NOT_FOUND,
    Code.TRANSACTIONAL_ID_NOT_FOUND: NOT_FOUND,
    Code.UNKNOWN_PRODUCER_ID: NOT_FOUND,
    Code.INVALID_PRODUCER_ID_MAPPING: NOT_FOUND,
    Code.RESOURCE_NOT_FOUND: NOT_FOUND,
    Code.DUPLICATE_RESOURCE: CONFLICT,
    Code.TOPIC_AUTHORIZATION_FAILED: FORBIDDEN,
    Code.GROUP_AUTHORIZATION_FAILED: FORBIDDEN,
    Code.CLUSTER_AUTHORIZATION_FAILED: FORBIDDEN,
    Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: FORBIDDEN,
    Code.POLICY_VIOLATION: FORBIDDEN,
    Code.TOPIC_ALREADY_EXISTS: CONFLICT,
    Code.ILLEGAL_GENERATION: CONFLICT,
    Code.REBALANCE_IN_PROGRESS: CONFLICT,
    Code.FENCED_MEMBER_EPOCH: CONFLICT,
    Code.STALE_MEMBER_EPOCH: CONFLICT,
    Code.FENCED_INSTANCE_ID: CONFLICT,
    Code.UNRELEASED_INSTANCE_ID: CONFLICT,
    Code.INCONSISTENT_GROUP_PROTOCOL: CONFLICT,
    Code.NON_EMPTY_GROUP: CONFLICT,
    Code.GROUP_SUBSCRIBED_TO_TOPIC: CONFLICT,
    Code.INVALID_PRODUCER_EPOCH: CONFLICT,
    Code.PRODUCER_FENCED: CONFLICT,
    Code.INVALID_TXN_STATE: CONFLICT,
    Code.CONCURRENT_TRANSACTIONS: CONFLICT,
    Code.TRANSACTION_COORDINATOR_FENCED: CONFLICT,
    Code.INVALID_RECORD_STATE: CONFLICT,
    Code.DUPLICATE_SEQUENCE_NUMBER: CONFLICT,
    Code.UNSTABLE_OFFSET_COMMIT: CONFLICT,
    Code.MESSAGE_TOO_LARGE: TOO_LARGE,
    Code.RECORD_LIST_TOO_LARGE: TOO_LARGE,
    Code.GROUP_MAX_SIZE_REACHED: TOO_MANY,
    Code.THROTTLING_QUOTA_EXCEEDED: TOO_MANY,
    Code.KAFKA_STORAGE_ERROR: UNAVAILABLE,
    Code.LEADER_NOT_AVAILABLE: UNAVAILABLE,
    Code.NOT_LEADER_OR_FOLLOWER: UNAVAILABLE,
    Code.COORDINATOR_NOT_AVAILABLE: UNAVAILABLE,
    Code.COORDINATOR_LOAD_IN_PROGRESS: UNAVAILABLE,
    Code.NOT_COORDINATOR: UNAVAILABLE,
    Code.NOT_CONTROLLER: UNAVAILABLE,
    Code.NOT_ENOUGH_REPLICAS: UNAVAILABLE,
    Code.REQUEST_TIMED_OUT: TIMED_OUT,
}
"""All others are the mistake of whoever asked: 400."""

OWN_CODES: tuple[tuple[type[GoQueueError], str, int], ...] = (
    (InvalidName, "INVALID_TOPIC_EXCEPTION", BAD_REQUEST),
    (InvalidOption, "INVALID_CONFIG", BAD_REQUEST),
    (InvalidMoment, "INVALID_TIME", BAD_REQUEST),
    (InvalidFilter, "INVALID_FILTER", BAD_REQUEST),
    (InvalidWish, "INVALID_RECORD", BAD_REQUEST),
    (MalformedReceipt, "MALFORMED_RECEIPT", BAD_REQUEST),
    (BatchTooLarge, "MESSAGE_TOO_LARGE", TOO_LARGE),
    (NotAssigned, "NOT_ASSIGNED", FORBIDDEN),
    (NotReached, "NODE_NOT_REACHED", UNAVAILABLE),
    (AccessTooOld, "ACCESS_TOO_OLD", UNAVAILABLE),
    (Indeterminate, "INDETERMINATE", TIMED_OUT),
)


def status_and_code(error: GoQueueError) -> tuple[int, str]:
    if isinstance(error, HttpError):
        return error.status, error.code
    if not isinstance(error, Refused):
        for kind, name, status in OWN_CODES:
            if isinstance(error, kind):
                return status, name
    if isinstance(error, TenantSuspended):
        return FORBIDDEN, "TENANT_SUSPENDED"
    if isinstance(error, NotAuthenticated):
        return UNAUTHORIZED, "NOT_AUTHENTICATED"
    if isinstance(error, RegistryRefused):
        return int(str(int(error.code))[:3]), error.code.name
    code = code_of(error)
    return STATUS.get(code, BAD_REQUEST), code.name
