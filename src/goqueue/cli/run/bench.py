"""`goqueue bench`: what it refuses before it measures anything."""

import sys

from goqueue.cli.bench.arguments import BATCH_BYTES_MAX, RECORD_BYTES_EXTRA
from goqueue.cli.call import Call
from goqueue.cli.exits import EXIT_USAGE, complain


def run(call: Call) -> int:
    given = call.given
    given.kind = call.command.words.split()[-1]
    given.output = call.form
    given.batch = getattr(given, "batch", None)
    if given.batch is not None and given.batch * (given.bytes + RECORD_BYTES_EXTRA) > BATCH_BYTES_MAX:
        given.refuse(f"--batch {given.batch} with --bytes {given.bytes}: a batch has at most {BATCH_BYTES_MAX} bytes")
    if given.kafka is not None and given.directory is not None:
        given.refuse("--directory is for a broker of its own, not for one that --kafka names")
    shown = ("tls", "ca", "cert", "cert_key", "api_key_file", "user", "password_file")
    if given.kafka is None and any(getattr(given, each) for each in shown):
        given.refuse("a broker of its own wants no credentials; name another with --kafka")
    try:
        from goqueue.cli.bench.command import run_bench
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        install = f"{sys.executable} -m pip install 'goqueue[bench]'"
        return complain(f"goqueue: bench needs confluent-kafka as the load; install it with: {install}", EXIT_USAGE)
    return run_bench(given)
