"""Transactions of many producers that end together: each sends, flushes and goes; one that knows them all commits.

The producers are the tasks of one writer, `key`, and their transactional ids begin with `family(key)`. See ADR 0019.
"""

from collections.abc import Iterable
from typing import NamedTuple

from goqueue.client.cluster import TRANSACTION_KEY, Cluster
from goqueue.client.errors import refusal
from goqueue.model.codes import Code
from goqueue.wire.kafka.messages.transactions import EndTxnRequest, EndTxnResponse, OpenTransaction

NO_MARK = -1


class LeftOpen(NamedTuple):
    """A transaction whose producer is done with it: all that was sent is acknowledged."""

    transactional_id: str
    producer_id: int
    epoch: int


def family(key: str) -> str:
    return key + "/"


async def commit_together(
    cluster: Cluster, key: str, mark: int, transactions: Iterable[LeftOpen], *, is_last: bool = False
) -> bool:
    """Commit all of them, or none: then it raises what the broker says. What else the writer has open is aborted.

    `mark` counts the commits of the writer. False: this one, or one after it, was committed before; what has been sent
    for it again is aborted. `is_last`: nobody will use these transactional ids again.
    """
    answer = await _end(cluster, EndTxnRequest(key, -1, -1, True, _members(transactions), mark, is_last))
    return not answer.gq_is_repeated


async def abort_together(cluster: Cluster, key: str, *, is_last: bool = False) -> None:
    """All that the writer has open."""
    await _end(cluster, EndTxnRequest(key, -1, -1, False, [], NO_MARK, is_last))


def _members(transactions: Iterable[LeftOpen]) -> list[OpenTransaction]:
    return [OpenTransaction(*one) for one in transactions]


async def _end(cluster: Cluster, request: EndTxnRequest) -> EndTxnResponse:
    def check(answer: EndTxnResponse) -> None:
        if answer.error_code != Code.NONE:
            raise refusal(answer.error_code, answer.gq_message)

    return await cluster.ask_coordinator(
        TRANSACTION_KEY, request.transactional_id, lambda: request, EndTxnResponse, check
    )
