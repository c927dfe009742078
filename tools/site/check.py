"""What a site must not have: a link or an anchor that leads nowhere, and a page that asks another host for anything."""

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("video", "src")}
NOT_FETCHED = {"canonical", "prev", "next", "alternate", "edit", "license"}


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        if "id" in known:
            self.anchors.add(known["id"])
        for name, value in known.items():
            if (tag, name) in FETCHED and known.get("rel", "") not in NOT_FETCHED:
                self.fetched.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)


def problems(site: Path) -> list[str]:
    @cache
    def read(file: Path) -> Page:
        return Page(file.read_text("utf-8"))

    found = []
    for file in sorted(site.rglob("*.html")):
        name, page = file.relative_to(site), read(file)
        found += [f"{name} asks {each}" for each in page.fetched if urlsplit(each).netloc]
        if name.name == "404.html":  # its links are from the root of whatever serves it
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{name} links to {link}, which is not there")
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in read(target).anchors:
                found.append(f"{name} links to {link}, which has no such heading")
    return found
