"""docs/http-groups.md names what there is, all of it and nothing else."""

import re
from pathlib import Path

from goqueue.doors.http.routes.acks import REFUSALS, acks
from goqueue.doors.http.routes.cooperative import cooperative
from goqueue.doors.http.routes.groups import groups
from goqueue.doors.http.routes.lag import lag
from goqueue.doors.http.routes.members import members
from goqueue.doors.http.routes.offsets import offsets

PAGE = (Path(__file__).parents[4] / "docs" / "http-groups.md").read_text("utf-8")


def test_every_call_is_in_the_table_and_every_call_of_the_table_exists() -> None:
    table = PAGE.partition("| call | does |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) [^`?]+)`", table))
    made = {
        f"{operation.method} {operation.path}"
        for resource in (groups, members, cooperative, offsets, lag, acks)
        for operation in resource.all
    }
    assert named == made


def test_the_answers_to_receipts_are_told() -> None:
    for status, code, _ in REFUSALS.values():
        assert f"| {status} `{code}` |" in PAGE
