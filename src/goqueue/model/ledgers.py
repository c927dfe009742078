"""Which ledgers there are, for those who say what an answer rests on."""

from enum import StrEnum


class LedgerKind(StrEnum):
    """Whose state an answer is read from. Topics are not among them: nobody sees a topic before it is durable."""

    DELAYS = "delays"
    DELIVERIES = "deliveries"
    GROUPS = "groups"
    SCHEMAS = "schemas"
    TRANSACTIONS = "transactions"
