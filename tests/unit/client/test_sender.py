"""What a broker may answer to a batch, and what becomes of it: order is kept, and nothing is stored twice."""

import asyncio
import socket
from collections.abc import Callable

import pytest

from goqueue.client import Backoff, BrokerRefused, DeliveryTimeout, MessageTooLarge, Producer, Receipt
from goqueue.client.batches import Batch as Sending
from goqueue.client.batches import PartitionQueue
from goqueue.client.errors import ClientError, Unsupported
from goqueue.model.codes import Code
from goqueue.records.batch import Batch
from goqueue.records.decode import decode
from tests.unit.client.fake_cluster import (
    NOTHING_ABOUT_IT,
    PRODUCE,
    PRODUCER_ID,
    TOPIC,
    FakeCluster,
    Moved,
    Verdict,
    fake_cluster,
)
from tests.unit.testing.loops import in_loop

QUICK = Backoff(1, 5)


def producer(cluster: FakeCluster, delivery_timeout: str = "30s", batch: int = 10) -> Producer:
    return Producer(
        cluster.address, backoff=QUICK, delivery_timeout=delivery_timeout, batch_messages_max=batch, linger_ms=1
    )


class Log:
    """A partition as a broker keeps it: by sequence, in one epoch after the other."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.epoch, self.expected = 0, 0
        self.known: dict[tuple[int, int], int] = {}

    def append(self, batch: Batch) -> Verdict:
        name = (batch.producer_epoch, batch.base_sequence)
        if name in self.known:
            return self.known[name]
        if batch.producer_epoch > self.epoch:
            self.epoch, self.expected = batch.producer_epoch, 0
        if batch.base_sequence != self.expected:
            return Code.OUT_OF_ORDER_SEQUENCE_NUMBER
        offset = self.known[name] = len(self.values)
        self.expected += batch.record_count
        self.values += [record.value for record in decode(batch)]
        return offset


def once(
    verdict: Verdict, when: Callable[[Batch], bool], otherwise: Callable[[Batch], Verdict]
) -> Callable[[int, Batch], Verdict]:
    """The first batch of which `when` holds gets `verdict`."""
    is_over = False

    def judge(node_id: int, batch: Batch) -> Verdict:
        nonlocal is_over
        if not is_over and when(batch):
            is_over = True
            return verdict
        return otherwise(batch)

    return judge


async def post_all(sending: Producer, messages: int) -> list["asyncio.Future[Receipt]"]:
    await sending.send(TOPIC, b"first")  # from now on five batches may be under way
    return [await sending.post(TOPIC, b"%d" % number) for number in range(messages)]


def expected(messages: int) -> list[bytes]:
    return [b"first", *(b"%d" % number for number in range(messages))]


@in_loop
async def test_a_new_leader_gets_what_the_old_one_refused() -> None:
    async with fake_cluster() as cluster, producer(cluster) as sending:
        log = Log()

        def judge(node_id: int, batch: Batch) -> Verdict:
            if batch.base_sequence >= 21:
                cluster.leader = 2
            return log.append(batch) if node_id == cluster.leader else Code.NOT_LEADER_OR_FOLLOWER

        cluster.judge = judge
        futures = await post_all(sending, 100)
        await sending.flush()
        assert log.values == expected(100)
        assert [future.result().offset for future in futures] == list(range(1, 101))
        assert {node_id for node_id, _ in cluster.sent} == {1, 2}
        assert {batch.producer_epoch for _, batch in cluster.sent} == {0}


@in_loop
async def test_a_leader_that_a_refusal_names_is_asked_without_asking_who_leads() -> None:
    async with fake_cluster() as cluster, producer(cluster) as sending:
        log = Log()

        def judge(node_id: int, batch: Batch) -> Verdict:
            return log.append(batch) if node_id == 2 or batch.base_sequence < 21 else Moved(2, 5)

        cluster.judge = judge
        await sending.send(TOPIC, b"first")
        asked = cluster.metadata_asked
        futures = [await sending.post(TOPIC, b"%d" % number) for number in range(100)]
        await sending.flush()
        assert log.values == expected(100)
        assert [future.result().offset for future in futures] == list(range(1, 101))
        assert {node_id for node_id, _ in cluster.sent} == {1, 2}
        assert cluster.metadata_asked == asked


@in_loop
async def test_a_refusal_that_names_whoever_gave_it_or_an_older_leader_is_not_followed() -> None:
    async with fake_cluster() as cluster, producer(cluster) as sending:
        answers: list[Verdict] = [Moved(1, 5), Moved(2, -1), 0]
        cluster.judge = lambda node_id, batch: answers.pop(0)
        assert (await sending.send(TOPIC, b"x")).offset == 0
        assert {node_id for node_id, _ in cluster.sent} == {1}
        assert cluster.metadata_asked > 2


@pytest.mark.parametrize("code", [Code.REQUEST_TIMED_OUT, Code.NOT_ENOUGH_REPLICAS, Code.KAFKA_STORAGE_ERROR])
def test_what_may_pass_is_tried_again_in_order(code: Code) -> None:
    @in_loop
    async def scenario() -> None:
        async with fake_cluster() as cluster, producer(cluster) as sending:
            log = Log()
            cluster.judge = once(code, lambda batch: batch.base_sequence == 11, log.append)
            await post_all(sending, 100)
            await sending.flush()
            assert log.values == expected(100)

    scenario()


@in_loop
async def test_answers_that_were_lost_double_nothing() -> None:
    async with fake_cluster() as cluster, producer(cluster) as sending:
        log = Log()

        def judge(node_id: int, batch: Batch) -> Verdict:
            verdict = log.append(batch)
            if len(cluster.sent) in (3, 9):
                cluster.hang_up()
                return None
            return verdict

        cluster.judge = judge
        futures = await post_all(sending, 100)
        await sending.flush()
        assert log.values == expected(100)
        assert [future.result().offset for future in futures] == list(range(1, 101))
        assert len(cluster.sent) > 11


@in_loop
async def test_a_broker_that_has_lost_its_memory_is_told_anew() -> None:
    """The head of the queue is out of order: a new epoch counts from 0."""
    async with fake_cluster() as cluster, producer(cluster) as sending:
        logs = [Log()]

        def judge(node_id: int, batch: Batch) -> Verdict:
            if batch.base_sequence == 51 and len(logs) == 1:
                forgetful = Log()
                forgetful.values = logs[0].values
                logs.append(forgetful)
            return logs[-1].append(batch)

        cluster.judge = judge
        await post_all(sending, 100)
        await sending.flush()
        assert logs[-1].values == expected(100)
        assert {(batch.producer_id, batch.producer_epoch) for _, batch in cluster.sent} == {
            (PRODUCER_ID, 0),
            (PRODUCER_ID, 1),
        }


@in_loop
async def test_one_that_is_refused_for_good_leaves_no_gap() -> None:
    async with fake_cluster() as cluster, producer(cluster, batch=1) as sending:
        log = Log()

        def judge(node_id: int, batch: Batch) -> Verdict:
            (record,) = decode(batch)
            return Code.MESSAGE_TOO_LARGE if record.value == b"3" else log.append(batch)

        cluster.judge = judge
        futures = await post_all(sending, 10)
        await asyncio.wait(futures)
        assert isinstance(futures[3].exception(), MessageTooLarge)
        assert log.values == [value for value in expected(10) if value != b"3"]
        assert {batch.producer_epoch for _, batch in cluster.sent} == {0}
        with pytest.raises(Exception, match="1 message could not be delivered"):
            await sending.flush()


@in_loop
async def test_a_duplicate_is_stored() -> None:
    async with fake_cluster() as cluster, producer(cluster) as sending:
        cluster.judge = lambda node_id, batch: Code.DUPLICATE_SEQUENCE_NUMBER
        assert (await sending.send(TOPIC, b"")).offset == -1


@in_loop
async def test_without_an_answer_it_may_be_stored() -> None:
    async with fake_cluster() as cluster, producer(cluster, delivery_timeout="1s") as sending:
        cluster.judge = lambda node_id, batch: None
        with pytest.raises(DeliveryTimeout, match="may be stored") as caught:
            await sending.send(TOPIC, b"lost")
        assert caught.value.may_be_stored
        cluster.judge = lambda node_id, batch: 5
        assert (await sending.send(TOPIC, b"found")).offset == 5
        assert (cluster.sent[-1][1].producer_epoch, cluster.sent[-1][1].base_sequence) == (1, 0)


@in_loop
async def test_what_was_certainly_not_stored_says_so() -> None:
    async with fake_cluster() as cluster, producer(cluster, delivery_timeout="1s") as sending:
        cluster.judge = lambda node_id, batch: Code.NOT_LEADER_OR_FOLLOWER
        with pytest.raises(DeliveryTimeout) as caught:
            await sending.send(TOPIC, b"refused")
        assert not caught.value.may_be_stored
        cluster.judge = lambda node_id, batch: 5
        assert (await sending.send(TOPIC, b"taken")).offset == 5
        assert (cluster.sent[-1][1].producer_epoch, cluster.sent[-1][1].base_sequence) == (0, 0)


@in_loop
async def test_an_error_without_a_name_ends_it() -> None:
    async with fake_cluster() as cluster, producer(cluster) as sending:
        cluster.judge = lambda node_id, batch: Code.TOPIC_AUTHORIZATION_FAILED
        with pytest.raises(BrokerRefused, match="topic authorization failed"):
            await sending.send(TOPIC, b"")


MANY = 30


@in_loop
async def test_who_leads_is_heard_however_many_partitions_are_refused_meanwhile() -> None:
    """Each refusal casts doubt on whoever told of this leader; but not on a question that is not answered yet."""
    async with fake_cluster() as cluster, producer(cluster) as sending:
        cluster.partitions = MANY
        for number in range(MANY):
            await sending.send(TOPIC, b"first", partition=number)
        cluster.batches_before_metadata = 2 * MANY
        cluster.leader = 2
        cluster.judge = lambda node_id, batch: 1 if node_id == 2 else Code.NOT_LEADER_OR_FOLLOWER
        futures = [await sending.post(TOPIC, b"second", partition=number) for number in range(MANY)]
        await sending.flush()
        assert [future.result().offset for future in futures] == [1] * MANY


NOBODY, ITSELF, DEAD = -1, 0, 3


@pytest.mark.parametrize(
    ("verdict", "leader", "lists_itself_alone"),
    [
        (Code.NOT_LEADER_OR_FOLLOWER, NOBODY, True),
        (Code.NOT_LEADER_OR_FOLLOWER, NOBODY, False),
        (Code.NOT_LEADER_OR_FOLLOWER, DEAD, False),
        (Code.REQUEST_TIMED_OUT, ITSELF, False),
        (Code.NOT_ENOUGH_REPLICAS, ITSELF, False),
        (Code.KAFKA_STORAGE_ERROR, ITSELF, True),
    ],
)
def test_the_leader_is_found_though_the_node_that_was_asked_is_cut_off_from_it(
    verdict: Code, leader: int, lists_itself_alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on answering its clients, with what it knew."""
    monkeypatch.setattr("goqueue.client.contact.BEHIND_S", 0.05)

    @in_loop
    async def scenario() -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            async with fake_cluster() as cluster:
                servers = [f"127.0.0.1:{port}" for port in cluster.ports.values()]
                async with Producer(servers, backoff=QUICK, linger_ms=1, delivery_timeout="20s") as sending:
                    lonely = cluster.leader = cluster.asked_of[-1]
                    await sending.send(TOPIC, b"first")
                    cluster.ports[DEAD] = unused.getsockname()[1]
                    other = 3 - lonely
                    told = lonely if leader == ITSELF else leader
                    cluster.told_leader = lambda node_id: told if node_id == lonely else other
                    listed = [lonely] if lists_itself_alone else [1, 2, DEAD]
                    cluster.told_brokers = lambda node_id: listed if node_id == lonely else [1, 2]
                    cluster.judge = lambda node_id, batch: verdict if node_id == lonely else 1
                    assert (await sending.send(TOPIC, b"second")).offset == 1
                    assert cluster.sent[-1][0] == other

    scenario()


