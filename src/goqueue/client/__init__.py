"""GoQueue's Python client: async first, with a sync face in `goqueue.client.sync`. Needs no part of the server.

What is not used is not imported: a tool that only asks over HTTP does not wait for the Kafka protocol to be read.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from goqueue.client.security import Security
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
    "Security",
    "TimedOut",
    "TransactionAborted",
    "UnknownTopic",
    "Unsupported",
    "Worker",
]

_HOMES = {
    "Admin": "admin",
    "Backoff": "clock",
    "BrokerRefused": "errors",
    "ClientError": "errors",
    "Closed": "errors",
    "ConnectionLost": "errors",
    "Consumer": "consumer",
    "DeliveryFailed": "errors",
    "DeliveryTimeout": "errors",
    "Fenced": "errors",
    "HttpRefused": "http",
    "InvalidArgument": "errors",
    "Job": "job",
    "LeaseLost": "errors",
    "Message": "message",
    "MessageTooLarge": "errors",
    "NewMessage": "message",
    "Producer": "producer",
    "Receipt": "message",
    "Reject": "errors",
    "RetryLater": "errors",
    "Security": "security",
    "TimedOut": "errors",
    "TransactionAborted": "transaction",
    "UnknownTopic": "errors",
    "Unsupported": "errors",
    "Worker": "worker",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
