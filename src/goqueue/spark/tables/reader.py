"""Reading a table: planned in splits where there may be much of it, each read over HTTP in pages."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from goqueue.client.http import NOT_FOUND, HttpRefused
from goqueue.client.sync import Admin
from goqueue.spark.connect import administration, http_server
from goqueue.spark.errors import SparkError, told_in_one_line
from goqueue.spark.options import Options
from goqueue.spark.tables import rows
from goqueue.spark.tables.rows import Row
from goqueue.spark.tables.schemas import SCHEMAS

PAGE = 1000
SPLITS_MAX = 16
SPLIT_PAGES_MIN = 256
"""A page is what a node had to store after a second, at most."""


class Chosen(NamedTuple):
    """What the user asked for."""

    topic: str | None
    group: str | None

    def takes(self, topic: str, group: str | None = None) -> bool:
        return self.topic in (None, topic) and (group is None or self.group in (None, group))


class Split(InputPartition):
    """One Spark partition of a table. `topic` and `partition`: empty and -1 where it is not split so far. `pages`: from
    and up to which, where it is split by those.
    """

    def __init__(self, topic: str = "", partition: int = -1, pages: tuple[int, int] = (0, 0)) -> None:
        super().__init__((topic, partition, pages))
        self.topic = topic
        self.partition = partition
        self.pages = pages


class Splits(InputPartition):
    """One after the other: where only so many rows are wanted, nobody can know in advance from which."""

    def __init__(self, splits: Sequence[Split]) -> None:
        super().__init__(tuple(split.value for split in splits))
        self.splits = splits


class TableReader(DataSourceReader):
    def __init__(self, options: Options) -> None:
        self._table: str = options.need("table")
        self._chosen = Chosen(options.get("topic"), options.get("group"))
        self._limit: int | None = options.get("limit")
        self._server = http_server(options)
        if self._chosen.group is not None and self._table not in GROUPED:
            raise SparkError(f"the table {self._table} is not by groups: leave the option group out")
        if self._chosen.topic is not None and self._table == "groups":
            raise SparkError("the table groups is not by topics: leave the option topic out")

    def partitions(self) -> list[InputPartition]:
        with told_in_one_line(), administration(self._server) as admin:
            self._check(admin)
            splits = PLANS.get(self._table, _one)(admin, self._chosen)
        return list(splits) if self._limit is None else [Splits(splits)]

    def _check(self, admin: Admin) -> None:
        """A name with a typo is not an empty table. Dead letters may outlive their topic."""
        topic = self._chosen.topic
        if topic is not None and topic not in admin.topics() and self._table != "dlq":
            raise SparkError(f"there is no topic {topic!r}")

    def read(self, partition: InputPartition) -> Iterator[Row]:
        splits = partition.splits if isinstance(partition, Splits) else [partition]
        with told_in_one_line(), administration(self._server) as admin:
            read = READS[self._table]
            # Spark makes a split of its own where there is none.
            found = (row for split in splits if isinstance(split, Split) for row in read(admin, split, self._chosen))
            yield from found if self._limit is None else islice(found, self._limit)


def table_schema(table: str) -> StructType:
    return SCHEMAS[table]


# -- where there may be much, one split for each topic or partition


def _one(_admin: Admin, _chosen: Chosen) -> list[Split]:
    return [Split()]


def _topics(admin: Admin, chosen: Chosen) -> list[str]:
    return admin.topics() if chosen.topic is None else [chosen.topic]


def _by_topic(admin: Admin, chosen: Chosen) -> list[Split]:
    return [Split(name) for name in _topics(admin, chosen)]


def _by_partition(admin: Admin, chosen: Chosen) -> list[Split]:
    return [
        Split(name, partition) for name in _topics(admin, chosen) for partition in range(admin.topic(name).partitions)
    ]


def _schedules(admin: Admin, chosen: Chosen) -> list[Split]:
    """The recurring ones, then what waits in each topic."""
    return [Split(), *_by_topic(admin, chosen)]


def _dead_letters(admin: Admin, chosen: Chosen) -> list[Split]:
    """By partitions of the topics that dead letters lie in, which several topics may share."""
    names = admin.topics()
    wanted = names if chosen.topic is None else [chosen.topic]
    source_of: dict[str, str] = {}
    for name in wanted:
        try:
            source_of.setdefault(admin.dead_letter_topic(name), name)
        except HttpRefused as error:
            if error.status != NOT_FOUND:
                raise
            raise SparkError(str(error)) from None
    return [
        Split(source, partition)
        for letters, source in source_of.items()
        if letters in names
        for partition in range(admin.topic(letters).partitions)
    ]


def _by_pages(admin: Admin, _chosen: Chosen) -> list[Split]:
    """What is stored is not by topics: so many pages each."""
    stored = admin.stored_steps(until=0)
    pages = max(SPLIT_PAGES_MIN, -(-(stored.end - stored.first) // SPLITS_MAX))
    starts = range(stored.first, stored.end, pages)
    return [Split(pages=(start, min(start + pages, stored.end))) for start in starts]


PLANS: dict[str, Callable[[Admin, Chosen], list[Split]]] = {
    "dlq": _dead_letters,
    "traces": _by_partition,
    "steps": _by_pages,
    "schedules": _schedules,
}


# -- rows


def _read_dead_letters(admin: Admin, split: Split, chosen: Chosen) -> Iterator[Row]:
    for letter in admin.dead_letters(split.topic, cursor=f"{split.partition}/0"):
        if letter.partition != split.partition:
            return
        if chosen.takes(letter.original_topic, letter.group):
            yield rows.dead_letter(letter)


def _read_traces(admin: Admin, split: Split, chosen: Chosen) -> Iterator[Row]:
    return map(rows.trace, admin.all_traces(split.topic, split.partition, group=chosen.group))


def _read_steps(admin: Admin, split: Split, chosen: Chosen) -> Iterator[Row]:
    first, until = split.pages
    cursor: int | None = first
    while cursor is not None:
        page = admin.stored_steps(topic=chosen.topic, cursor=cursor, until=until)
        yield from (rows.step(each) for each in page.steps if chosen.group in (None, each.consumer_group))
        cursor = page.next


def _read_schedules(admin: Admin, split: Split, chosen: Chosen) -> Iterator[Row]:
    if split.topic:
        yield from map(rows.delayed, admin.all_delayed(split.topic))
        return
    skip = 0
    while page := admin.schedules(PAGE, skip):
        yield from (rows.recurring(each) for each in page if chosen.takes(each.topic))
        skip += len(page)


def _read_leases(admin: Admin, _split: Split, chosen: Chosen) -> Iterator[Row]:
    return map(rows.lease, admin.leases(chosen.group, chosen.topic))


def _read_groups(admin: Admin, _split: Split, chosen: Chosen) -> Iterator[Row]:
    return (rows.group(each) for each in admin.groups() if chosen.group in (None, each.id))


def _read_lag(admin: Admin, _split: Split, chosen: Chosen) -> Iterator[Row]:
    for found in admin.lags() if chosen.group is None else [admin.lag(chosen.group)]:
        yield from (rows.lag(found, part) for part in found.partitions if chosen.takes(part.topic))


def _read_topics(admin: Admin, _split: Split, chosen: Chosen) -> Iterator[Row]:
    return (rows.topic(admin.topic(name)) for name in _topics(admin, chosen))


READS: dict[str, Callable[[Admin, Split, Chosen], Iterator[Row]]] = {
    "dlq": _read_dead_letters,
    "traces": _read_traces,
    "steps": _read_steps,
    "schedules": _read_schedules,
    "leases": _read_leases,
    "groups": _read_groups,
    "lag": _read_lag,
    "topics": _read_topics,
}
GROUPED = frozenset({"dlq", "traces", "steps", "leases", "groups", "lag"})
