"""Status: how the tables of a running service do. It asks the service, and needs no Spark."""

import http.client
import json
from argparse import Namespace

from goqueue.spark.jobs.running import EXIT_UNREACHABLE, JobFailed
from goqueue.spark.jobs.telling import Teller

PATIENCE_S = 10
SHOWN = ("topic", "table", "state", "lag", "lag_seconds", "rows", "bad_rows", "files", "commits")


def status(given: Namespace, tell: Teller) -> int:
    """1: a table is failing."""
    host, port = given.at
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/status")
        said = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise JobFailed(f"no goqueue pipeline serve answers at {host}:{port}: {error}", EXIT_UNREACHABLE) from None
    finally:
        connection.close()
    tables = said["tables"]
    rows = tables if given.output == "json" else [{name: table[name] for name in SHOWN} for table in tables]
    tell.rows("tables", rows, nothing="no topic has table=iceberg")
    for table in tables:
        if table["error"]:
            tell.note(f"{table['topic']}: {table['error']}")
    if said["error"]:
        tell.note(f"topics cannot be looked for: {said['error']}")
    tell.end()
    return int(any(table["state"] == "failing" for table in tables))
