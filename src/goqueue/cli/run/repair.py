"""`goqueue repair`: the metadata of a node that does not start any more, put together again from what is left."""

import time
from pathlib import Path
from typing import Any

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_FAILED, CommandFailed
from goqueue.node.offline import repair_directory
from goqueue.node.repair import Repair


def repair(call: Call) -> int:
    given = call.given
    directory = Path(given.data_dir)
    if not directory.is_dir():
        raise CommandFailed(f"{directory} is no directory: say which with --data-dir", EXIT_FAILED)
    try:
        done = repair_directory(directory, time.time_ns() // 1_000_000, is_dry_run=given.dry_run)
    except OSError as error:
        raise CommandFailed(f"{error.filename or directory}: {error.strerror}", EXIT_FAILED) from error
    if call.out.is_for_a_person:
        for line in _lines(done, is_dry_run=given.dry_run):
            call.out.line(line)
    else:
        call.out.data({**_facts(done), "dry_run": given.dry_run})
    return 0


def _facts(done: Repair) -> dict[str, Any]:
    return {
        "fault": done.fault,
        "knows_cluster": done.knows_cluster,
        "restored": done.restored,
        "guessed": done.guessed,
        "left_out": done.left_out,
        "kept_as": done.kept_as,
    }


def _lines(done: Repair, *, is_dry_run: bool) -> list[str]:
    if not done.fault:
        return ["nothing to repair: the metadata is whole"]
    verb = "would be" if is_dry_run else "were"
    lines = [done.fault, f"{len(done.restored)} topics {verb} restored: {_some(done.restored)}"]
    if done.guessed:
        lines.append(
            f"{len(done.guessed)} topics {verb} made from their logs, with default options and new ids, so that groups"
            f" begin anew in them: {_some(done.guessed)}"
        )
    if done.left_out:
        lines.append(f"{len(done.left_out)} topics have no logs and {verb} left out: {_some(done.left_out)}")
    if not done.knows_cluster:
        lines.append("the id of the cluster is lost: the node takes a new one, and receipts given out before are void")
    lines.append("nothing was changed" if is_dry_run else f"what was there is kept in {done.kept_as}; start the node")
    return lines


def _some(names: list[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "") if names else "none"
