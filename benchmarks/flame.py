"""A flame graph of a broker under one of the loads of `bench_small`, as an SVG that needs nothing else:

    python -m benchmarks.flame http-publish docs/flames/http-publish.svg [CHECKOUT]

CHECKOUT: of which the broker is, instead of this one. The broker looks at its own stack after every millisecond of CPU
that it has used. Width is CPU, in microseconds of one message; what is called stands on who calls it.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from html import escape
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.bench_small import LOADS, started
from benchmarks.harness import ROOT
from benchmarks.peers.loads import CPU
from goqueue.cli.bench import broker as brokers

SAMPLE_S = 0.001
WIDTH, ROW, TEXT = 1200, 17, 6.6
SHARE_MIN = 0.004
"""What is narrower is left out."""
STACKS = "stacks.json"
DEPTH_MAX = 60

Tree = dict[str, Any]


def main(name: str, target: str, checkout: str | None = None) -> None:
    start = brokers.start_python

    def start_sampled(_module: str, _function: str, *arguments: str, **more: Any) -> Any:
        return start("benchmarks.flame", "serve_sampled", *arguments, **more)

    brokers.start_python = start_sampled  # type: ignore[assignment]  # as `own_broker` calls it
    source = Path(checkout or ROOT).resolve() / "src"
    os.environ["PYTHONPATH"] = f"{source}{os.pathsep}{ROOT}"
    found: Counter[tuple[str, ...]] = Counter()
    with started(None) as broker:
        cpu_us = LOADS[name].run(broker)[CPU]
        os.kill(broker.process.pid, signal.SIGUSR2)
        kept = broker.directory / "data" / ".." / STACKS
        deadline_s = time.monotonic() + 30
        while not kept.exists():
            assert time.monotonic() < deadline_s, "the broker has kept no samples"
            time.sleep(0.05)
        for stack, count in json.loads(kept.read_text("utf-8")):
            found[tuple(stack)] += count
    title = f"{LOADS[name].title}: {cpu_us:.0f} us of CPU for each message, {sum(found.values()):,} samples"
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    Path(target).write_text(drawn(found, title, cpu_us), "utf-8")
    for stack, count in leaves(found).most_common(40):
        print(f"{count / sum(found.values()) * cpu_us:8.1f} us  {stack}")


def leaves(found: "Counter[tuple[str, ...]]") -> "Counter[str]":
    """What is spent in each function itself."""
    own: Counter[str] = Counter()
    for stack, count in found.items():
        own[stack[-1]] += count
    return own


# -- in the broker


def serve_sampled(name: str) -> None:
    counts: Counter[tuple[str, ...]] = Counter()
    names: dict[Any, str] = {}
    ready_file = Path(name) / "ready.json"
    is_ready = False

    def look(_number: int, frame: FrameType | None) -> None:
        nonlocal is_ready
        if not is_ready:  # how long it takes to start says nothing about messages
            is_ready = ready_file.exists()
            return
        stack: list[str] = []
        while frame is not None:
            code = frame.f_code
            known = names.get(code)
            if known is None:
                known = names[code] = f"{_module(code.co_filename)}:{code.co_qualname}"
            stack.append(known)
            frame = frame.f_back
        counts[tuple(reversed(stack[-DEPTH_MAX:]))] += 1

    def keep(_number: int, _frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        kept = Path(name) / f"{STACKS}.new"
        kept.write_text(json.dumps([[stack, count] for stack, count in counts.items()]), "utf-8")
        kept.rename(Path(name) / STACKS)

    signal.signal(signal.SIGPROF, look)
    signal.signal(signal.SIGUSR2, keep)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_S, SAMPLE_S)
    brokers.serve_here(name)


def _module(path: str) -> str:
    """Short: from the package on."""
    for root in ("/src/", "/site-packages/", "/python3.11/"):
        if root in path:
            path = path.rpartition(root)[2]
    return path.removeprefix("goqueue/").removesuffix(".py")


# -- the picture


def drawn(found: "Counter[tuple[str, ...]]", title: str, cpu_us: float) -> str:
    total = sum(found.values()) or 1
    tree: Tree = {"count": total, "below": {}}
    for stack, count in found.items():
        at = tree
        for name in _without_start(stack):
            at = at["below"].setdefault(name, {"count": 0, "below": {}})
            at["count"] += count
    boxes: list[str] = []
    deepest = _draw(tree, 0.0, 0, total, cpu_us, boxes)
    height = (deepest + 3) * ROW
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" '
        f'font-size="11"><rect width="{WIDTH}" height="{height}" fill="#fff"/>'
        f'<text x="4" y="13" font-size="13">{escape(title)}</text>'
    )
    return head + "".join(boxes) + "</svg>\n"


def _without_start(stack: tuple[str, ...]) -> tuple[str, ...]:
    """All begin with how the broker was started, which tells nothing."""
    starts = ("node/process", "flame", "bench/", "asyncio/", "uvloop/__init__", "<string>")
    for place, name in enumerate(stack):
        if not any(start in name for start in starts):
            return stack[place:]
    return stack[-1:]


def _draw(tree: Tree, x: float, depth: int, total: int, cpu_us: float, boxes: list[str]) -> int:
    deepest = depth
    for name, each in sorted(tree["below"].items()):
        width = each["count"] / total * WIDTH
        if width >= SHARE_MIN * WIDTH:
            boxes.append(_box(name, x, depth, width, each["count"] / total * cpu_us))
            deepest = max(deepest, _draw(each, x, depth + 1, total, cpu_us, boxes))
        x += width
    return deepest


def _box(name: str, x: float, depth: int, width: float, us: float) -> str:
    y = (depth + 1) * ROW + 4
    module, _, function = name.partition(":")
    hue = sum(map(ord, module.rpartition("/")[0] or module)) * 47 % 360
    shown = f"{function} {us:.0f}"
    text = ""
    if width > TEXT * 5:
        text = f'<text x="{x + 2:.1f}" y="{y + 12}">{escape(shown[: int(width / TEXT)])}</text>'
    return (
        f'<g><title>{escape(name)}: {us:.1f} us</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
        f'height="{ROW - 1}" fill="hsl({hue},60%,80%)"/>{text}</g>'
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
