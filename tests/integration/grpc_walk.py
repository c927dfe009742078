"""A walk through all methods of the gRPC API, in an order in which each has something to do. Whoever is asked on the
way, one node alone or nodes of a cluster in turn, what they tell is the same but for ids and times.
"""

import base64
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass

from goqueue.doors.grpc import door
from goqueue.doors.grpc.homes import HOMES
from tests.integration.process import DEADLINE_S, wait_until

PARTITIONS = 6
EACH = 2
COUNT = PARTITIONS * EACH
HELD = 4
"""How many messages a member may hold."""
DRAWN = {
    *("timestamp", "next_visible_at", "new_deadline", "last_heartbeat", "member_id", "producer_id", "transaction_id"),
    *("receipt_handle", "lease_until", "trace_id", "message_id", "host", "start_time", "id", "epoch", "consumer_id"),
    *("generation", "topic_id", "headers"),
}
Said = dict[str, Any]
SERVICES = door
"""It imports what describes all services."""


def comparable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: comparable(one) for key, one in value.items() if key not in DRAWN}
    return [comparable(one) for one in value] if isinstance(value, list) else value


def text(words: str) -> str:
    return base64.b64encode(words.encode()).decode()


class Asked:
    """A client of several nodes, asked in turn, that keeps what it was told."""

    def __init__(self, addresses: Sequence[str], topic: str, tenant: str = "") -> None:
        self.topic = topic
        self._metadata = (("goqueue-tenant", tenant),) if tenant else ()
        self._channels = [grpc.insecure_channel(each) for each in addresses]
        self._count = 0
        self.told: list[tuple[str, Any]] = []

    def __call__(self, name: str, /, **given: Any) -> Said:
        """Of one answer."""
        answer = self.quietly(name, **given)
        self.tell(name, answer)
        return answer

    def done(self, name: str, /, **given: Any) -> Said:
        """Of one answer that says that it was done: the rest of the walk rests on it."""
        answer = self(name, **given)
        assert not {"refused", "failures", "error"} & answer.keys(), (name, given, answer)
        return answer

    def quietly(self, name: str, /, **given: Any) -> Said:
        try:
            return next(self._answers(name, [given]))
        except grpc.RpcError as error:
            return {"refused": error.code().name}

    def tell(self, name: str, answer: Any) -> None:
        self.told.append((self._full(name), comparable(answer)))

    def all(self, name: str, *given: Said) -> list[Said]:
        """Of a stream that ends."""
        return list(self._answers(name, given))

    @contextmanager
    def stream(self, name: str, /, **given: Any) -> Iterator[Iterator[Said]]:
        answers = self._answers(name, [given])
        try:
            yield answers
        finally:
            answers.close()  # type: ignore[attr-defined]

    def close(self) -> None:
        for each in self._channels:
            each.close()

    def _full(self, name: str) -> str:
        return next(each for each in HOMES if each.endswith(name if name.startswith("grpc.") else f"v1.{name}"))

    def _answers(self, name: str, given: Sequence[Said]) -> Iterator[Said]:
        method = descriptor_pool.Default().FindMethodByName(self._full(name))
        self._count += 1
        channel = self._channels[self._count % len(self._channels)]
        kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
        ask = getattr(channel, kind)(
            f"/{method.containing_service.full_name}/{method.name}",
            request_serializer=GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        requests = [ParseDict(each, GetMessageClass(method.input_type)()) for each in given]
        answers = ask(
            iter(requests) if method.client_streaming else requests[0], timeout=DEADLINE_S, metadata=self._metadata
        )
        try:
            for answer in answers if method.server_streaming else [answers]:
                yield MessageToDict(answer, preserving_proto_field_name=True)
        finally:
            if method.server_streaming:
                answers.cancel()


def by_place(messages: list[Said]) -> list[Said]:
    return sorted(messages, key=lambda each: (each.get("partition", 0), int(each.get("offset", 0))))


def messages_of(answers: list[Said]) -> list[Said]:
    return by_place([one for each in answers for one in each.get("messages", {}).get("messages", [])])


def place_of(message: Said) -> Said:
    return {"topic": message["topic"], "partition": message.get("partition", 0), "offset": message.get("offset", 0)}


def walk(ask: Asked) -> None:
    for part in (topics, publishing, consuming, members, groups, transactions, health, away):
        part(ask)


def topics(ask: Asked) -> None:
    ask("TopicService.CreateTopic", name=ask.topic, partitions=PARTITIONS)
    ask("TopicService.CreateTopic", name=ask.topic, partitions=PARTITIONS)
    known = len(ask._channels)
    wait_until(lambda: all(is_known(ask) for _ in range(known)), "the topic on all nodes")
    ask.tell("TopicService.ListTopics", ask.topic in ask.quietly("TopicService.ListTopics")["names"])
    ask("TopicService.ConfigureTopic", name=ask.topic, options={"retention.ms": "90000000"})


def is_known(ask: Asked) -> bool:
    described = ask.quietly("TopicService.DescribeTopic", name=ask.topic)
    return [each.get("in_service") for each in described.get("partitions", ())] == [True] * PARTITIONS


def publishing(ask: Asked) -> None:
    for number in range(PARTITIONS):
        ask("PublishService.Publish", topic=ask.topic, partition=number, value=text(f"one-{number}"))
    ask("PublishService.Publish", topic=ask.topic, partition=PARTITIONS, value=text("nowhere"))
    requests = [
        {"topic": ask.topic, "partition": number, "value": text(f"two-{number}"), "correlation_id": str(number)}
        for number in range(PARTITIONS)
    ]
    answers = ask.all("PublishService.PublishStream", *requests)
    ask.tell("PublishService.PublishStream", sorted(answers, key=lambda each: each["correlation_id"]))
    ask("TopicService.DescribeTopic", name=ask.topic)


def consuming(ask: Asked) -> None:
    for given in (
        {},
        {"partitions": [1, 4]},
        {"start_position": "CONSUME_START_POSITION_OFFSET", "start_offset": 1},
        {"start_position": "CONSUME_START_POSITION_LATEST"},
    ):
        found = ask.all("ConsumeService.Consume", {"topic": ask.topic, "until_end": True, **given})
        ask.tell("ConsumeService.Consume", messages_of(found))


class Member:
    """A subscription that is open, and what it was given."""

    def __init__(self, answers: Iterator[Said]) -> None:
        self._answers = answers
        self.member_id = next(answers)["assignment"]["member_id"]
        self.messages: list[Said] = []

    def take(self, count: int) -> list[Said]:
        """So many more, and then two heartbeats with nothing else: nobody gives more."""
        found: list[Said] = []
        beats = 0
        while len(found) < count or beats < 2:
            try:
                answer = next(self._answers)
            except grpc.RpcError as error:
                raise AssertionError(
                    f"{error.code()}: {len(found)} of {count} came, and {beats} beats: {found}"
                ) from error
            news = messages_of([answer])
            found += news
            beats = 0 if news else beats + ("heartbeat" in answer)
        assert len(found) == count, found
        return by_place(found)


def members(ask: Asked) -> None:
    group = f"{ask.topic}-members"
    beats = {"heartbeat_interval": "0.3s", "max_messages": HELD}
    with ask.stream("ConsumeService.Subscribe", topics=[ask.topic], group_id=group, **beats) as answers:
        member = Member(answers)
        held = member.take(HELD)
        me = {"group_id": group, "member_id": member.member_id}
        ask.done("AckService.Ack", **me, **place_of(held[0]))
        ask.done("AckService.Nack", group_id=group, receipt_handle=held[1]["receipt_handle"], visibility_timeout="600s")
        ask.done("AckService.Reject", **me, **place_of(held[2]), reason="bad")
        ask.done("AckService.ExtendVisibility", receipt_handle=held[3]["receipt_handle"], visibility_timeout="600s")
        ask.done("AckService.BatchAck", **me, offsets=[place_of(held[3])])
        seen, left = [*held], COUNT - HELD
        while left:
            held = member.take(min(HELD, left))
            seen += held
            left -= len(held)
            receipts = [each["receipt_handle"] for each in held[:1]]
            offsets = [place_of(each) for each in held[1:]]
            ask.done("AckService.BatchAck", **me, receipt_handles=receipts, offsets=offsets)
        ask.tell("ConsumeService.Subscribe", sorted(each["value"] for each in seen))
        described = ask.quietly("GroupService.DescribeGroup", group_id=group)
        assert [each["member_id"] for each in described["members"]] == [member.member_id]
        ask.tell("GroupService.DescribeGroup", {**described, "group_id": ""})
        refused = ask.quietly("AckService.BatchAck", **me, offsets=[place_of(each) for each in seen])
        ask.tell("AckService.BatchAck", len(refused["failures"]))
    start = {"start_position": "CONSUME_START_POSITION_TIMESTAMP", "start_timestamp": moment(time.time())}
    begun = {"topics": [ask.topic], "group_id": f"{ask.topic}-late", "heartbeat_interval": "0.3s", **start}
    with ask.stream("ConsumeService.Subscribe", **begun) as answers:
        member = Member(answers)
        for number in range(PARTITIONS):
            ask("PublishService.Publish", topic=ask.topic, partition=number, value=text(f"late-{number}"))
        ask.tell("ConsumeService.Subscribe", sorted(each["value"] for each in member.take(PARTITIONS)))


def moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03d}Z"


