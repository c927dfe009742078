"""The console in a real browser: its frame, the home screen, topics, and what holds for all screens."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest

from goqueue.doors.http.console_files import sources
from tests.integration.console_page import LOUD, ConsolePage, opened
from tests.integration.devtools import Chromium, chromium
from tests.integration.process import DEADLINE_S, Node
from tests.integration.test_browser import needs_chromium

KIB = 1024
PASSWORD = "correct horse"
pytestmark = needs_chromium


def http_of(node: Node, **options: object) -> httpx.Client:
    return httpx.Client(base_url=node.url, timeout=DEADLINE_S, **options)  # type: ignore[arg-type]


def publish(http: httpx.Client, topic: str, *messages: Mapping[str, object]) -> list[dict[str, int]]:
    told = http.post(f"/topics/{topic}/messages", json={"messages": messages}).raise_for_status()
    found: list[dict[str, int]] = told.json()["results"]
    return found


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    running = Node(tmp_path_factory.mktemp("console")).start()
    yield running
    running.clean_up()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with chromium(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def page(own: Node, browser: Chromium) -> Iterator[ConsolePage]:
    with http_of(own) as http:
        http.post("/topics", json={"name": "orders", "num_partitions": 2}).raise_for_status()
        http.post("/topics", json={"name": "payments", "num_partitions": 3}).raise_for_status()
        value = json.dumps({"order": 7, "customer": "Ada", "items": ["apple", "pear"], "total": 12.5})
        publish(http, "orders", *({"key": f"order-{number}", "value": value} for number in range(30)))
        publish(http, "payments", *({"key": LOUD, "value": LOUD, "headers": {"note": LOUD}, "partition": 0},) * 3)
        publish(http, "orders", {"value": "later", "delay": "3 hours"})
        http.post("/topics/orders/receive", json={"group": LOUD.replace("/", "|"), "max_messages": 2, "consumer": LOUD})
        http.post("/topics/orders/receive", json={"group": "packers", "max_messages": 4, "consumer": "w3"})
        with opened(browser, own.url) as shown:
            yield shown


def test_a_browser_that_asks_for_the_root_is_shown_the_home_screen(
    page: ConsolePage, own: Node, tmp_path: Path
) -> None:
    page.go()
    page.wait("document.querySelector('.pill.live')")
    with http_of(own) as http:
        assert http.get("/").json()["name"] == "GoQueue", "programs get what they always got"
        page.wait_for_text("Everything is in service")
        publish(http, "orders", *({"value": str(number)} for number in range(40)))
        kept = sum(each["total_messages"] for each in http.get("/stats").json()["topic_stats"].values())
    page.wait_for_text(f"{kept}\nmessages in 2 topics")
    page.wait("document.querySelector('.tile strong').textContent !== '0/s'")
    page.check_looks("home", tmp_path)


def test_topics_are_listed_filtered_and_found_by_the_keyboard_alone(page: ConsolePage, tmp_path: Path) -> None:
    page.go("topics")
    page.wait("document.querySelectorAll('tbody tr').length === 2")
    page.check_looks("topics", tmp_path)
    page.fill("Filter by name", "pay")
    page.wait("document.querySelectorAll('tbody tr').length === 1")
    page.fill("Filter by name", "")
    page.page.press("k", control=True)
    page.wait("document.querySelector('dialog.palette')?.open")
    page.page.write("orders/0/3")
    page.wait_for_text("orders/0/3", "dialog.palette")
    page.page.press("Enter")
    page.wait("document.querySelector('#main h1')?.textContent === 'orders/0/3'")
    page.page.press("k", control=True)
    page.wait("document.querySelector('dialog.palette')?.open")
    page.page.write("paym")
    page.wait_for_text("payments", "dialog.palette")
    page.page.press("Enter")
    page.wait("document.querySelector('#main h1')?.textContent === 'payments'")
    steps = 0
    while page.page.run("return document.activeElement.textContent") != "Publish":
        page.page.press("Tab")
        steps += 1
        assert steps < 30, "a button cannot be reached with the keyboard"
    page.page.press("Enter")
    page.wait("document.querySelector('dialog').open")
    page.page.press("Escape")
    page.wait("!document.querySelector('dialog')")


def test_a_topic_shows_its_messages_and_who_reads_it_and_markup_in_them_is_text(
    page: ConsolePage, own: Node, tmp_path: Path
) -> None:
    page.go("topics", "payments")
    page.wait_for_text(LOUD)
    assert page.page.run("return document.querySelectorAll('img[src=x], #main script').length") == 0
    page.go("topics", "orders")
    page.wait_for_text("packers")
    page.wait_for_text(LOUD.replace("/", "|"))
    page.check_looks("topic", tmp_path)
    page.click("Follow")
    page.wait("document.querySelector('[aria-pressed=true]')?.textContent === 'Stop following'")
    with http_of(own) as http:
        publish(http, "orders", {"value": "seen as it came"})
        page.wait_for_text("seen as it came")
    page.click("Stop following")


def test_a_topic_is_made_published_to_and_deleted_in_the_page(page: ConsolePage, own: Node) -> None:
    with http_of(own) as http:
        page.go("topics")
        page.click("New topic")
        page.fill("Name", "made-here")
        page.fill("Partitions", "1")
        assert "goqueue topic create made-here -p 1" in page.page.run(
            "return document.querySelector('dialog .sent').textContent"
        )
        page.click("Make it", "dialog")
        page.click("Look at it", "dialog")
        page.wait("document.querySelector('#main h1')?.textContent === 'made-here'")
        assert http.get("/topics/made-here").json()["partitions"] == 1
        page.click("Publish", "#main")
        page.fill("Key", "k")
        page.fill("Value", "from the page")
        page.fill("Headers", "who: me")
        page.click("Publish", "dialog")
        page.wait_for_text("made-here/0/0", "dialog")
        (found,) = http.get("/topics/made-here/partitions/0/messages").json()["messages"]
        assert (found["key"], found["value"], found["headers"]) == ("k", "from the page", {"who": "me"})
        page.click("Close", "dialog")
        page.click("Delete", "#main")
        page.fill("Its name", "another")
        page.click("Delete", "dialog")
        page.wait_for_text("That is not its name", "dialog")
        assert http.get("/topics/made-here").status_code == 200
        page.fill("Its name", "made-here")
        page.click("Delete", "dialog")
        page.wait_for_text("It is gone", "dialog")
        assert http.get("/topics/made-here").status_code == 404
        page.click("Close", "dialog")


def test_a_node_that_is_killed_is_told_as_lost_and_the_page_goes_on_by_itself(page: ConsolePage, own: Node) -> None:
    page.go("topics")
    page.wait("document.querySelector('.pill.live')")
    own.kill()
    page.wait("document.querySelector('.pill.lost') && !document.querySelector('.banner').hidden")
    assert "orders" in page.text(), "what was told last stays"
    own.start()
    page.wait("document.querySelector('.pill.live') && document.querySelector('.banner').hidden")
    with http_of(own) as http:
        publish(http, "after-the-crash", {"value": "x"})
    page.wait_for_text("after-the-crash")
    assert page.page.errors == []


def test_a_hidden_page_asks_nothing(browser: Chromium, own: Node) -> None:
    """In a minute of the page's own time, which is over at once."""
    with opened(browser, own.url) as page:
        page.wait("document.querySelector('.pill.live')")
        last = "performance.getEntriesByType('resource').some((each) => each.name.endsWith('/palette.js'))"
        page.wait(last)  # of the modules that a page fetches when it has nothing else to do
        page.page.run(
            "globalThis.asked = []; const note = (list) => asked.push(...list.getEntries().map((each) => each.name));"
            "new PerformanceObserver(note).observe({ type: 'resource' });"
        )
        page.page.pass_ms(10_000)
        assert len(page.page.run("return asked")) >= 5, "a page that is seen asks once a second"
        page.page.hide(is_hidden=True)
        page.page.pass_ms(1_000)
        page.page.run("asked.length = 0")
        page.page.pass_ms(60_000)
        assert page.page.run("return asked") == []
        assert page.page.run("return document.querySelector('.pill.paused') !== null")
        page.page.hide(is_hidden=False)
        page.page.pass_ms(10_000)
        assert page.page.run("return asked")


