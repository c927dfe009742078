"""`goqueue pipeline serve` that kills itself and all its processes in the middle of a commit: step, number, words."""

import os
import sys
from collections.abc import Callable
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog

from goqueue.spark.iceberg import table
from goqueue.spark.jobs import serve
from tests.integration.spark.killing import kill_all_of

STEPS = ("written", "manifest", "swapped", "settled")
"""Files are written; so are the manifests; the catalog has the new table; the dead letters are in their table too."""


def main(step: str, at: int, words: list[str]) -> int:
    left = [at]

    def die(*_: Any) -> None:
        left[0] -= 1
        if not left[0]:
            kill_all_of(os.getpid())

    commit, swap, write = table.commit, SqlCatalog.commit_table, table.TopicTable.write
    match step:
        case "written":
            table.commit = _before(commit, die)
        case "manifest":
            SqlCatalog.commit_table = _before(swap, die)  # type: ignore[method-assign]
        case "swapped":
            table.commit = _after(commit, die)
        case "settled":
            table.TopicTable.write = _after(write, die)  # type: ignore[method-assign]
    return serve.main(words)


def _before(what: Callable[..., Any], die: Callable[..., None]) -> Callable[..., Any]:
    def first(*given: Any) -> Any:
        die()
        return what(*given)

    return first


def _after(what: Callable[..., Any], die: Callable[..., None]) -> Callable[..., Any]:
    def then(*given: Any) -> Any:
        done = what(*given)
        die()
        return done

    return then


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
