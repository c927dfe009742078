"""Which commands there are. This is read at every start: it names the modules, and only those are imported that the
command line asks for. `every` has them all.
"""

from collections.abc import Sequence
from importlib import import_module

from goqueue.cli.table import Arg, Command, flag
from goqueue.cli.values import MECHANISMS, PASSWORD_REFUSED, REFUSED, duration_ms, refused_password, refused_secret

PURPOSE = "One durable log, read as a stream and as a queue."

HOMES: dict[str, tuple[str, ...]] = {
    "serve": ("local.FIRST",),
    "topic": ("topics.TOPICS",),
    "produce": ("messages.MESSAGES",),
    "consume": ("messages.MESSAGES",),
    "group": ("groups.GROUP_COMMANDS",),
    "dlq": ("queues.QUEUES",),
    "delay": ("queues.QUEUES",),
    "schedule": ("queues.QUEUES",),
    "replay": ("queues.QUEUES",),
    "trace": ("traces.TRACES",),
    "why": ("traces.TRACES",),
    "schema": ("schemas.SCHEMAS",),
    "top": ("traces.CLUSTER",),
    "cluster": ("traces.CLUSTER", "cluster.CLUSTER_STATE", "cluster_dev.CLUSTER_DEV"),
    "user": ("accounts.ACCOUNTS",),
    "key": ("accounts.ACCOUNTS",),
    "acl": ("accounts.ACCOUNTS",),
    "quota": ("quotas.QUOTAS",),
    "tenant": ("tenants.TENANTS",),
    "audit": ("audit.AUDIT",),
    "pipeline": ("pipeline.PIPELINE",),
    "config": ("local.CONFIG",),
    "bench": ("bench.BENCH",),
    "doctor": ("local.LAST",),
    "repair": ("local.LAST",),
    "admin": ("local.LAST",),
    "version": ("local.LAST",),
    "completion": ("local.LAST",),
    "reference": ("local.LAST",),
}
"""Where the commands are that begin with a word."""

GROUPS = {
    "topic": "make, look at, change and delete topics",
    "group": "look at consumer groups, and set them back",
    "dlq": "dead letters: look at them, send them back to work, throw them away",
    "delay": "messages that wait for their time",
    "schedule": "messages that come again and again",
    "trace": "what happened to messages",
    "schema": "the schema registry",
    "cluster": "the nodes, and how they are",
    "user": "who logs in with a password",
    "key": "API keys of programs",
    "acl": "rules about who may do what",
    "quota": "how much users and clients may send and read",
    "tenant": "clusters of their own on this one",
    "pipeline": "jobs on Spark that move, keep and explain the data",
    "admin": "what an operator does beside a stopped node",
    "config": "the servers that you work with, by name",
    "bench": "measure a broker under the load of a real client",
}

GLOBAL_ARGS: tuple[Arg, ...] = (
    flag(
        "-s",
        "--server",
        metavar="URL",
        is_absent_by_default=True,
        help="HTTP address of a node, or of several with commas (GOQUEUE_SERVER; default http://127.0.0.1:8080)",
    ),
    flag(
        "-c",
        "--context",
        metavar="NAME",
        names_of="contexts",
        is_absent_by_default=True,
        help="a server of the configuration file, by name (GOQUEUE_CONTEXT)",
    ),
    flag(
        "--api-key",
        metavar="KEY",
        kind=refused_secret,
        is_absent_by_default=True,
        help=REFUSED,
    ),
    flag(
        "--api-key-file",
        metavar="FILE",
        is_absent_by_default=True,
        help="file with that key in its first line (GOQUEUE_API_KEY_FILE)",
    ),
    flag(
        "--user",
        metavar="NAME",
        dest="login_user",
        is_absent_by_default=True,
        help="log in as this user, instead of with a key (GOQUEUE_USER); the password is asked for unless it is told",
    ),
    flag(
        "--password",
        metavar="PASSWORD",
        dest="login_password",
        kind=refused_password,
        is_absent_by_default=True,
        help=PASSWORD_REFUSED,
    ),
    flag(
        "--password-file",
        metavar="FILE",
        dest="login_password_file",
        is_absent_by_default=True,
        help="file with the password of --user in its first line (GOQUEUE_PASSWORD_FILE)",
    ),
    flag(
        "--sasl",
        metavar="MECHANISM",
        dest="login_sasl",
        choices=MECHANISMS,
        is_absent_by_default=True,
        help="how --user logs in over Kafka: PLAIN, SCRAM-SHA-256 (default) or SCRAM-SHA-512 (GOQUEUE_SASL)",
    ),
    flag(
        "--token-file",
        metavar="FILE",
        is_absent_by_default=True,
        help="file with a token (JWT) of an identity provider, read for each request (GOQUEUE_TOKEN_FILE)",
    ),
    flag(
        "--ca",
        metavar="FILE",
        is_absent_by_default=True,
        help="authority of the server's certificate, for https (PEM; GOQUEUE_CA)",
    ),
    flag(
        "--cert",
        metavar="FILE",
        is_absent_by_default=True,
        help="certificate to show to the server (PEM; GOQUEUE_CERT)",
    ),
    flag(
        "--cert-key",
        metavar="FILE",
        is_absent_by_default=True,
        help="key of that certificate (PEM; GOQUEUE_CERT_KEY)",
    ),
    flag(
        "--cert-key-password-file",
        metavar="FILE",
        is_absent_by_default=True,
        help="file with the password of that key, if it has one (GOQUEUE_CERT_KEY_PASSWORD_FILE)",
    ),
    flag(
        "--tenant",
        metavar="ID",
        dest="acts_for",
        is_absent_by_default=True,
        help="act for this tenant, as an admin of the cluster (GOQUEUE_TENANT)",
    ),
    flag(
        "--timeout",
        metavar="TIME",
        kind=duration_ms,
        is_absent_by_default=True,
        help="how long to wait for an answer (default 30s)",
    ),
)


def commands_beginning(word: str) -> tuple[Command, ...]:
    found: list[Command] = []
    for home in HOMES[word]:
        module, _, name = home.partition(".")
        found += getattr(import_module(f"{__name__}.{module}"), name)
    return tuple(each for each in found if each.words.split()[0] == word)


def commands_meant(arguments: Sequence[str]) -> tuple[Command, ...]:
    """Those that begin with the first word that is no flag; all, where it is no such word or there is none."""
    rest = iter(arguments)
    takes_value = {name for arg in GLOBAL_ARGS for name in arg.names} | {"-o", "--output"}
    for each in rest:
        if each in HOMES:
            return commands_beginning(each)
        if each in takes_value:
            next(rest, None)
        elif each.partition("=")[0] not in takes_value:
            break
    from goqueue.cli.commands.every import COMMANDS

    return COMMANDS
