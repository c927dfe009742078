"""What was under way on an earlier version is finished by this one."""

import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from goqueue.model.codes import Code
from tests.integration.bare_producer import BareProducer
from tests.integration.process import Node, wait_until
from tests.integration.topics import end_offsets
from tests.integration.wire import Wire
from tests.upgrade.make import WORK
from tests.upgrade.work import LEDGER, ONCE, OPEN, SHARERS, STATES, TORN, open_transactions, read, taken

VERSIONS = sorted(path.stem for path in WORK.glob("*.json"))
KINDS = ["torn", "stopped"]

Opened = Callable[[str, str], tuple[Node, dict[str, Any]]]


@pytest.fixture
def upgraded(tmp_path: Path) -> Iterator[Opened]:
    nodes = []

    def start(version: str, kind: str) -> tuple[Node, dict[str, Any]]:
        with tarfile.open(WORK / f"{version}-{kind}.tar.xz") as archive:
            archive.extractall(tmp_path, filter="data")
        nodes.append(Node(tmp_path).start())
        return nodes[-1], json.loads((WORK / f"{version}.json").read_text("utf-8"))

    yield start
    for node in nodes:
        node.clean_up()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_logs_are_as_they_were_left(upgraded: Opened, version: str, kind: str) -> None:
    """Torn, compacted, and with aborted transactions; and they go on."""
    node, begun = upgraded(version, kind)
    assert read(node, TORN) == begun["torn"]
    assert read(node, LEDGER, committed_only=True) == begun["ledger"]
    assert read(node, STATES) == begun["states"]
    with httpx.Client(base_url=node.url, timeout=60) as http:
        assert http.get("/healthz").json()["status"] == "pass"
        for topic in (TORN, STATES):
            assert http.post(f"/topics/{topic}/messages", json={"messages": [{"key": "s0", "value": "new"}]}).is_success
        assert http.post(f"/admin/topics/{STATES}/compact").is_success
    node.kill()
    node.start()
    assert read(node, TORN) == [*begun["torn"], [3, "new"]]
    assert read(node, STATES)[-1] == [60, "new"]
    assert read(node, LEDGER, committed_only=True) == begun["ledger"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_batch_that_is_sent_again_after_the_upgrade_is_a_duplicate(upgraded: Opened, version: str, kind: str) -> None:
    node, begun = upgraded(version, kind)
    with Wire(node) as wire:
        producer = BareProducer(wire)
        producer.id, producer.epoch = begun["producer"]
        assert producer.send(ONCE, b"a", b"b", sequence=0) == (Code.NONE, 0)
        assert producer.send(ONCE, b"c", sequence=2) == (Code.NONE, 2)
        assert end_offsets(node, ONCE, 1) == {0: 3}
        assert producer.send(ONCE, b"e", sequence=4)[0] is Code.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert producer.send(ONCE, b"d", sequence=3) == (Code.NONE, 3)
        other = BareProducer(wire)
        other.init()
        assert other.id != producer.id  # ids that the earlier version gave are not given again
    assert read(node, ONCE) == [[0, "a"], [1, "b"], [2, "c"], [3, "d"]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_an_open_transaction_times_out_after_the_upgrade(upgraded: Opened, version: str, kind: str) -> None:
    node, _ = upgraded(version, kind)
    wait_until(lambda: open_transactions(node) == [], "the end of the transaction")
    wait_until(lambda: end_offsets(node, OPEN, 1, committed_only=True) == {0: 5}, "its marker")
    assert read(node, OPEN, committed_only=True) == [[1, "open 0"], [2, "open 1"], [3, "open 2"]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_share_group_goes_on_with_what_it_has_not_accepted(upgraded: Opened, version: str, kind: str) -> None:
    node, begun = upgraded(version, kind)
    released = sorted(tuple(place) for place in begun["share"]["released"])
    found = taken(node, SHARERS, len(released))
    assert sorted(place for place, _ in found) == released
    assert {count for _, count in found} == {2}
    with httpx.Client(base_url=node.url, timeout=60) as http:
        dead = http.get("/topics/tasks.dlq/partitions/0/messages", params={"limit": 100}).json()["messages"]
    assert len(dead) == len(begun["share"]["rejected"])
