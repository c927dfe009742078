"""The broker does for nobody what they may not do themselves: names that a request does not say, or that stand in a
message, an option or a reference, need the right of whoever asks."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from goqueue.broker.gate import Gate
from goqueue.doors.kafka.door import KafkaDoor
from goqueue.machines.groups.commands import CommitOffsets, OffsetToCommit
from goqueue.model.access import Kind, Operation, Rule
from goqueue.model.codes import Code
from goqueue.model.grants import Grants
from goqueue.testing import MemoryBroker, broker
from goqueue.wire.kafka.frames import decode_response
from goqueue.wire.kafka.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
)
from goqueue.wire.kafka.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from goqueue.wire.kafka.messages.share_groups import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
)
from tests.unit.doors.http.bare import Answered, Asked, Bare
from tests.unit.doors.kafka.test_door_fuzz import Guest, House, frame
from tests.unit.testing.loops import in_loop

MINE, THEIRS = "mine", "theirs"
TOPIC, GROUP, SUBJECT = Kind.TOPIC, Kind.GROUP, Kind.SUBJECT
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
CREATE, ALTER_CONFIGS = Operation.CREATE, Operation.ALTER_CONFIGS


def rights(*needs: tuple[Kind, Operation, str]) -> Grants:
    """To names, or to those that begin so."""
    rules = [
        Rule("1", "User:me", kind, name.rstrip("*") or name, needed, is_prefix=name[:-1] != "" and name.endswith("*"))
        for kind, needed, name in needs
    ]
    return Grants("User:me", "", (), rules)


def owner(kinds: Iterable[Kind] = (TOPIC, GROUP, SUBJECT)) -> list[tuple[Kind, Operation, str]]:
    """Of all that is called so, its dead letters too, and of every group."""
    return [(kind, Operation.ALL, "*" if kind is GROUP else f"{MINE}*") for kind in kinds]


async def ask(b: MemoryBroker, granted: Grants, method: str, path: str, body: Any = None) -> Answered:
    return await Bare(b, granted).ask(Asked(method, path, body))


async def sqs(b: MemoryBroker, granted: Grants, action: str, **body: Any) -> tuple[int, Any]:
    header = (b"x-amz-target", f"AmazonSQS.{action}".encode())
    answered = await Bare(b, granted).ask(Asked("POST", "/", body), headers=(header,))
    return answered.status, answered.json


def is_refused(answered: Answered, name: str = THEIRS) -> bool:
    return answered.status == 403 and f"'{name}'" in answered.json["error"]


async def with_dead_letter(b: MemoryBroker) -> None:
    await b.create_topic(THEIRS)
    await b.create_topic(MINE)
    await b.publish(MINE, b"x")
    (message,) = await b.receive(MINE, group="g")
    await message.reject("broken")


@in_loop
async def test_a_redrive_needs_to_read_the_dead_letters_and_to_write_where_they_go() -> None:
    async with broker() as b:
        await with_dead_letter(b)
        path, reads = f"/topics/{MINE}/dlq/redrive", rights((TOPIC, READ, f"{MINE}*"), (GROUP, READ, "*"))
        assert is_refused(await ask(b, reads, "POST", path, {}), MINE)
        assert is_refused(await ask(b, rights(*owner()), "POST", path, {"to": THEIRS}))
        also_reads = rights(*owner(), (TOPIC, READ, THEIRS))
        assert is_refused(await ask(b, also_reads, "POST", path, {"to": THEIRS}))
        assert len(await b.dead_letters(MINE)) == 1
        assert await b.read(THEIRS) == []
        also_writes = rights(*owner(), (TOPIC, WRITE, THEIRS), (TOPIC, READ, THEIRS))
        assert (await ask(b, also_writes, "POST", path, {"to": THEIRS})).json["redriven"] == 1
        assert [each.value for each in await b.read(THEIRS)] == [b"x"]


@in_loop
async def test_an_sqs_move_needs_to_write_to_every_queue_that_its_messages_may_be_from() -> None:
    async with broker() as b:
        everything = Grants("User:root", "", ("admin",), ())
        for name in ("letters", MINE, THEIRS):
            assert (await sqs(b, everything, "CreateQueue", QueueName=name))[0] == 200
        arn = "arn:aws:sqs:goqueue:000000000000:"
        policy = json.dumps({"deadLetterTargetArn": f"{arn}letters", "maxReceiveCount": "1"})
        for name in (MINE, THEIRS):
            url = f"http://localhost/000000000000/{name}"
            wanted = {"QueueUrl": url, "Attributes": {"RedrivePolicy": policy}}
            assert (await sqs(b, everything, "SetQueueAttributes", **wanted))[0] == 200
        reads = [*owner(), (TOPIC, READ, "letters"), (TOPIC, READ, THEIRS)]
        refused = await sqs(b, rights(*reads), "StartMessageMoveTask", SourceArn=f"{arn}letters")
        assert (refused[0], THEIRS in refused[1]["message"]) == (403, True)
        to_theirs = {"SourceArn": f"{arn}letters", "DestinationArn": arn + THEIRS}
        assert (await sqs(b, rights(*reads), "StartMessageMoveTask", **to_theirs))[0] == 403
        to_mine = {"SourceArn": f"{arn}letters", "DestinationArn": arn + MINE}
        assert (await sqs(b, rights(*reads), "StartMessageMoveTask", **to_mine))[0] == 200


@in_loop
async def test_a_topic_keeps_its_dead_letters_only_where_its_owner_may_write() -> None:
    async with broker() as b:
        await b.create_topic(THEIRS)
        mine = rights(*owner(), (TOPIC, READ, THEIRS), (TOPIC, ALTER_CONFIGS, THEIRS))
        options = {"dead.letter.topic": THEIRS}
        assert is_refused(await ask(b, mine, "POST", "/topics", {"name": MINE, "options": options}))
        assert MINE not in b.broker.topics.image.topics
        await b.create_topic(MINE)
        assert is_refused(await ask(b, mine, "PATCH", f"/topics/{MINE}", {"options": options}))
        assert not b.broker.topics.image.topics[MINE].overrides
        may = rights(*owner(), (TOPIC, WRITE, THEIRS))
        assert (await ask(b, may, "PATCH", f"/topics/{MINE}", {"options": options})).status == 200


@in_loop
async def test_a_topic_is_checked_by_a_schema_only_if_its_owner_may_read_it() -> None:
    async with broker() as b:
        await b.create_topic(MINE)
        options = {"schema.subject": THEIRS}
        assert is_refused(await ask(b, rights(*owner()), "PATCH", f"/topics/{MINE}", {"options": options}))
        may = rights(*owner(), (SUBJECT, READ, THEIRS))
        assert (await ask(b, may, "PATCH", f"/topics/{MINE}", {"options": options})).status == 200


@in_loop
async def test_a_schema_refers_only_to_those_that_its_writer_may_read() -> None:
    record = '{"type": "record", "name": "%s", "fields": [{"name": "a", "type": %s}]}'
    async with broker() as b:
        written = {"schema": record % ("Other", '"string"')}
        everything = Grants("User:root", "", ("admin",), ())
        assert (await ask(b, everything, "POST", f"/subjects/{THEIRS}/versions", written)).status == 200
        references = [{"name": "Other", "subject": THEIRS, "version": 1}]
        body = {"schema": record % ("Own", '"Other"'), "references": references}
        path = f"/subjects/{MINE}/versions"
        assert is_refused(await ask(b, rights(*owner(), (SUBJECT, WRITE, THEIRS)), "POST", path, body))
        may = rights(*owner(), (SUBJECT, READ, THEIRS))
        assert (await ask(b, may, "POST", path, body)).status == 200


@in_loop
async def test_a_fork_needs_to_read_every_topic_of_its_group() -> None:
    async with broker() as b:
        for name in (MINE, THEIRS):
            await b.create_topic(name)
            await b.publish(name, b"x")
            await b.receive(name, group="g")
        assert is_refused(await ask(b, rights(*owner()), "POST", "/groups/g/fork", {"name": "f"}))
        assert b.broker.queues.page(None, 10) == ["g"]
        may = rights(*owner(), (TOPIC, READ, THEIRS))
        assert (await ask(b, may, "POST", "/groups/g/fork", {"name": "f"})).status == 201
        assert is_refused(await ask(b, rights(*owner()), "POST", "/groups/g/promote", {"fork": "f"}))


@in_loop
async def test_only_those_forks_are_told_that_may_be_described() -> None:
    async with broker() as b:
        for name in (MINE, THEIRS):
            await b.create_topic(name)
            await b.publish(name, b"x")
            await b.receive(name, group="g")
        for fork in ("f-1", "f-2", "secret"):
            await b.fork("g", fork)
        for name in (MINE, THEIRS):
            for fork in ("f-1", "f-2"):
                (message,) = await b.receive(name, group=fork)
                await message.ack()
        granted = (TOPIC, DESCRIBE, MINE), (GROUP, DESCRIBE, "f-1")
        assert (await ask(b, rights(*granted), "GET", "/groups/g/forks")).status == 403
        told = await ask(b, rights(*granted, (GROUP, DESCRIBE, "g")), "GET", "/groups/g/forks")
        assert told.status == 200
        assert json.loads(told.body)["forks"] == [{"fork": "f-1", "only_group": 0, "only_fork": 1}]


@in_loop
async def test_of_a_group_only_those_topics_are_told_that_may_be_described() -> None:
    async with broker() as b:
        for name in (MINE, THEIRS):
            await b.create_topic(name)
            await b.publish(name, b"x")
            (message,) = await b.receive(name, group="g")
            await message.ack()
        committed = {"offsets": {MINE: {"0": 1}, THEIRS: {"0": 1}}}
        everything = Grants("User:root", "", ("admin",), ())
        assert (await ask(b, everything, "POST", "/groups/stream/offsets", committed)).status == 200
        granted = rights((TOPIC, DESCRIBE, MINE), (GROUP, DESCRIBE, "*"))
        for path in ("/groups/g/lag", "/lag", "/groups/g/offsets", "/groups/stream/offsets", "/groups/stream/lag"):
            answered = await ask(b, granted, "GET", path)
            found = answered.status, MINE in str(answered.body), THEIRS in str(answered.body)
            assert found == (200, True, False), path


@in_loop
async def test_where_a_message_is_names_only_groups_that_may_be_described() -> None:
    async with broker() as b:
        await b.create_topic(MINE)
        await b.publish(MINE, b"x")
        for group in ("my-group", "their-group"):
            await b.receive(MINE, group=group)
        path = f"/topics/{MINE}/partitions/0/messages/0/why"
        for group, other in (("my-group", "their-group"), ("their-group", "my-group")):
            answered = await ask(b, rights((TOPIC, DESCRIBE, "*"), (GROUP, DESCRIBE, group)), "GET", path)
            assert (answered.status, group in str(answered.body), other in str(answered.body)) == (200, True, False)
        none = await ask(b, rights((TOPIC, DESCRIBE, "*")), "GET", path)
        assert (none.status, none.json["groups"], "-group" in str(none.body)) == (200, [], False)


@pytest.mark.parametrize("version", [2, 7, 8, 9, 10])
def test_a_kafka_client_is_told_the_offsets_of_topics_that_it_may_describe(version: int) -> None:
    house = House()
    house.broker.create(THEIRS, 1)
    offsets = tuple(OffsetToCommit(topic, 0, 1) for topic in ("orders", THEIRS))
    replies: list[Any] = []
    house.broker.broker.groups.submit(CommitOffsets("g", offsets), replies.append)
    house.broker.commit()
    granted = rights((TOPIC, DESCRIBE, "orders"), (GROUP, DESCRIBE, "g"))
    house.door = KafkaDoor(Gate(house.broker.broker, granted))
    guest = Guest(house)
    asked = OffsetFetchRequest("g", None)
    if version >= 8:
        asked = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=None)])
    guest.send(frame(asked, version))
    house.broker.commit()
    response = decode_response(OffsetFetchResponse, version, guest.replies()[0])[1]
    told: list[Any] = [*response.topics, *(topic for group in response.groups for topic in group.topics)]
    orders = house.broker.broker.topics.image.topics["orders"].id
    assert [each.topic_id if version >= 10 else each.name for each in told] == [orders if version >= 10 else "orders"]


@pytest.mark.parametrize("is_share", [False, True])
def test_a_kafka_client_is_told_of_a_group_if_it_may_describe_the_topics_that_are_assigned(is_share: bool) -> None:
    house = House()
    house.broker.create(THEIRS, 1)
    topics = ["orders", THEIRS]
    joins: Any = ShareGroupHeartbeatRequest("g", "m", 0, None, topics)
    asks: Any = ShareGroupDescribeRequest(["g"])
    if not is_share:
        joins = ConsumerGroupHeartbeatRequest("g", "m", 0, None, None, 60_000, topics, topic_partitions=[])
        asks = ConsumerGroupDescribeRequest(["g"])
    house.knock().send(frame(joins, 1))
    house.broker.commit()

    def told(*topics: str) -> tuple[int, set[str]]:
        granted = rights(*((TOPIC, DESCRIBE, each) for each in topics), (GROUP, DESCRIBE, "g"))
        house.door = KafkaDoor(Gate(house.broker.broker, granted))
        guest = house.knock()
        guest.send(frame(asks, 1))
        house.broker.commit()
        kind: Any = ShareGroupDescribeResponse if is_share else ConsumerGroupDescribeResponse
        (group,) = decode_response(kind, 1, guest.replies()[0])[1].groups
        assigned = {each.topic_name for one in group.members for each in one.assignment.topic_partitions}
        return group.error_code, assigned

    assert told("orders", THEIRS) == (0, {"orders", THEIRS})
    assert told("orders") == (Code.TOPIC_AUTHORIZATION_FAILED, set())
    assert told() == (Code.TOPIC_AUTHORIZATION_FAILED, set())


@in_loop
async def test_whoever_may_read_a_subject_reads_its_schemas_by_their_numbers() -> None:
    async with broker() as b:
        everything, reads = Grants("User:root", "", ("admin",), ()), rights((SUBJECT, READ, f"{MINE}*"))
        made = [(MINE, '"string"'), (THEIRS, '"int"'), (f"{MINE}-2", '"string"')]
        for subject, text in made:
            written = await ask(b, everything, "POST", f"/subjects/{subject}/versions", {"schema": text})
            assert written.status == 200, written.body
        for more in ("", "/schema", "/subjects", "/versions", "?format=resolved"):
            mine = await ask(b, reads, "GET", f"/schemas/ids/1{more}")
            assert mine == await ask(b, everything, "GET", f"/schemas/ids/1{more}"), more
            hidden, never = [await ask(b, reads, "GET", f"/schemas/ids/{number}{more}") for number in (2, 99)]
            assert (hidden.status, hidden.json["error_code"]) == (404, 40403), more
            assert hidden.body.replace(b"Schema 2 ", b"") == never.body.replace(b"Schema 99 ", b"")
        for path in (f"/subjects/{MINE}/versions/1", f"/subjects/{MINE}/versions/latest"):
            assert (await ask(b, reads, "GET", path)).json["schema"] == '"string"'
        assert [each["subject"] for each in (await ask(b, reads, "GET", "/schemas")).json] == [MINE, f"{MINE}-2"]
        one = rights((SUBJECT, READ, f"{MINE}-2"))
        assert (await ask(b, one, "GET", "/schemas/ids/1/subjects")).json == [f"{MINE}-2"]
        assert (await ask(b, one, "GET", "/schemas/ids/1")).json["subject"] == f"{MINE}-2"


@in_loop
async def test_a_schedule_of_a_topic_that_may_not_be_written_to_is_not_replaced() -> None:
    async with broker() as b:
        await b.create_topic(MINE)
        await b.create_topic(THEIRS)
        often = {"cron": "* * * * *", "value": "again"}
        everybody = rights((TOPIC, Operation.ALL, "*"))
        assert (await ask(b, everybody, "PUT", "/schedules/nightly", {"topic": THEIRS, **often})).status == 200
        refused = await ask(b, rights(*owner()), "PUT", "/schedules/nightly", {"topic": MINE, **often})
        assert (refused.status, refused.json["code"]) == (403, "TOPIC_AUTHORIZATION_FAILED")
        assert THEIRS not in refused.json["error"]
        assert (await ask(b, everybody, "GET", "/schedules/nightly")).json["topic"] == THEIRS
        assert (await ask(b, rights(*owner()), "PUT", "/schedules/mine", {"topic": MINE, **often})).status == 200
        assert (await ask(b, rights(*owner()), "PUT", "/schedules/mine", {"topic": MINE, **often})).status == 200


@in_loop
async def test_a_schedule_is_paused_run_and_dropped_by_whoever_may_write_to_its_topic() -> None:
    async with broker() as b:
        await b.create_topic(THEIRS)
        await b.create_topic(MINE)
        often, me = {"cron": "* * * * *", "value": "tick"}, rights((TOPIC, WRITE, f"{MINE}*"))
        everybody = rights((TOPIC, WRITE, "*"), (TOPIC, READ, "*"))
        assert (await ask(b, everybody, "PUT", "/schedules/theirs", {"topic": THEIRS, **often})).status == 200
        assert (await ask(b, me, "PUT", "/schedules/mine", {"topic": MINE, **often})).status == 200
        for method, path in (("POST", "/pause"), ("POST", "/resume"), ("POST", "/run"), ("DELETE", "")):
            assert (await ask(b, me, method, f"/schedules/theirs{path}")).status == 404, (method, path)
            changed = await ask(b, me, method, f"/schedules/mine{path}")
            assert changed.status == 200, (method, path, changed.body)
        assert (await ask(b, everybody, "GET", "/schedules/theirs")).json["paused"] is False
        assert (await ask(b, everybody, "GET", "/schedules/mine")).status == 404


@in_loop
async def test_who_may_write_nothing_does_not_learn_which_schedules_there_are() -> None:
    async with broker() as b:
        await b.create_topic(THEIRS)
        often = {"topic": THEIRS, "cron": "* * * * *", "value": "tick"}
        assert (await ask(b, rights((TOPIC, WRITE, "*")), "PUT", "/schedules/theirs", often)).status == 200
        told = [await ask(b, rights(), "PUT", f"/schedules/{name}", often) for name in ("theirs", "nobodys")]
        assert (told[0], told[0].status) == (told[1], 403)


@in_loop
async def test_who_sees_all_groups_sees_only_those_topics_of_them_that_they_may_describe() -> None:
    async with broker() as b:
        for name in (MINE, THEIRS):
            await b.create_topic(name)
            await b.publish(name, b"x")
            await b.receive(name, group="workers")
        everybody, me = rights((TOPIC, Operation.ALL, "*"), (GROUP, Operation.ALL, "*")), rights(*owner())
        joined = await ask(b, everybody, "POST", "/groups/readers/join", {"client_id": "app", "topics": [MINE, THEIRS]})
        assert joined.status == 200, joined.body
        paths = ("/groups", "/groups/workers", "/groups/readers", "/groups/readers/cooperative", "/leases")
        for path in paths:
            assert THEIRS in (await ask(b, everybody, "GET", path)).body.decode(), path
            told = await ask(b, me, "GET", path)
            assert (told.status, f'"{MINE}"' in told.body.decode()) == (200, True), (path, told.body)
            assert THEIRS not in told.body.decode(), path