def groups(ask: Asked) -> None:
    group = f"{ask.topic}-readers"
    ask("GroupService.ConfigureGroup", group_id=group, options={"attempts.max": "7"})
    places = [{"topic": ask.topic, "partition": number} for number in range(PARTITIONS)]
    offsets = [{**place, "offset": 2} for place in places]
    ask("OffsetService.CommitOffsets", group_id=group, offsets=offsets)
    ask("OffsetService.FetchOffsets", group_id=group)
    reset = {"group_id": group, "strategy": "OFFSET_RESET_STRATEGY_LATEST", "partitions": places}
    ask("OffsetService.ResetOffsets", **reset, dry_run=True)
    ask("OffsetService.ResetOffsets", **reset)
    backward = [{**place, "offset": 1} for place in places]
    ask("OffsetService.ResetOffsets", group_id=group, strategy="OFFSET_RESET_STRATEGY_OFFSET", offsets=backward)
    backward[-1]["offset"] = 1000
    ask("OffsetService.ResetOffsets", group_id=group, strategy="OFFSET_RESET_STRATEGY_OFFSET", offsets=backward)
    ask("OffsetService.FetchOffsets", group_id=group, partitions=places)
    names: list[str] = []
    token = ""
    while True:
        page = ask.quietly("GroupService.ListGroups", page_size=1, page_token=token)
        assert len(page.get("groups", ())) <= 1
        names += [each["group_id"] for each in page.get("groups", ()) if each["group_id"].startswith(ask.topic)]
        token = page.get("next_page_token", "")
        if not token:
            break
    ask.tell("GroupService.ListGroups", names)
    ask("GroupService.DeleteGroup", group_id=group)
    ask("GroupService.DescribeGroup", group_id=group)


