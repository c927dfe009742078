"""`goqueue pipeline`: a job on Spark, which is an extra."""

from importlib import import_module

from goqueue.cli.call import Call
from goqueue.cli.logins import security_of
from goqueue.spark.jobs.table import JOBS

NEEDED = ("pyspark", "pyarrow")
OF_TABLES = ("pyiceberg", "pyiceberg_core", "sqlalchemy")


def run(call: Call) -> int:
    name = call.command.words.split()[-1]
    given = call.given
    target = call.target
    given.kafka = target.kafka
    given.server = None if given.kafka and target.sources["server"] == "default" else target.server
    given.api_key, given.ca, given.security = None, None, security_of(target)
    given.output = call.form
    job = next(job for job in JOBS if job.name == name)
    for each in (*NEEDED, *OF_TABLES) if job.extra == "lake" else NEEDED:  # before a job is begun
        import_module(each)
    from goqueue.spark.jobs.start import start

    return start(job, given)
