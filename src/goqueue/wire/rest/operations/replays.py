"""Operations that let groups read again."""

from goqueue.wire.home import EVERYWHERE, GROUP, IN_PARTS, at
from goqueue.wire.rest import replays
from goqueue.wire.rest.operation import Resource

REPLAYS = Resource("Replay")

REPLAY = REPLAYS.add(
    "replay",
    "POST /groups/{group}/replay",
    replays.ReplayReply,
    """Deliver part of a topic to a queue group once more: all of `[from, to)`, or what a filter takes.

    Beside its ordinary work, at a `rate` if you like; what the group has not settled yet is left as it is. Durable
    when it is answered. With `fork_as` a copy of the group gets it, and the group does not notice.
    """,
    path=replays.ReplayGroupPath,
    body=replays.Replay,
    errors=(404, 409),
    waits=True,
    home=EVERYWHERE,
)

SEEK = REPLAYS.add(
    "seek",
    "POST /groups/{group}/seek",
    replays.SeekReply,
    """Let a group go on from elsewhere: an offset, a time, the beginning or the end.

    A queue group is moved at once, whoever is receiving; its leases end. A stream group is moved while it has no
    members (409 otherwise), or with `live`.
    """,
    path=replays.ReplayGroupPath,
    body=replays.SeekGroup,
    errors=(404, 409),
    waits=True,
    home=at(GROUP, "path.group"),
)

FORK = REPLAYS.add(
    "fork",
    "POST /groups/{group}/fork",
    replays.ForkReply,
    "Copy what a queue group has settled to a new group that goes its own way.",
    path=replays.ReplayGroupPath,
    body=replays.Fork,
    status=201,
    errors=(404, 409),
    home=EVERYWHERE,
)

LIST_FORKS = REPLAYS.add(
    "list_forks",
    "GET /groups/{group}/forks",
    replays.Forks,
    """The forks of a group, a page at a time, and by how much each differs from it.

    A fork is one of them until it is promoted or deleted. What an earlier version forked is not listed.
    """,
    path=replays.ReplayGroupPath,
    query=replays.ForksQuery,
    errors=(404,),
    home=EVERYWHERE,
)

COMPARE = REPLAYS.add(
    "compare",
    "GET /groups/{group}/compare",
    replays.Comparison,
    "What only one of two queue groups has settled, partition by partition.",
    path=replays.ReplayGroupPath,
    query=replays.CompareQuery,
    errors=(404,),
    home=EVERYWHERE,
)

PROMOTE = REPLAYS.add(
    "promote",
    "POST /groups/{group}/promote",
    replays.PromoteReply,
    """Let a group take over from its fork: what the fork has settled is settled, what it has not is delivered.

    The fork is gone afterwards.
    """,
    path=replays.ReplayGroupPath,
    body=replays.Promote,
    errors=(404,),
    home=IN_PARTS,
)

DROP_FORK = REPLAYS.add(
    "drop_fork",
    "DELETE /groups/{group}/fork/{fork}",
    replays.ForkDropped,
    "Forget a fork. A fork is a queue group like any other, and what it has settled is settled for it alone.",
    path=replays.ForkPath,
    errors=(404,),
    home=EVERYWHERE,
)
