"""What SQS calls its errors: for each its name, the code of the older protocol that clients still show, its status."""

from typing import NamedTuple

from goqueue.model.errors import GoQueueError

SERVICE = "com.amazonaws.sqs"
FRONT = "com.amazon.coral.service"
"""Errors that are not of SQS itself but of what stands before every AWS service."""
OLD = "AWS.SimpleQueueService."
BAD_REQUEST, FORBIDDEN, NOT_FOUND, TOO_LARGE, FAILED, UNAVAILABLE = 400, 403, 404, 413, 500, 503


class Kind(NamedTuple):
    code: str
    """What boto3 calls it."""
    status: int = BAD_REQUEST
    shape: str = SERVICE


ERRORS: dict[str, Kind] = {
    "BatchEntryIdsNotDistinct": Kind(OLD + "BatchEntryIdsNotDistinct"),
    "BatchRequestTooLong": Kind(OLD + "BatchRequestTooLong"),
    "EmptyBatchRequest": Kind(OLD + "EmptyBatchRequest"),
    "InvalidAddress": Kind("InvalidAddress", NOT_FOUND),
    "InvalidAttributeName": Kind("InvalidAttributeName"),
    "InvalidAttributeValue": Kind("InvalidAttributeValue"),
    "InvalidBatchEntryId": Kind(OLD + "InvalidBatchEntryId"),
    "InvalidMessageContents": Kind("InvalidMessageContents"),
    "MessageNotInflight": Kind(OLD + "MessageNotInflight"),
    "OverLimit": Kind("OverLimit", FORBIDDEN),
    "QueueDeletedRecently": Kind(OLD + "QueueDeletedRecently"),
    "QueueDoesNotExist": Kind(OLD + "NonExistentQueue"),
    "QueueNameExists": Kind("QueueAlreadyExists"),
    "ReceiptHandleIsInvalid": Kind("ReceiptHandleIsInvalid"),
    "ResourceNotFoundException": Kind("ResourceNotFoundException", NOT_FOUND),
    "TooManyEntriesInBatchRequest": Kind(OLD + "TooManyEntriesInBatchRequest"),
    "UnsupportedOperation": Kind(OLD + "UnsupportedOperation"),
    "InvalidParameterValueException": Kind("InvalidParameterValue", shape=FRONT),
    "MissingRequiredParameterException": Kind("MissingParameter", shape=FRONT),
    "UnknownOperationException": Kind("InvalidAction", shape=FRONT),
    "SerializationException": Kind("MalformedInput", shape=FRONT),
    "RequestEntityTooLargeException": Kind("RequestEntityTooLarge", TOO_LARGE, FRONT),
    "AccessDeniedException": Kind("AccessDenied", FORBIDDEN, FRONT),
    "MissingAuthenticationToken": Kind("MissingAuthenticationToken", FORBIDDEN, FRONT),
    "InvalidClientTokenId": Kind("InvalidClientTokenId", FORBIDDEN, FRONT),
    "RequestThrottled": Kind("RequestThrottled", FORBIDDEN),
    "IncompleteSignature": Kind("IncompleteSignature", shape=FRONT),
    "SignatureDoesNotMatch": Kind("SignatureDoesNotMatch", FORBIDDEN, FRONT),
    "RequestExpired": Kind("RequestExpired", shape=FRONT),
    "InternalFailure": Kind("InternalFailure", FAILED, FRONT),
    "ServiceUnavailable": Kind("ServiceUnavailable", UNAVAILABLE, FRONT),
}


class SqsError(GoQueueError):
    """Raised with one of the names of `ERRORS`."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.kind = ERRORS[name]

    @property
    def is_of_sender(self) -> bool:
        return self.kind.status < FAILED


def invalid_parameter(message: str) -> SqsError:
    return SqsError("InvalidParameterValueException", message)


def invalid_value(value: object, parameter: str, reason: str) -> SqsError:
    return invalid_parameter(f"Value {value} for parameter {parameter} is invalid. Reason: {reason}")


def missing(parameter: str) -> SqsError:
    return SqsError("MissingRequiredParameterException", f"The request must contain the parameter {parameter}.")
