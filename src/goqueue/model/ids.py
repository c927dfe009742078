"""How long ids may be that clients choose: they are kept, listed and sent back, and Kafka's protocol alone would allow
32,767 bytes of each.
"""

from goqueue.model.codes import Code
from goqueue.model.refusal import Refused

GROUP_ID_CHARS_MAX = 255
MEMBER_ID_CHARS_MAX = 512
"""Of members, instances and clients: clients make the names of these from that of their group."""
TRANSACTIONAL_ID_CHARS_MAX = 1024


def check_group_id(group_id: str) -> None:
    if not 0 < len(group_id) <= GROUP_ID_CHARS_MAX:
        raise Refused(Code.INVALID_GROUP_ID, f"the id of a group has 1 to {GROUP_ID_CHARS_MAX} characters")


def check_member_id(member_id: str) -> None:
    if not 0 < len(member_id) <= MEMBER_ID_CHARS_MAX:
        raise Refused(Code.INVALID_REQUEST, f"the id of a member has 1 to {MEMBER_ID_CHARS_MAX} characters")
