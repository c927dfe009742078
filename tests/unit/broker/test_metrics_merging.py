"""One page of metrics for all processes of a machine."""

from prometheus_client.parser import text_string_to_metric_families

from goqueue.broker.metrics.merging import merged

ONE = """# HELP goqueue_up Alive.
# TYPE goqueue_up gauge
goqueue_up{node_id="1"} 1.0
# HELP goqueue_messages_total Messages.
# TYPE goqueue_messages_total counter
goqueue_messages_total{topic="a b{}",node_id="1"} 3.0
# HELP process_open_fds Files.
# TYPE process_open_fds gauge
process_open_fds 17.0
# HELP python_gc_total Collections.
# TYPE python_gc_total counter
python_gc_total{generation="0"} 4.0
"""
TWO = """# HELP goqueue_messages_total Messages.
# TYPE goqueue_messages_total counter
goqueue_messages_total{topic="a b{}",node_id="2"} 5.0
# HELP goqueue_only_here Something.
# TYPE goqueue_only_here gauge
goqueue_only_here{node_id="2"} 1.0
# HELP process_open_fds Files.
# TYPE process_open_fds gauge
process_open_fds 18.0
"""


def test_every_family_comes_once_with_the_series_of_all() -> None:
    families = list(text_string_to_metric_families(merged({"1": ONE, "2": TWO})))
    assert len({each.name for each in families}) == len(families)
    found = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for each in families
        for sample in each.samples
    }
    assert found == {
        ("goqueue_up", (("node_id", "1"),)): 1.0,
        ("goqueue_messages_total", (("node_id", "1"), ("topic", "a b{}"))): 3.0,
        ("goqueue_messages_total", (("node_id", "2"), ("topic", "a b{}"))): 5.0,
        ("process_open_fds", (("node_id", "1"),)): 17.0,
        ("process_open_fds", (("node_id", "2"),)): 18.0,
        ("python_gc_total", (("generation", "0"), ("node_id", "1"))): 4.0,
        ("goqueue_only_here", (("node_id", "2"),)): 1.0,
    }


def test_openmetrics_ends_once() -> None:
    text = merged({"1": ONE + "# EOF\n", "2": TWO + "# EOF\n"})
    assert text.endswith("# EOF\n")
    assert text.count("# EOF") == 1
