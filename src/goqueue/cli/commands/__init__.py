"""All commands, as one table. It is read at every start, so there is nothing heavy in it."""

from goqueue.cli.commands.accounts import ACCOUNTS
from goqueue.cli.commands.bench import BENCH
from goqueue.cli.commands.cluster import CLUSTER_STATE
from goqueue.cli.commands.cluster_dev import CLUSTER_DEV
from goqueue.cli.commands.groups import GROUP_COMMANDS
from goqueue.cli.commands.local import CONFIG, FIRST, LAST
from goqueue.cli.commands.messages import MESSAGES
from goqueue.cli.commands.pipeline import PIPELINE
from goqueue.cli.commands.queues import QUEUES
from goqueue.cli.commands.schemas import SCHEMAS
from goqueue.cli.commands.topics import TOPICS
from goqueue.cli.commands.traces import CLUSTER, TRACES
from goqueue.cli.table import Arg, Command, flag
from goqueue.cli.values import duration_ms

PURPOSE = "One durable log, read as a stream and as a queue."

COMMANDS: tuple[Command, ...] = (
    *FIRST,
    *TOPICS,
    *MESSAGES,
    *GROUP_COMMANDS,
    *QUEUES,
    *TRACES,
    *SCHEMAS,
    *CLUSTER,
    *CLUSTER_STATE,
    *CLUSTER_DEV,
    *ACCOUNTS,
    *PIPELINE,
    *CONFIG,
    *BENCH,
    *LAST,
)

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
    "pipeline": "jobs on Spark that move, keep and explain the data",
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
        is_absent_by_default=True,
        help="key that the server wants (GOQUEUE_API_KEY, which others on this machine cannot see)",
    ),
    flag(
        "--timeout",
        metavar="TIME",
        kind=duration_ms,
        is_absent_by_default=True,
        help="how long to wait for an answer (default 30s)",
    ),
)
