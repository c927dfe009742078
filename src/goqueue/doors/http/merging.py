"""Answers of all nodes to one question become one: a small function for each operation that is asked everywhere.

They are given as plain JSON, that of the node that was asked first, and the others by node id.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from goqueue.doors.http import merging_pages as pages
from goqueue.doors.http.merging_pages import Merge, Reply, in_order

STATES = ("running", "stopping", "failed", "stopped", "done")
"""Of parts of one redrive: what is said of the whole is the first of these that one of them says."""


def add_up(*values: Any) -> Any:
    """Numbers are added, tables and lists of numbers place by place; of all else the first that says something."""
    given = [each for each in values if each is not None]
    if not given:
        return None
    first = given[0]
    if isinstance(first, bool) or not isinstance(first, int | float | dict | list):
        return first
    if isinstance(first, int | float):
        return sum(given)
    if isinstance(first, dict):
        names = dict.fromkeys(name for each in given for name in each)
        return {name: add_up(*(each[name] for each in given if name in each)) for name in names}
    if any(isinstance(one, dict) for each in given for one in each):
        return [one for each in given for one in each]
    return [add_up(*ones) for ones in zip(*given)]


def _summed(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
    merged: Reply = add_up(*replies)
    return merged


def _keeping(*names: str) -> Merge:
    """All is added up but these, which every node says alike."""

    def merge(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
        return {**_summed(replies, query), **{name: replies[0][name] for name in names if name in replies[0]}}

    return merge


def _joined(field: str, *by: str) -> Merge:
    """A list of all, in the order of these fields; the rest as one node says it."""

    def merge(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
        return {**replies[0], field: in_order((one for each in replies for one in each[field]), by)}

    return merge


def _best(items: Iterable[Reply], by: Sequence[str], better: Callable[[Reply, Reply], Reply]) -> list[Reply]:
    """One for each name, of several that say something of it."""
    found: dict[tuple[Any, ...], Reply] = {}
    for item in items:
        name = tuple(item.get(each) for each in by)
        found[name] = better(found[name], item) if name in found else item
    return list(found.values())


# -- pages


def _delayed(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    if query["cursor"] is not None:
        return pages.page("messages", pages.BY_PLACE)(replies, query)
    return pages.skipped("messages", ("deliver_at", "partition", "offset"))(replies, query)


def _transactions(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    if query["skip"]:
        return {**pages.skipped("transactions", ("transactional_id",))(replies, query), "next": None}
    return pages.page("transactions", pages.by_name("transactional_id"))(replies, query)


# -- groups


def _better_group(one: Reply, other: Reply) -> Reply:
    """Its coordinator knows its members; others only where it reads."""
    known = max((one, other), key=lambda each: (each.get("generation") or 0, bool(each.get("members"))))
    return {**known, "topics": sorted({*one["topics"], *other["topics"]})}


def _groups(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    details = _best((one for each in replies for one in each["details"]), ("id",), _better_group)
    told = [each["next"] for each in replies]
    shown, following = pages.one_page(details, pages.by_name("id"), told, query["limit"])
    return {"groups": [one["id"] for one in shown], "details": shown, "next": following}


def _group(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
    merged = replies[0]
    for other in replies[1:]:
        merged = _better_group(merged, other)
    return merged


def _better_lag(one: Reply, other: Reply) -> Reply:
    """The leader of a partition knows its end."""
    return other if one.get("end_offset") is None else one


def _lag(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
    partitions = _best((one for each in replies for one in each["partitions"]), ("topic", "partition"), _better_lag)
    known = max(replies, key=lambda each: (each["state"] != "Empty", each["type"] != "share"))
    total = sum(each["lag"] or 0 for each in partitions)
    return {**known, "total_lag": total, "partitions": in_order(partitions, ("topic", "partition"))}


def _lags(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    by_group: dict[str, list[Reply]] = {}
    for each in replies:
        for one in each["groups"]:
            by_group.setdefault(one["group"], []).append(one)
    merged = [_lag(each, query) for each in by_group.values()]
    told = [each["next"] for each in replies]
    groups, following = pages.one_page(merged, pages.by_name("group"), told, query["limit"])
    return {"groups": groups, "total_lag": sum(each["total_lag"] for each in groups), "next": following}


def _offsets(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
    found: dict[str, dict[str, int]] = {}
    for each in replies:
        for topic, numbers in each["topics"].items():
            table = found.setdefault(topic, {})
            for number, offset in numbers.items():
                table[number] = max(offset, table.get(number, -1))
    shown = {topic: dict(sorted(found[topic].items(), key=lambda one: int(one[0]))) for topic in sorted(found)}
    generation = max(each["generation"] for each in replies)
    updated_at = max((each["updated_at"] for each in replies if each.get("updated_at")), default=None)
    return {**replies[0], "topics": shown, "offsets": shown, "generation": generation, "updated_at": updated_at}


def _any_said(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
    return replies[0]


def _comparison(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    merged = _joined("differences", "topic", "partition")(replies, query)
    return {**merged, "is_equal": not merged["differences"]}


def _forks(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    """Each node tells of the partitions that it leads."""

    def both(one: Reply, other: Reply) -> Reply:
        return {**one, **{name: one[name] + other[name] for name in ("only_group", "only_fork")}}

    forks = _best((one for each in replies for one in each["forks"]), ("fork",), both)
    shown, following = pages.one_page(forks, pages.by_name("fork"), [each["next"] for each in replies], query["limit"])
    return {**replies[0], "forks": shown, "next": following}


def _replayed(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    merged = _joined("partitions", "partition")(replies, query)
    return {**merged, "messages": sum(each["messages"] for each in replies)}


def _coordinators(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
    """Of a ledger that several nodes speak of, the one with groups in it is meant."""
    found = _best(
        (one for each in replies for one in each["coordinators"]),
        ("internal_topic", "partition"),
        lambda one, other: max(one, other, key=lambda each: each["groups"]),
    )
    return {**replies[0], "coordinators": in_order(found, ("internal_topic", "partition"))}


def _rebalances(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    merged = _summed(replies, query)
    last = max(replies, key=lambda each: each.get("last_rebalance_at") or "")
    weights = [(each.get("average_rebalance_duration_ms"), each["successful_rebalances"]) for each in replies]
    known = [(average, count) for average, count in weights if average is not None and count]
    count = sum(each for _, each in known)
    average = sum(average * count for average, count in known) / count if count else None
    return {
        **merged,
        "last_rebalance_duration_ms": last.get("last_rebalance_duration_ms"),
        "last_rebalance_at": last.get("last_rebalance_at"),
        "average_rebalance_duration_ms": average,
    }


# -- the rest


def _redrive(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    merged = _keeping("topic", "dry_run")(replies, query)
    states = {each["state"] for each in replies}
    merged["state"] = next((state for state in STATES if state in states), replies[0]["state"])
    merged["errors"] = list(dict.fromkeys(one for each in replies for one in each["errors"]))
    ends = [each["ended_at"] for each in replies]
    merged["started_at"] = min(each["started_at"] for each in replies)
    merged["ended_at"] = None if None in ends else max(ends)
    return merged


def _delay_stats(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    merged = _summed(replies, query)
    soonest = min((each["next_delivery_at"] for each in replies if each.get("next_delivery_at")), default=None)
    busiest = max(replies, key=lambda each: each["total_scheduled"])
    merged["timer_wheel"]["current_tick"] = max(each["timer_wheel"]["current_tick"] for each in replies)
    return {**merged, "next_delivery_at": soonest, "avg_delay": busiest["avg_delay"]}


def _lanes(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    merged = _joined("partitions", "partition")(replies, query)
    merged["lanes"] = [_lane([each["lanes"][number] for each in replies]) for number in range(len(merged["lanes"]))]
    return merged


def _lane(lanes: Sequence[Reply]) -> Reply:
    ages = [each["oldest_ready_ms"] for each in lanes if each["oldest_ready_ms"] is not None]
    return {**add_up(*lanes), "lane": lanes[0]["lane"], "oldest_ready_ms": max(ages, default=None)}


def _nodes(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
    """All say the same of each other; only a node itself knows its standbys."""
    told = {one["node_id"]: one for each in replies for one in each["nodes"] if one["standbys_behind"] is not None}
    return {"nodes": [told.get(one["node_id"], one) for one in replies[0]["nodes"]]}


def _compacted(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    merged = _joined("results", "partition")(replies, query)
    return {**merged, "success": all(each["success"] for each in replies)}


def _traces(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    """A journey may have gone through several nodes: each tells its part."""
    found = _best(
        (one for each in replies for one in each["traces"]), ("trace_id", "topic", "partition", "offset"), _longer
    )
    latest = sorted(found, key=lambda one: str(one.get("start_time") or ""), reverse=True)
    shown = latest[: int(query.get("limit") or len(latest))]
    return {**replies[0], "traces": shown, "total": sum(each["total"] for each in replies)}


def _longer(one: Reply, other: Reply) -> Reply:
    return max(one, other, key=lambda each: each.get("span_count") or 0)


def _trace(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
    merged = min(replies, key=lambda each: str(each.get("start_time") or "~"))
    merged = dict(merged)
    for field in ("spans", "events"):
        every = [one for each in replies for one in each.get(field) or ()]
        merged[field] = sorted(every, key=lambda one: str(one.get("start_time") or one.get("timestamp") or ""))
    merged["span_count"] = len(merged["spans"])
    ends = [each["end_time"] for each in replies if each.get("end_time")]
    merged["end_time"] = max(ends, default=None)
    return merged


def _latest(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
    return max(replies, key=lambda each: str(each.get("timestamp") or ""))


def _audit(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    entries = in_order((one for each in replies for one in each["entries"]), ("at_ms", "node"))
    shown = entries[-query["limit"] :] if query["offset"] is None else entries[: query["limit"]]
    trails = in_order((one for each in replies for one in each["trails"]), ("node",))
    known = {node for each in replies for node in each["not_answered"]}
    silent = sorted(known - {one["node"] for one in trails})
    return {**replies[0], "entries": shown, "count": len(shown), "trails": trails, "not_answered": silent}


def _keys(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
    """A key is used at any node."""

    def later(one: Reply, other: Reply) -> Reply:
        return max(one, other, key=lambda each: each["last_used_at"] or 0)

    keys = in_order(_best((one for each in replies for one in each["keys"]), ("id",), later), ("id",))
    return {"keys": keys, "count": len(keys), "since": max(each["since"] for each in replies)}


def _stats(replies: Sequence[Reply], query: Mapping[str, Any]) -> Reply:
    merged = _keeping("node_id", "uptime", "topics")(replies, query)
    for name, topic in merged["topic_stats"].items():
        topic["partitions"] = next(each["topic_stats"][name] for each in replies if name in each["topic_stats"])[
            "partitions"
        ]
    return merged


def _reading(replies: Sequence[Reply], _query: Mapping[str, Any]) -> Reply:
    """What each node says stays apart: pages are told what has changed on each."""
    return {**replies[0], "nodes": {node: told for each in replies for node, told in each["nodes"].items()}}


MERGES: Mapping[str, Merge] = {
    "describe_topic": _keeping("name", "id", "partitions", "options"),
    "configure_topic": _keeping("name", "id", "partitions", "options"),
    "trim_topic": _joined("partitions", "partition"),
    "list_dead_letters": pages.page("messages", pages.BY_PLACE),
    "redrive": _redrive,
    "look_at_redrive": _redrive,
    "stop_redrive": _redrive,
    "purge_dead_letters": _keeping("topic"),
    "list_delayed": _delayed,
    "delay_stats": _delay_stats,
    "list_schedules": pages.skipped("schedules", ("name",)),
    "topic_lanes": _lanes,
    "priority_stats": _summed,
    "replay": _replayed,
    "fork": _any_said,
    "list_forks": _forks,
    "compare": _comparison,
    "drop_fork": _any_said,
    "list_transactions": _transactions,
    "transaction_stats": _summed,
    "compact_topic": _compacted,
    "cluster_nodes": _nodes,
    "list_coordinators": _coordinators,
    "list_groups": _groups,
    "describe_group": _group,
    "all_rebalance_stats": _rebalances,
    "group_offsets": _offsets,
    "group_lag": _lag,
    "all_lags": _lags,
    "list_leases": pages.page("leases", pages.BY_LEASE),
    "reliability_stats": _summed,
    "stored_steps": pages.steps,
    "list_traces": _traces,
    "search_traces": _traces,
    "trace_stats": _keeping("enabled", "sampling_rate"),
    "describe_trace": _trace,
    "where_is_key": _latest,
    "read_audit": _audit,
    "list_keys": _keys,
    "stats": _stats,
    "console_reading": _reading,
}
