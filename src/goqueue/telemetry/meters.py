"""What can only be measured while it happens. All else is read from the broker when somebody asks: see
`broker.metrics`. Nothing here is known to Prometheus, so that the hot paths pay for a dictionary and an addition.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

from goqueue.telemetry.histogram import LATENCY_S, VALIDATION_S, Example, Histogram

JOIN, LEAVE, TIMEOUT, TOPICS, SUBSCRIPTION = TRIGGERS = ("join", "leave", "timeout", "topics", "subscription")
"""What makes a group rebalance: a member came, went or was silent for too long; a topic changed; a member asks for
others, or joins again."""
K = TypeVar("K", bound=Hashable)
NO_TOPIC = "_unknown"
"""Stands for names that are no topic's: anybody can think of more."""


class Meters:
    def __init__(self) -> None:
        self.published_s: dict[str, Histogram] = {}
        """By topic: from when a request was taken up to when it may be acknowledged."""
        self.fetched_s: dict[str, Histogram] = {}
        """By topic: what a stream read took, without the time that it waited for something to read."""
        self.fetched_bytes: dict[tuple[str, str], int] = {}
        """By topic and group; a stream reader has none."""
        self.failed: dict[tuple[str, str], int] = {}
        """Messages that were turned away, by topic and kind of error."""
        self.commits: dict[tuple[str, str], int] = {}
        """Offsets committed, by topic and group."""
        self.commits_s: dict[str, Histogram] = {}
        """By group."""
        self.commits_refused: dict[tuple[str, str, str], int] = {}
        """By topic, group and kind of error."""
        self.settled_s: dict[tuple[str, str], Histogram] = {}
        """By topic and how: from when it was asked for to when it is durable."""
        self.polls: dict[str, int] = {}
        self.polls_empty: dict[str, int] = {}
        """By group."""
        self.members_moved: dict[tuple[str, str], int] = {}
        """Who joined or left, by group and why."""
        self.rebalances: dict[tuple[str, str], int] = {}
        """By group and what made it."""
        self.validated: dict[tuple[str, str], int] = {}
        """Messages held against a schema, by topic and what came of it."""
        self.validated_s: dict[str, Histogram] = {}
        """By topic, per batch."""
        self.transactions_begun = 0
        self.transactions_s = Histogram()
        """From the first that belongs to one to when all is written that ends it."""
        self.http_requests: dict[int, int] = {}
        """By status."""
        self.grpc_calls: dict[tuple[str, str], int] = {}
        """That have ended, by method and status."""
        self.loop_lag_s = Histogram()
        self.insecure_listeners = 0
        """Addresses that others can reach without TLS, or without authentication."""
        self.certificates: Callable[[], Mapping[str, float]] = dict
        """For how many seconds they are good, by listener."""
        self.throttles: dict[str, int] = {}
        self.throttled_ms: dict[str, int] = {}
        """How often clients were made to wait, and for how long in all, by quota."""
        self.handshakes: dict[str, int] = {}
        """Of TLS, by what came of them."""

    def published(self, topic: str, seconds: float, requests: int = 1) -> None:
        """So many requests with records for this topic were acknowledged together."""
        _of(self.published_s, topic).observe(seconds, requests)

    def keep_example(self, example: Example) -> None:
        """Of a publish that was slow, and was told before."""
        self.published_s[example.spot.topic].keep_example(example)

    def fetched(self, topic: str, seconds: float, size_bytes: int) -> None:
        _of(self.fetched_s, topic).observe(seconds)
        self.delivered(topic, "", size_bytes)

    def delivered(self, topic: str, group: str, size_bytes: int) -> None:
        _add(self.fetched_bytes, (topic, group), size_bytes)

    def received(self, topic: str, group: str, size_bytes: int) -> None:
        """A poll brought records of one topic: what `polled` and `delivered` say."""
        polls, key = self.polls, (topic, group)
        polls[group] = polls.get(group, 0) + 1
        self.fetched_bytes[key] = self.fetched_bytes.get(key, 0) + size_bytes

    def refused(self, topic: str, kind: str, messages: int) -> None:
        _add(self.failed, (topic, kind), messages)

    def committed(self, topic: str, group: str) -> None:
        _add(self.commits, (topic, group))

    def commits_took(self, group: str, seconds: float) -> None:
        _of(self.commits_s, group).observe(seconds)

    def commit_refused(self, topic: str, group: str, kind: str) -> None:
        _add(self.commits_refused, (topic, group, kind))

    def settled(self, topic: str, how: str, seconds: float) -> None:
        histogram = self.settled_s.get((topic, how))
        if histogram is None:
            histogram = self.settled_s[topic, how] = Histogram()
        histogram.observe(seconds)

    def polled(self, group: str, *, is_empty: bool) -> None:
        _add(self.polls, group)
        _add(self.polls_empty, group, int(is_empty))

    def moved(self, group: str, why: str, members: int) -> None:
        _add(self.members_moved, (group, why), members)

    def rebalanced(self, group: str, trigger: str) -> None:
        _add(self.rebalances, (group, trigger))

    def checked(self, topic: str, result: str, messages: int) -> None:
        _add(self.validated, (topic, result), messages)

    def checks_took(self, topic: str, seconds: float) -> None:
        _of(self.validated_s, topic, VALIDATION_S).observe(seconds)

    def answered(self, status: int) -> None:
        _add(self.http_requests, status)

    def throttled(self, quota: str, delay_ms: int) -> None:
        _add(self.throttles, quota)
        _add(self.throttled_ms, quota, delay_ms)

    def called(self, method: str, status: str) -> None:
        self.grpc_calls[method, status] = self.grpc_calls.get((method, status), 0) + 1

    def forget_topic(self, topic: str) -> None:
        for histograms in (self.published_s, self.fetched_s, self.validated_s):
            histograms.pop(topic, None)
        for by_topic in self._by_topic_and_more():
            for key in [key for key in by_topic if key[0] == topic]:
                del by_topic[key]

    def keep_groups(self, groups: set[str]) -> None:
        """All others are gone."""
        for by_group in (self.commits_s, self.polls, self.polls_empty):
            for group in by_group.keys() - groups:
                del by_group[group]
        for by_more, place in ((self.members_moved, 0), (self.rebalances, 0), (self.commits, 1)):
            for key in [key for key in by_more if key[place] not in groups]:
                del by_more[key]
        for refused in [key for key in self.commits_refused if key[1] not in groups]:
            del self.commits_refused[refused]

    def _by_topic_and_more(self) -> tuple[dict[Any, Any], ...]:
        return (self.failed, self.commits, self.fetched_bytes, self.commits_refused, self.settled_s, self.validated)


def _add(counts: dict[K, int], key: K, more: int = 1) -> None:
    counts[key] = counts.get(key, 0) + more


def _of(histograms: dict[K, Histogram], key: K, bounds: Sequence[float] = LATENCY_S) -> Histogram:
    histogram = histograms.get(key)
    if histogram is None:
        histogram = histograms[key] = Histogram(bounds)
    return histogram
