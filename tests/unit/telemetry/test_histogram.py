import pytest

from goqueue.telemetry.histogram import Histogram


def test_a_histogram_counts_each_once() -> None:
    histogram, other = Histogram(), Histogram()
    for seconds in (0.0, 0.0005, 0.00051, 5, 5.1, 100):
        histogram.observe(seconds)
    assert (histogram.counts[0], histogram.counts[1], *histogram.counts[-2:]) == (2, 1, 1, 2)
    other.observe(1, times=3)
    histogram.add(other)
    assert histogram.count == 9
    assert histogram.total == pytest.approx(113.10101)
