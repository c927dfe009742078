"""Looking after a broker: topics, groups, dead letters, replays, schedules. All over HTTP.

async with Admin("http://127.0.0.1:8080") as admin:
    await admin.create_topic("orders", partitions=3, lease_ms=10_000)
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from goqueue.client.admin_leases import LeaseAdmin
from goqueue.client.admin_messages import MessageAdmin
from goqueue.client.admin_queue import QueueAdmin
from goqueue.client.admin_schemas import SchemaAdmin
from goqueue.client.admin_traces import TraceAdmin
from goqueue.client.clock import Backoff, Sleeper
from goqueue.client.http import Http
from goqueue.client.times import Duration, Moment, duration_s
from goqueue.wire.rest import operations as on

if TYPE_CHECKING:
    import httpx

    from goqueue.client.exchange import Streams
    from goqueue.client.security import Security
    from goqueue.ports.dice import Dice
    from goqueue.ports.network import Network
    from goqueue.wire.rest import groups as rest_groups
    from goqueue.wire.rest import infrastructure
    from goqueue.wire.rest import topics as rest_topics
    from goqueue.wire.rest.admin import PartitionsAdded


class Admin(QueueAdmin, MessageAdmin, LeaseAdmin, TraceAdmin, SchemaAdmin):
    """Needs no start. What the broker refuses is raised as HttpRefused, with its `status` and `code`."""

    def __init__(  # noqa: PLR0913  one for each option, by name only
        self,
        server: str = "http://127.0.0.1:8080",
        *,
        api_key: str | None = None,
        timeout: Duration = "30s",
        backoff: Backoff | None = None,
        clock: Sleeper | None = None,
        dice: Dice | None = None,
        network: Network | None = None,
        streams: Streams | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        security: Security | None = None,
    ) -> None:
        super().__init__(
            Http(
                server,
                api_key=api_key,
                security=security,
                timeout_s=duration_s("timeout", timeout),
                backoff=backoff,
                clock=clock,
                dice=dice,
                network=network,
                streams=streams,
                transport=transport,
            )
        )

    async def start(self) -> None:
        """Nothing to do; here so that all clients look alike."""

    async def close(self) -> None:
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def health(self) -> infrastructure.Probe:
        """Raises if a partition is out of service."""
        return await self.call(on.infrastructure.HEALTHZ)

    async def is_ready(self) -> infrastructure.Probe:
        """With what was checked, and what the node is. Raises if it shall get no clients now."""
        return await self.call(on.infrastructure.READYZ, verbose=True)

    async def stats(self) -> infrastructure.Stats:
        """What is in the node, topic by topic."""
        return await self.call(on.infrastructure.STATS)

    async def version(self) -> str:
        return (await self.call(on.infrastructure.VERSION)).version

    # -- topics

    async def create_topic(
        self, /, name: str, partitions: int | None = None, **options: str | int
    ) -> rest_topics.TopicCreated:
        """Options by their names, with underscores: `lease_ms=10_000`, or as `**{"lease.ms": "10000"}`."""
        return await self.call(on.topics.CREATE_TOPIC, name=name, num_partitions=partitions, options=_dotted(options))

    async def topics(self) -> list[str]:
        return (await self.call(on.topics.LIST_TOPICS)).topics

    async def topic(self, name: str) -> rest_topics.TopicDetails:
        return await self.call(on.topics.DESCRIBE_TOPIC, topic=name)

    async def partitions(self, topic: str) -> list[rest_topics.Partition]:
        """Where the partitions of a topic are."""
        return (await self.call(on.topics.LIST_PARTITIONS, topic=topic)).partitions

    async def set_options(self, /, topic: str, **options: str | int | None) -> rest_topics.TopicDetails:
        """None takes an option back to its default."""
        return await self.call(on.topics.CONFIGURE_TOPIC, topic=topic, options=_dotted(options))

    async def add_partitions(self, topic: str, count: int) -> PartitionsAdded:
        """`count`: how many it shall have then."""
        return await self.call(on.admin.ADD_PARTITIONS, topic=topic, count=count)

    async def trim(
        self, topic: str, before: Moment, *, partition: int | None = None, dry_run: bool = False
    ) -> rest_topics.Trimmed:
        """Throw away what is older, for good: than latest (all of it), an offset (a number) or a time (a text)."""
        return await self.call(on.topics.TRIM_TOPIC, topic=topic, before=before, partition=partition, dry_run=dry_run)

    async def delete_topic(self, name: str) -> None:
        await self.call(on.topics.DELETE_TOPIC, topic=name)

    # -- groups

    async def groups(self) -> list[rest_groups.GroupSummary]:
        return [each async for page in self._pages(on.groups.LIST_GROUPS) for each in page.details]

    async def group(self, name: str) -> rest_groups.GroupDetails:
        return await self.call(on.groups.DESCRIBE_GROUP, group=name)

    async def delete_group(self, name: str, *, force: bool = False) -> None:
        """`force`: turn its members out first."""
        await self.call(on.groups.DELETE_GROUP, group=name, force=force or None)

    async def set_group_options(self, /, group: str, **options: str | int | None) -> dict[str, str]:
        """What goes before the options of the topics that this group reads as a queue. Returns all that are set."""
        return (await self.call(on.groups.CONFIGURE_GROUP, group=group, options=_dotted(options))).options

    async def lag(self, group: str) -> rest_groups.GroupLag:
        """How far a group is behind, as a stream reader and as a queue."""
        return await self.call(on.groups.GROUP_LAG, group=group)

    async def lags(self) -> list[rest_groups.GroupLag]:
        """Of all groups."""
        return [each async for page in self._pages(on.groups.ALL_LAGS) for each in page.groups]

    async def offsets(self, group: str, topic: str | None = None) -> dict[str, dict[str, int]]:
        """What a group has committed, by topic and partition."""
        return (await self.call(on.groups.GROUP_OFFSETS, group=group, topic=topic)).topics

    async def reset_offsets(
        self,
        group: str,
        topic: str,
        to: Moment,
        *,
        partition: int | None = None,
        dry_run: bool = False,
        live: bool = False,
    ) -> rest_groups.OffsetsReset:
        """`to` is earliest, latest, an offset (a number), or a time ("-10m", "2026-11-16T10:00:00Z")."""
        name = "strategy" if to in ("earliest", "latest") else "offset" if isinstance(to, int) else "timestamp"
        where = {"topic": topic, "partition": partition, name: to}
        return await self.call(on.groups.RESET_OFFSETS, group=group, dry_run=dry_run, live=live, **where)


def _dotted(options: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in options.items()}
