import json

from tools.nemesis.changes import BEFORE_S, changes_in
from tools.nemesis.history import Window

AT = "2026-11-17T08:00:00Z"
AT_S = 1794902400.0


def test_a_change_of_leaders_is_found_in_what_nodes_say() -> None:
    lines = [
        json.dumps({"time": AT, "event": "leaderships handed over", "partitions": 3}),
        json.dumps({"time": AT, "event": "in-sync replicas changed"}),
        "goqueue: something that is no event",
        "[1]",
        json.dumps({"event": "elected"}),
    ]
    told = "node-1: leaderships handed over"
    assert changes_in(lines, AT_S - 100, "node-1") == [Window(100 - BEFORE_S, 100, told)]
