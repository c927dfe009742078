"""What a start had to put right in logs, in the words of the node's log."""

from goqueue.storage.recovery import RecoveryReport
from goqueue.telemetry.logs import get_logger

events = get_logger("node")


def tell_recovered(report: RecoveryReport) -> None:
    say = events.warning if report.damage or report.missing else events.info
    say(
        "recovered log",
        log=report.log,
        scanned_bytes=report.scanned_bytes,
        truncated_bytes=report.truncated_bytes,
        damaged_batches=len(report.damage),
        missing=[f"{first} to {last}" for first, last in report.missing],
        notes=report.notes,
    )
