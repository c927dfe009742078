"""A page of the console in a real browser, and what a person does with it."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from tests.integration.devtools import Chromium, Page

PICTURES = Path(__file__).parents[2] / "docs" / "console"
ALSO_DARK = ("message", "topic")
"""Of the others docs/ has the light theme alone."""
WIDTH, HEIGHT = 1120, 760
NARROW = 360
LOUD = "<img src=x onerror=globalThis.hacked=1><script>globalThis.hacked=1</script>"
"""What must be shown as it is written."""

AXE = files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
AXE_RUNS = """
const rules = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"] };
const told = await axe.run(document, rules);
if (!told.passes.length) return ["axe has seen nothing"];
return told.violations.flatMap((each) => each.nodes.map((node) => each.id + ": " + node.html.slice(0, 200)))
"""

UNNAMED = """
const name = (each) => each.getAttribute("aria-label") || each.textContent.trim() || each.labels?.[0]?.textContent;
return [...document.querySelectorAll("button, a[href], input, select, textarea, [role=img], [role=region]")]
  .filter((each) => each.checkVisibility() && !name(each)).map((each) => each.outerHTML)
"""
FAINT = """
const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (colour) => {
  const [r, g, b] = numbers(colour).map((each) => each / 255)
    .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (each) => {
  for (; each; each = each.parentElement) {
    const colour = getComputedStyle(each).backgroundColor;
    if (numbers(colour).length === 3 || numbers(colour).at(-1) !== 0) return colour;
  }
  return "rgb(255, 255, 255)";
};
const found = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const text = walk.currentNode.data.trim(), each = walk.currentNode.parentElement;
  if (!text || !each.checkVisibility() || each.closest("svg, :disabled, script, noscript, option")) continue;
  const [one, other] = [light(getComputedStyle(each).color), light(behind(each))];
  const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (contrast < 4.5) found.push(each.className + " " + text.slice(0, 40) + " " + contrast.toFixed(1));
}
return found
"""


class ConsolePage:
    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url

    def go(self, *words: object) -> None:
        """To a screen; returns when it is drawn."""
        self.page.run(
            "const main = document.getElementById('main'), before = main.firstChild;"
            f"const to = '#/' + {json.dumps([str(each) for each in words])}.map(encodeURIComponent).join('/');"
            "if (location.hash === to) return; location.hash = to;"
            "while (main.firstChild === before) await new Promise((done) => setTimeout(done, 10));"
        )

    def wait(self, condition: str) -> Any:
        return self.page.wait(condition, condition)

    def wait_for_text(self, text: str, within: str = "#main") -> None:
        self.wait(f"document.querySelector({json.dumps(within)})?.innerText.includes({json.dumps(text)})")

    def text(self, within: str = "#main") -> str:
        found: str = self.page.run(f"return document.querySelector({json.dumps(within)}).innerText")
        return found

    def click(self, words: str, within: str = "body") -> None:
        """On the button or link that says so."""
        self.wait(_find(words, within))
        self.page.run(f"({_find(words, within)}).click()")

    def fill(self, label: str, text: str) -> None:
        """Into the field of this label."""
        found = (
            "[...document.querySelectorAll('label, input, select, textarea')].map((each) => each.control || each)"
            f".find((each) => (each.ariaLabel || each.labels?.[0]?.textContent || '').startsWith({json.dumps(label)}))"
        )
        self.page.run(
            f"const field = {found}; field.value = {json.dumps(text)};"
            "for (const kind of ['input', 'change']) field.dispatchEvent(new Event(kind, { bubbles: true }));"
        )

    def check_looks(self, name: str, directory: Path) -> None:
        """Of the screen as it is now: in both themes and on a narrow display it is whole, readable and has names for
        all that can be used. With GOQUEUE_PICTURES its pictures go into docs/."""
        kept = PICTURES if os.environ.get("GOQUEUE_PICTURES") else directory
        self.page.run("scrollTo(0, 0)")
        if not self.page.run("return Boolean(globalThis.axe)"):
            self.page.run(AXE)
        for theme in ("light", "dark"):
            self.page.show(WIDTH, HEIGHT, theme)
            assert self.page.run(FAINT) == [], f"{name} in the {theme} theme has text that is hard to read"
            found = self.page.run(AXE_RUNS)
            assert found == [], f"{name} in the {theme} theme, as axe sees it: {found}"
            is_shown = theme == "light" or name in ALSO_DARK
            self.page.picture((kept if is_shown else directory) / f"{name}-{theme}.png")
        self.page.show(NARROW, HEIGHT)
        width = self.page.run("return document.documentElement.scrollWidth")
        assert width <= NARROW, f"{name} is {width} wide on a narrow display"
        self.page.picture(directory / f"{name}-narrow.png")
        assert self.page.run(UNNAMED) == []
        assert self.page.run("return globalThis.hacked") is None
        assert self.page.errors == []
        self.page.show(WIDTH, HEIGHT)


def _find(words: str, within: str) -> str:
    return (
        f"[...document.querySelectorAll({json.dumps(within + ' button, ' + within + ' a')})]"
        f".find((each) => each.checkVisibility() && each.textContent.trim().startsWith({json.dumps(words)}))"
    )


@contextmanager
def opened(chromium: Chromium, url: str) -> Iterator[ConsolePage]:
    page = chromium.open(f"{url}/")
    page.show(WIDTH, HEIGHT)
    console = ConsolePage(page, url)
    console.wait("document.querySelector('#main h1')")
    yield console
    page.close()