def spent_ns(node: Node) -> int:
    """CPU of the node so far, as the kernel counts it."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{node.pid}/task").glob("*/schedstat"))


def test_fifty_pages_cost_little_more_than_their_requests(own: Node) -> None:
    """A page asks once a second. All of them are told of one reading, so an answer costs as much as a bare request,
    and as much again."""
    with http_of(own) as http:
        for number in range(100):
            publish(http, f"busy-{number}", {"value": "x"})
        cursors = dict.fromkeys(range(50), "")
        begun = spent_ns(own)
        for _ in range(6):
            for page, since in cursors.items():
                told = http.get("/console/reading", params={"since": since}).raise_for_status().json()
                cursors[page] = ",".join(f"{node}:{each['cursor']}" for node, each in told["nodes"].items())
        looked = spent_ns(own) - begun
        for _ in range(300):
            http.get("/livez").raise_for_status()
        bare = spent_ns(own) - begun - looked
        assert looked <= 4 * bare, (looked, bare)
        for number in range(100):
            http.delete(f"/topics/busy-{number}").raise_for_status()


def test_no_page_asks_another_host(page: ConsolePage, own: Node) -> None:
    asked = page.page.run("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert asked
    assert all(each.startswith(f"{own.url}/") for each in asked)


def test_people_sign_in_and_out(tmp_path: Path) -> None:
    node = Node(tmp_path, is_closed=True)
    try:
        node.start()
        with http_of(node, headers={"x-api-key": node.first_key}) as http, chromium(tmp_path / "profile") as running:
            http.post("/topics", json={"name": "orders"}).raise_for_status()
            user = {"name": "alice", "password": PASSWORD, "roles": ["admin"]}
            http.post("/admin/users", json=user).raise_for_status()
            with opened(running, node.url) as page:
                page.wait_for_text("Sign in")
                page.fill("User", "alice")
                page.fill("Password", "wrong")
                page.click("Sign in", "form")
                page.wait("document.querySelector('.wrong').textContent")
                page.check_looks("sign-in", tmp_path)
                page.fill("Password", PASSWORD)
                page.click("Sign in", "form")
                page.wait("document.querySelector('.pill.live')")
                page.go("topics")
                page.wait_for_text("orders")
                page.click("New topic")
                page.fill("Name", "by-alice")
                page.click("Make it", "dialog")
                page.wait_for_text("by-alice is there", "dialog")
                page.click("Close", "dialog")
                page.go("topics", "by-alice")
                page.click("Publish", "#main")
                page.fill("Value", "by hand")
                page.click("Publish", "dialog")
                page.wait_for_text("by-alice/", "dialog")
                page.click("Close", "dialog")
                page.click("Sign out")
                page.wait_for_text("Password")
                assert "by hand" not in page.text()
                assert page.page.errors == []
            del http.headers["x-api-key"]  # it has ended: there is an admin that lasts
            trail = http.get("/admin/audit", auth=("alice", PASSWORD))
            assert trail.status_code == 200, trail.text
            noted = {(each["principal"], each["operation"], each["outcome"]) for each in trail.json()["entries"]}
            assert ("User:alice", "create_topic", "done") in noted
            assert ("User:alice", "publish", "done") in noted, "what a person does by hand is in the audit trail"
    finally:
        node.clean_up()


def test_a_read_only_console_changes_nothing(tmp_path: Path) -> None:
    node = Node(tmp_path, "--console", "read-only").start()
    try:
        with http_of(node) as http, chromium(tmp_path / "profile") as running, opened(running, node.url) as page:
            publish(http, "orders", {"value": "x"})
            page.go("topics", "orders")
            page.wait_for_text("read only", "body")
            assert "Delete" not in page.text()
            tried = "return (await fetch('/topics/orders', { method: 'DELETE' })).status"
            assert page.page.run(tried) == 403
            assert http.get("/topics/orders").status_code == 200
    finally:
        node.clean_up()


def test_modules_are_small() -> None:
    sizes = {name: len(content) for name, content in sources().items() if name.endswith(".js")}
    assert len(sizes) > 10
    shared = {
        "api.js",
        "charts.js",
        "content.js",
        "dom.js",
        "live.js",
        "main.js",
        "actions.js",
        "actions_more.js",
    }
    frame = sum(sizes[name] for name in shared)
    largest = max(size for name, size in sizes.items() if name not in shared)
    assert frame + largest <= 60 * KIB, sizes
