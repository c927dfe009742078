"""Commands to coordinators of other nodes: they arrive as they were sent, and nobody is told that something was not
done when it may have been."""

import importlib
import pkgutil
import sys
import typing
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import goqueue.machines
from goqueue.broker.remote.asking import AGAIN_MS, IMAGE_MS_MAX, Asking, RemoteCoordinator, Where
from goqueue.broker.remote.commands import TRAVELLING, decode_command, decode_reply, encode_command, encode_reply
from goqueue.broker.remote.messages import API_KEY, GROUPS, Submit
from goqueue.broker.remote.serving import Elsewhere, Serving
from goqueue.machines.deliveries.commands import How, Place, Settle, Settlement
from goqueue.machines.groups.commands import CodeReply, CommitOffsets, DeleteGroup, Heartbeat
from goqueue.machines.machine import Command
from goqueue.machines.transactions.commands import InitProducer, ProducerIdWanted, ProducerReply
from goqueue.model.codes import Code
from goqueue.model.errors import CoordinatorLoading, GoQueueError, Indeterminate, NotCoordinator, NotReached
from goqueue.model.placements import NodeInfo, Placement
from goqueue.model.refusal import NotLeader, Refused
from goqueue.model.topics import Image, Topic
from goqueue.testing import VirtualClock

STAYS = {
    # Of timers and of clocks.
    "Tick", "ClockSet",
    # What a base class is, and no command.
    "GroupCommand",
    "PlaceCommand",
    # Of the services beside the machine, which are on its node.
    "Schedule", "FollowHost", "EndTransactionSchedules", "TakeProducer", "FiringDone", "TopicDeleted", "TopicsChanged",
    "MarkersWritten", "SetPolicy", "Observe", "DeadLettersWritten", "ForgetTopic",
    "HoldRecurring", "PauseRecurring",
    # Of the controller: every node writes to the store itself.
    "NameCluster", "CreateTopic", "DeleteTopic", "SetOptions", "TakeProducerIds", "PlaceSchedule", "ForgetSchedule",
    "Transact", "SetGroupOptions", "ChangeUser", "DeleteUser", "CreateKey", "RotateKey", "DeleteKey", "Reseal",
    "CreateRules", "DeleteRules", "SetQuota", "DeleteQuota", "CreateTenant", "ChangeTenant", "ForgetTenant",
    "EndSession",
    # Of the store that processes of one machine share, which has no other nodes.
    "ChangeEntries", "EndLease", "EndLeases",
}  # fmt: skip
"""Commands that never leave their node."""
CONTROLLER = "goqueue.machines.controller"

for module in pkgutil.walk_packages(goqueue.machines.__path__, "goqueue.machines."):
    importlib.import_module(module.name)  # `all_commands` finds those of modules that somebody has imported


def all_commands(kind: Any = Command) -> Iterator[type[Command[Any]]]:
    for each in kind.__subclasses__():
        if each.__module__.startswith("goqueue."):
            yield each
        yield from all_commands(each)


def reply_of(command: type) -> Any:
    (argument,) = typing.get_args(command.__orig_bases__[0])  # type: ignore[attr-defined]
    if isinstance(argument, typing.ForwardRef):
        return eval(argument.__forward_arg__, vars(sys.modules[command.__module__]))
    return argument


def test_every_command_travels_or_is_known_to_stay() -> None:
    """A new command belongs to one of the two: else it would fail only when a leader is elsewhere."""
    travelling = {each.command for each in TRAVELLING}
    for command in all_commands():
        stays = command.__name__ in STAYS or command.__module__.startswith(CONTROLLER)
        assert (command in travelling) != stays, command


def test_every_command_that_travels_says_what_its_reply_is() -> None:
    for each in TRAVELLING:
        assert reply_of(each.command) is each.replies[0], each.tag
    assert len({each.tag for each in TRAVELLING}) == len(TRAVELLING)


def sample(kind: Any) -> Any:
    """A value of a type, with something in every field."""
    info = msgspec.inspect.type_info(kind)
    return _value(info)


PLAIN = {"IntType": 3, "BoolType": True, "StrType": "x", "BytesType": b"\x00\xff", "NoneType": None, "FloatType": 1.5}
MANY = {"VarTupleType": tuple, "ListType": list, "FrozenSetType": frozenset, "CollectionType": list}


def _value(info: Any) -> Any:
    name = type(info).__name__
    if name in PLAIN:
        return PLAIN[name]
    if name in MANY:
        return MANY[name]([_value(info.item_type)])
    makes: dict[str, Callable[[], Any]] = {
        "EnumType": lambda: list(info.cls)[-1],
        "UnionType": lambda: _value(next(one for one in info.types if type(one).__name__ != "NoneType")),
        "StructType": lambda: info.cls(**{field.name: _value(field.type) for field in info.fields}),
        "NamedTupleType": lambda: info.cls(*(_value(field.type) for field in info.fields)),
        "TupleType": lambda: tuple(_value(one) for one in info.item_types),
        "DictType": lambda: {_value(info.key_type): _value(info.value_type)},
    }
    return makes[name]()


