"""The programs of examples/, run as their first lines say, against one node."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from starlette.testclient import TestClient

from examples.shop.app import TOPIC, shop
from tests.integration.process import DEADLINE_S, Node
from tests.integration.test_console import http_of, publish

FLEET = Path(__file__).parents[2] / "examples" / "workers" / "fleet.py"


def test_the_shop_takes_orders_once_and_tells_where_they_are(node: Node) -> None:
    with TestClient(shop(node.url)) as client, http_of(node) as http:
        order = {"customer": "ada", "items": ["apple", "pear"]}
        taken = client.post("/orders", json=order, headers={"Idempotency-Key": "first"})
        assert taken.status_code == 202
        place = taken.json()
        assert client.post("/orders", json=order, headers={"Idempotency-Key": "first"}).json() == place
        other = client.post("/orders", json=order).json()
        assert other == {**place, "offset": place["offset"] + 1}, "of one customer in one partition, in order"
        path = f"/orders/{place['partition']}/{place['offset']}"
        assert client.get(path).json()["state"] == "published"
        received = http.post(f"/topics/{TOPIC}/receive", json={"group": "packers", "consumer": "w1", "max_messages": 1})
        assert [each["key"] for each in received.json()["messages"]] == ["ada"]
        assert "leased by w1" in client.get(path).json()["answer"]
        assert client.get(f"/orders/{place['partition']}/4711").status_code == 404
        assert client.post("/orders", json={"customer": "", "items": []}).status_code == 422


def test_a_fleet_packs_everything_though_a_worker_is_killed(node: Node) -> None:
    line = [sys.executable, str(FLEET), "--servers", node.address, "--workers", "2"]
    packed: set[str] = set()
    with http_of(node) as http, subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as fleet:
        try:
            http.post("/topics", json={"name": "parcels", "options": {"lease.ms": "1500"}}).raise_for_status()
            publish(http, "parcels", *({"value": f'{{"address": "a{number}"}}'} for number in range(10)))
            assert fleet.stdout is not None
            workers: dict[str, int] = {}
            is_killed = False
            for said in fleet.stdout:
                if begun := re.match(r"(w\d) is process (\d+)", said):
                    workers[begun[1]] = int(begun[2])
                elif done := re.match(r"w\d packed (\w+)", said):
                    packed.add(done[1])
                elif "another one follows" in said:
                    publish(http, "parcels", *({"value": f'{{"address": "b{number}"}}'} for number in range(10)))
                if len(packed) == 10 and len(workers) == 2 and not is_killed:
                    os.kill(workers["w1"], signal.SIGKILL)
                    is_killed = True
                if len(packed) == 20:
                    break
        finally:
            fleet.terminate()  # it stops its workers
            code = fleet.wait(DEADLINE_S)
    assert packed == {f"{letter}{number}" for letter in "ab" for number in range(10)}
    assert code == 0
