"""A member of a group that speaks HTTP, as the tests of Kafka's clients want to see one."""

from collections.abc import Iterable, Mapping

import httpx

from tests.integration.clients import Record
from tests.integration.process import DEADLINE_S, Node

BATCH_MAX = 500


class HttpConsumer:
    """`by_receipt`: settles each message by its receipt, and no offset ever; else it commits offsets."""

    def __init__(self, node: Node, group: str, topics: Iterable[str], *, by_receipt: bool) -> None:
        self._http = httpx.Client(base_url=node.url, timeout=DEADLINE_S)
        self._group = f"/groups/{group}"
        self._by_receipt = by_receipt
        self._held: list[str] = []
        joined = self._post(f"{self._group}/join", client_id="http", topics=list(topics))
        self._member_id = str(joined["member_id"])

    def _post(self, path: str, **body: object) -> dict[str, object]:
        return self._read(self._http.post(path, json=body))

    @staticmethod
    def _read(reply: httpx.Response) -> dict[str, object]:
        assert reply.status_code == 200, reply.text
        body: dict[str, object] = reply.json()
        return body

    def poll(self, timeout_s: float = 0.1) -> list[Record]:
        query: dict[str, str | int] = {
            "member_id": self._member_id,
            "timeout": f"{int(timeout_s * 1000)}ms",
            "limit": BATCH_MAX,
        }
        messages = self._read(self._http.get(f"{self._group}/poll", params=query))["messages"]
        assert isinstance(messages, list)
        self._held = [each["receipt_handle"] for each in messages]
        return [
            Record(each["topic"], each["partition"], each["offset"], each["value"].encode(), None, (), 0)
            for each in messages
        ]

    def assignment(self) -> set[tuple[str, int]]:
        reply = self._http.get(f"{self._group}/assignment", params={"member_id": self._member_id})
        partitions = self._read(reply)["partitions"]
        assert isinstance(partitions, list)
        return {(each["topic"], each["partition"]) for each in partitions}

    def commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        if self._by_receipt:
            done = self._post("/messages/ack/batch", receipt_handles=self._held)
            assert done["failed"] == 0, done
        else:
            listed = [{"topic": each[0], "partition": each[1], "offset": offset} for each, offset in offsets.items()]
            self._post(f"{self._group}/offsets", member_id=self._member_id, offsets=listed)

    def commit_soon(self, offsets: Mapping[tuple[str, int], int]) -> None:
        self.commit(offsets)

    def committed(self, topic: str, partition: int) -> int | None:
        topics = self._read(self._http.get(f"{self._group}/offsets", params={"topic": topic}))["offsets"]
        assert isinstance(topics, dict)
        found: int | None = topics.get(topic, {}).get(str(partition))
        return found

    def close(self) -> None:
        self._post(f"{self._group}/leave", member_id=self._member_id)
        self._http.close()
