"""As much of PromQL as our alert rules use, evaluated over what scrapes returned. Queries are read by promql-parser, so
that what Prometheus would not take is not taken here; and where promtool is installed, it judges the same samples.
"""

import operator
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import promql_parser as ql
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
LOOKBACK_S = 300
NAME = "__name__"

COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}
ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "*": operator.mul,
    "/": lambda left, right: left / right if right else float("nan"),
}
AGGREGATE: dict[str, Callable[[list[float]], float]] = {"sum": sum, "min": min, "max": max}


class Point(NamedTuple):
    at_s: float
    value: float


AT = operator.attrgetter("at_s")


class Samples:
    """What Prometheus would have stored."""

    def __init__(self, job: str = "goqueue", instance: str = "node:8080") -> None:
        self._target = {"job": job, "instance": instance}
        self.series: dict[Labels, list[Point]] = {}
        self._by_name: dict[str, list[tuple[Labels, list[Point]]]] = {}
        self._by_text: dict[str, list[Point]] = {}
        """By a line of a scrape without its value. Lines return with each scrape, and are read once."""
        self.times_s: list[float] = []

    def scraped(self, at_s: float, text: str | None) -> None:
        """None: there was no answer."""
        self.times_s.append(at_s)
        for line in ("up 0" if text is None else f"up 1\n{text}").splitlines():
            if line and not line.startswith("#"):
                shown, _, value = line.rpartition(" ")
                points = self._by_text.get(shown)
                if points is None:
                    points = self._by_text[shown] = self._begin(shown)
                points.append(Point(at_s, float(value)))

    def _begin(self, shown: str) -> list[Point]:
        ((sample,),) = (family.samples for family in text_string_to_metric_families(f"{shown} 0\n"))
        labels = frozenset({NAME: sample.name, **sample.labels, **self._target}.items())
        points = self.series[labels] = []
        self._by_name.setdefault(sample.name, []).append((labels, points))
        return points

    def matching(self, selector: Any) -> Iterable[tuple[Labels, list[Point]]]:
        for labels, points in self._by_name.get(selector.name, ()):
            values = dict(labels)
            if all(_matches(each, values) for each in selector.matchers.matchers):
                yield labels, points


def _matches(matcher: Any, values: dict[str, str]) -> bool:
    value = values.get(matcher.name, "")
    if matcher.op == ql.MatchOp.Equal:
        return bool(value == matcher.value)
    assert matcher.op == ql.MatchOp.Re, "our queries use no other"
    return re.fullmatch(str(matcher.value), value) is not None


def evaluate(query: Any, samples: Samples, at_s: float) -> Vector | float:
    match query:
        case ql.NumberLiteral():
            return query.val
        case ql.ParenExpr():
            return evaluate(query.expr, samples, at_s)
        case ql.VectorSelector():
            return _instant(query, samples, at_s)
        case ql.Call():
            return _call(query, samples, at_s)
        case ql.AggregateExpr():
            return _aggregate(query, _vector(query.expr, samples, at_s))
        case ql.BinaryExpr():
            return _binary(query, evaluate(query.lhs, samples, at_s), evaluate(query.rhs, samples, at_s))
    raise NotImplementedError(type(query).__name__)


def _vector(query: Any, samples: Samples, at_s: float) -> Vector:
    found = evaluate(query, samples, at_s)
    assert isinstance(found, dict)
    return found


def _instant(selector: Any, samples: Samples, at_s: float) -> Vector:
    """A series that a scrape did not return any more is over: Prometheus marks it as stale."""
    times_s = samples.times_s[: bisect_right(samples.times_s, at_s)]
    last = times_s[-1] if times_s and times_s[-1] > at_s - LOOKBACK_S else None
    found: Vector = {}
    for labels, points in samples.matching(selector):
        place = bisect_right(points, at_s, key=AT) - 1
        if place >= 0 and points[place].at_s == last:
            found[labels] = points[place].value
    return found


def _call(call: Any, samples: Samples, at_s: float) -> Vector:
    if call.func.name == "histogram_quantile":
        quantile, buckets = call.args
        return _quantile(quantile.val, _vector(buckets, samples, at_s))
    (matrix,) = call.args
    window_s = matrix.range.total_seconds()
    found: Vector = {}
    for labels, points in samples.matching(matrix.vector_selector):
        inside = points[bisect_left(points, at_s - window_s, key=AT) : bisect_right(points, at_s, key=AT)]
        if len(inside) >= 2:
            value = _extrapolated(inside, at_s, window_s, is_counter=call.func.name in ("rate", "increase"))
            found[_without(labels, {NAME})] = value / window_s if call.func.name == "rate" else value
    assert call.func.name in ("rate", "increase", "delta"), call.func.name
    return found


