"""Operations that settle messages."""

from goqueue.wire.home import EVERYWHERE, IN_PARTS, PARTITION, at
from goqueue.wire.rest import acks, groups
from goqueue.wire.rest.operation import Resource

SETTLING = (404, 409, 410)

ACKNOWLEDGEMENTS = Resource("Acknowledgements")

ACK = ACKNOWLEDGEMENTS.add(
    "ack",
    "POST /messages/ack",
    acks.Acked,
    """The message is done: its group never gets it again.

    An acknowledgement that comes after the lease ended still counts if nobody else has got the message meanwhile.
    """,
    body=acks.Ack,
    errors=SETTLING,
    home=IN_PARTS,
)

NACK = ACKNOWLEDGEMENTS.add(
    "nack",
    "POST /messages/nack",
    acks.Nacked,
    """The message could not be handled: deliver it again later.

    After as many deliveries as its topic or group allows it becomes a dead letter.
    """,
    body=acks.Nack,
    errors=SETTLING,
    home=IN_PARTS,
)

REJECT = ACKNOWLEDGEMENTS.add(
    "reject",
    "POST /messages/reject",
    acks.Rejected,
    "The message can never be handled: to the dead letters with it, now.",
    body=acks.Reject,
    errors=SETTLING,
    home=IN_PARTS,
)

EXTEND_VISIBILITY = ACKNOWLEDGEMENTS.add(
    "extend_visibility",
    "POST /messages/visibility",
    acks.Extended,
    "Hold the message longer: its lease ends so long from now.",
    body=acks.Visibility,
    errors=SETTLING,
    home=IN_PARTS,
)

SETTLE_ALL = ACKNOWLEDGEMENTS.add(
    "settle_all",
    "POST /messages/ack/batch",
    acks.SettledAll,
    """Settle many messages, each on its own: the answer has one result for each, in their order.

    Every entry of `messages` has an action: ack, nack, reject or extend. `receipt_handles` are acknowledged.
    """,
    body=acks.SettleAll,
    home=IN_PARTS,
)

RELIABILITY_STATS = ACKNOWLEDGEMENTS.add(
    "reliability_stats",
    "GET /reliability/stats",
    acks.ReliabilityStats,
    "What became of messages since this node started: acknowledged, tried again, given up.",
    home=EVERYWHERE,
)

SETTLE_PLACE = ACKNOWLEDGEMENTS.add(
    "settle_place",
    "POST /groups/{group}/settle",
    acks.SettledPlace,
    """Settle a message by its place: for an operator, who has no receipt.

    Whoever holds it is not asked, and what they say of it later is refused, unless it is only held longer. 404: there
    is no such message yet, or the group has never read this topic. 409: it is settled already; or it shall be released
    or held longer, and nobody holds it.
    """,
    path=groups.GroupPath,
    body=acks.SettlePlace,
    errors=(404, 409),
    home=at(PARTITION, "body.topic", "body.partition"),
)
