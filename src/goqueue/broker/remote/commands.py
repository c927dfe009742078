"""Commands that travel to the coordinator of another node, each under a tag that stays when its class is renamed.

Fields of a command are only ever added, with a default that means what was meant before: nodes of two versions talk to
each other while a cluster is upgraded.
"""

from typing import Any, Final, NamedTuple

import msgspec

from goqueue.machines.delays import commands as delays
from goqueue.machines.deliveries import commands as deliveries
from goqueue.machines.find_names import FindNames, FoundNames
from goqueue.machines.groups import commands as groups
from goqueue.machines.groups.consumer import facts as consumer
from goqueue.machines.groups.share import facts as share
from goqueue.machines.machine import Command
from goqueue.machines.schemas import facts as schemas
from goqueue.machines.transactions import commands as transactions
from goqueue.model.codes import Code


class Travels(NamedTuple):
    """One kind of command."""

    tag: str
    command: type[Command[Any]]
    replies: tuple[type, ...]
    """What the reply may be; its place here goes with it."""
    is_repeatable: bool = False
    """To do it twice does no harm, so it is repeated when nobody knows whether it was done."""


TRAVELLING: Final[tuple[Travels, ...]] = (
    Travels("groups.join", groups.JoinGroup, (groups.JoinReply,)),
    Travels("groups.sync", groups.SyncGroup, (groups.SyncReply,)),
    Travels("groups.heartbeat", groups.Heartbeat, (groups.CodeReply,), is_repeatable=True),
    Travels("groups.leave", groups.LeaveGroup, (groups.LeaveReply,), is_repeatable=True),
    Travels("groups.commit", groups.CommitOffsets, (groups.CommitReply,), is_repeatable=True),
    Travels("groups.commit_transaction", groups.CommitTransactionOffsets, (groups.CommitReply,)),
    Travels("groups.reset", groups.ResetOffsets, (groups.CommitReply,), is_repeatable=True),
    Travels("groups.end_transaction", groups.EndTransactionOffsets, (groups.CodeReply,), is_repeatable=True),
    Travels("groups.offsets", groups.FetchOffsets, (groups.FetchOffsetsReply,), is_repeatable=True),
    Travels("groups.delete_offsets", groups.DeleteOffsets, (groups.DeleteOffsetsReply,), is_repeatable=True),
    Travels("groups.delete", groups.DeleteGroup, (groups.CodeReply,)),
    Travels("groups.describe", groups.DescribeGroup, (groups.DescribedGroup,), is_repeatable=True),
    Travels("groups.list", groups.ListGroups, (groups.ListReply,), is_repeatable=True),
    Travels("consumer.heartbeat", consumer.ConsumerHeartbeat, (consumer.ConsumerHeartbeatReply,), is_repeatable=True),
    Travels(
        "consumer.describe", consumer.DescribeConsumerGroup, (consumer.ConsumerGroupDescription,), is_repeatable=True
    ),
    Travels("consumer.find", consumer.FindConsumerMember, (consumer.FoundConsumerMember,), is_repeatable=True),
    Travels("share.heartbeat", share.ShareHeartbeat, (share.ShareHeartbeatReply,), is_repeatable=True),
    Travels("share.describe", share.DescribeShareGroup, (share.ShareGroupDescription,), is_repeatable=True),
    Travels(
        "transactions.init", transactions.InitProducer, (transactions.ProducerReply, transactions.ProducerIdWanted)
    ),
    Travels("transactions.add", transactions.AddPartitions, (transactions.CodeReply,), is_repeatable=True),
    Travels("transactions.add_group", transactions.AddGroup, (transactions.CodeReply,), is_repeatable=True),
    Travels(
        "transactions.end", transactions.EndTransaction, (transactions.ProducerReply, transactions.ProducerIdWanted)
    ),
    Travels("transactions.end_together", transactions.EndTogether, (transactions.TogetherReply,), is_repeatable=True),
    Travels("deliveries.open", deliveries.OpenDelivery, (Code,), is_repeatable=True),
    Travels("deliveries.lease", deliveries.Lease, (deliveries.LeaseReply,)),
    Travels("deliveries.settle", deliveries.Settle, (deliveries.SettleReply,), is_repeatable=True),
    Travels("deliveries.seek", deliveries.Seek, (Code,), is_repeatable=True),
    Travels("deliveries.replay", deliveries.Replay, (deliveries.ReplayReply,)),
    Travels("deliveries.settle_below", deliveries.SettleBelow, (Code,), is_repeatable=True),
    Travels("deliveries.give_back", deliveries.GiveBack, (Code,), is_repeatable=True),
    Travels("deliveries.drop", deliveries.DropGroup, (Code,), is_repeatable=True),
    Travels("deliveries.restore", deliveries.RestoreGroup, (Code,), is_repeatable=True),
    Travels("delays.cancel", delays.CancelSchedule, (delays.ScheduleReply,)),
    Travels("delays.reschedule", delays.Reschedule, (delays.ScheduleReply,)),
    Travels("delays.store_recurring", delays.StoreRecurring, (delays.RecurringReply,), is_repeatable=True),
    Travels("delays.release_recurring", delays.ReleaseRecurring, (delays.RecurringReply,), is_repeatable=True),
    Travels("delays.drop_recurring", delays.DropRecurring, (delays.RecurringReply,), is_repeatable=True),
    Travels("schemas.register", schemas.Register, (schemas.Result,), is_repeatable=True),
    Travels("schemas.delete_version", schemas.DeleteVersion, (schemas.Result,)),
    Travels("schemas.delete_subject", schemas.DeleteSubject, (schemas.Result,)),
    Travels("schemas.set_level", schemas.SetLevel, (schemas.Result,), is_repeatable=True),
    Travels("schemas.set_mode", schemas.SetMode, (schemas.Result,), is_repeatable=True),
    Travels("names.find", FindNames, (FoundNames,), is_repeatable=True),
)

_BY_COMMAND: Final = {each.command: each for each in TRAVELLING}
_BY_TAG: Final = {each.tag: each for each in TRAVELLING}
_COMMANDS: Final = {each.tag: msgspec.msgpack.Decoder(each.command) for each in TRAVELLING}
_REPLIES: Final[dict[str, tuple[msgspec.msgpack.Decoder[Any], ...]]] = {
    each.tag: tuple(msgspec.msgpack.Decoder(reply) for reply in each.replies) for each in TRAVELLING
}
_encode: Final = msgspec.msgpack.Encoder().encode


def travels(command: Command[Any]) -> Travels:
    """How a command travels. KeyError: it never does."""
    return _BY_COMMAND[type(command)]


def encode_command(command: Command[Any]) -> bytes:
    return _encode(command)


def decode_command(tag: str, data: bytes) -> Command[Any] | None:
    """None: a newer node knows it, and this one does not. msgspec.MsgspecError: it is damaged."""
    found = _COMMANDS.get(tag)
    return None if found is None else found.decode(data)


def encode_reply(tag: str, reply: Any) -> tuple[int, bytes]:
    kinds = _BY_TAG[tag].replies
    place = next((number for number, kind in enumerate(kinds) if isinstance(reply, kind)), None)
    assert place is not None, f"{reply!r} is no reply to {tag}"
    return place, _encode(reply)


def decode_reply(tag: str, place: int, data: bytes) -> Any:
    return _REPLIES[tag][place].decode(data)
