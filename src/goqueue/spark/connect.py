"""The client's objects for the driver and for executors: each lives in an event loop of its own, in a thread.

Spark's processes are forked and reused, so nothing is kept between two calls: whoever needs a connection opens it with
one of these, and closes it before the call returns.
"""

from collections.abc import Coroutine
from typing import Any, TypeVar

from goqueue.client.cluster import Cluster
from goqueue.client.errors import ConnectionLost, TimedOut
from goqueue.client.faces import Portal
from goqueue.spark.errors import SparkError

T = TypeVar("T")


class Brokers:
    """`with Brokers(servers) as brokers: brokers.run(offsets_at(brokers.cluster, ...))`"""

    def __init__(self, servers: str, client_id: str = "goqueue-spark") -> None:
        self.servers = servers
        self.cluster = Cluster(servers, client_id=client_id)
        self._portal = Portal("goqueue spark")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._portal.run(work)

    def __enter__(self) -> "Brokers":
        self._portal.start()
        try:
            self.run(self.cluster.start())
        except (ConnectionLost, TimedOut) as error:
            self._portal.stop()
            raise SparkError(f"no broker answers at kafka.bootstrap.servers={self.servers!r}: {error}") from None
        except BaseException:
            self._portal.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.run(self.cluster.close())
        finally:
            self._portal.stop()
