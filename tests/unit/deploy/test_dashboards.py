"""Dashboards and rules ask for nothing that there is not."""

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import httpx
import promql_parser as ql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from goqueue.broker.metrics.catalogue import HISTOGRAM, METRICS
from goqueue.testing import broker
from tests.promql import names_in
from tests.unit.deploy.alerts import DEPLOY, RULES, RULES_FILE, promtool

DASHBOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
VARIABLE = re.compile(r"\$__rate_interval|\$\w+")
PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", "process_max_fds"}
"""Of prometheus-client itself."""
PARTS = ("_bucket", "_count", "_sum")
KNOWN = {"up"} | PROCESS
KNOWN |= {f"{each.name}{part}" for each in METRICS for part in (PARTS if each.kind == HISTOGRAM else ("",))}


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries(dashboard: dict[str, Any]) -> list[str]:
    return [target["expr"] for panel in panels(dashboard) for target in panel["targets"]]


def parsed(query: str) -> Any:
    return ql.parse(VARIABLE.sub(lambda found: "5m" if found[0] == "$__rate_interval" else ".*", query))


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_asks_for_metrics_that_exist(path: Path) -> None:
    dashboard = json.loads(path.read_text("utf-8"))
    asked = {query: names_in(parsed(query)) for query in queries(dashboard)}
    assert all(asked.values())
    assert {query: names - KNOWN for query, names in asked.items() if names - KNOWN} == {}


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_is_one_that_grafana_takes(path: Path) -> None:
    dashboard = json.loads(path.read_text("utf-8"))
    variables = {each["name"]: each["type"] for each in dashboard["templating"]["list"]}
    assert variables["datasource"] == "datasource"
    used = {found[1:] for query in queries(dashboard) for found in VARIABLE.findall(query)} - {"__rate_interval"}
    assert used <= variables.keys()
    assert {panel["datasource"]["uid"] for panel in panels(dashboard)} == {"${datasource}"}
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(numbers) == len(set(numbers))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert taken.isdisjoint(cells), f"{panel['title']} lies over another"
        taken |= cells
    assert all(panel["title"] for panel in dashboard["panels"])


def test_there_are_the_dashboards_that_nodes_can_fill() -> None:
    found = {path.name: json.loads(path.read_text("utf-8"))["uid"] for path in DASHBOARDS}
    assert found == {
        "goqueue-overview.json": "goqueue-overview",
        "goqueue-consumer-groups.json": "goqueue-consumers",
        "goqueue-cluster.json": "goqueue-cluster",
    }


def test_every_rule_asks_for_metrics_that_exist_and_says_what_to_do() -> None:
    for rule in RULES.values():
        assert names_in(rule.query)
        assert names_in(rule.query) <= KNOWN, rule.name
        assert rule.severity in {"warning", "critical"}
    document = yaml.safe_load(RULES_FILE.read_text("utf-8"))
    for group in document["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"].keys() == {"summary", "description"}, rule["alert"]


def test_prometheus_takes_our_files() -> None:
    """Without promtool only that they are YAML which names the rules."""
    config = DEPLOY / "prometheus" / "prometheus.yml"
    (rules,) = yaml.safe_load(config.read_text("utf-8"))["rule_files"]
    assert config.parent / rules == RULES_FILE
    tool = promtool()
    for what, path in (("rules", RULES_FILE), ("config", config)):
        if tool is not None:
            ran = subprocess.run([tool, "check", what, str(path)], capture_output=True, text=True, check=False)
            assert ran.returncode == 0, ran.stdout + ran.stderr


LINTED = ['goqueue_broker_topic_count non-histogram and non-summary metrics should not have "_count" suffix']
"""The name is older than the rule."""


def test_prometheus_takes_what_a_scrape_returns() -> None:
    async def scrape() -> str:
        async with broker(http=True) as b, httpx.AsyncClient(base_url=b.http) as http:
            await b.create_topic("orders")
            await b.publish("orders", b"x")
            for message in await b.receive("orders", 'quo"ted'):
                await message.ack()
            return (await http.get("/metrics")).text

    text = asyncio.run(scrape())
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert all(family.documentation and family.samples for family in families.values())
    ours = {name for name in families if name.startswith("goqueue_")}
    assert len(ours) > len(METRICS) // 2
    assert text.count("# TYPE ") == len(families), "a metric comes twice"
    tool = promtool()
    if tool is not None:
        ran = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert (ran.stdout + ran.stderr).splitlines() == LINTED
