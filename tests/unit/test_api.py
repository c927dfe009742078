"""The API is in files that reviewers see change, and a change that breaks programs of others fails here."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tools.api import API, DOCS, RELEASED, generate, pages
from tools.api_changes import broken_in_grpc, broken_in_http
from tools.protos import PROTOS


def released(name: str) -> Any:
    return json.loads((RELEASED / name).read_text("utf-8"))


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return generate()


@pytest.mark.parametrize("name", ["openapi.json", "grpc.json"])
def test_the_files_are_what_the_code_says(name: str, made: dict[str, str]) -> None:
    assert (API / name).read_text("utf-8") == made[name], "write it anew with `make api` and look at the difference"


@pytest.mark.parametrize("name", ["http.md", "cli.md", "limits.md"])
def test_the_pages_list_what_the_code_says(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == pages()[name], "write it anew with `make api`"


def test_nothing_that_was_released_is_broken(made: dict[str, str]) -> None:
    assert list(broken_in_http(released("openapi.json"), json.loads(made["openapi.json"]))) == []
    assert list(broken_in_grpc(released("grpc.json"), json.loads(made["grpc.json"]))) == []


def _lose_operation(api: Any) -> None:
    del api["paths"]["/topics"]["post"]


def _lose_field_of_answer(api: Any) -> None:
    del api["components"]["schemas"]["TopicDetails"]["properties"]["partitions"]


def _need_a_new_field(api: Any) -> None:
    api["components"]["schemas"]["NewTopic"]["required"] = ["name", "owner"]


def _change_a_type(api: Any) -> None:
    api["components"]["schemas"]["TopicDetails"]["properties"]["partitions"] = {"type": "string"}


def _lose_parameter(api: Any) -> None:
    api["paths"]["/groups"]["get"]["parameters"] = []


@pytest.mark.parametrize(
    ("breaks", "told"),
    [
        (_lose_operation, "POST /topics is gone"),
        (_lose_field_of_answer, "has no field partitions any more"),
        (_need_a_new_field, "needs owner now"),
        (_change_a_type, "partitions was integer and is string"),
        (_lose_parameter, "parameter limit is gone"),
    ],
)
def test_a_change_that_breaks_http_is_told(breaks: Any, told: str) -> None:
    old = released("openapi.json")
    new = copy.deepcopy(old)
    breaks(new)
    assert any(told in each for each in broken_in_http(old, new))
    assert list(broken_in_http(old, old)) == []


def test_a_number_that_means_something_else_breaks_grpc() -> None:
    old = released("grpc.json")
    new = copy.deepcopy(old)
    message = next(name for name in new if name.endswith(".PublishRequest"))
    new[message]["1"] = "other: 9"
    del new[next(name for name in new if name.endswith("Service"))]
    assert len(list(broken_in_grpc(old, new))) == 2
    added = copy.deepcopy(old)
    added[message]["99"] = "more: 9"
    assert list(broken_in_grpc(old, added)) == []


@pytest.mark.parametrize("path", sorted(PROTOS.rglob("*.proto")), ids=lambda path: path.name)
def test_protos_keep_to_the_usual_style(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.search(r'^syntax = "proto3";$', text, re.MULTILINE)
    assert re.search(r"^package goqueue\.v1;$", text, re.MULTILINE)
    assert re.findall(r"^(?:message|enum|service) (?![A-Z][A-Za-z0-9]+ \{)", text, re.MULTILINE) == []
    assert [name for name in re.findall(r"^service (\w+)", text, re.MULTILINE) if not name.endswith("Service")] == []
    fields = re.findall(r"^  (?:(?:repeated|optional) )?[a-zA-Z][\w.]* (\w+) = \d+", text, re.MULTILINE)
    assert [name for name in fields if not re.fullmatch(r"[a-z][a-z0-9_]*", name)] == []
    for enum, body in re.findall(r"enum (\w+) \{(.*?)\n\}", text, re.DOTALL):
        values = re.findall(r"^\s+(\w+) = (\d+);", body, re.MULTILINE)
        assert {number for _, number in values} >= {"0"}, enum
        assert [name for name, _ in values if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name)] == [], enum
