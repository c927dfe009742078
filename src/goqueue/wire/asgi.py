"""What a listener and the applications behind it say to each other."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

ENDS_WITH_CLIENT = "goqueue.ends_with_client"
"""In a scope: the request is of no use to a client that is gone, or that may be."""
SEAT = "goqueue.seat"
"""In a scope: how its request leaves the place that it has among the connections of its tenant."""
ASKED_AS = "goqueue.request_id"
"""In a scope: the X-Request-ID that its client is told."""
ACCESS = "goqueue.access"
"""In a scope: what whoever asks may do, or an error: why they are not let in."""
TURN = "goqueue.turn"
"""In a scope: how its request takes turns with others, where there are tenants."""
