"""The documentation as a site: built strictly, all pages in its navigation, every link and anchor there, and no request
to another host from a page that a browser shows.
"""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from tests.integration.devtools import chromium
from tests.integration.process import own_host
from tests.integration.test_browser import needs_chromium
from tools.site.__main__ import main
from tools.site.check import problems
from tools.site.pages import ROOT, SITE, SOURCE

CONFIG = (ROOT / "mkdocs.yml").read_text("utf-8")


def listed(navigation: object) -> Iterator[str]:
    if isinstance(navigation, str):
        yield navigation
    elif isinstance(navigation, list | dict):
        for each in navigation.values() if isinstance(navigation, dict) else navigation:
            yield from listed(each)


def check_navigation() -> None:
    names = list(listed(yaml.safe_load("nav:" + CONFIG.partition("\nnav:")[2])["nav"]))
    found = {str(page.relative_to(SOURCE)) for page in SOURCE.rglob("*.md")}
    decisions = {name for name in found if name.startswith("adr/0")}
    assert sorted(names) == sorted(found - decisions)
    assert len(decisions) > 100


def test_what_is_wrong_with_a_page_is_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(
        '<script src="https://elsewhere.example/x.js"></script><h1 id="top">x</h1>'
        '<a href="#top">a</a><a href="#bottom">b</a><a href="nowhere/">c</a><a href="https://example.org">d</a>'
    )
    assert problems(tmp_path) == [
        "index.html asks https://elsewhere.example/x.js",
        "index.html links to #bottom, which has no such heading",
        "index.html links to nowhere/, which is not there",
    ]


@needs_chromium
def test_the_site_is_whole_and_a_browser_asks_nobody_else(tmp_path: Path) -> None:
    """One test: all of them would build it in the same place."""
    assert main() == 0
    check_navigation()
    handler = partial(SimpleHTTPRequestHandler, directory=str(SITE))
    with ThreadingHTTPServer((own_host(), 0), handler) as server, chromium(tmp_path / "profile") as browser:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            here = f"http://{server.server_address[0]!s}:{server.server_port}/"
            page = browser.open(here)
            page.show(1120, 900)
            page.wait("document.querySelector('[data-md-component=search]')", "the search is there")
            page.picture(tmp_path / "site.png")
            asked = page.run("return performance.getEntriesByType('resource').map((each) => each.name)")
            assert len(asked) > 3
            assert [each for each in asked if not each.startswith(here)] == []
            assert page.errors == []
        finally:
            server.shutdown()
            thread.join()