def transactions(ask: Asked) -> None:
    name = f"{ask.topic}-writer"
    made = ask("TransactionService.InitProducer", transactional_id=name)
    nameless = {"producer_id": made.get("producer_id", 0), "epoch": made.get("epoch", 0)}
    for form, ending in (({**nameless, "transactional_id": name}, "Commit"), (nameless, "Abort")):
        begun = ask("TransactionService.BeginTransaction", **form)
        for number in range(PARTITIONS):
            ask("TransactionService.AddPartition", **form, topic=ask.topic, partition=number)
            producer = {"producer_id": nameless["producer_id"], "producer_epoch": nameless["epoch"]}
            ask("PublishService.Publish", topic=ask.topic, partition=number, value=text(ending), **producer)
        listed = ask.quietly("TransactionService.ListTransactions").get("transactions", [])
        ask.tell("TransactionService.ListTransactions", [each for each in listed if each["transactional_id"] == name])
        ask("TransactionService.DescribeTransaction", transaction_id=begun["transaction_id"])
        ask(f"TransactionService.{ending}Transaction", **form)
    plain = ask("TransactionService.InitProducer")
    producer = {"producer_id": plain.get("producer_id", 0), "producer_epoch": plain.get("epoch", 0)}
    for sequence in (0, 1, 1, 3):
        ask("PublishService.Publish", topic=ask.topic, partition=3, value=text("p"), sequence=sequence, **producer)
    found = ask.all("ConsumeService.Consume", {"topic": ask.topic, "until_end": True})
    ask.tell("ConsumeService.Consume", messages_of(found))


def health(ask: Asked) -> None:
    for service in ("HealthService", "grpc.health.v1.Health"):
        ask(f"{service}.Check")
        ask(f"{service}.Watch")
    ask("grpc.health.v1.Health.List")


def away(ask: Asked) -> None:
    ask("TopicService.DeleteTopic", name=ask.topic)
    wait_until(
        lambda: all(
            ask.topic not in ask.quietly("TopicService.ListTopics").get("names", ()) for _ in range(len(ask._channels))
        ),
        "end of the topic on all nodes",
    )
    ask("TopicService.DescribeTopic", name=ask.topic)
