"""What can go wrong for a client. Every error says whether the same call may succeed later (`retriable`)."""

from goqueue.model.codes import Code
from goqueue.model.errors import GoQueueError


class ClientError(GoQueueError):
    """Base of what the client raises."""


class ConnectionLost(ClientError):
    """The connection broke, or could not be made. Whether the broker had done what it was asked to is not known."""

    retriable = True


class TimedOut(ClientError):
    """No answer in time."""

    retriable = True


class Unsupported(ClientError):
    """The broker does not speak a version of the protocol that this call needs."""


class Closed(ClientError):
    """The producer, consumer or worker was closed."""


class InvalidArgument(ClientError, ValueError):
    """A call was told something that cannot be."""


class LeaseLost(ClientError):
    """A message could not be settled, because it was no longer leased to this worker. It is delivered again."""


class Reject(ClientError):
    """Raised by the handler of a worker: give this message up, as a dead letter that says why."""


class RetryLater(ClientError):
    """Raised by the handler of a worker: deliver this message again, after `delay` if one is given."""

    def __init__(self, reason: str = "", *, delay: str | int | None = None) -> None:
        super().__init__(reason)
        self.delay = delay


class MessageTooLarge(ClientError):
    """Larger than the client or the broker takes."""


class DeliveryTimeout(TimedOut):
    """A message was not acknowledged in time. `may_be_stored`: it was sent, and no answer says whether it is there."""

    def __init__(self, message: str, *, may_be_stored: bool) -> None:
        super().__init__(message)
        self.may_be_stored = may_be_stored


class DeliveryFailed(ClientError):
    """Some of the messages that were accepted could not be delivered: `errors` has the first of them."""

    def __init__(self, failed: int, errors: list[GoQueueError]) -> None:
        super().__init__(f"{failed} message{'s' if failed != 1 else ''} could not be delivered: {errors[0]}")
        self.failed = failed
        self.errors = errors


class BrokerRefused(ClientError):
    """The broker turned a request down; `code` says why."""

    def __init__(self, code: Code, message: str = "") -> None:
        super().__init__(message or code.name.lower().replace("_", " "))
        self.code = code
        self.retriable = code in RETRIABLE


class UnknownTopic(BrokerRefused):
    """There is no such topic, and the broker does not make it."""


class Fenced(BrokerRefused):
    """Another producer with the same transactional id, or member with the same instance id, has taken over."""


MOVED = frozenset(
    (
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        Code.LEADER_NOT_AVAILABLE,
        Code.NOT_LEADER_OR_FOLLOWER,
        Code.FENCED_LEADER_EPOCH,
        Code.UNKNOWN_LEADER_EPOCH,
        Code.UNKNOWN_TOPIC_ID,
        Code.INCONSISTENT_TOPIC_ID,
    )
)
"""What the client believes about topics and leaders is out of date."""
COORDINATOR_MOVED = frozenset((Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR))
RETRIABLE = (
    MOVED
    | COORDINATOR_MOVED
    | {
        Code.CORRUPT_MESSAGE,
        Code.REQUEST_TIMED_OUT,
        Code.COORDINATOR_LOAD_IN_PROGRESS,
        Code.NOT_ENOUGH_REPLICAS,
        Code.KAFKA_STORAGE_ERROR,
        Code.CONCURRENT_TRANSACTIONS,
        Code.UNSTABLE_OFFSET_COMMIT,
        Code.NOT_CONTROLLER,
    }
)

_FENCED = frozenset((Code.PRODUCER_FENCED, Code.FENCED_INSTANCE_ID))
_TOO_LARGE = frozenset((Code.MESSAGE_TOO_LARGE, Code.RECORD_LIST_TOO_LARGE))


def code_of(number: int) -> Code:
    """A number that we have no name for is some error of the broker."""
    try:
        return Code(number)
    except ValueError:
        return Code.UNKNOWN_SERVER_ERROR


def refusal(number: int, message: str | None = None) -> ClientError:
    """The error for an error number of the protocol."""
    code = code_of(number)
    text = message or (f"error {number} of the broker" if code is Code.UNKNOWN_SERVER_ERROR else "")
    if code in _FENCED:
        return Fenced(code, text)
    if code in _TOO_LARGE:
        return MessageTooLarge(text or "the message is too large for its topic")
    return BrokerRefused(code, text)
