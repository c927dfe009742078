"""Where a read starts and ends: offsets and moments as the options say them, and the offsets that they come to."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from goqueue.client.assigned import Place
from goqueue.client.cluster import Cluster
from goqueue.client.offsets import EARLIEST, LATEST, NO_OFFSET, first_offsets
from goqueue.model.errors import InvalidMoment
from goqueue.model.moments import format_moment, parse_moment_ms
from goqueue.spark.errors import SparkError
from goqueue.spark.options import Options
from goqueue.spark.read.splits import Range

_NAMED = {"earliest": EARLIEST, "latest": LATEST}
_EXAMPLE = '{"orders": {"0": 23, "1": -2}}'


class Bound(NamedTuple):
    """One end of a read, as it was said."""

    option: str
    everywhere: int | None = None
    """EARLIEST, LATEST or, of moments, milliseconds since 1970; None: each partition has its own."""
    each: Mapping[Place, int] = {}
    is_moment: bool = False
    fails_beyond: bool = False
    """Where nothing is that young. Otherwise that is the end."""


def starting(options: Options, default: int) -> Bound:
    """A moment counts before moments by partition, and those before offsets."""
    fails = options.get("startingOffsetsByTimestampStrategy") == "error"
    return _bound(options, "starting", default)._replace(fails_beyond=fails)


def ending(options: Options) -> Bound:
    return _bound(options, "ending", LATEST)


def _bound(options: Options, which: str, default: int) -> Bound:
    now_ms = time.time_ns() // 1_000_000
    name = f"{which}Timestamp"
    if options.has(name):
        return Bound(name, _moment(name, options.get(name), now_ms), is_moment=True)
    name = f"{which}OffsetsByTimestamp"
    if options.has(name):
        each = _by_place(name, options.get(name), lambda given: _moment(name, given, now_ms))
        return Bound(name, None, each, is_moment=True)
    name = f"{which}Offsets"
    if not options.has(name):
        return Bound(name, default)
    given = options.get(name).strip()
    if given.lower() in _NAMED:
        return Bound(name, _NAMED[given.lower()])
    try:
        document = json.loads(given)
    except ValueError:
        raise SparkError(f"{name}: {given!r} is neither earliest nor latest nor JSON such as {_EXAMPLE}") from None
    return Bound(name, None, _by_place(name, document, lambda one: _offset(name, one)))


def _by_place(name: str, document: Any, read: Callable[[Any], int]) -> dict[Place, int]:
    if not isinstance(document, dict) or not all(isinstance(inner, dict) for inner in document.values()):
        raise SparkError(f"{name}: it must be JSON such as {_EXAMPLE}")
    found: dict[Place, int] = {}
    for topic, partitions in document.items():
        for partition, given in partitions.items():
            if not partition.isdigit():
                raise SparkError(f"{name}: {partition!r} is no partition of topic {topic}")
            found[topic, int(partition)] = read(given)
    return found


def _moment(name: str, given: Any, now_ms: int) -> int:
    try:
        return parse_moment_ms(given, now_ms)
    except InvalidMoment as error:
        raise SparkError(f"{name}: {error}") from None


def _offset(name: str, given: Any) -> int:
    if type(given) is not int or given < EARLIEST:
        raise SparkError(f"{name}: {given!r} is no offset: it is 0 or more, -1 for latest or -2 for earliest")
    return given


class Extent(NamedTuple):
    """What there is of each partition now: from `first` up to `end`, without it."""

    first: dict[Place, int]
    end: dict[Place, int]
    ids: Mapping[str, bytes] = {}
    """Of the topics."""


async def extent_of(
    cluster: Cluster, places: Mapping[Place, bytes], *, is_committed: bool, give_up_s: float | None = None
) -> Extent:
    """`places`: each partition, and the id of its topic."""
    wanted = list(places)

    async def ask(which: int) -> dict[Place, int]:
        return await first_offsets(
            cluster, dict.fromkeys(wanted, which), is_committed=is_committed, give_up_s=give_up_s
        )

    ids = {topic: id_ for (topic, _), id_ in places.items()}
    return Extent(*await asyncio.gather(ask(EARLIEST), ask(LATEST)), ids)


async def resolve(
    cluster: Cluster, bound: Bound, extent: Extent, *, is_committed: bool, fails_on_loss: bool
) -> dict[Place, int]:
    """The offset of each partition. SparkError: one that is not said, not there, or gone."""
    places = extent.first
    said = dict.fromkeys(places, bound.everywhere) if bound.everywhere is not None else dict(bound.each)
    _check_places(bound, said, places)
    if bound.is_moment:
        found = await first_offsets(cluster, said, is_committed=is_committed)
        beyond = [place for place, offset in found.items() if offset == NO_OFFSET]
        if beyond and bound.fails_beyond:
            raise SparkError(_nothing_that_young(bound, said, beyond))
        return found | {place: extent.end[place] for place in beyond}
    names = {EARLIEST: extent.first, LATEST: extent.end}
    offsets = {place: names[said[place]][place] if said[place] in names else said[place] for place in places}
    outside = {place: at for place, at in offsets.items() if not extent.first[place] <= at <= extent.end[place]}
    if outside and fails_on_loss:
        raise SparkError("; ".join(_out_of_range(bound, extent, place, at) for place, at in outside.items()))
    return offsets | {place: min(max(at, extent.first[place]), extent.end[place]) for place, at in outside.items()}


def _check_places(bound: Bound, said: Iterable[Place], places: Iterable[Place]) -> None:
    missing, unknown = set(places) - set(said), set(said) - set(places)
    if unknown:
        raise SparkError(f"{bound.option} names {_listed(unknown)}, which the read is not about")
    if missing:
        raise SparkError(
            f"{bound.option} says nothing about {_listed(missing)}: all partitions are needed;"
            " of offsets, -1 is latest and -2 is earliest"
        )


def _listed(places: Iterable[Place]) -> str:
    return ", ".join(f"partition {partition} of topic {topic}" for topic, partition in sorted(places))


def _nothing_that_young(bound: Bound, said: Mapping[Place, int], beyond: list[Place]) -> str:
    moments = ", ".join(sorted({format_moment(said[place]) for place in beyond}))
    return (
        f"{bound.option}: nothing in {_listed(beyond)} is as young as {moments};"
        " startingOffsetsByTimestampStrategy=latest starts at the end there"
    )


def _out_of_range(bound: Bound, extent: Extent, place: Place, offset: int) -> str:
    return (
        f"{bound.option}: offset {offset} of partition {place[1]} of topic {place[0]} is not there:"
        f" it has {extent.first[place]} up to {extent.end[place]}"
    )


def ranges_of(
    start: Mapping[Place, int], end: Mapping[Place, int], starts: Bound, ends: Bound, ids: Mapping[str, bytes]
) -> list[Range]:
    """SparkError: a partition ends before it starts."""
    backwards = [place for place in start if end[place] < start[place]]
    if backwards:
        place = min(backwards)
        raise SparkError(
            f"{ends.option} comes before {starts.option} in {_listed([place])}: {end[place]} before {start[place]}"
        )
    return [
        Range(topic, partition, start[topic, partition], end[topic, partition], ids.get(topic, b""))
        for topic, partition in sorted(start)
    ]
