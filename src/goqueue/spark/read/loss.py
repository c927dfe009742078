"""What a stream wanted and the broker does not have any more: told, or gone past where `failOnDataLoss` is false."""

from collections.abc import Mapping

from goqueue.client.assigned import Place
from goqueue.spark.errors import SparkError
from goqueue.spark.read.bounds import Extent
from goqueue.spark.read.positions import Position
from goqueue.spark.read.splits import Range

_HINT = "with failOnDataLoss=false the query goes on without"


def still_there(start: Position, end: Mapping[Place, int], extent: Extent, *, fails_on_loss: bool) -> None:
    """Before a micro-batch from `start` is chosen. SparkError: a partition is gone, or has become shorter."""
    if not fails_on_loss:
        return
    for place, offset in start.offsets.items():
        if place not in extent.end:
            raise SparkError(f"{_name(place)} is gone; {_HINT} it")
        if start.is_of_another(place[0], extent.ids):
            raise _made_again(place[0], start, extent)
        if extent.end[place] < offset:
            raise SparkError(
                f"{_name(place)} ends at offset {extent.end[place]}, and the query has read up to {offset}: was the"
                f" topic made anew? {_HINT} knowing, from its beginning"
            )
    for place in end:
        if place not in start.offsets and extent.first[place] > 0:
            raise SparkError(
                f"{_name(place)} is new to the query, and its offsets before {extent.first[place]} are gone already;"
                f" {_HINT} them"
            )


def planned(start: Position, end: Position, extent: Extent, *, fails_on_loss: bool) -> list[Range]:
    """What lies between two answers of the stream, as far as it is there. A partition that only `end` has is new."""
    ranges = []
    for place, until in sorted(end.offsets.items()):
        if place not in extent.end:
            if fails_on_loss:
                raise SparkError(f"{_name(place)} is gone; {_HINT} it")
            continue
        if end.is_of_another(place[0], extent.ids):  # the rest of the old one is gone, and the new one comes next
            if fails_on_loss:
                raise _made_again(place[0], end, extent)
            continue
        first, last = extent.first[place], extent.end[place]
        begin = start.at(place, end.ids)
        if begin is None or begin > until:  # it was made anew: `still_there` has seen to it
            begin = first
        if begin == until:
            continue
        if fails_on_loss and not first <= begin <= until <= last:
            raise SparkError(
                f"{_name(place)} has offsets {first} up to {last}, and the query wants {begin} up to {until}:"
                f" retention has removed some, or the topic was made anew; {_HINT} them"
            )
        ranges.append(Range(*place, max(begin, first), min(until, last), extent.ids.get(place[0], b"")))
    return ranges


def _made_again(topic: str, known: Position, extent: Extent) -> SparkError:
    was, now = (ids[topic].hex() for ids in (known.ids, extent.ids))
    return SparkError(
        f"topic {topic} was deleted and made again since the query read it: its id was {was} and is {now} now;"
        f" {_HINT} what it missed, from the beginning of the new one"
    )


def _name(place: Place) -> str:
    return f"partition {place[1]} of topic {place[0]}"
