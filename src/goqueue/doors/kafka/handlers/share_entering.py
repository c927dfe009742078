"""Which session a ShareFetch or a ShareAcknowledge belongs to, and what opens and closes one."""

from goqueue.doors.kafka.request import Request
from goqueue.doors.kafka.share_sessions import CLOSE_EPOCH, OPEN_EPOCH, ShareSession
from goqueue.model.codes import Code
from goqueue.model.ids import check_group_id, check_member_id
from goqueue.model.refusal import Refused
from goqueue.wire.kafka.messages import share_groups as wire


def enter(request: Request) -> ShareSession:
    message: wire.ShareFetchRequest | wire.ShareAcknowledgeRequest = request.message
    if not message.group_id or not message.member_id:
        raise Refused(Code.INVALID_REQUEST, "a session belongs to a member of a group")
    epoch = message.share_session_epoch
    if epoch <= OPEN_EPOCH:
        _check_ends(request, epoch)
    return request.sessions.share.enter(request.broker, request.connection, message.group_id, message.member_id, epoch)


def _check_ends(request: Request, epoch: int) -> None:
    """What opens a session, or closes it. What comes between names one that is known."""
    message: wire.ShareFetchRequest | wire.ShareAcknowledgeRequest = request.message
    group_id = message.group_id or ""
    check_group_id(group_id)
    check_member_id(message.member_id or "")
    if epoch == OPEN_EPOCH and request.broker.groups.is_stream(group_id):
        raise Refused(Code.GROUP_ID_NOT_FOUND, f"group {group_id!r} is not a share group")
    if isinstance(message, wire.ShareFetchRequest):
        if epoch == OPEN_EPOCH and any(
            one.acknowledgement_batches for topic in message.topics for one in topic.partitions
        ):
            raise Refused(Code.INVALID_REQUEST, "a new session has nothing to acknowledge")
        if epoch == CLOSE_EPOCH and message.forgotten_topics_data:
            raise Refused(Code.INVALID_REQUEST, "a session that is closed forgets everything")
