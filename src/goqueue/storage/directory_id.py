"""Which data directory this is, and of which cluster: a file that a person can read. A node of a cluster whose disk was
replaced must not be taken for the one that it was.
"""

import json
from typing import NamedTuple

from goqueue.model.errors import DamagedFile
from goqueue.storage import side_file
from goqueue.storage.disk import Disk

DIRECTORY_NAME = "directory"
BYTES_MAX = 4096


class DirectoryId(NamedTuple):
    directory: str
    """Random, made when the directory was first used by a node of a cluster."""
    cluster_id: str
    revision: int = 0
    """The highest of the cluster's metadata that this node has noted: an etcd that knows less was restored."""
    recoveries: int = 0
    """How often the cluster had gone on after such a backup, then: what was noted before counts no more."""


def load_directory_id(disk: Disk) -> DirectoryId | None:
    """None: no node of a cluster has ever run here. DamagedFile: it cannot be read."""
    if not disk.exists(DIRECTORY_NAME):
        return None
    file = disk.open(DIRECTORY_NAME)
    try:
        value = json.loads(file.read(0, BYTES_MAX))
        noted = int(value.get("revision", 0)), int(value.get("recoveries", 0))
        return DirectoryId(str(value["directory"]), str(value["cluster"]), *noted)
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedFile(
            f"the file {DIRECTORY_NAME}, which says whose data this is, is damaged ({error}). Restore it from a backup,"
            " or start this node with an empty data directory and another node_id"
        ) from error
    finally:
        file.close()


def save_directory_id(disk: Disk, found: DirectoryId) -> None:
    value = {
        "v": 1,
        "directory": found.directory,
        "cluster": found.cluster_id,
        "revision": found.revision,
        "recoveries": found.recoveries,
    }
    text = json.dumps(value)
    side_file.replace_durably(disk, DIRECTORY_NAME, text.encode() + b"\n")