@pytest.mark.parametrize("each", TRAVELLING, ids=lambda each: each.tag)
def test_commands_and_replies_arrive_as_they_were_sent(each: Any) -> None:
    command = sample(each.command)
    assert decode_command(each.tag, encode_command(command)) == command
    for kind in each.replies:
        reply = sample(kind)
        arrived = decode_reply(each.tag, *encode_reply(each.tag, reply))
        assert (type(arrived), arrived) == (type(reply), reply)


def test_the_two_replies_of_a_producer_are_told_apart() -> None:
    for reply in (ProducerIdWanted(), ProducerReply(Code.NONE, 5, 1)):
        assert decode_reply("transactions.init", *encode_reply("transactions.init", reply)) == reply
    assert decode_command("a tag of tomorrow", b"") is None
    assert InitProducer("t") == decode_command("transactions.init", encode_command(InitProducer("t")))


# -- two nodes

ME, OTHER, THIRD = 1, 2, 3


def image(revision: int, leader: int, epoch: int = 1) -> Image:
    nodes = {number: NodeInfo(number, 10 + number) for number in (ME, OTHER, THIRD)}
    placement = Placement(leader, 10 + leader, epoch, (leader,), (1, 2, 3), revision=revision)
    return Image(revision, {}, nodes, {"@groups": Topic("@groups", b"g" * 16, 1, {}, (placement,))})


class Node:
    def __init__(self, net: "Net", node_id: int) -> None:
        self.image = image(1, OTHER)
        self.asking = Asking(node_id, net, lambda: self.image, net.clock)
        self.serving = Serving(lambda: self.image.revision)
        self.asking.serve = self.serving.answer
        self.serving.commands[GROUPS] = self.do
        self.done: list[Command[Any]] = []
        self.reply: Any = CodeReply(Code.NONE)
        self.is_silent = False
        self.node_id = node_id

    def do(self, request: Submit, command: Command[Any], on_reply: Callable[[Any], None]) -> None:
        if self.image.placement("@groups", request.number).leader != self.node_id:
            raise Elsewhere
        self.done.append(command)
        if not self.is_silent:
            on_reply(self.reply)

    def shown(self, new: Image) -> None:
        self.image = new
        self.asking.image_changed()


