"""`goqueue topic` and `goqueue cluster`, run as a script would."""

from tests.integration.goqueue_command import Command
from tests.integration.process import Node


def test_a_topic_from_making_to_deleting(goqueue: Command) -> None:
    made = goqueue.run("topic", "create", "cli-life", "-p", "6", "-r", "168h")
    assert made.out == "made topic cli-life with 6 partitions\n"
    assert ["cli-life", "6", "0", "0", "B"] in goqueue.table("topic", "list")
    listed = {each["name"]: each for each in goqueue.json("topic", "list")}
    empty = {"total_messages": 0, "published": 0, "total_size": 0}
    assert listed["cli-life"] == {"name": "cli-life", "partitions": 6, **empty}

    described = goqueue.json("topic", "describe", "cli-life")
    assert (described["partitions"], described["options"]) == (6, {"retention.ms": "604800000"})
    shown = goqueue.run("topic", "describe", "cli-life").out
    assert "Name:       cli-life\n" in shown
    assert "PARTITION  EARLIEST  NEXT  MESSAGES  LEADER  REPLICAS  IN SYNC\n" in shown
    assert "        5         0     0         0  node-1  node-1    node-1\n" in shown

    goqueue.run(
        "topic", "alter", "cli-life", "--partitions", "8", "--retention-bytes", "10GiB", "--set", "lease.ms=10000"
    )
    altered = goqueue.json("topic", "alter", "cli-life", "--unset", "retention.ms")
    assert altered["options"] == {"retention.bytes": str(10 * 2**30), "lease.ms": "10000"}
    assert altered["partitions"] == 8

    refused = goqueue.run("topic", "delete", "cli-life", code=2)
    assert "Say --force if so; there is nobody to ask." in refused.err
    assert goqueue.run("topic", "delete", "cli-life", "--force").out == "deleted topic cli-life\n"
    assert "cli-life" not in {each["name"] for each in goqueue.json("topic", "list")}


def test_a_topic_is_trimmed_and_purged(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-trim", "-p", "2")
    for partition in ("0", "1"):
        goqueue.run("produce", "cli-trim", "-p", partition, "-m", "a", "-m", "b", "-m", "c")
    middle = goqueue.json_lines("consume", "cli-trim", "-p", "0")[0]["timestamp"]
    trim = ("topic", "trim", "cli-trim")
    assert "nobody to ask" in goqueue.run(*trim, "--before-time", middle, code=2).err
    assert "--partition" in goqueue.run(*trim, "--offset", "1", code=2).err
    dry = goqueue.run(*trim, "-p", "0", "--offset", "2", "--dry-run")
    assert dry.out.endswith("2 messages would go: this was a dry run\n")
    done = goqueue.json(*trim, "-p", "0", "--offset", "2", "--force")
    assert done["partitions"] == [{"partition": 0, "before": 0, "after": 2}]
    assert goqueue.run("consume", "cli-trim", "-p", "0", "-o", "value").out == "c\n"
    assert goqueue.run(*trim, "--before-time", middle, "--force").out.endswith("threw away 0 messages\n")
    assert goqueue.run(*trim, "-p", "0", "--offset", "99", "--force", code=3).out == ""
    assert goqueue.run("topic", "purge", "cli-trim", "--force").out.endswith("threw away 4 messages\n")
    assert goqueue.run("consume", "cli-trim").out == ""
    assert goqueue.run("produce", "cli-trim", "-p", "1", "-m", "next").out == "cli-trim/1/3 (disk)\n"


def test_json_of_making_and_deleting(goqueue: Command) -> None:
    assert goqueue.json("topic", "create", "cli-json", "-p", "2") == {
        "name": "cli-json",
        "partitions": 2,
        "created": True,
    }
    again = goqueue.json("topic", "create", "cli-json", "--if-not-exists")
    assert again == {"name": "cli-json", "partitions": 2, "created": False}
    assert goqueue.json("topic", "delete", "cli-json", "-f") == {"name": "cli-json", "deleted": True}


def test_errors_have_codes_and_say_what_to_do(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-twice")
    again = goqueue.run("topic", "create", "cli-twice", code=4)
    assert "cli-twice" in again.err
    assert "goqueue topic alter" in again.err
    missing = goqueue.run("topic", "describe", "cli-nowhere", code=3)
    assert "goqueue topic list" in missing.err
    bare = goqueue.run("topic", "create", "cli-bare", "-r", "168", code=2)
    assert "say the unit too, such as 168h" in bare.err
    assert "--set" in goqueue.run("topic", "alter", "cli-twice", code=2).err
    assert "is no topic name: 1 to 249 of the characters" in goqueue.run("topic", "create", "bad name!", code=2).err
    assert "goqueue topic describe" in goqueue.run("consume", "cli-twice", "-p", "77", code=3).err
    ahead = goqueue.run("why", "cli-twice/0/77", code=3)
    assert "there is no offset 77 yet" in ahead.err
    assert "goqueue topic describe" in ahead.err


def test_a_server_that_is_not_there(goqueue: Command) -> None:
    said = goqueue.run("topic", "list", "--server", "http://127.0.0.1:9", "--timeout", "5s", code=5)
    assert said.out == ""
    assert "goqueue serve" in said.err
    assert "--server" in said.err


def test_yaml_is_the_same_data(goqueue: Command) -> None:
    import yaml

    goqueue.run("topic", "create", "cli-yaml", "-p", "1")
    told = yaml.safe_load(goqueue.run("topic", "describe", "cli-yaml", "-o", "yaml").out)
    assert told == goqueue.json("topic", "describe", "cli-yaml")


def test_the_cluster(goqueue: Command, node: Node) -> None:
    info = goqueue.json("cluster", "info")
    assert (info["server"], info["nodes"], info["node_id"]) == (node.url, 1, "1")
    assert "Cluster id:" in goqueue.run("cluster", "info").out
    assert goqueue.json("cluster", "health")["status"] == "pass"
    assert ["storage", "pass", "all", "partitions", "are", "in", "service"] in goqueue.table("cluster", "health")
    (row,) = goqueue.table("cluster", "nodes")
    assert row[:2] == ["1", "yes"]
    (listed,) = goqueue.json("cluster", "nodes")
    assert (listed["node_id"], listed["is_alive"]) == (1, True)


def test_versions_here_and_there(goqueue: Command, node: Node) -> None:
    both = goqueue.json("version", "--remote")
    assert both == {"client": both["client"], "server": both["client"], "address": node.url}
    assert goqueue.run("version", "--remote").out == f"goqueue {both['client']}\nserver {both['client']} ({node.url})\n"
