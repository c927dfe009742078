"""What can only be measured while it happens. All else is read from the broker when somebody asks: see
`broker.metrics`. Nothing here is known to Prometheus, so that the hot paths pay for a dictionary and an addition.
"""

from goqueue.telemetry.histogram import Example, Histogram

NO_TOPIC = "_unknown"
"""Stands for names that are no topic's: anybody can think of more."""


class Meters:
    def __init__(self) -> None:
        self.published_s: dict[str, Histogram] = {}
        """By topic: from when a request was taken up to when it may be acknowledged."""
        self.fetched_s: dict[str, Histogram] = {}
        """By topic: what a stream read took, without the time that it waited for something to read."""
        self.fetched_bytes: dict[str, int] = {}
        self.failed: dict[tuple[str, str], int] = {}
        """Messages that were turned away, by topic and kind of error."""
        self.commits: dict[tuple[str, str], int] = {}
        """Offsets committed, by topic and group."""
        self.http_requests: dict[int, int] = {}
        """By status."""
        self.grpc_calls: dict[tuple[str, str], int] = {}
        """That have ended, by method and status."""
        self.loop_lag_s = Histogram()

    def published(self, topic: str, seconds: float, requests: int = 1) -> None:
        """So many requests with records for this topic were acknowledged together."""
        histogram = self.published_s.get(topic)
        if histogram is None:
            histogram = self.published_s[topic] = Histogram()
        histogram.observe(seconds, requests)

    def keep_example(self, example: Example) -> None:
        """Of a publish that was slow, and was told before."""
        self.published_s[example.spot.topic].keep_example(example)

    def fetched(self, topic: str, seconds: float, size_bytes: int) -> None:
        histogram = self.fetched_s.get(topic)
        if histogram is None:
            histogram = self.fetched_s[topic] = Histogram()
        histogram.observe(seconds)
        self.fetched_bytes[topic] = self.fetched_bytes.get(topic, 0) + size_bytes

    def refused(self, topic: str, kind: str, messages: int) -> None:
        self.failed[topic, kind] = self.failed.get((topic, kind), 0) + messages

    def committed(self, topic: str, group: str) -> None:
        self.commits[topic, group] = self.commits.get((topic, group), 0) + 1

    def answered(self, status: int) -> None:
        self.http_requests[status] = self.http_requests.get(status, 0) + 1

    def called(self, method: str, status: str) -> None:
        self.grpc_calls[method, status] = self.grpc_calls.get((method, status), 0) + 1

    def forget_topic(self, topic: str) -> None:
        self.published_s.pop(topic, None)
        self.fetched_s.pop(topic, None)
        self.fetched_bytes.pop(topic, None)
        for by_topic in (self.failed, self.commits):
            for key in [key for key in by_topic if key[0] == topic]:
                del by_topic[key]