@in_loop
async def test_a_coordinator_is_found_though_the_node_that_was_asked_knows_of_none() -> None:
    async with fake_cluster() as cluster:
        cluster.told_coordinator = lambda node_id: -1 if node_id == cluster.asked_of[0] else node_id
        options = {"backoff": QUICK, "request_timeout": "20s"}
        async with Producer(cluster.address, transactional_id="mover", **options):  # type: ignore[arg-type]
            assert cluster.producer_ids == 1


@in_loop
async def test_a_node_says_that_copies_are_missing_before_its_answer_is_given_up() -> None:
    """Else the connection would go, and with it the answers of all other partitions."""
    async with fake_cluster() as cluster, producer(cluster) as sending:
        await sending.send(TOPIC, b"")
        assert cluster.timeouts_ms == [20_000]


@in_loop
async def test_what_cannot_be_sent_at_all_is_told() -> None:
    async with fake_cluster() as cluster:
        cluster.apis.remove(PRODUCE)
        async with producer(cluster) as sending:
            with pytest.raises(Unsupported, match="does not speak Produce"):
                await asyncio.wait_for(sending.send(TOPIC, b""), 20)


@in_loop
async def test_an_answer_that_says_nothing_of_a_message_holds_it_no_longer() -> None:
    async with fake_cluster() as cluster, producer(cluster) as sending:
        cluster.judge = lambda node_id, batch: NOTHING_ABOUT_IT
        with pytest.raises(ClientError, match="ValueError"):
            await asyncio.wait_for(sending.send(TOPIC, b"lost"), 20)
        cluster.judge = lambda node_id, batch: 5
        assert (await sending.send(TOPIC, b"found")).offset == 5
        assert (cluster.sent[-1][1].producer_epoch, cluster.sent[-1][1].base_sequence) == (1, 0)


@in_loop
async def test_the_sequence_of_what_may_be_stored_is_not_given_to_another_message() -> None:
    """Also if it is given up while an earlier one is under way: the broker would take the other for a repetition."""
    async with fake_cluster() as cluster, producer(cluster) as sending:
        queue = PartitionQueue(TOPIC, 0)
        queue.adopt(PRODUCER_ID, 0)
        queue.is_known = True
        batches = [Sending(queue.place, 0.0, 0) for _ in range(3)]
        for batch in batches:
            batch.add((0, None, b"", []), 1, 0, asyncio.get_running_loop().create_future())
            queue.waiting.append(batch)
        sent = [queue.take() for _ in batches]
        queue.unanswered = 0
        for batch in sent:
            batch.has_doubt = True
        queue.settle()
        queue.take()
        gone = BrokerRefused(Code.UNKNOWN_TOPIC_OR_PARTITION)
        sending._flushes.awaits(batches[1].futures)
        assert sending._sender is not None
        sending._sender._fail_waiting(queue, lambda batch: gone if batch is batches[1] else None)
        assert list(queue.waiting) == [batches[2]]
        assert queue.needs_epoch
        assert queue.gap < 0
