"""Operations on many leases at once."""

from goqueue.wire.home import EVERYWHERE, IN_PARTS
from goqueue.wire.rest import groups, leases
from goqueue.wire.rest.operation import LARGE_BODY_BYTES_MAX, Resource

LEASES = Resource("Leases")

TAKE_LEASES = LEASES.add(
    "take_leases",
    "POST /groups/{group}/leases",
    leases.TakenLeases,
    """Lease many messages to a group at once, without their content: read that from the partitions.

    What cannot wait comes first. Settle single messages by the receipt of their lease with a dot and their offset
    behind it, in any way that other receipts can be used; then finish the leases.
    """,
    path=groups.GroupPath,
    body=leases.TakeLeases,
    errors=(404,),
    waits=True,
    home=IN_PARTS,
)

EXTEND_LEASES = LEASES.add(
    "extend_leases",
    "POST /leases/extend",
    leases.LeaseCounts,
    "Hold leases longer. What of them was settled, or has ended, is left as it is and not counted.",
    body=leases.ExtendLeases,
    body_bytes_max=LARGE_BODY_BYTES_MAX,
    home=IN_PARTS,
)

FINISH_LEASES = LEASES.add(
    "finish_leases",
    "POST /leases/finish",
    leases.LeaseCounts,
    """Acknowledge all that is left of leases.

    A message of them that was acknowledged, given back or rejected by itself stays so. One whose lease has ended is
    not acknowledged: it was or will be delivered again. The count is of what was acknowledged now.
    """,
    body=leases.FinishLeases,
    body_bytes_max=LARGE_BODY_BYTES_MAX,
    home=IN_PARTS,
)

LIST_LEASES = LEASES.add(
    "list_leases",
    "GET /leases",
    leases.HeldLeases,
    "All that consumers hold now, in runs of neighbours, by group, topic, partition and offset.",
    query=leases.LeasesQuery,
    home=EVERYWHERE,
)
