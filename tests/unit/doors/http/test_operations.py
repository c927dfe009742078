"""All operations together make one document."""

from collections import Counter

from goqueue.doors.http.openapi import document
from goqueue.doors.http.routes.table import OPERATIONS


def test_every_operation_has_a_name_and_a_summary_of_its_own() -> None:
    told = [each for path in document(OPERATIONS, "1")["paths"].values() for each in path.values()]
    assert len(told) == len(OPERATIONS)
    for field in ("operationId", "summary"):
        assert [name for name, count in Counter(each[field] for each in told).items() if count > 1 or not name] == []
