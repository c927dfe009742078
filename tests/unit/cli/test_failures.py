"""What a person is told who was refused."""

from typing import Any

import pytest

from goqueue.cli.exits import EXIT_DENIED
from goqueue.cli.failures import explain
from goqueue.client import HttpRefused


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (401, "NOT_AUTHENTICATED", "GOQUEUE_API_KEY"),
        (403, "TOPIC_AUTHORIZATION_FAILED", "goqueue acl create"),
        (403, "FORBIDDEN", "goqueue acl create"),
        (403, "TENANT_SUSPENDED", "goqueue tenant activate"),
        (403, "POLICY_VIOLATION", "goqueue tenant quotas"),
    ],
)
def test_who_lacks_a_right_is_not_told_to_show_a_key(
    status: int, code: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call: Any = None
    assert explain(HttpRefused(status, code, "no"), call) == EXIT_DENIED
    told = capsys.readouterr().err
    known = ("GOQUEUE_API_KEY", "goqueue acl create", "goqueue tenant activate", "goqueue tenant quotas")
    assert [each for each in known if each in told] == [advice]
