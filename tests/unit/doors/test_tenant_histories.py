"""Two tenants with the same names on one node do at random what two nodes with one user each do: whatever one is
answered, on the shared node and on its own, is the same. So neither sees or changes anything of the other.
"""

import asyncio
import json
import re
from collections import ChainMap
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from goqueue.records.redrives import GROUP as REDRIVES
from goqueue.testing import broker
from tests.layers import in_layers
from tests.sim.cluster_walk import comparable
from tests.unit.doors.http.bare import Answered, Asked, Bare

TENANTS = ("acme", "beta")
STEPS = 120
TOPICS, GROUPS, SUBJECTS = ("orders", "jobs"), ("workers", "readers"), ("orders-value", "jobs-value")
SCHEMAS = ('"string"', '"int"', '{"type": "record", "name": "R", "fields": []}')
RECEIPT, LEASE, PRODUCER, EPOCH = "$receipt", "$lease", "$producer", "$epoch"
"""What each side was given, and what stands for it."""
Draw = Callable[[Random], Asked]


def publish(dice: Random) -> Asked:
    # All in one partition: with which one a receive begins may depend on others, and is no secret.
    message: dict[str, Any] = {"value": f"v{dice.randrange(1000)}", "key": dice.choice("abc"), "partition": 0}
    if dice.random() < 0.3:
        message["delay"] = f"{dice.randrange(1, 60)}s"
    if dice.random() < 0.3:
        message["priority"] = dice.choice(("high", "low"))
    return Asked("POST", f"/topics/{dice.choice(TOPICS)}/messages", {"messages": [message] * dice.randrange(1, 4)})


def receive(dice: Random) -> Asked:
    return Asked("POST", f"/topics/{dice.choice(TOPICS)}/receive", {"group": dice.choice(GROUPS), "max_messages": 3})


def settle(dice: Random) -> Asked:
    return Asked("POST", f"/messages/{dice.choice(('ack', 'ack', 'nack', 'reject'))}", {"receipt_handle": RECEIPT})


def commit(dice: Random) -> Asked:
    offsets = {dice.choice(TOPICS): {"0": dice.randrange(5)}}
    return Asked("POST", f"/groups/{dice.choice(GROUPS)}-stream/offsets", {"offsets": offsets})


def register(dice: Random) -> Asked:
    return Asked("POST", f"/subjects/{dice.choice(SUBJECTS)}/versions", {"schema": dice.choice(SCHEMAS)})


def produce(dice: Random) -> Asked:
    """Known by its number alone, or by its name as well."""
    names = {} if dice.random() < 0.5 else {"transactional_id": dice.choice(GROUPS)}
    step = dice.choice(("begin", "publish", "publish", "add-partition", "commit", "abort"))
    message = {"topic": dice.choice(TOPICS), "partition": 0} if step in ("publish", "add-partition") else {}
    message |= {"value": "together"} if step == "publish" else {}
    return Asked("POST", f"/transactions/{step}", {"producer_id": PRODUCER, "epoch": EPOCH, **names, **message})


def made(method: str, path: str, body: Any = None) -> Draw:
    def draw(dice: Random) -> Asked:
        names = {"topic": dice.choice(TOPICS), "group": dice.choice(GROUPS), "subject": dice.choice(SUBJECTS)}
        return Asked(method, path.format(**names), None if body is None else json.loads(json.dumps(body) % names))

    return draw


CHANGES: tuple[tuple[Draw, int], ...] = (
    (publish, 20),
    (receive, 12),
    (settle, 16),
    (commit, 4),
    (register, 5),
    (made("POST", "/topics", {"name": "%(topic)s", "num_partitions": 2}), 6),
    (made("DELETE", "/topics/{topic}"), 1),
    (made("PATCH", "/topics/{topic}", {"options": {"attempts.max": "2"}}), 2),
    (made("PATCH", "/groups/{group}/options", {"options": {"lease.ms": "2000"}}), 2),
    (made("DELETE", "/groups/{group}"), 1),
    (made("POST", "/groups/{group}/seek", {"topic": "%(topic)s", "to": "earliest"}), 2),
    (made("POST", "/groups/{group}/fork", {"name": "copy"}), 1),
    (made("DELETE", "/groups/{group}/fork/copy"), 1),
    (made("DELETE", "/topics/{topic}/delayed/0/0"), 2),
    (made("POST", "/topics/{topic}/dlq/redrive", {}), 2),
    (made("DELETE", "/topics/{topic}/dlq"), 1),
    (made("DELETE", "/topics/{topic}/dlq/0/0"), 2),
    (made("PUT", "/config/{subject}", {"compatibility": "NONE"}), 2),
    (made("DELETE", "/subjects/{subject}"), 1),
    (made("PUT", "/schedules/often", {"topic": "%(topic)s", "cron": "* * * * *", "value": "again"}), 2),
    (made("DELETE", "/schedules/often"), 1),
    (made("POST", "/groups/{group}/leases", {"topics": ["%(topic)s"], "max_messages": 2}), 4),
    (made("POST", "/leases/extend", {"receipts": [LEASE], "timeout": "1m"}), 2),
    (made("POST", "/leases/finish", {"leases": [{"receipt": LEASE}]}), 2),
    (made("POST", "/producers/init", {"transactional_id": "%(group)s"}), 3),
    (produce, 12),
    (made("POST", "/admin/users", {"name": "anna", "password": "pencil", "roles": ["viewer"]}), 1),
    (made("DELETE", "/admin/users/anna"), 1),
)
LOOKS = tuple(
    made("GET", path)
    for path in (
        *(
            "/topics",
            "/topics/{topic}",
            "/topics/{topic}/partitions/0/messages",
            "/topics/{topic}/partitions/1/messages",
        ),
        *("/topics/{topic}/dlq", "/topics/{topic}/delayed", "/topics/{topic}/lanes?group={group}"),
        *(
            "/groups",
            "/groups/{group}",
            "/groups/{group}/lag",
            "/groups/{group}-stream/offsets",
            "/groups/{group}/options",
        ),
        *("/groups/{group}/compare?with=copy", "/groups/{group}/forks", "/subjects", "/subjects/{subject}/versions"),
        *("/subjects/{subject}/versions/latest", "/config/{subject}", "/admin/users"),
        *("/schedules", "/schedules/often", "/leases", "/topics/{topic}/partitions/0/messages/0/why"),
        *("/traces", "/traces/search?topic={topic}&spans=true", "/topics/{topic}/why?key=a"),
        *("/transactions?state=all", "/stats", "/healthz"),
    )
)


