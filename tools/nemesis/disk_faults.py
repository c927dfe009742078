"""What is done to the disks of nodes: no room, errors, and power that is gone before the page cache was written."""

import shutil
import subprocess
from collections.abc import Sequence
from random import Random

from tools.nemesis.disks import Disk
from tools.nemesis.faults import Fault, Trouble, start_again
from tools.nemesis.processes import RESERVE_BYTES, Node
from tools.nemesis.town import Town

SYNCS = "fsync,fdatasync"
STRACE_END_S = 10.0


def _disk(node: Node) -> Disk:
    assert node.disk is not None
    return node.disk


def lose_power(town: Town, dice: Random) -> Trouble:
    return _lose_power([dice.choice(town.nodes)], dice)


def lose_all_power(town: Town, dice: Random) -> Trouble:
    """Of the whole house: what was acknowledged is on disks, or it is gone."""
    return _lose_power(town.nodes, dice)


def _lose_power(nodes: Sequence[Node], dice: Random) -> Trouble:
    for node in nodes:
        node.kill()  # first: nobody shall write to what the next step takes away
    for node in nodes:
        _disk(node).shut_down()
    words = " and ".join(node.name for node in nodes)
    return Trouble(f"power loss of {words}", dice.uniform(0.2, 8), lambda: _plug_in(nodes))


def _plug_in(nodes: Sequence[Node]) -> None:
    for node in nodes:
        node.kill()
        _disk(node).unmount()
        _disk(node).mount()
    start_again(nodes)


def fail_disk(town: Town, dice: Random) -> Trouble:
    """Under a node that runs: every write and every sync is an error until it is started again on a whole disk."""
    node = dice.choice(town.nodes)
    _disk(node).shut_down()
    return Trouble(f"the disk of {node.name} fails", dice.uniform(1, 10), lambda: _plug_in([node]))


def fail_syncs(town: Town, dice: Random) -> Trouble:
    """Syncs are errors for a while; what was written may be on the disk or not. Then the node is restarted."""
    node = dice.choice(town.nodes)
    when = dice.choice(["1", "3", "1+2", "1+"])
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={SYNCS}"]
    command += ["-e", f"inject={SYNCS}:error=EIO:when={when}", "-p", str(node.pid)]
    strace = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def heal() -> None:
        strace.terminate()
        try:
            strace.wait(STRACE_END_S)
        except subprocess.TimeoutExpired:
            strace.kill()
        node.kill()
        node.start()

    return Trouble(f"syncs of {node.name} fail (each thread's: {when})", dice.uniform(1, 6), heal)


def fill_disk(town: Town, dice: Random) -> Trouble:
    """To the last block, or below what a node keeps in reserve. It goes on by itself when there is room again."""
    node = dice.choice(town.nodes)
    left_bytes = dice.choice([0, RESERVE_BYTES // 2])
    _disk(node).fill(left_bytes)
    what = f"the disk of {node.name} has {left_bytes >> 20} MiB left"
    return Trouble(what, dice.uniform(2, 12), _disk(node).empty)


DISKS: dict[str, Fault] = {
    "power": lose_power,
    "power-all": lose_all_power,
    "disk-fails": fail_disk,
    "disk-full": fill_disk,
}
STRACE: dict[str, Fault] = {"syncs-fail": fail_syncs}


def disk_faults(town: Town) -> tuple[dict[str, Fault], dict[str, str]]:
    """Those that can be made, and why others cannot."""
    if not all(node.disk for node in town.nodes):
        return {}, dict.fromkeys(DISKS | STRACE, town.why_no_disks)
    why_not = _cannot_trace()
    return (DISKS, dict.fromkeys(STRACE, why_not)) if why_not else (DISKS | STRACE, {})


def _cannot_trace() -> str:
    """Why not; empty if it can."""
    if shutil.which("strace") is None:
        return "there is no strace"
    done = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)
    return f"strace may not trace here: {done.stderr.strip()}" if done.returncode else ""
