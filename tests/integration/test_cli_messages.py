"""`goqueue produce` and `goqueue consume`, run as a script would."""

import json
import signal
import subprocess
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer

from tests.integration.goqueue_command import Command
from tests.integration.process import DEADLINE_S, GOQUEUE, Node
from tests.integration.registry import registry, value_of


def test_messages_from_the_command_line(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-produce", "-p", "2")
    sent = goqueue.json_lines(
        "produce",
        "cli-produce",
        "-m",
        "three apples",
        "-k",
        "customer-7",
        "-H",
        "source=cli",
        "--priority",
        "high",
        "-p",
        "1",
    )
    assert [(each["topic"], each["partition"], each["offset"], each["priority"]) for each in sent] == [
        ("cli-produce", 1, 0, "high")
    ]
    assert goqueue.run("produce", "cli-produce", "four pears", "-p", "0").out == "cli-produce/0/0 (disk)\n"
    (first, second) = goqueue.json_lines("consume", "cli-produce")
    assert (first["value"], first["key"], first["headers"]["source"]) == ("three apples", "customer-7", "cli")
    assert first["priority"] == "high"
    assert second["value"] == "four pears"
    assert [row[-2:] for row in goqueue.table("consume", "cli-produce", "-p", "0", "--from-beginning")] == [
        ["four", "pears"]
    ]


def test_messages_from_a_file_and_from_stdin(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-lines", "-p", "1")
    lines = [
        "# a comment",
        '{"value": "one", "key": "k", "headers": {"a": "b"}}',
        "",
        "plain",
        '{"other": 1}',
        '{"value": 5}',
    ]
    (goqueue.home / "lines").write_text("\n".join(lines), "utf-8")
    said = goqueue.run("produce", "cli-lines", "-f", "lines")
    assert said.out == "cli-lines/0/0 (disk)\n... 4 messages published\n"
    assert goqueue.run("produce", "cli-lines", stdin="from stdin\n# not a file\n").out.endswith(
        "2 messages published\n"
    )
    assert (
        goqueue.run("produce", "cli-lines", "-", "--text", stdin='{"value": "as it stands"}').out
        == "cli-lines/0/6 (disk)\n"
    )
    values = goqueue.run("consume", "cli-lines", "-o", "value").out.splitlines()
    assert values == [
        "one",
        "plain",
        '{"other": 1}',
        '{"value": 5}',
        "from stdin",
        "# not a file",
        '{"value": "as it stands"}',
    ]
    refused = goqueue.run("produce", "cli-lines", "--json", stdin='{"value": "last"}\nplain\n', code=1)
    assert "line 2 is no JSON object" in refused.err
    assert "the 1 before it were published" in refused.err
    assert goqueue.run("consume", "cli-lines", "-o", "value").out.splitlines()[-1] == "last"


def test_what_consume_writes_produce_reads(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-from", "-p", "3")
    goqueue.run("topic", "create", "cli-to", "-p", "1")
    goqueue.run("produce", "cli-from", "-m", "a", "-m", "b", "-k", "key", "-H", "x=y")
    written = goqueue.run("consume", "cli-from", "-o", "json").out
    goqueue.run("produce", "cli-to", "--json", stdin=written)
    kept = ("value", "key", "headers", "priority")
    before, after = (goqueue.json_lines("consume", topic) for topic in ("cli-from", "cli-to"))
    assert [[each[name] for name in kept] for each in before] == [[each[name] for name in kept] for each in after]


ODD_RECORDS: list[tuple[bytes | None, bytes | None, list[Any]]] = [
    (b"customer-7", None, []),  # a tombstone
    (b"\xff\x00key", b"\xfe\x00value", [("binary", b"\xff\x01"), ("text", b"x"), ("null", None), ("empty", b"")]),
    (None, b"", []),
    (b"", b'{"value": "not an envelope"}', []),
    (b"k", b"line\nbreak", [("twice", b"one"), ("between", b"2"), ("twice", b"\xff")]),
    (b"k", b"urgent", [("gq-priority", b"high")]),
]


def test_what_consume_writes_produce_reads_back_to_the_byte(goqueue: Command, node: Node) -> None:
    for topic in ("cli-odd", "cli-odd-again"):
        goqueue.run("topic", "create", topic, "-p", "1")
    producer = Producer({"bootstrap.servers": node.address})
    for number, (key, value, headers) in enumerate(ODD_RECORDS):
        producer.produce("cli-odd", key=key, value=value, headers=headers, timestamp=1_700_000_000_000 + number)
    assert producer.flush(DEADLINE_S) == 0
    written = goqueue.run("consume", "cli-odd", "-o", "json").out
    goqueue.run("produce", "cli-odd-again", "--json", stdin=written)
    before, after = (everything(node, topic, len(ODD_RECORDS)) for topic in ("cli-odd", "cli-odd-again"))
    assert [record[:3] for record in before] == ODD_RECORDS
    assert after == before
    assert [each["priority"] for each in goqueue.json_lines("consume", "cli-odd-again")][-1] == "high"


def test_times_of_any_year_are_read_back(goqueue: Command) -> None:
    for topic in ("cli-times", "cli-times-again"):
        goqueue.run("topic", "create", topic, "-p", "1")
    times = [-1, -86_400_000, 0, 1_700_000_000_000, 253_402_300_800_000]
    lines = [json.dumps({"value": str(each), "timestamp": each}) for each in times]
    goqueue.run("produce", "cli-times", "--json", stdin="\n".join(lines))
    written = goqueue.run("consume", "cli-times", "-o", "json").out
    goqueue.run("produce", "cli-times-again", "--json", stdin=written)
    for topic in ("cli-times", "cli-times-again"):
        found = goqueue.run("consume", topic, "--format", "%s %T\\n").out.splitlines()
        assert sorted(found) == sorted(f"{each} {each}" for each in times)


def everything(node: Node, topic: str, count: int) -> list[Any]:
    """Key, value, headers and timestamp, as a Kafka client reads them."""
    consumer = Consumer({"bootstrap.servers": node.address, "group.id": "cli", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.consume(count, DEADLINE_S)
    consumer.close()
    return [(each.key(), each.value(), each.headers() or [], each.timestamp()[1]) for each in found]


def test_values_are_written_as_they_are(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-raw", "-p", "1")
    goqueue.run("produce", "cli-raw", stdin='{"value_base64": "//4A"}\n{"key": "k", "value": null}\nplain\n')
    read = subprocess.run(
        [str(GOQUEUE), "consume", "cli-raw", "-o", "value"],
        env=goqueue.environment,
        capture_output=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert read.stdout == b"\xff\xfe\x00\n\nplain\n"


def test_bytes_that_are_no_text(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-bytes", "-p", "1")
    (goqueue.home / "raw").write_bytes(b"\xff\xfe\x1b[31m\n")
    goqueue.run("produce", "cli-bytes", "-f", "raw")
    goqueue.run("produce", "cli-bytes", "-m", "\x1b[31mred")
    (raw, red) = goqueue.json_lines("consume", "cli-bytes")
    assert (raw["value"], raw["value_base64"]) == (None, "//4bWzMxbQ==")
    assert red["value"] == "\x1b[31mred"
    assert goqueue.table("consume", "cli-bytes")[1][-1] == "\\x1b[31mred"  # it must not colour a terminal


def test_where_to_begin_and_to_end(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-where", "-p", "1")
    goqueue.run("produce", "cli-where", *(word for number in range(5) for word in ("-m", str(number))))

    def values(*words: str) -> list[str]:
        return goqueue.run("consume", "cli-where", *words, "-o", "value").out.split()

    assert values("--offset", "3", "-p", "0") == ["3", "4"]
    assert values("-n", "2") == ["0", "1"]
    assert values("--from-time", "-2h") == ["0", "1", "2", "3", "4"]
    assert values("--from-time", "-2h", "--to-time", "-1h") == []
    assert values("--from-time", "+1h") == []
    assert values("--from-latest") == []
    middle = goqueue.json_lines("consume", "cli-where")[2]["timestamp"]
    late = values("--from-time", middle)
    assert late[-3:] == ["2", "3", "4"]
    assert values("--to-time", middle) + late == ["0", "1", "2", "3", "4"]
    assert "--partition" in goqueue.run("consume", "cli-where", "--offset", "3", code=2).err
    assert "no time" in goqueue.run("consume", "cli-where", "--from-time", "yesterday", code=2).err
    goqueue.run("consume", "cli-nowhere", code=3)
    goqueue.run("consume", "cli-where", "-p", "7", code=3)


def test_more_than_a_page_by_time_over_partitions(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-many", "-p", "3")
    wanted = [str(number) for number in range(2500)]
    goqueue.run("produce", "cli-many", stdin="\n".join(wanted))
    found = goqueue.json_lines("consume", "cli-many")
    assert sorted((each["value"] for each in found), key=int) == wanted
    assert [each["timestamp"] for each in found] == sorted(each["timestamp"] for each in found)


def test_a_group_takes_each_message_once(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-queue", "-p", "1", "--set", "lease.ms=60000")
    goqueue.run("produce", "cli-queue", "-m", "a", "-m", "b", "-m", "c", "-m", "d")
    take = ("consume", "cli-queue", "--group", "cli-takers", "-o", "value", "--wait", "100ms")
    assert goqueue.run(*take, "-n", "1").out == "a\n"
    assert goqueue.run(*take, "-n", "1", "--ack", "nack").out == "b\n"
    assert goqueue.run(*take, "-n", "1", "--ack", "none", "--lease", "1ms").out in ("b\n", "c\n")
    rest = goqueue.run(*take[:-1], "30s", "-n", "3", "--ack", "reject").out.split()
    assert sorted(rest) == ["b", "c", "d"]
    letters = goqueue.json("dlq", "list", "cli-queue")
    assert [each["error"] for each in letters] == ["rejected with goqueue consume"] * 3
    assert "goqueue group reset-offsets" in goqueue.run(*take, "--offset", "1", "-p", "0", code=2).err
    assert "--group" in goqueue.run("consume", "cli-queue", "--ack", "none", code=2).err


def test_what_cannot_be_published_is_told(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-partial", "-p", "1")
    said = goqueue.run("produce", "cli-partial", stdin='good\n{"value": "bad", "partition": 9}\n', code=1)
    assert "bad was not published" in said.err
    assert "1 of 2 were not published" in said.err
    assert goqueue.run("consume", "cli-partial", "-o", "value").out == "good\n"
    assert "cannot read nowhere" in goqueue.run("produce", "cli-partial", "-f", "nowhere", code=2).err
    assert "not both" in goqueue.run("produce", "cli-partial", "-m", "a", "-f", "b", code=2).err


def test_lines_go_out_as_they_come_in(goqueue: Command) -> None:
    """What `tail -f` writes is published at once, not when a buffer is full."""
    goqueue.run("topic", "create", "cli-tail", "-p", "1")
    command = [str(GOQUEUE), "produce", "cli-tail", "-o", "json"]
    with subprocess.Popen(
        command, env=goqueue.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(f"line {number}\n")
            assert f'"offset": {number}' in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(DEADLINE_S) == 130


def test_a_reader_that_goes_ends_a_follow(goqueue: Command) -> None:
    """`goqueue consume --follow | head -1` ends when head does, though no more messages come."""
    goqueue.run("topic", "create", "cli-head", "-p", "1")
    goqueue.run("produce", "cli-head", "-m", "one", "-m", "two")
    line = f"set -o pipefail; {GOQUEUE} consume cli-head --follow --from-beginning -o value | head -1"
    done = subprocess.run(
        ["bash", "-c", line], env=goqueue.environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("one\n", "", 141)


def test_only_some_messages_are_shown_in_words_of_your_own(goqueue: Command) -> None:
    goqueue.run("topic", "create", "cli-format", "-p", "1")
    goqueue.run("produce", "cli-format", "-m", "apples", "-k", "anna", "-H", "a=1", "-H", "b=2", "--priority", "high")
    goqueue.run("produce", "cli-format", "-m", "pears", "-k", "bert", "-H", "a=1")
    goqueue.run("produce", "cli-format", stdin='{"value": null, "key": "anna"}\n')

    def shown(*words: str) -> str:
        return goqueue.run("consume", "cli-format", "-F", r"%t/%p/%o %k(%K) %s(%S) %h %P 100%%\n", *words).out

    first = "cli-format/0/0 anna(4) apples(6) a=1,b=2,gq-priority=high high 100%\n"
    second = "cli-format/0/1 bert(4) pears(5) a=1 normal 100%\n"
    third = "cli-format/0/2 anna(4) (-1)  normal 100%\n"
    assert shown() == first + second + third
    assert shown("--key", "anna") == first + third
    assert shown("--key", "anna", "-n", "1") == first
    assert shown("--contains", "ear") == second
    assert shown("-H", "a=1") == first + second
    assert shown("-H", "a=1", "-H", "b=2") == shown("--priority", "high") == first
    assert "%x" in goqueue.run("consume", "cli-format", "-F", "%x", code=2).err
    assert "--ack none" in goqueue.run("consume", "cli-format", "--key", "x", "-g", "g", code=2).err


SCHEMAS: dict[str, tuple[str, Any]] = {
    "AVRO": (
        '{"type":"record","name":"O","fields":[{"name":"fruit","type":"string"},{"name":"count","type":"long"}]}',
        lambda schema, client: AvroSerializer(client, schema),
    ),
    "JSON": ('{"title": "Order", "type": "object"}', JSONSerializer),
}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_values_of_a_schema_are_decoded(goqueue: Command, node: Node, kind: str) -> None:
    topic = f"cli-decode-{kind.lower()}"
    goqueue.run("topic", "create", topic, "-p", "1")
    schema, serializer = SCHEMAS[kind]
    with registry(node) as client:
        encoded = serializer(schema, client)({"fruit": "apple", "count": 3}, value_of(topic))
    produce_raw(node, topic, encoded, b"no schema")
    read = goqueue.run("consume", topic, "--decode", "-o", "value").out.splitlines()
    assert (json.loads(read[0]), read[1]) == ({"fruit": "apple", "count": 3}, "no schema")
    (first, _) = goqueue.json_lines("consume", topic, "--decode")
    assert json.loads(first["value"]) == {"fruit": "apple", "count": 3}


def test_protobuf_values_are_decoded(goqueue: Command, node: Node) -> None:
    goqueue.run("topic", "create", "cli-decode-protobuf", "-p", "1")
    text = 'syntax = "proto3"; message Order { string fruit = 1; int64 count = 2; message Inner { bool ok = 1; } }'
    (goqueue.home / "order.proto").write_text(text, "utf-8")
    made = goqueue.json("schema", "register", "cli-decode-protobuf-value", "-f", "order.proto", "--type", "PROTOBUF")
    head = b"\0" + made["id"].to_bytes(4)
    produce_raw(node, "cli-decode-protobuf", head + b"\x00" + b"\x0a\x05apple\x10\x03", head + b"\x04\x00\x00\x08\x01")
    read = goqueue.run("consume", "cli-decode-protobuf", "--decode", "-o", "value").out.splitlines()
    assert [json.loads(line) for line in read] == [{"fruit": "apple", "count": "3"}, {"ok": True}]
    produce_raw(node, "cli-decode-protobuf", head + b"\x00" + b"\x0a\xff")
    said = goqueue.run("consume", "cli-decode-protobuf", "--decode", "-o", "value", code=1)
    assert "leave out --decode to see it as it is" in said.err


def produce_raw(node: Node, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": node.address})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(DEADLINE_S) == 0
