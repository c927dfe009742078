"""A view of the broker: what was not declared is refused, what is not allowed is not told, and where everything is
allowed nothing stands between an API and its service."""

from typing import Any

import pytest

from goqueue.broker.gate import Gate
from goqueue.broker.reading.follow import Follower
from goqueue.broker.reading.wants import Got, Limits, Want
from goqueue.broker.view.view import View
from goqueue.machines.controller_commands import CreateTopic, DeleteTopic
from goqueue.machines.deliveries.commands import Place
from goqueue.model.access import Kind, NoRights, Operation, Permission, Rights
from goqueue.model.codes import Code
from goqueue.model.credentials import Credentials
from goqueue.model.grants import Grants
from goqueue.model.moves import MoveStatus
from goqueue.model.refusal import Refused
from goqueue.model.tenancy import ONE_TENANT
from goqueue.records.filters import RecordFilter
from tests.brokers import TestBroker

TOPIC, GROUP, CLUSTER = Kind.TOPIC, Kind.GROUP, Kind.CLUSTER
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE


class Only:
    """Rights on names that begin so."""

    are_all = False

    def __init__(self, prefix: str, *operations: Operation) -> None:
        self._prefix = prefix
        self._operations = operations or tuple(Operation)

    def allows(self, kind: Kind, operation: Operation, name: str) -> bool:
        return name.startswith(self._prefix) and operation in self._operations

    def alike(self, kind: Kind, operation: Operation) -> object:
        return object()


def made(rights: Rights | None, needs: Any) -> tuple[TestBroker, View]:
    broker = TestBroker()
    broker.create("orders", 1)
    broker.create("payroll", 1)
    broker.commit()
    return broker, Gate(broker.broker, rights).admit(Credentials("test")).view(Permission(needs))


def refused(call: Any) -> Code:
    with pytest.raises(Refused) as caught:
        call()
    return caught.value.code


def test_where_everything_is_allowed_a_service_is_called_directly() -> None:
    broker, view = made(None, {TOPIC: WRITE})
    assert view.topics.replica == broker.broker.topics.replica
    assert view.publisher.told_steps == broker.broker.publisher.told_steps
    assert view.fetcher.fetch == broker.broker.fetcher.fetch
    assert view.topics.image is broker.broker.topics.image


def test_one_access_has_one_view_for_each_permission() -> None:
    broker, _ = made(None, {TOPIC: READ})
    access = Gate(broker.broker).admit(Credentials("test"))
    reads, writes = Permission({TOPIC: READ}), Permission({TOPIC: WRITE})
    assert access.view(reads) is access.view(reads)
    assert access.view(reads) is not access.view(writes)


def test_a_kind_that_was_not_declared_is_refused_even_to_who_may_do_everything() -> None:
    _, view = made(None, {TOPIC: READ})
    assert refused(lambda: view.queues.options("workers")) is Code.GROUP_AUTHORIZATION_FAILED
    assert refused(lambda: view.queues.lag(Place("workers", "orders", 0))) is Code.GROUP_AUTHORIZATION_FAILED


def test_an_operation_that_was_not_declared_is_refused_in_the_answer() -> None:
    broker, view = made(None, {TOPIC: DESCRIBE})
    replies: list[Any] = []
    view.topics.submit(DeleteTopic("orders"), replies.append)
    view.topics.submit(CreateTopic("bills", bytes(16), 1), replies.append)
    broker.commit()
    assert [each.code for each in replies] == [Code.TOPIC_AUTHORIZATION_FAILED] * 2
    assert set(broker.broker.topics.image.topics) == {"orders", "payroll"}


def test_what_may_not_be_touched_is_refused_whether_or_not_it_exists() -> None:
    _, view = made(Only("ord"), {TOPIC: READ})
    assert view.topics.replica("orders", 0).end_offset == 0
    for name in ("payroll", "nowhere"):
        assert refused(lambda name=name: view.topics.replica(name, 0)) is Code.TOPIC_AUTHORIZATION_FAILED
        assert refused(lambda name=name: view.topics.image.topics.get(name)) is Code.TOPIC_AUTHORIZATION_FAILED
    assert refused(lambda: view.topics.replica("ordinary", 0)) is Code.UNKNOWN_TOPIC_OR_PARTITION


def test_lists_leave_out_what_may_not_be_seen_and_ids_tell_nothing() -> None:
    broker, view = made(Only("ord"), {TOPIC: DESCRIBE})
    image, whole = view.topics.image, broker.broker.topics.image
    assert (list(image.topics), len(image.topics)) == (["orders"], 1)
    assert image.by_id(whole.topics["orders"].id) is whole.topics["orders"]
    assert image.by_id(whole.topics["payroll"].id) is None


