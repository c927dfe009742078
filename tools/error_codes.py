"""The table of error codes in docs/limits.md, from the code that answers with them."""

import re
from pathlib import Path

from goqueue.doors.http import errors
from goqueue.doors.http.errors import OWN_CODES, STATUS
from goqueue.model.codes import Code

DOOR = Path(errors.__file__).parent
RAISED = re.compile(r'HttpError\(\s*(\w+),\s*"([A-Z_]+)"')
OF_CREDENTIALS = {"NOT_AUTHENTICATED": 401, "TENANT_SUSPENDED": 403}
AGAIN = frozenset({408, 429, 503})
"""Not now, but perhaps in a moment."""


def statuses() -> dict[str, int]:
    """Of every code that the HTTP API answers with."""
    found = {code.name: status for code, status in STATUS.items()} | OF_CREDENTIALS
    found |= {name: status for _, name, status in OWN_CODES}
    for file in sorted(DOOR.rglob("*.py")):
        for constant, name in RAISED.findall(file.read_text("utf-8")):
            status = getattr(errors, constant, None)
            if isinstance(status, int):
                found.setdefault(name, status)
    return found


def listed_codes() -> str:
    numbers = {code.name: int(code) for code in Code}
    rows = []
    for name, status in sorted(statuses().items(), key=lambda item: (item[1], item[0])):
        again = "yes" if status in AGAIN else "look first" if status == errors.TIMED_OUT else ""
        rows.append(f"| `{name}` | {status} | {numbers.get(name, '')} | {again} |")
    head = "\nMade by `make api` from the code; a test compares. *Kafka* is the number in Kafka's protocol.\n\n"
    return head + "| code | HTTP | Kafka | send it again |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"
