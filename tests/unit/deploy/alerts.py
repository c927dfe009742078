"""Our alert rules, and a broker that is scraped every 15 seconds of virtual time, over HTTP as Prometheus does it."""

import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import promql_parser as ql
import yaml

from goqueue.testing import MemoryBroker, broker
from tests.promql import NAME, Samples, evaluate

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES_FILE = DEPLOY / "prometheus" / "alerts" / "goqueue-alerts.yaml"
SCRAPE_S = 15


class Rule(NamedTuple):
    name: str
    query: Any
    for_s: float
    severity: str

    def fires(self, samples: Samples) -> set[frozenset[tuple[str, str]]]:
        """The labels with which it fires at the last scrape: its condition has been true for long enough."""
        since: dict[frozenset[tuple[str, str]], float] = {}
        for at_s in samples.times_s:
            found = evaluate(self.query, samples, at_s)
            assert isinstance(found, dict)
            bare = {frozenset(pair for pair in labels if pair[0] != NAME) for labels in found}
            since = {labels: since.get(labels, at_s) for labels in bare}
        last_s = samples.times_s[-1]
        return {labels for labels, from_s in since.items() if last_s - from_s >= self.for_s}


def read_rules() -> dict[str, Rule]:
    document = yaml.safe_load(RULES_FILE.read_text("utf-8"))
    return {
        rule["alert"]: Rule(
            rule["alert"],
            ql.parse(rule["expr"]),
            ql.parse_duration(rule["for"]).total_seconds() if "for" in rule else 0,
            rule["labels"]["severity"],
        )
        for group in document["groups"]
        for rule in group["rules"]
    }


RULES = read_rules()


class Scraped:
    def __init__(self, b: MemoryBroker, http: httpx.AsyncClient) -> None:
        self.b = b
        self.http = http
        self.samples = Samples()
        self._now_s = 0.0

    async def scrape(self) -> None:
        try:
            reply = await self.http.get("/metrics")
        except httpx.ConnectError:
            self.samples.scraped(self._now_s, None)
        else:
            assert reply.status_code == 200
            self.samples.scraped(self._now_s, reply.text)

    async def minutes(self, minutes: float, act: Callable[[], Awaitable[None]] | None = None) -> None:
        """Scrape every 15 seconds; `act` before each."""
        for _ in range(int(minutes * 60) // SCRAPE_S):
            if act is not None:
                await act()
            self._now_s += SCRAPE_S
            if self.b._running is not None:
                await self.b.advance(f"{SCRAPE_S}s")
            await self.scrape()

    def firing(self) -> set[str]:
        return {name for name, rule in RULES.items() if rule.fires(self.samples)}


@asynccontextmanager
async def scraped() -> AsyncIterator[Scraped]:
    async with broker(http=True) as b, httpx.AsyncClient(base_url=b.http) as http:
        await b.create_topic("orders")
        found = Scraped(b, http)
        await found.scrape()
        yield found


def promtool() -> str | None:
    """None: it is not installed, and nobody but our own evaluator judges."""
    return shutil.which("promtool")


def promtool_agrees(samples: Samples, firing: set[str], directory: Path) -> None:
    """Prometheus itself, given the same samples, fires the same alerts."""
    tool = promtool()
    if tool is None:
        return
    last_s = int(samples.times_s[-1])
    test = {
        "rule_files": [str(RULES_FILE)],
        "evaluation_interval": f"{SCRAPE_S}s",
        "tests": [
            {
                "interval": f"{SCRAPE_S}s",
                "input_series": [
                    {"series": _shown(dict(labels)), "values": _values(samples, points)}
                    for labels, points in samples.series.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": f'count by (alertname) (ALERTS{{alertname="{name}", alertstate="firing"}}) > bool 0',
                        "eval_time": f"{last_s}s",
                        "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1}] if name in firing else [],
                    }
                    for name in RULES
                ],
            }
        ],
    }
    path = directory / "test.json"
    path.write_text(json.dumps(test))  # JSON is YAML
    ran = subprocess.run([tool, "test", "rules", str(path)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _shown(labels: dict[str, str]) -> str:
    name = labels.pop(NAME)
    return f"{name}{{{','.join(f'{key}={json.dumps(value)}' for key, value in labels.items())}}}"


def _values(samples: Samples, points: list[Any]) -> str:
    """`_` is a scrape without it, after which it is over."""
    by_time = {point.at_s: point.value for point in points}
    shown = []
    for at_s in samples.times_s:
        if at_s in by_time:
            shown.append(repr(by_time[at_s]))
        else:
            shown.append("stale" if shown and shown[-1] not in ("_", "stale") else "_")
    return " ".join(shown)
