"""What an operator changes in the console: each action is done in the page, and checked through the HTTP API."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.console_page import LOUD, ConsolePage, opened
from tests.integration.devtools import chromium
from tests.integration.goqueue_command import Command
from tests.integration.process import Node, wait_until
from tests.integration.test_browser import needs_chromium
from tests.integration.test_console import http_of, publish
from tests.integration.test_console_work import make, receive, why

pytestmark = needs_chromium
WORKER = Path(__file__).parents[2] / "examples" / "workers" / "worker.py"
FIRST = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
SECOND = {**FIRST, "fields": [*FIRST["fields"], {"name": "note", "type": "string", "default": ""}]}
BREAKING = {**FIRST, "fields": [*FIRST["fields"], {"name": "owner", "type": "string"}]}


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


def sent(page: ConsolePage) -> str:
    told: str = page.page.run("return document.querySelector('dialog .sent').textContent")
    return told


def do(page: ConsolePage, action: str, go: str, says: str = "Done", **fields: str) -> str:
    """Press a button of the screen, fill in what its dialog asks for, and send it. Returns what it said that it would
    send."""
    page.click(action, "#main")
    for label, text in fields.items():
        page.fill(label.replace("_", " "), text)
    told = sent(page)
    page.click(go, "dialog")
    page.wait_for_text(says, "dialog")
    page.click("Close", "dialog")
    page.wait("!document.querySelector('dialog')")
    return told


def test_a_group_and_a_topic_are_paused_and_resumed(page: ConsolePage, http: httpx.Client, tmp_path: Path) -> None:
    make(http, "orders")
    publish(http, "orders", {"value": "one"}, {"value": "two"})
    receive(http, "orders", "packers", "w1", lease="1h")
    page.go("groups", "packers")
    assert "goqueue group pause packers" in do(page, "Pause", "Pause", "It is paused")
    assert http.get("/groups/packers/options").json()["options"] == {"delivery": "paused"}
    assert http.post("/topics/orders/receive", json={"group": "packers"}).json()["messages"] == []
    page.wait_for_text("queue, Empty, paused")
    page.go()
    page.wait_for_text("packers is paused")
    page.go("topics", "orders", 0, 1)
    page.wait_for_text("the group packers is paused")
    page.check_looks("paused", tmp_path)
    do(page, "Resume the group", "Resume", "It goes on")
    assert receive(http, "orders", "packers", "w2", lease="1h")["offset"] == 1
    page.go("topics", "orders")
    assert "goqueue topic pause orders" in do(page, "Pause", "Pause", "It is paused")
    assert http.get("/topics/orders").json()["options"] == {"delivery": "paused"}
    page.go("topics")
    page.wait_for_text("paused")
    page.go("topics", "orders")
    page.wait_for_text("Resume")
    do(page, "Resume", "Resume", "It goes on")
    assert http.get("/topics/orders").json()["options"] == {}


def test_a_lease_is_held_longer(page: ConsolePage, http: httpx.Client) -> None:
    make(http, "slow")
    publish(http, "slow", {"value": "x"})
    receive(http, "slow", "thinkers", "t1", lease="30s")
    page.go("groups", "thinkers")
    told = do(page, "Extend", "Extend", It_ends="2h")
    assert "goqueue group settle thinkers slow 0/0 extend --for 2h" in told
    (held,) = http.get("/leases", params={"group": "thinkers"}).json()["leases"]
    assert why(http, "slow", 0)["groups"][0]["answer"].startswith("leased by t1 for 1 h 59 min")
    assert held["consumer"] == "t1"


def test_partitions_are_added_and_a_topic_is_compacted(page: ConsolePage, http: httpx.Client) -> None:
    make(http, "prices", **{"cleanup.policy": "compact", "min.compaction.lag.ms": "0", "segment.ms": "1"})
    for price in range(5):
        publish(http, "prices", {"key": "apple", "value": str(price), "partition": 0})
    page.go("topics", "prices")
    page.wait_for_text("cleanup.policy")
    assert "--partitions 3" in do(page, "Add partitions", "Add", So_many="3")
    assert http.get("/topics/prices").json()["partitions"] == 3
    assert "goqueue topic compact prices" in do(page, "Compact", "Compact", "went.")
    (first, *_) = http.post("/admin/topics/prices/compact", json={"dry_run": True}).json()["results"]
    assert first["records_removed"] == 0, "the page has done it"


def test_a_schedule_is_made_paused_resumed_and_deleted(page: ConsolePage, http: httpx.Client) -> None:
    make(http, "jobs")
    page.go("time")
    fields = {"Name": "nightly", "Topic": "jobs", "Time_zone": "Europe/Berlin", "Message": "report"}
    assert "goqueue schedule set nightly jobs --cron '0 7 * * *'" in do(
        page, "New schedule", "Make it", "It runs next", **fields
    )
    assert http.get("/schedules/nightly").json()["value"] == "report"
    page.wait_for_text("Europe/Berlin")
    assert "goqueue schedule pause nightly" in do(page, "Pause", "Pause", "It is paused")
    assert http.get("/schedules/nightly").json()["paused"] is True
    page.wait_for_text("paused")
    do(page, "Resume", "Resume", "It goes on")
    assert http.get("/schedules/nightly").json()["next_run"] is not None
    do(page, "Delete", "Delete")
    assert http.get("/schedules/nightly").status_code == 404


def test_a_part_is_replayed_to_a_fork_which_is_compared_and_promoted(
    page: ConsolePage, http: httpx.Client, tmp_path: Path
) -> None:
    make(http, "bills")
    publish(http, "bills", *({"key": f"k{number % 2}", "value": str(number)} for number in range(6)))
    for _ in range(6):
        got = receive(http, "bills", "printers", "p1")
        http.post("/messages/ack", json={"receipt_handle": got["receipt_handle"]}).raise_for_status()
    page.go("groups", "printers")
    page.wait_for_text("bills/0")
    page.click("Replay", "#main")
    page.fill("From", "0")
    page.fill("Only of this key", "k1")
    assert "goqueue replay printers bills --from 0 --to latest --key k1" in sent(page)
    page.click("Only count", "dialog")
    page.wait_for_text("3 messages would be delivered again", "dialog")
    assert http.get("/groups/printers/lag").json()["partitions"][0]["queue"]["replaying"] == 0
    page.fill("Into a fork", "printers-next")
    page.click("Replay", "dialog")
    page.wait_for_text("3 messages will be delivered to printers-next", "dialog")
    page.click("Close", "dialog")
    assert receive(http, "bills", "printers-next", "p1")["offset"] == 1
    do(page, "Fork", "Fork", "printers-two is there", Name_of="printers-two")
    publish(http, "bills", {"value": "new"})
    got = receive(http, "bills", "printers-two", "p1")
    http.post("/messages/ack", json={"receipt_handle": got["receipt_handle"]}).raise_for_status()
    page.go("groups")
    page.go("groups", "printers")
    page.wait_for_text("printers-two", "[aria-label=Forks]")
    page.check_looks("forks", tmp_path)
    page.click("Compare", "[aria-label=Forks]")
    page.click("Compare", "dialog")
    page.wait_for_text("has settled", "dialog")
    page.click("Close", "dialog")
    page.wait("!document.querySelector('dialog')")
    told = do(page, "Compare", "Compare", "only printers-two has settled 6", The_other="printers-two")
    assert "goqueue group compare printers printers-two" in told
    assert "goqueue group promote printers printers-two" in do(page, "Promote", "Promote", Name_of="printers-two")
    assert http.post("/topics/bills/receive", json={"group": "printers"}).json()["messages"] == []
    assert http.get("/groups/printers-two").status_code == 404
    page.wait("!document.querySelector('[aria-label=Forks]')?.innerText.includes('printers-two')")
    assert [each["fork"] for each in http.get("/groups/printers/forks").json()["forks"]] == ["printers-next"]
    page.click("Delete", "[aria-label=Forks]")
    page.click("Delete", "dialog")
    page.wait_for_text("It is gone", "dialog")
    page.click("Close", "dialog")
    assert http.get("/groups/printers/forks").json()["forks"] == []


def test_chosen_dead_letters_go_back_and_a_slow_redrive_is_stopped(
    page: ConsolePage, http: httpx.Client, own: Node, tmp_path: Path
) -> None:
    make(http, "letters")
    publish(http, "letters", *({"value": str(number)} for number in range(8)))
    for _ in range(8):
        got = receive(http, "letters", "readers", "r1")
        http.post("/messages/reject", json={"receipt_handle": got["receipt_handle"]}).raise_for_status()
    page.go("dead", "letters.dlq")
    page.wait("document.querySelectorAll('tbody tr').length === 8")
    page.page.run("for (const at of [1, 4]) document.querySelectorAll('tbody input')[at].click()")
    page.click("Redrive 2 chosen ones", "#main")
    command = next(line for line in sent(page).splitlines() if line.startswith("goqueue"))
    assert command == "goqueue dlq redrive letters --place 0/1 --place 0/4"
    page.click("Cancel", "dialog")
    told = Command(tmp_path, own.url).json(*shlex.split(command)[1:], "--dry-run")
    assert told["redriven"] == 2, "the command that is shown does the same"
    page.click("Redrive 2 chosen ones", "#main")
    page.click("Redrive", "dialog")
    page.wait_for_text("2 messages sent back", "dialog")
    page.click("Close", "dialog")
    assert {each["offset"] for each in http.get("/topics/letters/dlq").json()["messages"]} == {0, 2, 3, 5, 6, 7}
    http.post("/topics/letters/dlq/redrive", json={"rate": 1, "wait": "1ms"}).raise_for_status()
    page.go("dead")
    page.go("dead", "letters.dlq")
    do(page, "Stop the redrive", "Stop", "stop")

    def is_stopped() -> bool:
        return bool(http.get("/topics/letters/dlq/redrive").json()["state"] == "stopped")

    wait_until(is_stopped, "the redrive is stopped")
    assert http.get("/topics/letters/dlq").json()["count"] > 0


def test_schemas_are_checked_registered_and_compared(page: ConsolePage, http: httpx.Client, tmp_path: Path) -> None:
    make(http, "shop")
    page.go("schemas")
    page.wait_for_text("There are no schemas yet")
    first = {"Subject": "shop-value", "Schema": json.dumps(FIRST)}
    assert "goqueue schema register shop-value" in do(page, "Register a schema", "Register", "It is version 1", **first)
    page.wait_for_text("shop-value")
    page.go("schemas", "shop-value")
    page.wait_for_text("AVRO, BACKWARD")
    page.wait_for_text("What is published to shop is checked: as the node says")
    page.click("New version", "#main")
    page.fill("Schema", json.dumps(BREAKING))
    page.click("Only check", "dialog")
    page.wait_for_text("It does not fit", "dialog")
    assert http.get("/subjects/shop-value/versions").json() == [1]
    page.fill("Schema", json.dumps(SECOND))
    page.click("Only check", "dialog")
    page.wait_for_text("It can be registered", "dialog")
    page.click("Register", "dialog")
    page.wait_for_text("It is version 2", "dialog")
    page.click("Close", "dialog")
    page.wait_for_text("lines differ")
    added = page.page.run("return [...document.querySelectorAll('ins')].map((each) => each.textContent.trim())")
    assert '"name": "note",' in added
    page.check_looks("schema", tmp_path)
    assert "goqueue schema config shop-value --set FULL" in do(page, "Compatibility", "Set", BACKWARD="FULL")
    assert http.get("/config/shop-value").json()["compatibilityLevel"] == "FULL"
    page.wait_for_text("AVRO, FULL")
    http.post("/subjects/markup/versions", json={"schema": json.dumps({"title": LOUD}), "schemaType": "JSON"})
    page.go("schemas")
    page.wait_for_text("markup")
    page.check_looks("schemas", tmp_path)
    page.go("schemas", "markup")
    page.wait_for_text(LOUD)
    assert page.page.run("return document.querySelectorAll('img[src=x], #main script').length") == 0


@contextmanager
def worker(own: Node, name: str, *more: str) -> Iterator[subprocess.Popen[str]]:
    """Of examples/workers."""
    line = [sys.executable, str(WORKER), "--servers", own.address, "--name", name, *more]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def says(process: subprocess.Popen[str], words: str) -> None:
    assert process.stdout is not None
    assert any(words in line for line in process.stdout), words


def test_the_path_of_a_new_user(page: ConsolePage, own: Node, tmp_path: Path) -> None:
    """Publish a message, kill the worker that has it, find it in the console, send it back, and see it done."""
    goqueue = Command(tmp_path, own.url)
    goqueue.run("topic", "create", "parcels", "-p", "1", "--set", "lease.ms=1500", "--set", "attempts.max=1")
    parcel = json.dumps({"address": "Ada, London", "seconds": 600})
    goqueue.run("produce", "parcels", "-k", "parcel-7", "-m", parcel)
    page.go()
    with worker(own, "w1") as first:
        says(first, "w1 packs Ada, London")
        page.page.press("k", control=True)
        page.wait("document.querySelector('dialog.palette')?.open")
        page.page.write("parcels parcel-7")
        page.wait_for_text("latest of key", "dialog.palette")
        page.page.press("Enter")
        page.wait_for_text("leased by")
        page.wait_for_text("w1 (")
        page.go("groups", "packers")
        page.wait("document.querySelector('[aria-label=Leases]')?.innerText.includes('w1')")
        page.go("topics", "parcels", 0, 0)
        first.kill()
    page.wait_for_text("dead-lettered")
    page.go()
    page.click("1 dead letter in parcels.dlq", "#main")
    page.wait_for_text("attempts")
    do(page, "Redrive all 1", "Redrive", "1 message sent back")
    with worker(own, "w2", "--speed", "1000") as second:
        says(second, "w2 packed Ada, London")
        page.go("topics", "parcels", 0, 1)
        page.wait_for_text("settled: acked")
    assert page.page.errors == []


def test_no_field_of_an_action_is_forgotten(page: ConsolePage) -> None:
    """Whatever an action asks for is in what it sends, or in its check."""
    found: dict[str, Any] = page.page.run(
        "const { MORE } = await import('/console/actions_more.js'); const forgotten = {};"
        "for (const [name, action] of Object.entries(MORE)) for (const [field] of action.fields) {"
        "  const mark = ['count', 'rate'].includes(field) ? '4711' : 'MARK-' + field;"
        "  const given = { name: 'n', group: 'g', topic: 't', fork: 'f', [field]: mark };"
        "  const told = JSON.stringify([action.request(given), action.cli(given)]);"
        "  if (!told.includes(given[field])) (forgotten[name] ||= []).push(field);"
        "} return forgotten"
    )
    assert found == {}
