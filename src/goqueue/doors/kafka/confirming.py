"""Requests that are answered from a coordinator's state and not by it, and how they are refused if that state was never
stored. Those that a coordinator answers itself wait for its ledger already.
"""

from goqueue.model.codes import Code
from goqueue.model.ledgers import LedgerKind
from goqueue.wire.kafka.notation import Message

RESTS_ON: dict[int, tuple[LedgerKind, ...]] = {
    16: (LedgerKind.DELIVERIES,),  # ListGroups
    32: (LedgerKind.DELIVERIES,),  # DescribeConfigs, of groups
    65: (LedgerKind.TRANSACTIONS,),  # DescribeTransactions
    66: (LedgerKind.TRANSACTIONS,),  # ListTransactions
    69: (LedgerKind.DELIVERIES,),  # ConsumerGroupDescribe
    74: (LedgerKind.DELIVERIES,),  # ListConfigResources
    77: (LedgerKind.DELIVERIES,),  # ShareGroupDescribe
    90: (LedgerKind.DELIVERIES,),  # DescribeShareGroupOffsets
}


def refuse(response: Message) -> None:
    """Wherever the answer has room for an error it says that the coordinator cannot answer; a client asks again."""
    for name in response.__struct_fields__:
        value = getattr(response, name)
        if name == "error_code":
            response.error_code = Code.COORDINATOR_NOT_AVAILABLE  # type: ignore[attr-defined]
        elif isinstance(value, list):
            for part in value:
                if isinstance(part, Message):
                    refuse(part)
