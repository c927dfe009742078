"""Every link of the documentation leads somewhere: to a file, and to a heading of it."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tools/**/*.md"), *ROOT.glob("benchmarks/*.md")]


def anchors_of(text: str) -> set[str]:
    """As GitHub makes them: lower case, punctuation left out, blanks as hyphens."""
    texts = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in HEADING.findall(FENCE.sub("", text)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in texts}


@cache
def anchors(page: Path) -> set[str]:
    return anchors_of(page.read_text("utf-8"))


def broken(page: Path, text: str) -> list[str]:
    found = []
    for link in LINK.findall(FENCE.sub("", text)):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (page.parent / path) if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(f"{page.relative_to(ROOT)}: {link}")
    return found


def test_every_link_leads_somewhere() -> None:
    found = [link for page in pages() for link in broken(page, page.read_text("utf-8"))]
    assert not found


def test_a_link_that_leads_nowhere_is_found() -> None:
    page = ROOT / "README.md"
    assert broken(page, "[a](docs/nothing.md) [b](docs/queue.md#nothing) [c](docs/queue.md#fair-queues)") == [
        "README.md: docs/nothing.md",
        "README.md: docs/queue.md#nothing",
    ]