class Pair:
    """One tenant, on the shared node and alone. Receipts differ; which one is settled is the same."""

    def __init__(self, tenant: str, shared: Bare, alone: Bare) -> None:
        self._sides = ((shared, ((b"x-goqueue-tenant", tenant.encode()),)), (alone, ()))
        self._tenant = tenant
        self._given: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
        """Receipts, leases and producers, each as either side was given it."""

    async def ask(self, asked: Asked, dice: Random) -> tuple[Answered, Answered]:
        chosen = [dice.choice(several) for several in self._given.values()]
        first, second = [
            await self._one(asked, side, dict(ChainMap(*(each[side] for each in chosen)))) for side in (0, 1)
        ]
        if first.status == second.status == 200:
            for both in zip(given(asked.path, first), given(asked.path, second)):
                self._given.setdefault(next(iter(both[0])), []).append(both)
        return first, second

    async def _one(self, asked: Asked, side: int, chosen: dict[str, Any]) -> Answered:
        bare, headers = self._sides[side]
        origin = f'"gq-origin":"{self._tenant}~'.encode()  # the broker writes names as they are kept
        answered = await bare.ask(asked._replace(body=filled(asked.body, chosen)), headers=headers)
        return answered._replace(body=answered.body.replace(origin, b'"gq-origin":"'))


def given(path: str, answer: Answered) -> list[dict[str, Any]]:
    """What came that can be shown again."""
    if path.endswith("/receive"):
        return [{RECEIPT: one["receipt_handle"]} for one in answer.json["messages"]]
    if path.startswith("/groups") and path.endswith("/leases"):
        return [{LEASE: one["receipt"]} for one in answer.json["leases"]]
    if path == "/producers/init":
        return [{PRODUCER: answer.json["producer_id"], EPOCH: answer.json["epoch"]}]
    return []


def filled(body: Any, chosen: dict[str, Any]) -> Any:
    if isinstance(body, dict):
        return {name: filled(value, chosen) for name, value in body.items()}
    if isinstance(body, list):
        return [filled(each, chosen) for each in body]
    return chosen.get(body, 7 if body in (PRODUCER, EPOCH) else body) if isinstance(body, str) else body


def told(answer: Answered) -> Any:
    body: Any = answer.body
    if answer.body[:1] in (b"{", b"["):
        # Dead letters are larger by the names as they are kept.
        drawn = re.sub(r"(producer) \d+|(\"total_size(_bytes)?\":)\d+", r"\1\2 0", answer.body.decode())
        body = json.loads(drawn)
    if isinstance(body, dict) and "details" in body:  # redrives of all tenants are one group, which only operators see
        body["groups"] = [each for each in body["groups"] if each != REDRIVES]
        body["details"] = [each for each in body["details"] if each["id"] != REDRIVES]
    return answer.status, comparable(body)


@pytest.mark.parametrize("seed", in_layers(range(1, 13), 2))
def test_two_tenants_on_one_node_are_as_two_nodes(seed: int) -> None:
    async def scenario() -> set[int]:
        dice, statuses = Random(seed), set()
        draws, weights = zip(*CHANGES)
        async with broker() as shared, broker() as one, broker() as other:
            door = Bare(shared)
            for tenant in TENANTS:
                created = await door.ask(Asked("POST", "/admin/tenants", {"id": tenant, "name": tenant}))
                assert created.status == 201
            pairs = [Pair(tenant, door, Bare(alone)) for tenant, alone in zip(TENANTS, (one, other))]
            history: list[Any] = []
            for _ in range(STEPS):
                number = dice.randrange(2)
                for draw in (*dice.choices(draws, weights), *dice.sample(LOOKS, 2)):
                    asked = draw(dice)
                    here, alone = await pairs[number].ask(asked, dice)
                    history.append((TENANTS[number], asked, here.status))
                    statuses.add(here.status)
                    assert told(here) == told(alone), history[-8:]
                if dice.random() < 0.3:
                    passed = f"{dice.randrange(1, 40)}s"
                    for each in (shared, one, other):
                        await each.advance(passed)
        return statuses

    statuses = asyncio.run(scenario())
    assert {200, 404} <= statuses
    assert not [each for each in statuses if each >= 500]
