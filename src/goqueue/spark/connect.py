"""The client's objects for the driver and for executors: each lives in an event loop of its own, in a thread.

Spark's processes are forked and reused, so nothing is kept between two calls: whoever needs a connection opens it with
one of these, and closes it before the call returns.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from goqueue.client.cluster import Cluster
from goqueue.client.connection import Limits
from goqueue.client.errors import ConnectionLost, TimedOut
from goqueue.client.faces import Portal
from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options
from goqueue.spark.where import Where, kafka_at, security_of
from goqueue.wire.kafka.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
HTTP_ADDRESS = "goqueue.http.address"

if TYPE_CHECKING:
    from goqueue.client.sync import Admin

T = TypeVar("T")

ABSENT_S_MAX = 3.0
"""At the start: a wrong address is told soon."""
PATIENCE_S = 60.0
"""In the middle: a broker that restarts is waited for, over HTTP. Over Kafka, an option says how long."""


class Brokers:
    """`with Brokers(servers) as brokers: brokers.run(offsets_at(brokers.cluster, ...))`"""

    def __init__(self, servers: Where, *, is_known: bool = False, creates_topics: bool = False) -> None:
        """`is_known`: a broker has answered a moment ago, so that one which does not now is waited for."""
        self.servers = servers
        self.cluster = Cluster(
            servers.address,
            client_id=servers.client_id,
            limits=Limits(request_s_max=servers.patience_s),
            security=servers.security,
            creates_topics=creates_topics,
        )
        self._absent_s_max = servers.patience_s if is_known else ABSENT_S_MAX
        self._portal = Portal("goqueue spark")

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._portal.run(work)

    def begin(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Do it meanwhile: `finish` waits for it."""

        async def start() -> "asyncio.Task[T]":
            return asyncio.get_running_loop().create_task(work)

        return self.run(start())

    def finish(self, task: "asyncio.Task[T]") -> T:
        async def wait() -> T:
            return await task

        return self.run(wait())

    def give_up(self, task: "asyncio.Task[T]") -> None:
        async def cancel() -> None:
            task.cancel()
            await asyncio.wait([task])

        self.run(cancel())

    def __enter__(self) -> "Brokers":
        self._portal.start()
        try:
            self.run(self.cluster.start(self._absent_s_max))
        except (ConnectionLost, TimedOut) as error:
            self._portal.stop()
            raise SparkError(
                f"no broker answers at kafka.bootstrap.servers={self.servers.address!r}: {error}"
            ) from None
        except BaseException:
            self._portal.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.run(self.cluster.close())
        finally:
            self._portal.stop()


def http_server(options: Options) -> Where:
    """The address of the HTTP door: as the user says, or as the broker does. SparkError: neither."""
    given: str | None = options.get("goqueue.server")
    if given is not None:
        return Where(given, security_of(options))
    if options.get("kafka.bootstrap.servers") is None:
        raise SparkError(f"a {options.part} needs goqueue.server, or kafka.bootstrap.servers to ask where that is")
    servers = kafka_at(options)
    with Brokers(servers) as brokers:
        return Where(brokers.run(_ask_for_http(brokers.cluster, servers)), servers.security)


async def _ask_for_http(cluster: Cluster, servers: Where) -> str:
    # The name of a broker is not known before it is asked, and each answers for itself.
    request = DescribeConfigsRequest([DescribeConfigsResource(BROKER_RESOURCE, "", [HTTP_ADDRESS])])
    answer = await cluster.ask_any(request, DescribeConfigsResponse)
    for result in answer.results:
        for config in result.configs:
            if config.name == HTTP_ADDRESS and config.value:
                return config.value if "://" in config.value else f"http://{config.value}"
    raise SparkError(
        f'the broker at {servers} does not tell its HTTP address: say it with .option("goqueue.server", ...)'
    )


async def config_of(cluster: Cluster, topic: str, name: str) -> str:
    request = DescribeConfigsRequest([DescribeConfigsResource(TOPIC_RESOURCE, topic, [name])])
    answer = await cluster.ask_any(request, DescribeConfigsResponse)
    for result in answer.results:
        for config in result.configs:
            if config.name == name and config.value is not None:
                return config.value
    raise SparkError(f"the broker does not tell {name} of topic {topic}")


@contextmanager
def administration(server: Where) -> "Iterator[Admin]":
    """Whatever is asked over HTTP. SparkError: nobody answers there."""
    from goqueue.client.sync import Admin  # takes long to import, and most reads do without

    try:
        with Admin(server.address, security=server.security) as admin:
            yield admin
    except (ConnectionLost, TimedOut) as error:
        raise SparkError(f"goqueue.server={server.address!r} does not answer: {error}") from None
