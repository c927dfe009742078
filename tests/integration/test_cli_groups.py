"""`goqueue group` and `goqueue replay`, run as a script would."""

import json

from confluent_kafka import Consumer, TopicPartition

from tests.integration.goqueue_command import Command
from tests.integration.process import Node


def test_a_group_is_looked_at_set_back_and_deleted(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-group-topic", "-p", "1")
    goqueue.run("produce", "cli-group-topic", "-m", "a", "-m", "b", "-m", "c")
    take = ("consume", "cli-group-topic", "--group", "cli-group", "-o", "value", "--wait", "1s")
    assert goqueue.run(*take, "-n", "3").out == "a\nb\nc\n"

    assert ["cli-group", "queue", "Empty", "0", "0", "0", "0", "0", "cli-group-topic"] in goqueue.table("group", "list")
    (listed,) = [each for each in goqueue.json("group", "list") if each["id"] == "cli-group"]
    assert (listed["state"], listed["topics"]) == ("Empty", ["cli-group-topic"])
    described = goqueue.json("group", "describe", "cli-group")
    assert (described["id"], described["total_lag"], described["lag"][0]["settled_offset"]) == ("cli-group", 0, 3)
    shown = goqueue.run("group", "describe", "cli-group").out.splitlines()
    assert [line.split() for line in shown if line.startswith("cli-group-topic ")] == [
        ["cli-group-topic", "0", "-", "3", "3", "0", "0", "0", "0", "-"]
    ]
    assert goqueue.table("group", "offsets", "cli-group") == [["cli-group-topic", "0", "3"]]
    offsets = [{"topic": "cli-group-topic", "partition": 0, "offset": 3}]
    assert goqueue.json("group", "offsets", "cli-group") == offsets

    reset = ("group", "reset-offsets", "cli-group", "--topic", "cli-group-topic")
    dry = goqueue.run(*reset, "--to-earliest", "--dry-run")
    assert dry.lines[0] == ["0", "3", "0"]
    assert "nothing was changed" in dry.out
    moved = goqueue.json(*reset, "--to-offset", "2")
    assert (moved["dry_run"], moved["results"]) == (False, [{"partition": 0, "before": 3, "after": 2}])
    assert goqueue.run(*take, "-n", "1").out == "c\n"
    assert goqueue.table(*reset, "--to-time", "-2h", "--dry-run")[0] == ["0", "3", "0"]
    assert goqueue.table(*reset, "--to-latest", "--dry-run")[0] == ["0", "3", "3"]
    assert "say one of --to-earliest" in goqueue.run(*reset, code=2).err

    assert "--yes" in goqueue.run("group", "delete", "cli-group", code=2).err
    assert goqueue.run("group", "delete", "cli-group", "--yes").out == "deleted group cli-group\n"
    assert "goqueue group list" in goqueue.run("group", "describe", "cli-group", code=3).err
    goqueue.run("group", "offsets", "cli-group", code=3)


def test_what_a_group_has_still_to_do_is_counted(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-counted", "-p", "1")
    goqueue.run("produce", "cli-counted", *(word for text in "abcde" for word in ("-m", text)))
    take = ("consume", "cli-counted", "--group", "cli-counting", "--wait", "1s")
    goqueue.run(*take, "-n", "1")
    goqueue.run(*take, "-n", "1", "--ack", "none", "--lease", "1h")
    (listed,) = [each for each in goqueue.json("group", "list") if each["id"] == "cli-counting"]
    counted = {"ready": 3, "leased": 1, "waiting": 0, "lag": 4}
    assert (listed["type"], {name: listed[name] for name in counted}) == ("queue", counted)
    described = goqueue.json("group", "describe", "cli-counting")
    assert {name: described[name] for name in ("ready", "leased", "waiting", "total_lag")} == {
        "ready": 3,
        "leased": 1,
        "waiting": 0,
        "total_lag": 4,
    }
    looked = json.loads(goqueue.run("top", "-n", "1", "-o", "json").out)
    (topic,) = [each for each in looked["topics"] if each["name"] == "cli-counted"]
    assert (topic["messages"], topic["messages_per_second"]) == (5, None)
    (group,) = [each for each in looked["groups"] if each["group"] == "cli-counting"]
    assert (group["ready"], group["leased"], group["waiting"], group["lag"]) == (3, 1, 0, 4)


def test_a_pause_tells_what_it_does_not_stop(goqueue: Command, node: Node) -> None:
    goqueue.run("topic", "create", "cli-paused", "-p", "1")
    goqueue.run("produce", "cli-paused", "-m", "a")
    reader = Consumer({"bootstrap.servers": node.address, "group.id": "cli-reader", "enable.auto.commit": False})
    reader.commit(offsets=[TopicPartition("cli-paused", 0, 1)], asynchronous=False)
    reader.close()
    words = "group cli-reader is paused, but it is a consumer group: what it reads as a stream it reads on\n"
    assert goqueue.run("group", "pause", "cli-reader").out == words

    goqueue.run("consume", "cli-paused", "--group", "cli-taker", "--wait", "1s", "-n", "1")
    words = "group cli-taker is paused: nothing is delivered to it\n"
    assert goqueue.run("group", "pause", "cli-taker").out == words
    goqueue.run("topic", "pause", "cli-paused")
    words = "group cli-taker is resumed, but topic cli-paused is still paused\n"
    assert goqueue.run("group", "resume", "cli-taker").out.startswith(words)
    goqueue.run("topic", "resume", "cli-paused")
    assert goqueue.run("group", "resume", "cli-taker").out == "group cli-taker is delivered to again\n"
    assert goqueue.run("group", "pause", "cli-new").out == "group cli-new is paused: nothing is delivered to it\n"


def test_a_replay(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-replay", "-p", "1")
    goqueue.run("produce", "cli-replay", "-m", "a", "-m", "b", "-m", "c")
    take = ("consume", "cli-replay", "--group", "cli-again", "-o", "value", "--wait", "1s")
    assert goqueue.run(*take, "-n", "3").out == "a\nb\nc\n"
    dry = goqueue.run("replay", "cli-again", "cli-replay", "--from", "-2h", "--dry-run")
    assert dry.out.endswith("3 messages of cli-replay would be delivered to cli-again again\n")
    done = goqueue.json("replay", "cli-again", "cli-replay", "--from", "1", "--to", "2")
    assert (done["messages"], done["partitions"][0]["from_offset"]) == (1, 1)
    assert goqueue.run(*take, "-n", "1").out == "b\n"
