"""Commands that run a job on Spark. Their flags are those of the jobs themselves."""

from goqueue.cli.table import Arg, Command
from goqueue.spark.jobs.table import JOBS
from goqueue.spark.jobs.words import OUTPUTS, WHERE_IT_RUNS, Flag


def _arg(given: Flag) -> Arg:
    return Arg(
        given.names,
        given.help,
        given.metavar,
        given.kind,
        given.default,
        given.choices,
        given.is_repeated,
        given.is_required,
        given.is_optional,
        dest=given.dest,
    )


PIPELINE = tuple(
    Command(
        f"pipeline {job.name}",
        job.summary,
        "pipeline.run",
        tuple(_arg(each) for each in (*job.flags, *WHERE_IT_RUNS)),
        about=job.about,
        examples=job.examples,
        outputs=OUTPUTS,
    )
    for job in JOBS
)
