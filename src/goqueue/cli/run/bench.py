"""`goqueue bench`: what it refuses before it measures anything."""

from argparse import Namespace

from goqueue.cli.bench.arguments import BATCH_BYTES_MAX, RECORD_BYTES_EXTRA
from goqueue.cli.call import Call
from goqueue.cli.contexts import Target, resolve
from goqueue.cli.exits import EXIT_USAGE, CommandFailed
from goqueue.cli.logins import NOBODY, by_flags, login_of


def run(call: Call) -> int:
    given = call.given
    given.kind = call.command.words.split()[-1]
    given.output = call.form
    given.batch = getattr(given, "batch", None)
    if given.batch is not None and given.batch * (given.bytes + RECORD_BYTES_EXTRA) > BATCH_BYTES_MAX:
        given.refuse(f"--batch {given.batch} with --bytes {given.bytes}: a batch has at most {BATCH_BYTES_MAX} bytes")
    target = _target(given)
    given.kafka = target.kafka
    if given.kafka is not None and given.directory is not None:
        given.refuse("--directory is for a broker of its own, not for one that --kafka or --context names")
    shown = ("tls", "ca", "cert", "cert_key", "api_key_file", "login_user", "login_password_file")
    if given.kafka is None and any(getattr(given, each) for each in shown):
        given.refuse("a broker of its own wants no credentials; name another with --kafka")
    from goqueue.cli.bench.command import run_bench

    return run_bench(given, target)


def _target(given: Namespace) -> Target:
    """A context has to be named: nobody wants to load the broker of the current one by accident."""
    if given.context is None:
        files = {"ca": given.ca, "cert": given.cert, "key": given.cert_key}
        login = login_of([by_flags(given)]) or NOBODY
        key_password = given.cert_key_password_file
        return Target("", login, 0, None, {}, **files, key_password_file=key_password, kafka=given.kafka, tls=given.tls)
    target = resolve(given)
    if target.kafka is None:
        advice = f"goqueue config set-context {given.context} --kafka HOST:PORT"
        raise CommandFailed(f"the context {given.context} does not say where its broker is: {advice}", EXIT_USAGE)
    return target
