"""Where partitions that other nodes lead begin and end: for those who compare it with what a group has committed."""

from collections.abc import Callable, Iterable, Mapping

from goqueue.broker.remote.asking import Asking
from goqueue.broker.remote.messages import Answered, EndOfLog, Ends, decode_ends, encode
from goqueue.broker.remote.serving import OnAnswer, Serving
from goqueue.broker.topics.topics import Topics
from goqueue.model.errors import GoQueueError

ENDS_MS = 2000

Place = tuple[str, int]
OnEnds = Callable[[Mapping[Place, tuple[int, int]]], None]
"""Start and high watermark; those whose leaders do not answer are left out."""


class RemoteEnds:
    def __init__(self, asking: Asking, serving: Serving, topics: Topics) -> None:
        self._asking = asking
        self._topics = topics
        serving.others[Ends] = self._answer

    def find(self, places: Iterable[Place], on_ends: OnEnds) -> None:
        """Of those among them that are led elsewhere; at once, if there are none."""
        image = self._topics.image
        by_node: dict[int, list[tuple[bytes, int]]] = {}
        names: dict[bytes, str] = {}
        for name, number in dict.fromkeys(places):
            topic, leader = image.topics.get(name), image.leader_of(name, number)
            if topic is not None and leader is not None and not self._topics.leads(name, number):
                names[topic.id] = name
                by_node.setdefault(leader.node_id, []).append((topic.id, number))
        found: dict[Place, tuple[int, int]] = {}
        waiting = len(by_node)
        if not waiting:
            on_ends(found)

        def answered(answer: Answered | GoQueueError) -> None:
            nonlocal waiting
            waiting -= 1
            if not isinstance(answer, GoQueueError):
                for one in decode_ends(answer.value):
                    found[names[one.topic_id], one.partition] = one.start, one.end
            if not waiting:
                on_ends(found)

        for node_id, wanted in by_node.items():
            self._asking.ask_node(node_id, Ends(tuple(wanted), ENDS_MS), answered, ENDS_MS)

    def _answer(self, request: Ends, on_answer: OnAnswer) -> None:
        found: list[EndOfLog] = []
        for topic_id, number in request.places:
            topic = self._topics.image.by_id(topic_id)
            replica = None if topic is None else self._topics.find_replica(topic.name, number)
            if replica is not None and replica.failure is None and replica.knows_end and replica.is_fresh:
                ends = replica.start_offset, replica.high_watermark, replica.last_stable_offset
                found.append(EndOfLog(topic_id, number, *ends))
        on_answer(Answered(0, encode(found)))
