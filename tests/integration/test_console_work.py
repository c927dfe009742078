"""The console where work is stuck: one message with its journey, groups, dead letters, time, the cluster."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.console_page import LOUD, ConsolePage, opened
from tests.integration.devtools import chromium
from tests.integration.process import Node
from tests.integration.test_browser import needs_chromium
from tests.integration.test_console import http_of, publish

pytestmark = needs_chromium
ORDER = json.dumps({"order": 4711, "customer": "Ada Lovelace", "items": [{"sku": "apple", "count": 3}]})


def receive(http: httpx.Client, topic: str, group: str, consumer: str, **more: Any) -> dict[str, Any]:
    body = {"group": group, "consumer": consumer, "max_messages": 1, **more}
    (found,) = http.post(f"/topics/{topic}/receive", json=body).raise_for_status().json()["messages"]
    told: dict[str, Any] = found
    return told


def why(http: httpx.Client, topic: str, offset: int) -> dict[str, Any]:
    told: dict[str, Any] = http.get(f"/topics/{topic}/partitions/0/messages/{offset}/why").raise_for_status().json()
    return told


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    running = Node(tmp_path_factory.mktemp("console")).start()
    yield running
    running.clean_up()


@pytest.fixture(scope="module")
def http(own: Node) -> Iterator[httpx.Client]:
    with http_of(own) as client:
        yield client


@pytest.fixture(scope="module")
def page(own: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsolePage]:
    with chromium(tmp_path_factory.mktemp("profile")) as running, opened(running, own.url) as shown:
        shown.wait("document.querySelector('.pill.live')")
        yield shown


def make(http: httpx.Client, name: str, **options: str) -> None:
    http.post("/topics", json={"name": name, "num_partitions": 1, "options": options}).raise_for_status()


def test_a_message_tells_its_journey_and_why_it_is_where_it_is(
    page: ConsolePage, http: httpx.Client, tmp_path: Path
) -> None:
    make(http, "orders", **{"retry.backoff.ms": "1", "retry.backoff.max.ms": "1"})
    publish(http, "orders", {"key": "order-4711", "value": ORDER, "headers": {"source": "shop"}, "priority": "high"})
    done = receive(http, "orders", "auditors", "a1")
    http.post("/messages/ack", json={"receipt_handle": done["receipt_handle"]}).raise_for_status()
    first = receive(http, "orders", "packers", "w1")
    failed = {"receipt_handle": first["receipt_handle"], "reason": "the printer is out of paper", "delay": "1ms"}
    http.post("/messages/nack", json=failed).raise_for_status()
    receive(http, "orders", "packers", "w3", lease="10m", wait="5s")
    page.go("topics", "orders", 0, 0)
    page.wait_for_text("leased by w3")
    page.wait_for_text('"customer": "Ada Lovelace"')
    page.wait_for_text("left")
    text = page.text()
    assert why(http, "orders", 0)["groups"][0]["answer"] in text
    for step in ("received", "on disk", "acked", "nacked", "leased"):
        assert step in text
    drawn = page.page.run("return document.querySelectorAll('.journey .dot').length")
    assert drawn == len(why(http, "orders", 0)["events"])
    assert page.page.run("return document.querySelectorAll('.journey .piece').length") >= 4
    page.check_looks("message", tmp_path)
    page.click("hex")
    page.wait_for_text("7b 22 6f 72 64 65 72")


def test_markup_in_a_message_and_in_the_names_of_its_readers_is_text(page: ConsolePage, http: httpx.Client) -> None:
    make(http, "hostile")
    publish(http, "hostile", {"key": LOUD, "value": LOUD, "headers": {"source": LOUD}})
    group = LOUD.replace("/", "|")
    receive(http, "hostile", group, LOUD, lease="10m")
    page.go("topics", "hostile", 0, 0)
    page.wait_for_text("leased by " + LOUD)
    page.wait_for_text("Header source")
    page.go("groups", group)
    page.wait_for_text(LOUD)
    page.go("groups")
    page.wait_for_text(group)
    assert page.page.run("return document.querySelectorAll('img[src=x], #main script').length") == 0
    assert page.page.run("return globalThis.hacked") is None


def test_a_lease_is_released_and_a_message_acknowledged_by_hand(page: ConsolePage, http: httpx.Client) -> None:
    make(http, "stuck")
    publish(http, "stuck", {"value": "poison"})
    receive(http, "stuck", "workers", "hung", lease="1h")
    page.go("topics", "stuck", 0, 0)
    page.click("Release the lease")
    sent = page.page.run("return document.querySelector('dialog .sent').textContent")
    assert "goqueue group settle workers stuck 0/0 release" in sent
    assert why(http, "stuck", 0)["state"] == "leased", "looking at it changes nothing"
    page.click("Release", "dialog")
    page.wait_for_text("Done", "dialog")
    page.click("Close", "dialog")
    assert receive(http, "stuck", "workers", "next", lease="1h", wait="5s")["delivery_count"] == 2
    page.wait_for_text("leased by next")
    page.click("Acknowledge")
    page.click("Acknowledge", "dialog")
    page.wait_for_text("Done", "dialog")
    page.click("Close", "dialog")
    page.wait_for_text("settled: acked")
    assert why(http, "stuck", 0)["state"] == "settled"


def test_a_group_shows_who_holds_what_and_seek_tells_before_what_it_would_do(
    page: ConsolePage, http: httpx.Client, tmp_path: Path
) -> None:
    make(http, "parcels")
    publish(http, "parcels", *({"value": str(number)} for number in range(20)))
    for number in range(12):
        got = receive(http, "parcels", "couriers", f"van-{number % 3}", lease="1h")
        if number >= 4:
            http.post("/messages/ack", json={"receipt_handle": got["receipt_handle"]}).raise_for_status()
    page.go("groups")
    page.wait_for_text("couriers")
    page.fill("Filter by name", "ers")
    page.check_looks("groups", tmp_path)
    page.go("groups", "couriers")
    page.wait_for_text("van-2")
    page.wait_for_text("parcels/0")
    page.check_looks("group", tmp_path)
    before = http.get("/groups/couriers/lag").json()
    page.click("Seek")
    page.fill("To:", "latest")
    page.click("Only count", "dialog")
    page.wait_for_text("messages left out", "dialog")
    assert (
        http.get("/groups/couriers/lag").json()["partitions"][0]["settled_offset"]
        == (before["partitions"][0]["settled_offset"])
    )
    page.click("Seek", "dialog")
    page.wait_for_text("left out", "dialog")
    page.click("Close", "dialog")
    assert http.get("/groups/couriers/lag").json()["total_lag"] == 0


def test_dead_letters_are_counted_first_and_then_sent_back(
    page: ConsolePage, http: httpx.Client, tmp_path: Path
) -> None:
    make(http, "bills")
    publish(http, "bills", *({"key": f"bill-{number}", "value": f'{{"bill": {number}}}'} for number in range(6)))
    for _ in range(6):
        got = receive(http, "bills", "printers", "p1")
        said = {"receipt_handle": got["receipt_handle"], "reason": "no such customer <b>"}
        http.post("/messages/reject", json=said).raise_for_status()
    page.go("dead")
    page.wait_for_text("6 dead letters")
    page.go()
    page.wait_for_text("6 dead letters in bills.dlq")
    page.click("6 dead letters in bills.dlq")
    page.wait("document.querySelectorAll('tbody tr').length === 6")
    page.click("Look", "#main")
    page.wait_for_text("bill-")
    page.check_looks("dead", tmp_path)
    page.click("Discard")
    page.click("Discard", "dialog")
    page.wait_for_text("Done", "dialog")
    page.click("Close", "dialog")
    page.wait("document.querySelectorAll('tbody tr').length === 5")
    page.click("Redrive all")
    page.click("Only count", "dialog")
    page.wait_for_text("5 messages would go back", "dialog")
    assert http.get("/topics/bills/dlq").json()["count"] == 5
    page.click("Redrive", "dialog")
    page.wait_for_text("5 messages sent back", "dialog")
    page.click("Close", "dialog")
    assert http.get("/topics/bills/dlq").json()["count"] == 0
    page.wait_for_text("Nothing is left")


def test_what_is_due_later_is_moved_and_cancelled(page: ConsolePage, http: httpx.Client, tmp_path: Path) -> None:
    make(http, "reminders")
    delays = ("2h", "3h", "3h", "5h", "9h")
    spots = publish(http, "reminders", *({"value": each, "delay": each} for each in delays))
    at = {"topic": "reminders", "cron": "0 7 * * *", "timezone": "Europe/Berlin", "value": "report"}
    http.put("/schedules/nightly", json=at).raise_for_status()
    page.go("time")
    page.wait("document.querySelectorAll('[aria-label=\"Delayed messages\"] tbody tr').length === 5")
    page.wait_for_text("nightly")
    page.check_looks("time", tmp_path)
    page.click("Cancel", "#main")
    page.click("Never publish it", "dialog")
    page.wait_for_text("Done", "dialog")
    page.click("Close", "dialog")
    assert http.get(f"/topics/reminders/delayed/0/{spots[0]['offset']}").status_code == 404
    page.wait("document.querySelectorAll('[aria-label=\"Delayed messages\"] tbody tr').length === 4")
    page.click("Move", "#main")
    page.fill("So long from now", "1s")
    page.click("Move", "dialog")
    page.wait_for_text("It comes at", "dialog")
    page.click("Close", "dialog")
    page.wait("document.querySelectorAll('[aria-label=\"Delayed messages\"] tbody tr').length === 3")
    assert http.get("/topics/reminders/delayed").json()["total"] == 3
    page.click("Run now")
    page.click("Run", "dialog")
    page.click("Look at it", "dialog")
    page.wait_for_text("report")
    assert http.get("/schedules/nightly").json()["last_run"] is None, "its times stay as they are"


def test_the_cluster_shows_its_nodes(page: ConsolePage, tmp_path: Path) -> None:
    page.go("cluster")
    page.wait_for_text("node 1")
    page.check_looks("cluster", tmp_path)
