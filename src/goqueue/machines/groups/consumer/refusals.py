"""Why a heartbeat is turned down, in Kafka's numbers: what a member does next hangs on which one it is told."""

from goqueue.machines.groups.assignors import ASSIGNORS
from goqueue.machines.groups.commands import MEMBER_BYTES_MAX
from goqueue.machines.groups.consumer.facts import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    RELEASE_EPOCH,
    UNCHANGED,
    ConsumerGroupOptions,
    ConsumerHeartbeat,
    ConsumerHeartbeatReply,
    ConsumerMember,
    refusal,
    unpacked,
)
from goqueue.machines.groups.consumer.state import ConsumerGroupState
from goqueue.machines.groups.consumer.subscriptions import parted
from goqueue.machines.patterns import regex_problem
from goqueue.model.codes import Code


def malformed(command: ConsumerHeartbeat, options: ConsumerGroupOptions) -> ConsumerHeartbeatReply | None:
    """What is wrong with the words themselves."""
    problem = _incomplete(command)
    if problem is not None:
        return refusal(Code.INVALID_REQUEST, problem)
    if command.server_assignor is not None and command.server_assignor not in ASSIGNORS:
        known = ", ".join(ASSIGNORS)
        return refusal(Code.UNSUPPORTED_ASSIGNOR, f"no assignor {command.server_assignor!r}; there are {known}")
    _, regex = parted(command.group_id, command.subscribed_topic_regex or "")
    if regex:
        problem = "too long" if len(regex) > options.regex_chars_max else regex_problem(regex)
        if problem is not None:
            return refusal(Code.INVALID_REGULAR_EXPRESSION, f"not a regular expression: {problem}")
    return None


def _incomplete(command: ConsumerHeartbeat) -> str | None:
    names = (command.member_id, command.instance_id, command.rack_id, command.server_assignor)
    subscribes = command.subscribed_topic_names is not None or command.subscribed_topic_regex is not None
    is_join = command.member_epoch == JOIN_EPOCH
    rules = {
        "an id, a rack or an assignor is empty": "" in names,
        "there is no such member epoch": command.member_epoch < RELEASE_EPOCH,
        "only a member with an instance id can leave to come back": (
            command.member_epoch == RELEASE_EPOCH and command.instance_id is None
        ),
        "who joins names a rebalance timeout": is_join and command.rebalance_timeout_ms < 0,
        "a rebalance timeout is not negative": command.rebalance_timeout_ms < UNCHANGED,
        "who joins names topics or an expression": is_join and not subscribes,
        f"the names of its topics have more than {MEMBER_BYTES_MAX} characters": (
            sum(map(len, command.subscribed_topic_names or ())) > MEMBER_BYTES_MAX
        ),
        "who joins owns nothing": is_join and (command.owned is None or len(command.owned) > 0),
    }
    return next((problem for problem, is_broken in rules.items() if is_broken), None)


def misplaced(
    command: ConsumerHeartbeat, state: ConsumerGroupState, options: ConsumerGroupOptions
) -> ConsumerHeartbeatReply | None:
    """What does not fit this group as it is."""
    if state.topics is None:
        return refusal(Code.COORDINATOR_LOAD_IN_PROGRESS, "the topics are not known yet")
    return _instance_taken(command, state) or _not_a_member(command, state, options)


def _instance_taken(command: ConsumerHeartbeat, state: ConsumerGroupState) -> ConsumerHeartbeatReply | None:
    if command.instance_id is None:
        return None
    holder = state.instances.get(command.instance_id)
    if holder == command.member_id:
        return None
    if command.member_epoch == JOIN_EPOCH:
        if holder is None or state.members[holder].epoch == RELEASE_EPOCH:
            return None
        return refusal(Code.UNRELEASED_INSTANCE_ID, f"instance {command.instance_id!r} is in use by member {holder!r}")
    if holder is None:
        return refusal(Code.UNKNOWN_MEMBER_ID, f"no member has instance id {command.instance_id!r}")
    return refusal(Code.FENCED_INSTANCE_ID, f"instance {command.instance_id!r} is now member {holder!r}")


def _not_a_member(
    command: ConsumerHeartbeat, state: ConsumerGroupState, options: ConsumerGroupOptions
) -> ConsumerHeartbeatReply | None:
    member = state.members.get(command.member_id)
    if member is not None:
        return _fenced(command, member)
    if command.member_epoch != JOIN_EPOCH:
        return refusal(Code.UNKNOWN_MEMBER_ID, f"{command.member_id!r} is not a member of group {state.group_id!r}")
    is_replacement = command.instance_id in state.instances
    size_max = options.size_of(state.group_id)
    if len(state.members) >= size_max and not is_replacement:
        return refusal(Code.GROUP_MAX_SIZE_REACHED, f"the group may have {size_max} members, and has as many")
    return None


def _fenced(command: ConsumerHeartbeat, member: ConsumerMember) -> ConsumerHeartbeatReply | None:
    """A member that is one epoch behind and owns nothing that it should not has lost our answer, and may go on."""
    said = command.member_epoch
    if said in (member.epoch, JOIN_EPOCH, LEAVE_EPOCH, RELEASE_EPOCH):
        return None
    if said == member.previous_epoch and said < member.epoch and command.owned is not None:
        may_own = unpacked(member.assigned) | unpacked(member.revoking)
        if unpacked(command.owned) <= may_own:
            return None
    return refusal(Code.FENCED_MEMBER_EPOCH, f"epoch {said} is not {member.epoch}: give up all partitions and rejoin")
