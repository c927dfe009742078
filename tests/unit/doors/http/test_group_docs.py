"""docs/http-groups.md names what there is, all of it and nothing else."""

import re
from pathlib import Path

from goqueue.doors.http.routes.acks import REFUSALS
from goqueue.wire.rest.operations.acks import ACKNOWLEDGEMENTS
from goqueue.wire.rest.operations.groups import COOPERATIVE, GROUPS, LAG, MEMBERS, OFFSETS

PAGE = (Path(__file__).parents[4] / "docs" / "http-groups.md").read_text("utf-8")


def test_every_call_is_in_the_table_and_every_call_of_the_table_exists() -> None:
    table = PAGE.partition("| call | does |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) [^`?]+)`", table))
    made = {
        f"{operation.method} {operation.path}"
        for resource in (GROUPS, MEMBERS, COOPERATIVE, OFFSETS, LAG, ACKNOWLEDGEMENTS)
        for operation in resource.all
    }
    assert named == made


def test_the_answers_to_receipts_are_told() -> None:
    for status, code, _ in REFUSALS.values():
        assert f"| {status} `{code}` |" in PAGE
