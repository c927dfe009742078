"""Health, as everybody asks for it (`grpc.health.v1`) and as `goqueue.v1` has it. The package of grpc brings a service
of its own, but its Watch knows nothing of our stop and would hold it up.
"""

import asyncio
from collections.abc import Collection
from typing import Any

from grpc_health.v1 import health_pb2

from goqueue.doors.grpc.errors import NOT_FOUND, GrpcError
from goqueue.doors.grpc.serving import Writing
from goqueue.wire.grpc import health_pb2 as own_pb2

SERVING, SERVICE_UNKNOWN = 1, 3


class Health:
    """A node that answers serves: when it stops, it ends the streams of who watches, and takes no call."""

    def __init__(self, services: Collection[str], response: type[Any]) -> None:
        self._services = services
        self._response = response

    async def check(self, request: Any) -> Any:
        if not self._knows(request.service):
            raise GrpcError(f"there is no service {request.service!r}", NOT_FOUND)
        return self._response(status=SERVING)

    async def watch(self, request: Any, out: Writing) -> None:
        """Nothing changes while it serves."""
        await out.write(self._response(status=SERVING if self._knows(request.service) else SERVICE_UNKNOWN))
        await asyncio.get_running_loop().create_future()

    async def list(self, _request: Any) -> Any:
        serving = health_pb2.HealthCheckResponse(status=SERVING)
        return health_pb2.HealthListResponse(statuses=dict.fromkeys(("", *self._services), serving))

    def _knows(self, service: str) -> bool:
        return not service or service in self._services


def standard_health(services: Collection[str]) -> Health:
    return Health(services, health_pb2.HealthCheckResponse)


def own_health(services: Collection[str]) -> Health:
    return Health(services, own_pb2.HealthCheckResponse)
