"""All commands as one table, in the order in which help and documents tell of them."""

from goqueue.cli.commands.accounts import ACCOUNTS
from goqueue.cli.commands.audit import AUDIT
from goqueue.cli.commands.bench import BENCH
from goqueue.cli.commands.cluster import CLUSTER_STATE
from goqueue.cli.commands.cluster_dev import CLUSTER_DEV
from goqueue.cli.commands.groups import GROUP_COMMANDS
from goqueue.cli.commands.local import CONFIG, FIRST, LAST
from goqueue.cli.commands.messages import MESSAGES
from goqueue.cli.commands.pipeline import PIPELINE
from goqueue.cli.commands.queues import QUEUES
from goqueue.cli.commands.quotas import QUOTAS
from goqueue.cli.commands.schemas import SCHEMAS
from goqueue.cli.commands.tenants import TENANTS
from goqueue.cli.commands.topics import TOPICS
from goqueue.cli.commands.traces import CLUSTER, TRACES
from goqueue.cli.table import Command

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
    *QUOTAS,
    *TENANTS,
    *AUDIT,
    *PIPELINE,
    *CONFIG,
    *BENCH,
    *LAST,
)
