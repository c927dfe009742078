"""kcat, where it is installed: produce, list and consume from a shell."""

import json
import shutil
import subprocess

import pytest

from tests.integration.conftest import CreateTopic
from tests.integration.process import DEADLINE_S, Node

KCAT = shutil.which("kcat") or shutil.which("kafkacat")

pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed")


def kcat(node: Node, *arguments: str, stdin: str = "") -> str:
    command = [KCAT or "", "-b", node.address, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_kcat_produces_it_consumes(node: Node, make_topic: CreateTopic, codec: str) -> None:
    topic = make_topic(2)
    lines = "".join(f"key-{number}:value {number}\n" for number in range(200))
    kcat(node, "-P", "-t", topic, "-p", "1", "-K", ":", "-z", codec, "-X", "linger.ms=20", stdin=lines)
    assert kcat(node, "-C", "-t", topic, "-p", "1", "-o", "beginning", "-e", "-q", "-f", "%k:%s\n") == lines
    assert kcat(node, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q") == ""
    assert kcat(node, "-C", "-t", topic, "-p", "1", "-o", "-1", "-e", "-q", "-f", "%o %s\n") == "199 value 199\n"


@pytest.mark.smoke
def test_kcat_lists_the_topics(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(3)
    metadata = json.loads(kcat(node, "-L", "-J"))
    (found,) = [one for one in metadata["topics"] if one["topic"] == topic]
    assert [one["partition"] for one in found["partitions"]] == [0, 1, 2]
    assert [one["name"] for one in metadata["brokers"]] == [node.address]


def test_kcat_finds_an_offset_by_time(node: Node, make_topic: CreateTopic) -> None:
    topic = make_topic(1)
    kcat(node, "-P", "-t", topic, "-p", "0", stdin="one\ntwo\n")
    assert kcat(node, "-Q", "-t", f"{topic}:0:1").split() == [topic, "[0]", "offset", "0"]


def test_kcat_consumes_as_a_member_of_a_group(node: Node, make_topic: CreateTopic, group: str) -> None:
    topic = make_topic(1)
    kcat(node, "-P", "-t", topic, "-p", "0", stdin="one\ntwo\n")
    earliest = ("-X", "auto.offset.reset=earliest")
    assert kcat(node, "-G", group, *earliest, "-c", "2", "-q", topic) == "one\ntwo\n"
    kcat(node, "-P", "-t", topic, "-p", "0", stdin="three\n")
    assert kcat(node, "-G", group, *earliest, "-c", "1", "-q", topic) == "three\n"
