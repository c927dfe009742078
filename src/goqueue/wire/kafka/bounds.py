"""How much one request may ask for. Its size says little: of eight megabytes of names each costs what a name costs to
answer, and thirty times its own bytes in memory.
"""

ENTRIES_MAX = 50_000
"""Elements of all arrays of a request together, and tagged fields: ten thousand partitions, each of a topic of its own,
are twenty thousand."""
NAMES_MAX = 10_000
"""The same, where each of them costs much to answer."""

FEWER = frozenset(
    (
        "AlterConfigs",
        "AlterShareGroupOffsets",
        "ConsumerGroupDescribe",
        "CreatePartitions",
        "CreateTopics",
        "DeleteGroups",
        "DeleteTopics",
        "DescribeConfigs",
        "DescribeGroups",
        "DescribeShareGroupOffsets",
        "DescribeTransactions",
        "IncrementalAlterConfigs",
        "ShareGroupDescribe",
        "WriteTxnMarkers",
    )
)
"""APIs with fewer."""


def entries_max(message_name: str) -> int | None:
    """Of a message by the name of its class; None: it is no request, and what a broker answers is as large as it is."""
    if not message_name.endswith("Request"):
        return None
    return NAMES_MAX if message_name.removesuffix("Request") in FEWER else ENTRIES_MAX
