"""`goqueue pipeline`: a job on Spark, which is an extra."""

import sys
from importlib import import_module

from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_USAGE, complain
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
    needed = (*NEEDED, *OF_TABLES) if job.extra == "lake" else NEEDED
    try:
        for each in needed:
            import_module(each)
    except ModuleNotFoundError as error:
        if error.name not in needed:
            raise
        install = f"{sys.executable} -m pip install 'goqueue[{job.extra}]'"
        what = "Spark" if error.name in NEEDED else "PyIceberg"
        return complain(f"goqueue: pipeline needs {what}; install it with: {install}", EXIT_USAGE)
    from goqueue.spark.jobs.start import start

    return start(job, given)
