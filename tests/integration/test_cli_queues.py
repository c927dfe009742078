"""`goqueue dlq`, `delay`, `schedule`, `trace`, `why` and `schema`, run as a script would."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.integration.goqueue_command import Command


def test_dead_letters(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-dead", "-p", "1")
    goqueue.run("produce", "cli-dead", "-m", "apple", "-m", "pear", "-k", "k")
    take = ("consume", "cli-dead", "--group", "cli-undertaker", "-o", "value", "--wait", "1s")
    assert goqueue.run(*take, "-n", "2", "--ack", "reject").out == "apple\npear\n"

    rows = goqueue.table("dlq", "list", "cli-dead")
    assert [row[:4] for row in rows] == [
        ["0/0", "cli-dead/0/0", "cli-undertaker", "rejected"],
        ["0/1", "cli-dead/0/1", "cli-undertaker", "rejected"],
    ]
    assert [each["value"] for each in goqueue.json("dlq", "list", "cli-dead", "--contains", "pear")] == ["pear"]
    assert "Error:           rejected with goqueue consume" in goqueue.run("dlq", "show", "cli-dead", "0/0").out
    shown = goqueue.json("dlq", "show", "cli-dead", "0/1")
    assert (shown["value"], shown["original_offset"], shown["reason"]) == ("pear", 1, "rejected")
    assert "goqueue dlq list" in goqueue.run("dlq", "show", "cli-dead", "0/7", code=3).err

    assert goqueue.run("dlq", "redrive", "cli-dead", "--dry-run").out == "2 messages would be sent back\n"
    report = goqueue.json("dlq", "redrive", "cli-dead", "--contains", "apple")
    assert (report["state"], report["redriven"], report["filtered_out"]) == ("done", 1, 1)
    assert goqueue.run(*take, "-n", "1").out == "apple\n"
    assert "--force" in goqueue.run("dlq", "purge", "cli-dead", code=2).err
    assert goqueue.json("dlq", "purge", "cli-dead", "--force")["topic"] == "cli-dead"
    empty = goqueue.run("dlq", "list", "cli-dead")
    assert (empty.out, empty.err) == ("", "no dead letters\n")


def test_delays(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-delay", "-p", "1")
    said = goqueue.run("produce", "cli-delay", "-m", "later", "--delay", "1h")
    assert said.out.startswith("cli-delay/0/0, comes at ")
    goqueue.run("produce", "cli-delay", "-m", "much later", "--at", "+3h")
    assert [row[0] for row in goqueue.table("delay", "list", "cli-delay")] == ["0/0", "0/1"]
    moved = goqueue.json("delay", "reschedule", "cli-delay", "0/0", "--delay", "5h")
    assert (moved["offset"], moved["state"]) == (0, "pending")
    assert [each["offset"] for each in goqueue.json("delay", "list", "cli-delay")] == [1, 0]
    assert "comes at" in goqueue.run("delay", "reschedule", "cli-delay", "0/0", "--at", "+4h").out
    assert goqueue.run("delay", "cancel", "cli-delay", "0/0").out == "cancelled cli-delay/0/0\n"
    assert goqueue.json("delay", "cancel", "cli-delay", "0/1")["cancelled"] is True
    assert "goqueue delay list" in goqueue.run("delay", "cancel", "cli-delay", "0/1", code=3).err


def test_schedules(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-schedule", "-p", "1")
    put = (
        "schedule",
        "set",
        "cli-nightly",
        "cli-schedule",
        "--cron",
        "0 7 * * *",
        "-m",
        "report",
        "--timezone",
        "Europe/Berlin",
    )
    assert goqueue.run(*put).out.startswith("schedule cli-nightly publishes to cli-schedule next at ")
    assert goqueue.json(*put)["timezone"] == "Europe/Berlin"
    assert "cli-nightly" in {row[0] for row in goqueue.table("schedule", "list")}
    assert "cli-nightly" in {each["name"] for each in goqueue.json("schedule", "list")}
    assert goqueue.run("schedule", "delete", "cli-nightly").out == "deleted schedule cli-nightly\n"
    goqueue.run("schedule", "delete", "cli-nightly", code=3)
    goqueue.run(*put[:5], "every day", *put[6:], code=2)


def test_journeys(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-trace", "-p", "1")
    goqueue.run("produce", "cli-trace", "-m", "a", "-k", "customer-7")
    goqueue.run("consume", "cli-trace", "--group", "cli-tracers", "-n", "1", "--ack", "reject")

    (found,) = goqueue.json("trace", "search", "--topic", "cli-trace", "--status", "error")
    assert (found["topic"], found["offset"]) == ("cli-trace", 0)
    (row,) = goqueue.table(
        "trace", "search", "--topic", "cli-trace", "--start", "-1h", "--consumer-group", "cli-tracers"
    )
    assert row[:3] == [found["trace_id"], "cli-trace/0/0", "error"]
    assert goqueue.run("trace", "search", "--topic", "cli-trace", "--end", "-1h").out == ""
    assert found["trace_id"] in {row[0] for row in goqueue.table("trace", "list", "-n", "50")}
    assert found["trace_id"] in {each["trace_id"] for each in goqueue.json("trace", "list")}
    trace = goqueue.json("trace", "get", found["trace_id"])
    assert "publish.received" in [each["event_type"] for each in trace["events"]]
    assert "publish.received" in goqueue.run("trace", "get", found["trace_id"]).out
    goqueue.run("trace", "get", "0" * 31 + "1", code=3)
    assert goqueue.json("trace", "stats")["enabled"] is True
    assert "traces_total:" in goqueue.run("trace", "stats").out

    where = goqueue.json("why", "cli-trace/0/0")
    assert where["trace_id"] == found["trace_id"]
    shown = goqueue.run("why", "cli-trace", "--key", "customer-7").out
    assert "Message:   cli-trace/0/0\n" in shown
    assert "Node:      node-1\n" in shown
    assert "cli-tracers" in shown
    assert "TOPIC/PARTITION/OFFSET" in goqueue.run("why", "cli-trace", code=2).err


def schema_file(home: Path, name: str, *fields: Mapping[str, object]) -> str:
    text = json.dumps({"type": "record", "name": "Order", "fields": fields})
    (home / name).write_text(text, "utf-8")
    return name


def test_schemas(goqueue: Command) -> None:
    apples, pears = {"name": "apples", "type": "int"}, {"name": "pears", "type": "int", "default": 0}
    first = schema_file(goqueue.home, "first.avsc", apples)
    second = schema_file(goqueue.home, "second.avsc", apples, pears)
    other = schema_file(goqueue.home, "other.avsc", {"name": "apples", "type": "string"})
    made = goqueue.json("schema", "register", "cli-orders-value", "-f", first)
    assert (made["subject"], made["version"]) == ("cli-orders-value", 1)
    said = goqueue.run(
        "schema", "register", "cli-orders-value", "-f", "-", stdin=(goqueue.home / second).read_text("utf-8")
    )
    assert said.out.startswith("cli-orders-value has it as version 2, id ")

    assert [row[:2] for row in goqueue.table("schema", "list", "cli-orders-value")] == [
        ["cli-orders-value", "1"],
        ["cli-orders-value", "2"],
    ]
    assert "cli-orders-value" in {each["subject"] for each in goqueue.json("schema", "list")}
    assert goqueue.json("schema", "get", "cli-orders-value", "--version", "1")["id"] == made["id"]
    assert '"apples"' in goqueue.run("schema", "get", "--id", str(made["id"])).out
    assert goqueue.run("schema", "check", "cli-orders-value", "-f", first).out == "it could be registered\n"
    refused = goqueue.run("schema", "check", "cli-orders-value", "-f", other, code=4)
    assert refused.out.startswith("it is not compatible\n")
    goqueue.run("schema", "register", "cli-orders-value", "-f", other, code=4)
    assert goqueue.json("schema", "config", "cli-orders-value", "--set", "NONE")["compatibility"] == "NONE"
    assert goqueue.run("schema", "config", "cli-orders-value").out == "cli-orders-value: NONE\n"
    gone = goqueue.json("schema", "delete", "cli-orders-value", "--force")
    assert gone == {"subject": "cli-orders-value", "versions": [1, 2]}
    goqueue.run("schema", "get", "cli-orders-value", code=3)
