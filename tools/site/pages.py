"""The pages of the site, as files: those of docs/, with links out of docs/ that lead to the repository, and those
that are made from the OpenAPI document, the protos and the docstrings.
"""

import re
import shutil
from pathlib import Path

from tools.site.grpc_pages import grpc_page
from tools.site.http_pages import http_pages
from tools.site.python_pages import python_pages

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "build" / "site-source"
SITE = ROOT / "build" / "site"
ICON = ROOT / "src" / "goqueue" / "doors" / "http" / "console" / "icon.svg"
REPOSITORY = "https://github.com/goqueue/goqueue/blob/main"
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
LIST = "README.md"
"""The list of all pages is for whoever reads the repository; the site has its navigation."""


def write_pages(source: Path) -> None:
    for page in sorted(DOCS.rglob("*")):
        inside = page.relative_to(DOCS)
        if page.is_dir() or str(inside) == LIST:
            continue
        target = source / (inside.with_name("index.md") if inside.name == LIST else inside)
        target.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix == ".md":
            target.write_text(linked(page.read_text("utf-8"), page), "utf-8")
        else:
            shutil.copyfile(page, target)
    shutil.copyfile(ICON, source / ICON.name)
    made = {**http_pages(), "reference/grpc-services.md": grpc_page(), **python_pages()}
    for name, text in made.items():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")


def linked(text: str, page: Path) -> str:
    """Its links, as they are on the site."""

    def one(match: re.Match[str]) -> str:
        path, mark, anchor = match[1].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return match[0]
        target = (page.parent / path).resolve()
        if not target.is_relative_to(DOCS):
            return f"]({REPOSITORY}/{target.relative_to(ROOT)}{mark}{anchor})"
        if target == DOCS / LIST:
            return "](index.md)"
        return f"]({re.sub('README.md$', 'index.md', path)}{mark}{anchor})"

    parts = FENCED.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(one, part) for part in parts)
