"""One request: who is asked, under which names its queues are known, and how to wait for what the broker answers."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from goqueue.broker.asking import Asking
from goqueue.broker.topics.topics import TopicCommand
from goqueue.broker.view.view import View
from goqueue.doors.sqs.queue import AllQueues, KnownQueues, Queue
from goqueue.machines.controller_commands import Result
from goqueue.model.codes import Code
from goqueue.model.errors import (
    BatchTooLarge,
    GoQueueError,
    Indeterminate,
    InvalidOption,
    InvalidWish,
    MalformedReceipt,
    NotReached,
)
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import DEFAULT_TENANT
from goqueue.wire.sqs.checks import need
from goqueue.wire.sqs.errors import SqsError, invalid_parameter

T = TypeVar("T")

ACCOUNT_DIGITS = 12
NO_QUEUE = "The specified queue does not exist."


class Naming:
    """How queues are called outside: by URL and by ARN."""

    def __init__(self, account_id: str, region: str) -> None:
        self.account_id = account_id
        self.region = region
        self._prefix = f"arn:aws:sqs:{region}:{account_id}:"

    def arn(self, name: str) -> str:
        return self._prefix + name

    def name_of_arn(self, arn: str) -> str | None:
        """None: it is no ARN of a queue of ours."""
        return arn.removeprefix(self._prefix) if arn.startswith(self._prefix) else None


def naming_of(tenant: str, default: Naming) -> Naming:
    """Every tenant has an account of its own: of twelve digits, as they are everywhere."""
    if tenant == DEFAULT_TENANT:
        return default
    number = int.from_bytes(hashlib.sha256(tenant.encode()).digest()[:8], "big") % 10**ACCOUNT_DIGITS
    return Naming(f"{number:0{ACCOUNT_DIGITS}}", default.region)


class Desk(NamedTuple):
    """What all requests share."""

    naming: Naming
    queues: KnownQueues
    waiting: dict[asyncio.Future[Any], None]
    """Long polls."""


class Call(Asking):
    def __init__(self, broker: View, desk: Desk, base_url: str, gone: Callable[[], Awaitable[None]]) -> None:
        self.broker = broker
        self.naming, known, self._waiting = desk
        self.queues = AllQueues(broker, known)
        self._base_url = base_url
        self._gone = gone

    # -- queues

    def url(self, name: str) -> str:
        return f"{self._base_url}/{self.naming.account_id}/{name}"

    def queue(self, url: str | None) -> Queue:
        try:
            path = urlsplit(need(url, "QueueUrl")).path
        except ValueError:  # a host that is none
            raise SqsError("QueueDoesNotExist", NO_QUEUE) from None
        return self.queue_named(path.rstrip("/").rpartition("/")[2])

    def queue_named(self, name: str) -> Queue:
        found = self.queues.find(name)
        if found is None:
            raise SqsError("QueueDoesNotExist", NO_QUEUE)
        return found

    # -- asking

    async def change_topic(self, command: TopicCommand) -> Result:
        """The answer, if it is not one that no request can be blamed for."""
        result: Result = await self.ask(lambda done: self.broker.topics.submit(command, done))
        if result.code is Code.UNKNOWN_TOPIC_OR_PARTITION:
            raise SqsError("QueueDoesNotExist", NO_QUEUE)
        if result.code is Code.POLICY_VIOLATION:
            raise SqsError("OverLimit", result.message)
        if result.code not in (Code.NONE, Code.TOPIC_ALREADY_EXISTS):
            raise invalid_parameter(result.message)
        return result

    async def wait(self, submit: Callable[[Callable[[list[T]], None]], Any]) -> list[T]:
        """As `ask`, for what may take long: nothing, if the client goes away or the door closes meanwhile."""
        future: asyncio.Future[list[T]] = asyncio.get_running_loop().create_future()
        parked = submit(lambda reply: None if future.done() else future.set_result(reply))
        if future.done():
            return future.result()
        self._waiting[future] = None
        try:
            async with asyncio.TaskGroup() as tasks:
                gone = tasks.create_task(_returned(self._gone))
                either: set[asyncio.Future[Any]] = {gone, future}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                gone.cancel()
        finally:
            self._waiting.pop(future, None)
            if parked is not None:
                parked.cancel()
        return future.result() if future.done() else []


async def _returned(wait: Callable[[], Awaitable[None]]) -> None:
    await wait()


INVALID = "InvalidParameterValueException"
FORBIDDEN = "AccessDeniedException"
NAMES: tuple[tuple[type[GoQueueError], str], ...] = (
    (MalformedReceipt, "ReceiptHandleIsInvalid"),
    (InvalidWish, INVALID),
    (InvalidOption, INVALID),
    (BatchTooLarge, INVALID),
    (NotReached, "ServiceUnavailable"),
    (Indeterminate, "ServiceUnavailable"),
)
CODES: dict[Code, str] = {
    Code.UNKNOWN_TOPIC_OR_PARTITION: "QueueDoesNotExist",
    Code.TOPIC_AUTHORIZATION_FAILED: FORBIDDEN,
    Code.GROUP_AUTHORIZATION_FAILED: FORBIDDEN,
    Code.CLUSTER_AUTHORIZATION_FAILED: FORBIDDEN,
    Code.RESOURCE_NOT_FOUND: "ResourceNotFoundException",
    Code.THROTTLING_QUOTA_EXCEEDED: "RequestThrottled",
    Code.POLICY_VIOLATION: "OverLimit",
    Code.MESSAGE_TOO_LARGE: INVALID,
    Code.INVALID_RECORD: INVALID,
    Code.INVALID_TIMESTAMP: INVALID,
    Code.INVALID_REQUEST: INVALID,
    Code.NOT_ENOUGH_REPLICAS: "ServiceUnavailable",
    Code.INVALID_CONFIG: INVALID,
}


def told(error: GoQueueError) -> SqsError:
    """One of our errors as SQS calls it."""
    if isinstance(error, SqsError):
        return error
    name = next((name for kind, name in NAMES if isinstance(error, kind)), None)
    if name is None and isinstance(error, Refused):
        name = CODES.get(error.code)
    if name is None:
        name = "ServiceUnavailable" if error.retriable else "InternalFailure"
    return SqsError(name, NO_QUEUE if name == "QueueDoesNotExist" else str(error))
