"""Ledgers that belong to no partition come in shards, so that one day each may have another leader. What belongs
together is in one shard: all that is known of a group, and all transactions of a writer, which may end together.
"""

from functools import lru_cache
from zlib import crc32

from goqueue.machines.groups.commands import key_parts
from goqueue.machines.machine import Fact
from goqueue.machines.transactions.facts import MarkSet, TransactionChanged
from goqueue.model.group_hash import group_hash

SHARDS = 16
"""Of groups, and of transactions. A data directory is written for so many."""
REPLY_MS_MAX = 5000
"""How long a client waits until enough copies have what its group or transaction asked for, as in Kafka for groups
(`offsets.commit.timeout.ms`): then it is told that nobody can answer, and asks again."""


@lru_cache(maxsize=1024)
def shard_of_group(group_id: str) -> int:
    return group_hash(group_id) % SHARDS


def shard_of_transaction(transactional_id: str) -> int:
    """Of a transactional id, or of a writer: those of one writer begin with it and a slash."""
    return crc32(transactional_id.partition("/")[0].encode()) % SHARDS


def shard_of_group_fact(fact: Fact) -> int:
    return shard_of_group(str(key_parts(fact.key())[1]))


def shard_of_transaction_fact(fact: Fact) -> int:
    assert isinstance(fact, TransactionChanged | MarkSet), fact
    return shard_of_transaction(fact.name if isinstance(fact, MarkSet) else fact.transactional_id)
