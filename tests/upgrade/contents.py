"""A node filled with one of everything that is stored, and all of it read back over HTTP: the same words whichever
version answers.
"""

from typing import Any

import httpx
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.integration.process import Node

AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
AVRO_NEXT = (
    '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"},'
    ' {"name": "note", "type": "string", "default": ""}]}'
)
PASSING = ("oldest_age_ms", "time_remaining", "next_run")
PAGING = "next"
"""Where the next page begins: a list that is whole has none, or says that it has none."""
LATER = ((PAGING, None), ("paused", False))
"""What versions before did not say, as it is for what they have stored."""
FAR = "2199-01-01T00:00:00Z"


class Filler:
    """Fills a node through its public APIs only, so that this file works with every version."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._http = httpx.Client(base_url=node.url, timeout=60)

    def fill(self) -> None:
        self._streams()
        self._queue()
        self._delays()
        self._transactions()
        self._schemas()
        self._http.close()

    def _call(self, method: str, path: str, body: object = None, params: dict[str, Any] | None = None) -> Any:
        reply = self._http.request(method, path, json=body, params=params)
        assert reply.is_success, f"{method} {path}: {reply.status_code} {reply.text}"
        return reply.json() if reply.content else None

    def _publish(self, topic: str, *messages: dict[str, Any]) -> None:
        self._call("POST", f"/topics/{topic}/messages", {"messages": list(messages)})

    def _streams(self) -> None:
        self._call("POST", "/topics", {"name": "orders", "num_partitions": 3})
        self._call("POST", "/topics", {"name": "states", "num_partitions": 1, "options": {"cleanup.policy": "compact"}})
        self._call("POST", "/topics", {"name": "dropped", "num_partitions": 2})
        producer = Producer({"bootstrap.servers": self._node.address, "enable.idempotence": True})
        for number in range(60):
            producer.produce(
                "orders", f"order {number}".encode(), f"k{number % 7}", number % 3, headers=[("n", bytes([number]))]
            )
        assert producer.flush(60) == 0
        for number in range(12):
            self._publish("states", {"key": f"s{number % 4}", "value": f"state {number}"})
        consumer = Consumer({"bootstrap.servers": self._node.address, "group.id": "billing"})
        offsets = [TopicPartition("orders", 0, 11, "so far"), TopicPartition("orders", 2, 20)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()
        admin = AdminClient({"bootstrap.servers": self._node.address})
        for trimmed in admin.delete_records([TopicPartition("orders", 1, 4)]).values():
            trimmed.result(60)
        self._call("DELETE", "/topics/dropped")

    def _queue(self) -> None:
        options = {"attempts.max": "3", "retry.backoff.ms": "60000", "retry.backoff.max.ms": "600000"}
        self._call("POST", "/topics", {"name": "jobs", "num_partitions": 2, "options": options})
        for number in range(40):
            priority = "high" if number % 5 == 0 else "normal"
            self._publish("jobs", {"key": f"j{number}", "value": f"job {number}", "priority": priority})
        self._call("PATCH", "/groups/workers/options", {"options": {"lease.ms": "45000"}})
        got = self._call("POST", "/topics/jobs/receive", {"group": "workers", "max_messages": 24})["messages"]
        assert len(got) == 24
        for place, message in enumerate(got):
            receipt = {"receipt_handle": message["receipt_handle"]}
            if place % 6 == 5:
                self._call("POST", "/messages/reject", receipt | {"reason": "not today"})
            elif place % 4 == 1:
                self._call("POST", "/messages/nack", receipt | {"delay": "8760h"})
            elif place % 3 != 2:
                self._call("POST", "/messages/ack", receipt)
        audit = self._call("POST", "/topics/jobs/receive", {"group": "audit", "max_messages": 5})["messages"]
        for message in audit:
            self._call("POST", "/messages/ack", {"receipt_handle": message["receipt_handle"]})
        self._call("POST", "/groups/audit/fork", {"name": "audit-copy"})

    def _delays(self) -> None:
        self._call("POST", "/topics", {"name": "reminders", "num_partitions": 2})
        for number in range(9):
            self._publish("reminders", {"key": f"r{number}", "value": f"reminder {number}", "deliver_at": FAR})
        self._publish("reminders", {"key": "now", "value": "no delay"})
        waiting = self._call("GET", "/topics/reminders/delayed")["messages"]
        self._call("DELETE", f"/topics/reminders/delayed/{waiting[3]['partition']}/{waiting[3]['offset']}")
        self._call(
            "PUT", "/schedules/yearly", {"topic": "reminders", "value": "a year", "cron": "0 0 1 1 *", "key": "y"}
        )

    def _transactions(self) -> None:
        self._call("POST", "/topics", {"name": "ledger", "num_partitions": 2})
        for name, end in (("kept", True), ("undone", False)):
            producer = Producer({"bootstrap.servers": self._node.address, "transactional.id": name})
            producer.init_transactions(60)
            for turn in range(3):
                producer.begin_transaction()
                for number in range(4):
                    producer.produce("ledger", f"{name} {turn} {number}".encode(), partition=number % 2)
                if end:
                    producer.commit_transaction(60)
                else:
                    producer.abort_transaction(60)

    def _schemas(self) -> None:
        for schema in (AVRO, AVRO_NEXT):
            self._call("POST", "/subjects/orders-value/versions", {"schema": schema})
        self._call("PUT", "/config/orders-value", {"compatibility": "FULL"})


def _lasting(value: Any) -> Any:
    """Without what changes as time passes, and what only later versions say."""
    if isinstance(value, dict):
        lasting = {name: each for name, each in value.items() if name not in PASSING and (name, each) not in LATER}
        return {name: _lasting(each) for name, each in lasting.items()}
    return [_lasting(each) for each in value] if isinstance(value, list) else value


class Reader:
    """All that a node has stored, as plain data."""

    def __init__(self, node: Node) -> None:
        self._http = httpx.Client(base_url=node.url, timeout=60)

    def read(self) -> dict[str, Any]:
        names = self._get("/topics")["topics"]
        topics = [each if isinstance(each, str) else each["name"] for each in names]
        groups = self._get("/groups")["groups"]
        contents = {
            "topics": {topic: self._topic(topic) for topic in topics},
            "groups": {group: self._group(group) for group in sorted(groups)},
            "schedules": self._get("/schedules")["schedules"],
            "transactions": _without_next(self._get("/transactions", state="all")),
            "schemas": {
                "subjects": self._get("/subjects"),
                "orders": [self._get(f"/subjects/orders-value/versions/{number}") for number in (1, 2)],
                "config": self._get("/config/orders-value"),
            },
        }
        self._http.close()
        lasting: dict[str, Any] = _lasting(contents)
        return lasting

    def _get(self, path: str, **params: Any) -> Any:
        reply = self._http.get(path, params=params)
        assert reply.is_success, f"{path}: {reply.status_code} {reply.text}"
        return reply.json()

    def _topic(self, topic: str) -> dict[str, Any]:
        details = self._get(f"/topics/{topic}")
        partitions = self._get(f"/topics/{topic}/partitions")["partitions"]
        numbers = [each.get("partition", each.get("id")) for each in partitions]
        return {
            "details": details,
            "messages": [
                self._get(f"/topics/{topic}/partitions/{number}/messages", limit=1000)["messages"] for number in numbers
            ],
            "delayed": self._get(f"/topics/{topic}/delayed")["messages"],
        }

    def _group(self, group: str) -> dict[str, Any]:
        lag = self._get(f"/groups/{group}/lag")
        for place in lag["partitions"]:
            if queue := place.get("queue"):  # what waits for its next attempt is ready one day
                queue["open"] = sum(queue.pop("ready").values()) + queue.pop("waiting")
        return {
            "details": self._get(f"/groups/{group}"),
            "options": self._get(f"/groups/{group}/options"),
            "offsets": self._get(f"/groups/{group}/offsets"),
            "lag": lag,
        }


def _without_next(page: dict[str, Any]) -> dict[str, Any]:
    """Earlier versions gave all in one page and had no word for the next."""
    assert page.pop("next", None) is None
    return page