def test_a_page_of_names_is_filled_up() -> None:
    broker, view = made(Only("b"), {GROUP: DESCRIBE})
    for name in ("a1", "a2", "a3", "b1", "b2", "c1"):
        broker.broker.queues.set_options(name, {"session.ms": "10000"}, lambda reply: None)
    broker.commit()
    assert view.queues.page_with_options(None, 2) == ["b1", "b2"]
    assert view.queues.page_with_options("b1", 2) == ["b2"]


def test_a_fetch_gives_nothing_of_a_topic_that_may_not_be_read_and_the_others_as_ever() -> None:
    broker, view = made(Only("ord"), {TOPIC: READ})
    broker.publish("payroll", b"secret")
    broker.commit()
    got: list[list[Got]] = []
    wants = [Want("payroll", 0, 0, 1000), Want("orders", 0, 0, 1000)]
    view.fetcher.fetch(wants, Limits(0, 1000, 0), lambda answer: got.append([each for _, each in answer]))
    ((secret, allowed),) = got
    assert (secret.code, secret.piece, secret.high_watermark) == (Code.TOPIC_AUTHORIZATION_FAILED, None, -1)
    assert (allowed.code, allowed.high_watermark) == (Code.NONE, 0)


@pytest.mark.parametrize("rights", [Only("ord"), Grants("User:root", "", ("admin",), ())], ids=["some", "an admin's"])
def test_a_right_that_is_taken_away_counts_for_what_goes_on(rights: Rights) -> None:
    """A fetch that waits is answered without records, and a stream ends."""
    broker = TestBroker()
    broker.create("orders", 1)
    access = Gate(broker.broker, rights).admit(Credentials("test"))
    view = access.view(Permission({TOPIC: READ}))
    got: list[list[Got]] = []
    view.fetcher.fetch(
        [Want("orders", 0, 0, 1000)], Limits(1, 1000, 5000), lambda told: got.append([each for _, each in told])
    )
    stream = Follower(view.topics, view.clock, "orders", {0: 0}, RecordFilter())
    assert (got, stream.take()) == ([], None)
    access.renew(NoRights(), ONE_TENANT, is_over=False)
    broker.publish("orders", b"secret")
    broker.commit()
    ((answer,),) = got
    assert (answer.code, answer.piece) == (Code.TOPIC_AUTHORIZATION_FAILED, None)
    assert refused(stream.take) is Code.TOPIC_AUTHORIZATION_FAILED
    stream.stop()


def test_an_operation_that_takes_its_own_rights_away_is_finished() -> None:
    """As that which makes the first admin: it ends the key that it was done with."""
    broker = TestBroker()
    access = Gate(broker.broker, Grants("User:root", "", ("admin",), ())).admit(Credentials("test"))
    view = access.view(Permission({CLUSTER: Operation.ALTER}))
    access.renew(NoRights(), ONE_TENANT, is_over=True)
    assert view.accounts.image.users == {}


def test_a_right_on_the_cluster_is_asked_for_when_the_view_is_made() -> None:
    assert refused(lambda: made(NoRights(), {CLUSTER: DESCRIBE})) is Code.CLUSTER_AUTHORIZATION_FAILED


def test_a_method_that_no_rule_names_cannot_be_reached() -> None:
    _, view = made(None, {TOPIC: READ, GROUP: READ})
    with pytest.raises(AttributeError, match=r"Topics\.work_aside"):
        view.topics.work_aside(lambda work, done: None)
    with pytest.raises(AttributeError, match="not for those outside"):
        view._nothing  # noqa: B018


def test_who_may_not_touch_a_queue_does_not_stop_its_moves() -> None:
    broker, view = made(Only("ord"), {TOPIC: READ, GROUP: READ})
    topics, moves = ("orders", "payroll"), []
    for topic in topics:
        broker.publish(topic, b"dead")
        broker.commit()
        moves.append(broker.broker.moves.start("sqs", topic, "orders", 1))
    view.moves.cancel("orders", moves[0].number)
    assert refused(lambda: view.moves.cancel("payroll", moves[1].number)) is Code.TOPIC_AUTHORIZATION_FAILED
    assert [each.status for each in moves] == [MoveStatus.CANCELLING, MoveStatus.RUNNING]


def test_a_move_needs_the_right_to_write_each_time() -> None:
    """One view serves many requests of a client."""
    _, view = made(Only("", READ), {TOPIC: (READ, WRITE), GROUP: READ})
    for _ in range(2):
        assert refused(lambda: view.moves.start("sqs", "orders", "payroll", 0)) is Code.TOPIC_AUTHORIZATION_FAILED
