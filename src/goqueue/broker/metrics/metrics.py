"""Metrics of one node, made when they are asked for: one walk over what the broker knows anyway. Nothing is updated
while it works but a few counts of what cannot be seen afterwards (`telemetry.meters`).

It is a collector as prometheus-client knows them, so that an application that embeds a broker may register it with its
own.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from goqueue.broker.metrics.lines import Lines
from goqueue.broker.metrics.merging import merged
from goqueue.broker.metrics.of_cluster import read_cluster
from goqueue.broker.metrics.of_groups import read_groups
from goqueue.broker.metrics.of_node import read_node
from goqueue.broker.metrics.of_topics import Names, read_topics
from goqueue.broker.metrics.page import Identify, Labels, Page
from goqueue.broker.metrics.sources import MetricsOptions, Sources
from goqueue.telemetry.door_facts import DoorFacts
from goqueue.telemetry.meters import Meters

END = "# EOF\n"
OPENMETRICS = "application/openmetrics-text"


T = TypeVar("T")


def _at_once(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


class Metrics(Collector):
    def __init__(self, sources: Sources, identify: Identify, node_id: int, options: MetricsOptions) -> None:
        self._sources = sources
        self._identify = identify
        self._node_id = str(node_id)
        self._options = options
        self._names = Names(options.series_max)
        self._labels = Labels(self._node_id, {})
        self._lines = Lines(self._labels.values)
        self.elsewhere: Callable[[str, str, Callable[[dict[str, str]], None]], None] | None = None
        """Asks those who share the port that is scraped, for what is told of a tenant, or of all."""
        self._process = CollectorRegistry()
        """What prometheus-client tells of any Python process: memory, files, collections."""
        for make in (ProcessCollector, PlatformCollector, GCCollector):
            make(registry=self._process)

    @property
    def is_on(self) -> bool:
        return self._options.is_on

    @property
    def meters(self) -> Meters:
        return self._sources.meters

    def watch_door(self, name: str, ask: Callable[[], DoorFacts]) -> None:
        self._sources.doors[name] = ask

    def page(self) -> Page:
        return _at_once(self._reading())

    def _reading(self) -> Generator[None, None, Page]:
        self._look_for_tenants()
        page = Page(self._labels)
        has_partitions = self._options.has_partitions
        read_topics(page, self._sources, self._names, has_partitions=has_partitions)
        yield
        yield from read_groups(page, self._sources, self._names, has_partitions=has_partitions)
        read_node(page, self._sources)
        read_cluster(page, self._sources)
        self._names.end()
        return page

    def _look_for_tenants(self) -> None:
        tenants = self._sources.tenants()
        if tenants.keys() != self._labels.tenants.keys():
            self._labels = Labels(self._node_id, dict(tenants))
            self._lines = Lines(self._labels.values)
        self._names.begin(self._labels.tenants)

    def collect(self) -> Iterator[Metric]:
        return self.page().families(self._identify)

    def snapshot(self) -> Callable[[], Iterator[Metric]]:
        """What there is now, with what is told of the process, to be made into families by another thread."""
        page = self.page()
        page.detach()
        return lambda: chain(page.families(self._identify), self._process.collect())

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """What a scraper that accepts this gets, and of which type it is. Examples are told in OpenMetrics only."""
        return _at_once(self.exposing(accept))

    def others(self, accept: str, on_pages: Callable[[dict[str, str]], None]) -> None:
        """What those tell that share the port that is scraped, by node; nothing, if nobody does."""
        self.others_of("", accept, on_pages)

    def others_of(self, tenant: str, accept: str, on_pages: Callable[[dict[str, str]], None]) -> None:
        if self.elsewhere is None:
            on_pages({})
        else:
            self.elsewhere(tenant, accept, on_pages)

    def together(self, own: bytes, others: Mapping[str, str]) -> bytes:
        """In any thread."""
        return merged({self._node_id: own.decode(), **others}).encode()

    def exposing_of(self, tenant: str, accept: str = "") -> Generator[None, None, tuple[bytes, str]]:
        """What is told of names of one tenant, in steps."""
        _, content_type = choose_encoder(accept)
        is_openmetrics = content_type.startswith(OPENMETRICS)
        page = (yield from self._reading()).of_tenant(tenant)
        text = page.text(self._identify, Lines(self._labels.values), is_openmetrics=is_openmetrics)
        return (text + (END if is_openmetrics else "")).encode(errors="replace"), content_type

    def exposing(self, accept: str = "") -> Generator[None, None, tuple[bytes, str]]:
        """The same in steps, between which others may have their turn."""
        encode, content_type = choose_encoder(accept)
        process = encode(self._process).decode()
        is_openmetrics = content_type.startswith(OPENMETRICS)
        page = yield from self._reading()
        text = page.text(self._identify, self._lines, is_openmetrics=is_openmetrics)
        if is_openmetrics:
            text += process.removesuffix(END) + END
        else:
            text += process
        return text.encode(errors="replace"), content_type
