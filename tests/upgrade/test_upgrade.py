"""Directories that earlier versions wrote open with this one, and hold what they held.

`python -m tests.upgrade.make NAME` adds the directory of the present version, before its stored formats change.
"""

import json
import tarfile
from pathlib import Path

import httpx
import pytest

from tests.integration.process import Node
from tests.upgrade.contents import Reader
from tests.upgrade.make import DATA

VERSIONS = sorted(path.stem for path in DATA.glob("*.json"))
"""`first` stored the first formats, `second` metadata in format 4 of 9: after deliveries and delays had moved to their
partitions, before there were users and tenants."""
KEPT = sorted(path.name.removesuffix(".tar.xz").rsplit("-", 1) for path in DATA.glob("*.tar.xz"))


def unpack(name: str, directory: Path) -> None:
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        archive.extractall(directory, filter="data")


@pytest.mark.parametrize(("version", "kind"), KEPT)
def test_a_directory_of_an_earlier_version_holds_what_it_held(version: str, kind: str, tmp_path: Path) -> None:
    unpack(f"{version}-{kind}", tmp_path)
    expected = json.loads((DATA / f"{version}.json").read_text("utf-8"))
    node = Node(tmp_path).start()
    try:
        assert Reader(node).read() == expected
        node.kill()  # what the upgrade wrote outlives a crash
        node.start()
        assert Reader(node).read() == expected
        health = httpx.get(f"{node.url}/healthz").json()
        assert health["status"] == "pass", health
    finally:
        node.clean_up()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_queue_goes_on_where_an_earlier_version_left_it(version: str, tmp_path: Path) -> None:
    unpack(f"{version}-killed", tmp_path)
    expected = json.loads((DATA / f"{version}.json").read_text("utf-8"))
    places = expected["groups"]["workers"]["lag"]["partitions"]
    open_ones = sum(place["queue"]["open"] for place in places)
    node = Node(tmp_path).start()
    try:
        with httpx.Client(base_url=node.url, timeout=60) as http:
            queues = [each["queue"] for each in http.get("/groups/workers/lag").json()["partitions"]]
            waiting = sum(each["waiting"] for each in queues)
            body = {"group": "workers", "max_messages": 100}
            got = http.post("/topics/jobs/receive", json=body).json()["messages"]
            assert len({(each["partition"], each["offset"]) for each in got}) == len(got) == open_ones - waiting
            acks = {"receipt_handles": [each["receipt_handle"] for each in got]}
            assert http.post("/messages/ack/batch", json=acks).json()["failed"] == 0
            node.kill()
            node.start()
            assert http.post("/topics/jobs/receive", json=body).json()["messages"] == []
    finally:
        node.clean_up()