class Net:
    """A `Peers` by hand."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.nodes = {number: Node(self, number) for number in (ME, OTHER, THIRD)}
        self.faults: list[GoQueueError] = []
        self.lost_answers = 0
        self.asked: list[int] = []

    def ask(
        self, node_id: int, api_key: int, body: bytes, on_done: Callable[[bytes | GoQueueError], None], timeout_ms: int
    ) -> None:
        assert (api_key, timeout_ms > 0) == (API_KEY, True)
        self.asked.append(node_id)
        if self.faults:
            fault = self.faults.pop(0)
            self.clock.call_soon(lambda: on_done(fault))
            return
        answers: list[bytes] = []

        def give(answer: bytes) -> None:
            answers.append(answer)
            if self.lost_answers:
                self.lost_answers -= 1
                self.clock.call_soon(lambda: on_done(Indeterminate("lost")))
            else:
                self.clock.call_soon(lambda: on_done(answer))

        self.nodes[node_id].serving.answer(body, give)

    def submit(self, command: Command[Any]) -> list[Any]:
        replies: list[Any] = []
        RemoteCoordinator(self.nodes[ME].asking, GROUPS, Where("@groups", 0)).submit(command, replies.append)
        self.clock.run()
        return replies


def heartbeat() -> Heartbeat:
    return Heartbeat("g", 1, "m")


def test_a_command_is_decided_by_the_leader() -> None:
    net = Net()
    assert net.submit(heartbeat()) == [CodeReply(Code.NONE)]
    assert net.nodes[OTHER].done == [heartbeat()]
    assert net.nodes[ME].asking.under_way == 0


def test_an_asker_whose_image_is_older_waits_until_it_is_as_new_and_asks_the_next_leader() -> None:
    net = Net()
    for number in (OTHER, THIRD):
        net.nodes[number].image = image(7, THIRD, 2)
    replies = net.submit(heartbeat())
    assert (replies, net.asked) == ([], [OTHER])
    net.clock.advance(AGAIN_MS[1] * 4)
    assert net.asked == [OTHER], "it would only be told the same"
    net.nodes[ME].shown(image(7, THIRD, 2))
    net.clock.run()
    assert (replies, net.asked) == ([CodeReply(Code.NONE)], [OTHER, THIRD])


def test_an_asker_that_is_shown_nothing_asks_again_and_gives_up_in_the_end() -> None:
    net = Net()
    for number in (OTHER, THIRD):
        net.nodes[number].image = image(7, THIRD, 2)
    replies = net.submit(heartbeat())
    for _ in range(20):
        net.clock.advance(IMAGE_MS_MAX // 4)
        net.clock.run()
    assert [type(one) for one in replies] == [NotCoordinator]
    assert net.nodes[THIRD].done == []
    assert (net.nodes[ME].asking.under_way, net.clock.timers) == (0, 0)


def test_what_was_never_sent_is_sent_again() -> None:
    net = Net()
    net.faults = [NotReached("refused")] * 3
    replies = net.submit(DeleteGroup("g"))
    for pause_ms in (AGAIN_MS[0], 2 * AGAIN_MS[0], 4 * AGAIN_MS[0]):
        assert replies == []
        net.clock.advance(pause_ms)
        net.clock.run()
    assert replies == [CodeReply(Code.NONE)]
    assert net.nodes[OTHER].done == [DeleteGroup("g")]


def test_a_lost_answer_is_indeterminate_and_the_command_is_not_repeated() -> None:
    net = Net()
    net.lost_answers = 1
    replies = net.submit(DeleteGroup("g"))
    net.clock.advance(10_000)
    assert [type(one) for one in replies] == [Indeterminate]
    assert len(net.nodes[OTHER].done) == 1


def test_a_lost_answer_of_a_command_that_may_be_repeated_is_asked_for_again() -> None:
    net = Net()
    net.lost_answers = 1
    replies = net.submit(heartbeat())
    net.clock.advance(AGAIN_MS[0])
    net.clock.run()
    assert replies == [CodeReply(Code.NONE)]
    assert len(net.nodes[OTHER].done) == 2


@pytest.mark.parametrize("error", [NotLeader("deposed"), NotCoordinator("unloaded")])
def test_a_coordinator_that_is_deposed_meanwhile_leaves_it_open_whether_it_was_done(error: GoQueueError) -> None:
    net = Net()
    net.nodes[OTHER].reply = error
    assert [type(one) for one in net.submit(DeleteGroup("g"))] == [Indeterminate]


def test_a_coordinator_that_is_being_loaded_is_asked_again() -> None:
    net = Net()
    net.nodes[OTHER].reply = CoordinatorLoading("soon")
    replies = net.submit(DeleteGroup("g"))
    assert replies == []
    net.nodes[OTHER].reply = CodeReply(Code.NONE)
    net.clock.advance(AGAIN_MS[0])
    net.clock.run()
    assert replies == [CodeReply(Code.NONE)]


def test_errors_mean_at_the_asker_what_they_meant_at_the_leader() -> None:
    net = Net()
    net.nodes[OTHER].reply = Refused(Code.GROUP_ID_NOT_FOUND, "there is none")
    (error,) = net.submit(DeleteGroup("g"))
    assert (type(error), error.code, str(error)) == (Refused, Code.GROUP_ID_NOT_FOUND, "there is none")


def test_an_asker_that_leads_by_now_asks_itself() -> None:
    net = Net()
    net.nodes[ME].image = image(9, ME, 3)
    assert net.submit(heartbeat()) == [CodeReply(Code.NONE)]
    assert net.asked == []


def test_nobody_leads_and_an_asker_hears_of_it_in_time() -> None:
    net = Net()
    net.nodes[ME].image = Image(1)
    replies = net.submit(heartbeat())
    for _ in range(6):
        net.clock.advance(1000)
        net.clock.run()
    assert [type(one) for one in replies] == [NotReached]


def test_bytes_that_are_no_request_are_refused() -> None:
    net = Net()
    answers: list[bytes] = []
    net.nodes[OTHER].serving.answer(b"\xc1 nonsense", answers.append)
    assert len(answers) == 1
    unknown = Submit(GROUPS, b"", 0, 1, "a tag of tomorrow", b"", 1000)
    net.nodes[OTHER].serving.answer(msgspec.msgpack.encode(unknown), answers.append)
    assert net.nodes[OTHER].done == []
    assert [msgspec.msgpack.decode(one)["code"] for one in answers] == [Code.UNSUPPORTED_VERSION] * 2


def test_commands_of_users_keep_what_they_say() -> None:
    settle = Settle(Place("g", "t", 3), (Settlement(1, 2, How.ACK, 0, lease=7),), "worker")
    assert decode_command("deliveries.settle", encode_command(settle)) == settle
    assert decode_command("groups.commit", encode_command(CommitOffsets("g", ()))) is not None
