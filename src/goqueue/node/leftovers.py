"""Logs that a node of a cluster finds on its disk and is not to have: those of a topic that was deleted while it was
away go. Others are put aside and told of: that nobody names them deletes nothing.
"""

from collections.abc import Callable, Iterator

from goqueue.cluster.controller import ClusterController
from goqueue.model.errors import DamagedFile, GoQueueError
from goqueue.model.metadata import GoneKey
from goqueue.model.topics import Image
from goqueue.replica.companion_names import CompanionName
from goqueue.replica.replicas import Replicas
from goqueue.storage.data_directory import DataDirectory, LogName
from goqueue.storage.state import LogState
from goqueue.telemetry.logs import get_logger

events = get_logger("cluster")


def clear_leftovers(directory: DataDirectory, replicas: Replicas, controller: ClusterController) -> None:
    """When all that this node is to have was opened. While all is halted the metadata is old: it may not know of topics
    that were made since."""
    if controller.mirror.cluster.halted:
        return
    for name, number in list(_leftovers(directory, replicas, controller.metadata.image)):
        topic_id = _topic_id(directory, name, number)
        if topic_id is not None and topic_id in _deleting(controller):
            continue  # removed with its topic
        is_gone = topic_id is not None and controller.mirror.find(GoneKey(topic_id)) is not None
        clear: Callable[[], None] = (directory.retire if is_gone else directory.put_aside_later)(name, [number])
        try:
            clear()
        except GoQueueError as error:
            events.error("leftover not cleared", log=f"{name}/{number}", reason=str(error))
        else:
            events.info("leftover cleared", log=f"{name}/{number}", is_deleted=is_gone)


def _leftovers(directory: DataDirectory, replicas: Replicas, image: Image) -> Iterator[LogName]:
    """What is not in service, did not fail to be, and is not being made: a topic may have come while this node was
    starting."""
    topics = [topic for topics in (image.topics, image.ledgers) for topic in topics.values()]
    known = {topic.id for topic in topics}
    placed = {(topic.name, number) for topic in topics for number in replicas.placed(topic)}
    for name in directory.names():
        companion = CompanionName.parse(*name)
        is_wanted = name in directory.logs or name in replicas.failed or name in placed
        if not is_wanted and (companion is None or companion.topic_id not in known):
            yield name


def _topic_id(directory: DataDirectory, name: str, number: int) -> bytes | None:
    companion = CompanionName.parse(name, number)
    if companion is not None:
        return companion.topic_id
    try:
        return LogState.load(directory.disk, f"logs/{name}/{number}").topic_id or None
    except (OSError, DamagedFile):
        return None


def _deleting(controller: ClusterController) -> set[bytes]:
    return {value.topic_id for value in controller.metadata.deleting.values()}
