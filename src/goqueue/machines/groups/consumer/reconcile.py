"""One member's way from what it has to what it shall have: it gives up first and says so, then it gets what is free.

So a partition passes through a moment in which nobody has it, and never through one in which two do.
"""

from collections.abc import Callable

from goqueue.machines.groups.consumer.facts import (
    ConsumerMember,
    MemberState,
    changed,
    packed,
    unpacked,
)

Partition = tuple[bytes, int]


def reconciled(
    member: ConsumerMember,
    target_epoch: int,
    owned: set[Partition] | None,
    is_belated: bool,
    is_free: Callable[[Partition], bool],
) -> ConsumerMember:
    """The member after it said that it owns `owned` (None: it did not say), on its way to `member.target`.

    `is_belated`: it said so before it knew its epoch, so it may not have known of anything to give up.
    `is_free` tells whether no other member has a partition or is still giving it up.
    """
    if member.state is MemberState.UNREVOKED and (is_belated or _may_hold(owned, unpacked(member.revoking))):
        return member
    if member.state is MemberState.STABLE and member.epoch == target_epoch:
        return member
    assigned, target = unpacked(member.assigned), unpacked(member.target)
    kept = assigned & target
    surplus = assigned - target
    # A member that does not own them has never heard that it should: it would not tell us that it gave them up.
    if surplus and _may_hold(owned, surplus):
        return changed(member, state=MemberState.UNREVOKED, assigned=packed(kept), revoking=packed(surplus))
    arrived = kept | {partition for partition in target - kept if is_free(partition)}
    return changed(
        member,
        state=MemberState.STABLE if arrived == target else MemberState.UNRELEASED,
        epoch=target_epoch,
        previous_epoch=member.epoch if member.epoch != target_epoch else member.previous_epoch,
        assigned=packed(arrived),
        revoking=(),
    )


def _may_hold(owned: set[Partition] | None, partitions: set[Partition]) -> bool:
    return owned is None or not owned.isdisjoint(partitions)
