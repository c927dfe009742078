"""Which function is behind which job."""

from argparse import Namespace

from goqueue.spark.jobs.archive import archive
from goqueue.spark.jobs.backfill import backfill
from goqueue.spark.jobs.dlq import dlq
from goqueue.spark.jobs.reconcile import reconcile
from goqueue.spark.jobs.report import report
from goqueue.spark.jobs.restore import restore
from goqueue.spark.jobs.running import Work, carry_out, concluded
from goqueue.spark.jobs.serve import serve
from goqueue.spark.jobs.status import status
from goqueue.spark.jobs.words import Job

_WORK: dict[str, Work] = {
    "serve": serve,
    "archive": archive,
    "restore": restore,
    "backfill": backfill,
    "reconcile": reconcile,
    "report": report,
    "dlq": dlq,
}


def start(job: Job, given: Namespace) -> int:
    if not job.needs_spark:
        return concluded(given, lambda tell: status(given, tell))
    return carry_out(job, _WORK[job.name], given)
