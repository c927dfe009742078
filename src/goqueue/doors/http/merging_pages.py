"""Pages of lists of which every node has a part: one page of all of them, with nothing left out and nothing twice.

A node that has more than it gave says so with a cursor. What lies behind the lowest of these cursors is not shown yet,
since a node may have more before it; the next page begins there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

Reply: TypeAlias = dict[str, Any]
Merge: TypeAlias = Callable[[Sequence[Reply], Mapping[str, Any]], Reply]
"""Given the answers and the query."""


class Cursor(NamedTuple):
    """How a list is sorted, and how its cursors are written."""

    by: tuple[str, ...]
    parse: Callable[[str], tuple[Any, ...]]
    is_after: bool
    """The next page begins behind the item that a cursor names; else with it."""

    def place_of(self, item: Reply) -> tuple[Any, ...]:
        return tuple(item[name] for name in self.by)

    def write(self, item: Reply) -> str:
        return "/".join(str(each) for each in self.place_of(item))


def _place(text: str) -> tuple[Any, ...]:
    partition, offset = text.split("/")
    return int(partition), int(offset)


def _lease(text: str) -> tuple[Any, ...]:
    group_id, topic, partition, first = text.rsplit("/", 3)  # names of groups may have slashes
    return group_id, topic, int(partition), int(first)


def _name(text: str) -> tuple[Any, ...]:
    return (text,)


BY_PLACE = Cursor(("partition", "offset"), _place, is_after=False)
BY_LEASE = Cursor(("group", "topic", "partition", "first_offset"), _lease, is_after=True)


def by_name(field: str) -> Cursor:
    return Cursor((field,), _name, is_after=True)


def in_order(items: Iterable[Reply], by: Sequence[str]) -> list[Reply]:
    return sorted(items, key=lambda one: tuple(_comparable(one.get(name)) for name in by))


def _comparable(value: Any) -> tuple[bool, Any]:
    return value is not None, value if value is not None else 0


def one_page(
    items: Iterable[Reply], cursor: Cursor, told: Iterable[str | None], limit: int
) -> tuple[list[Reply], str | None]:
    """What is shown of all items, and where to go on. `told`: where each node goes on."""
    bounds = [(cursor.parse(each), each) for each in told if each is not None]
    bound, text = min(bounds, default=((), None))
    found = sorted(items, key=cursor.place_of)
    if text is not None:
        found = [
            one for one in found if cursor.place_of(one) < bound or (cursor.is_after and cursor.place_of(one) == bound)
        ]
    shown = found[:limit]
    if len(shown) < len(found):
        text = cursor.write(shown[-1] if cursor.is_after else found[limit])
    return shown, text


def page(field: str, cursor: Cursor) -> Merge:
    def merge(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
        items = [one for each in replies for one in each[field]]
        shown, following = one_page(items, cursor, [each["next"] for each in replies], query["limit"])
        merged = {**replies[0], field: shown, "next": following}
        if "count" in merged:
            merged["count"] = len(shown)
        if "total" in merged:
            merged["total"] = sum(each["total"] for each in replies)
        return merged

    return merge


def skipped(field: str, by: Sequence[str]) -> Merge:
    """Pages by number: each node has given all up to the end of the page."""

    def merge(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
        skip, limit = int(query["skip"]), int(query["limit"])
        shown = in_order((one for each in replies for one in each[field]), by)[skip : skip + limit]
        total = sum(each["total"] for each in replies)
        merged = {**replies[0], field: shown, "count": len(shown), "total": total}
        return {**merged, **{name: query[name] for name in ("limit", "skip") if name in merged}}

    return merge


def steps(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
    """Cursors count in the journal of each node on its own: a page is what all of them have between two numbers."""
    bound = min((each["next"] for each in replies if each["next"] is not None), default=None)
    found = [one for each in replies for one in each["steps"] if bound is None or one["cursor"] < bound]
    return {
        "steps": in_order(found, ("timestamp",)),
        "next": bound,
        "first": min(each["first"] for each in replies),
        "end": max(each["end"] for each in replies),
    }


BY_NUMBER: Mapping[str, str] = {
    "list_delayed": "messages",
    "list_schedules": "schedules",
    "list_transactions": "transactions",
}
"""Operations whose pages may be asked for by number, and where the items stand in their answers."""
PAGE_ITEMS_MAX = 1000


async def all_up_to(count: int, field: str, ask: Callable[[int, int], Any]) -> Any:
    """What a node has of the first so many, by pages. `ask` is given what to skip and the limit, and gives a `Part`."""
    first = await ask(0, min(count, PAGE_ITEMS_MAX))
    last, found = first, 0
    while last.body is not None and len(last.body[field]) == PAGE_ITEMS_MAX and found + PAGE_ITEMS_MAX < count:
        found += PAGE_ITEMS_MAX
        last = await ask(found, min(count - found, PAGE_ITEMS_MAX))
        if last.body is not None:
            first.body[field] += last.body[field]
    return first if last.body is not None else last