def _extrapolated(points: list[Point], at_s: float, window_s: float, *, is_counter: bool) -> float:
    """How much it rose in the whole window, though its samples lie within it: as Prometheus guesses it."""
    rise = points[-1].value - points[0].value
    if is_counter:
        rise += sum(before.value for before, after in pairwise(points) if after.value < before.value)
    sampled_s = points[-1].at_s - points[0].at_s
    between_s = sampled_s / (len(points) - 1)
    to_start_s, to_end_s = points[0].at_s - (at_s - window_s), at_s - points[-1].at_s
    if is_counter and rise > 0 and points[0].value >= 0:
        to_start_s = min(to_start_s, sampled_s * points[0].value / rise)
    covered_s = sampled_s
    covered_s += to_start_s if to_start_s < between_s * 1.1 else between_s / 2
    covered_s += to_end_s if to_end_s < between_s * 1.1 else between_s / 2
    return rise * covered_s / sampled_s


def _quantile(quantile: float, buckets: Vector) -> Vector:
    by_series: dict[Labels, list[tuple[float, float]]] = {}
    for labels, count in buckets.items():
        bound = float(dict(labels)["le"])
        by_series.setdefault(_without(labels, {"le", NAME}), []).append((bound, count))
    found: Vector = {}
    for labels, pairs in by_series.items():
        pairs.sort()
        total = pairs[-1][1]
        rank = quantile * total
        number = next((number for number, (_, count) in enumerate(pairs) if count >= rank), len(pairs) - 1)
        if not total:
            found[labels] = float("nan")
        elif number == len(pairs) - 1:
            found[labels] = pairs[-2][0]
        else:
            low, before = pairs[number - 1] if number else (0.0, 0.0)
            high, upto = pairs[number]
            found[labels] = low + (high - low) * (rank - before) / (upto - before)
    return found


def _aggregate(query: Any, vector: Vector) -> Vector:
    assert query.modifier is None or query.modifier.type == ql.AggModifierType.By
    kept = set() if query.modifier is None else set(query.modifier.labels)
    groups: dict[Labels, list[float]] = {}
    for labels, value in vector.items():
        groups.setdefault(frozenset(pair for pair in labels if pair[0] in kept), []).append(value)
    return {labels: AGGREGATE[str(query.op)](values) for labels, values in groups.items()}


def _binary(query: Any, left: Vector | float, right: Vector | float) -> Vector:
    sign = str(query.op)
    if isinstance(left, dict) and isinstance(right, dict):
        matching = query.modifier.matching if query.modifier is not None else None
        if matching is not None:
            assert (sign, str(matching).split()[0]) == ("and", "on"), "our queries use no other"
            return _and_on(set(matching.labels), left, right)
        return _of_two(sign, left, right)
    if isinstance(left, dict):
        assert isinstance(right, float)
        if sign in COMPARE:
            return {labels: value for labels, value in left.items() if COMPARE[sign](value, right)}
        return {_without(labels, {NAME}): ARITHMETIC[sign](value, right) for labels, value in left.items()}
    assert isinstance(right, dict)
    return {_without(labels, {NAME}): ARITHMETIC[sign](left, value) for labels, value in right.items()}


def _of_two(sign: str, left: Vector, right: Vector) -> Vector:
    """Those with the same labels belong together."""
    bare = {_without(labels, {NAME}): value for labels, value in right.items()}
    if sign == "and":
        return {labels: value for labels, value in left.items() if _without(labels, {NAME}) in bare}
    if sign == "or":
        known = {_without(labels, {NAME}) for labels in left}
        return left | {labels: value for labels, value in right.items() if _without(labels, {NAME}) not in known}
    pairs = [(labels, value, bare.get(_without(labels, {NAME}))) for labels, value in left.items()]
    if sign in COMPARE:
        return {labels: one for labels, one, other in pairs if other is not None and COMPARE[sign](one, other)}
    return {_without(labels, {NAME}): ARITHMETIC[sign](one, other) for labels, one, other in pairs if other is not None}


def _and_on(names: set[str], left: Vector, right: Vector) -> Vector:
    """Those for which there is one with the same values of these labels."""
    known = {frozenset(pair for pair in labels if pair[0] in names) for labels in right}
    return {
        labels: value
        for labels, value in left.items()
        if frozenset(pair for pair in labels if pair[0] in names) in known
    }


def _without(labels: Labels, names: set[str]) -> Labels:
    return frozenset(pair for pair in labels if pair[0] not in names)


def names_in(query: Any) -> set[str]:
    """Of all series that a query asks for."""
    found: set[str] = set()

    def look(node: Any) -> None:
        if isinstance(node, ql.VectorSelector):
            found.add(str(node.name))
        elif isinstance(node, ql.MatrixSelector):
            found.add(str(node.vector_selector.name))

    ql.walk(query, look)
    return found
