"""What is done to nodes. Each fault begins, lasts, and is healed; seeded dice choose whom it hits, and for how long."""

import threading
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

from tools.nemesis.processes import Process
from tools.nemesis.town import Town

AT_ONCE_S = 0.0
PAUSES_S = (0.5, 1.5, 3, 5, 8, 15)
CUTS_S = (1, 3, 6, 12)


class Trouble(NamedTuple):
    """A fault that has begun."""

    what: str
    lasts_s: float
    heal: Callable[[], None]
    ahead_s: float = 0.0
    """By how much a clock is wrong meanwhile."""


Fault = Callable[[Town, Random], Trouble]


def kill_node(town: Town, dice: Random) -> Trouble:
    return kill([dice.choice(town.nodes)], dice)


def kill_all_nodes(town: Town, dice: Random) -> Trouble:
    return kill(town.nodes, dice)


def kill_etcd(town: Town, dice: Random) -> Trouble:
    return kill([dice.choice(town.etcd)], dice)


def kill_all_etcd(town: Town, dice: Random) -> Trouble:
    return kill(town.etcd, dice)


def kill(processes: Sequence[Process], dice: Random) -> Trouble:
    for process in processes:
        process.kill()
    return Trouble(f"kill -9 of {_names(processes)}", dice.uniform(0.2, 8), lambda: start_again(processes))


def start_again(processes: Sequence[Process]) -> None:
    """All at once: nodes may need each other to begin."""
    for process in processes:
        process.begin()
    for process in processes:
        process.wait_ready()


def _names(processes: Sequence[Process]) -> str:
    return " and ".join(process.name for process in processes)


def pause_node(town: Town, dice: Random) -> Trouble:
    return _pause([dice.choice(town.nodes)], dice)


def pause_etcd(town: Town, dice: Random) -> Trouble:
    return _pause([dice.choice(town.etcd)], dice)


def pause_all_etcd(town: Town, dice: Random) -> Trouble:
    return _pause(town.etcd, dice)


def _pause(processes: Sequence[Process], dice: Random) -> Trouble:
    lasts_s = dice.choice(PAUSES_S)
    for process in processes:
        process.pause()

    def resume() -> None:
        for process in processes:
            process.resume()

    return Trouble(f"SIGSTOP of {_names(processes)} for {lasts_s} s", lasts_s, resume)


def restart_node(town: Town, dice: Random) -> Trouble:
    node = dice.choice(town.nodes)
    node.stop()
    return Trouble(f"clean restart of {node.name}", AT_ONCE_S, node.start)


def restart_all_nodes(town: Town, dice: Random) -> Trouble:
    """One after another, as an upgrade does it."""
    nodes = dice.sample(town.nodes, len(town.nodes))

    def roll() -> None:
        for node in nodes:
            node.stop()
            node.start()

    return Trouble("rolling restart", AT_ONCE_S, roll)


def jump_clock(town: Town, dice: Random) -> Trouble:
    """The time of day of one node, or of all."""
    nodes = dice.choice([[dice.choice(town.nodes)], town.nodes])
    ahead_s = dice.choice([-60, -5, -0.5, 0.5, 5, 60])
    for node in nodes:
        node.set_clock(round(ahead_s * 1000))

    def set_right() -> None:
        for node in nodes:
            node.set_clock(0)

    return Trouble(f"clock of {_names(nodes)} is set by {ahead_s} s", dice.uniform(1, 10), set_right, ahead_s)


ONE_NODE: dict[str, Fault] = {"kill": kill_node, "pause": pause_node, "restart": restart_node, "clock": jump_clock}
CLUSTER: dict[str, Fault] = ONE_NODE | {
    "kill-all": kill_all_nodes,
    "roll": restart_all_nodes,
    "kill-etcd": kill_etcd,
    "kill-all-etcd": kill_all_etcd,
    "pause-etcd": pause_etcd,
    "pause-all-etcd": pause_all_etcd,
}


# -- the network


def cut_in_two(town: Town, dice: Random) -> Trouble:
    """One node on one side, the others on the other."""
    alone = dice.choice(town.nodes)
    return _cut(town, alone, [each for each in town.processes if each is not alone], "everything", dice)


def cut_from_peers(town: Town, dice: Random) -> Trouble:
    alone = dice.choice(town.nodes)
    return _cut(town, alone, [each for each in town.nodes if each is not alone], "the other nodes", dice)


def cut_from_etcd(town: Town, dice: Random) -> Trouble:
    return _cut(town, dice.choice(town.nodes), list(town.etcd), "etcd", dice)


def cut_etcd_member(town: Town, dice: Random) -> Trouble:
    alone = dice.choice(town.etcd)
    return _cut(town, alone, [each for each in town.processes if each is not alone], "everything", dice)


def _cut(town: Town, alone: Process, others: Sequence[Process], words: str, dice: Random) -> Trouble:
    assert town.network is not None
    way = dice.choice(["both ways", "it is not heard", "it does not hear"])
    if way != "it does not hear":
        town.network.cut(town.number_of(alone), town.addresses(others))
    if way != "it is not heard":
        for other in others:
            town.network.cut(town.number_of(other), town.addresses([alone]))
    return Trouble(f"{alone.name} is cut from {words} ({way})", dice.choice(CUTS_S), town.network.heal)


def cut_from_clients(town: Town, dice: Random) -> Trouble:
    """Answers vanish: a client cannot know what was done."""
    assert town.network is not None
    node = dice.choice(town.nodes)
    town.network.cut(town.number_of(node), [town.network.clients])
    return Trouble(f"clients do not hear {node.name}", dice.choice(CUTS_S), town.network.heal)


def slow_link(town: Town, dice: Random) -> Trouble:
    assert town.network is not None
    process = dice.choice(town.processes_in_order)
    town.network.slow(town.number_of(process))
    return Trouble(f"{process.name} sends slowly", dice.choice(CUTS_S), town.network.heal)


NETWORK: dict[str, Fault] = {
    "cut": cut_in_two,
    "cut-peers": cut_from_peers,
    "cut-etcd": cut_from_etcd,
    "cut-etcd-member": cut_etcd_member,
    "cut-clients": cut_from_clients,
    "slow": slow_link,
}


def decks(names: Sequence[str], dice: Random) -> Iterator[str]:
    """All of them in some order, and then in another: a short run, too, has had every kind."""
    while names:
        yield from dice.sample(names, len(names))


def lets_pass(trouble: Trouble, stop: threading.Event) -> None:
    """The time that it lasts, and the end of it."""
    stop.wait(trouble.lasts_s)
    trouble.heal()
