"""What a data directory of several processes has where: the ledger of the supervisor at the top, and each member a
directory of its own below `members`.
"""

from goqueue.model.names import LEDGER_PREFIX
from goqueue.records.log_files import LOGS_NAME
from goqueue.storage.disk import Disk

KIND = "store"
STORE = f"{LEDGER_PREFIX}{KIND}"
STORE_PATH = f"{LOGS_NAME}/{STORE}/0"
MEMBERS = "members"


def members_of(disk: Disk) -> list[int]:
    """Whose directories are there; none: it is not one of several processes."""
    return sorted(int(name) for name in disk.list(MEMBERS) if name.isascii() and name.isdigit())


def member_directory(number: int) -> str:
    return f"{MEMBERS}/{number}"
