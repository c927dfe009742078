from pathlib import Path
from typing import cast

from tools.nemesis.history import Window
from tools.nemesis.processes import Process
from tools.nemesis.starved import NS, Watch


class Running:
    name, pid, is_running = "node-1", 7, True


def test_the_times_in_which_a_node_waited_for_a_core_are_known() -> None:
    waited = iter([5 * NS, 5 * NS, 6 * NS, 6 * NS + NS // 10])
    watch = Watch([cast(Process, Running())], lambda pid: next(waited))
    for now in (10.0, 11.0, 12.0, 13.0):
        watch.look(now)
    assert watch.windows == [Window(11.0, 12.0, "node-1 got no core")]


def test_a_process_that_is_gone_has_not_waited() -> None:
    gone = Process("gone", Path("/tmp"), ["true"])
    watch = Watch([gone])
    watch.look(1.0)
    assert watch.windows == []
