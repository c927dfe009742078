"""GoQueue's Python client: async first, with a sync face in `goqueue.client.sync`. Needs no part of the server."""

from goqueue.client.admin import Admin
from goqueue.client.clock import Backoff
from goqueue.client.consumer import Consumer
from goqueue.client.errors import (
    BrokerRefused,
    ClientError,
    Closed,
    ConnectionLost,
    DeliveryFailed,
    DeliveryTimeout,
    Fenced,
    InvalidArgument,
    LeaseLost,
    MessageTooLarge,
    Reject,
    RetryLater,
    TimedOut,
    UnknownTopic,
    Unsupported,
)
from goqueue.client.http import HttpRefused
from goqueue.client.job import Job
from goqueue.client.message import Message, NewMessage, Receipt
from goqueue.client.producer import Producer
from goqueue.client.transaction import TransactionAborted
from goqueue.client.worker import Worker

__all__ = [
    "Admin",
    "Backoff",
    "BrokerRefused",
    "ClientError",
    "Closed",
    "ConnectionLost",
    "Consumer",
    "DeliveryFailed",
    "DeliveryTimeout",
    "Fenced",
    "HttpRefused",
    "InvalidArgument",
    "Job",
    "LeaseLost",
    "Message",
    "MessageTooLarge",
    "NewMessage",
    "Producer",
    "Receipt",
    "Reject",
    "RetryLater",
    "TimedOut",
    "TransactionAborted",
    "UnknownTopic",
    "Unsupported",
    "Worker",
]
