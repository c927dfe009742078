"""`goqueue cluster dev`: what is started together ends together, and what was killed stays so unless it is wanted."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.dev_cluster import DevCluster, is_alive
from tests.integration.process import GOQUEUE, wait_until


def test_all_end_with_ctrl_c(tmp_path: Path) -> None:
    cluster = DevCluster(tmp_path).start()
    try:
        assert [node["id"] for node in cluster.nodes] == [1, 2, 3]
        pids = cluster.pids
        assert all(is_alive(pid) for pid in pids)
        # To load it takes 150 ms, in which whoever has just become a leader would serve nobody.
        maps = [Path(f"/proc/{node['pid']}/maps").read_text("utf-8") for node in cluster.nodes]
        assert all("_crecords" in each for each in maps), "every node has its record codec before it serves"
        cluster.kill(2)
        wait_until(lambda: "node 2 has ended: signal 9" in cluster.said(), "word of the killed node")
        assert [is_alive(pid) for pid in pids] == [True, False, True, True]
        cluster.signal(signal.SIGINT)
        assert cluster.wait() == 0, cluster.said()
        assert not any(is_alive(pid) for pid in pids)
        assert not cluster.is_ready
    finally:
        cluster.clean_up()


def test_a_killed_node_comes_back_if_that_is_wanted(tmp_path: Path) -> None:
    cluster = DevCluster(tmp_path, 2, "--restart").start()
    try:
        before = cluster.pids
        cluster.kill(1)
        wait_until(lambda: cluster.pids != before, "restart")
        after = cluster.pids
        assert after[0] != before[0]
        assert after[1:] == before[1:]
        assert all(is_alive(pid) for pid in after)
    finally:
        cluster.clean_up()


def test_nobody_is_left_behind_by_a_command_that_is_killed(tmp_path: Path) -> None:
    cluster = DevCluster(tmp_path, 2).start()
    pids = cluster.pids
    try:
        cluster.signal(signal.SIGKILL)
        assert cluster.wait() == -signal.SIGKILL
        wait_until(lambda: not any(is_alive(pid) for pid in pids), "end of all")
    finally:
        for pid in filter(is_alive, pids):
            os.kill(pid, signal.SIGKILL)


def test_a_data_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "node-2").write_text("a file where a directory should be")
    cluster = DevCluster(tmp_path, 2)
    with pytest.raises(AssertionError):
        cluster.start()
    assert cluster.wait() == 1
    assert re.search(r"\Agoqueue: cannot use .*node-2: File exists\n\Z", cluster.words())


def test_a_node_that_ends_while_all_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "data" / "node-2").mkdir(parents=True)
    (tmp_path / "data" / "node-2" / "lock").mkdir()
    cluster = DevCluster(tmp_path, 2)
    with pytest.raises(AssertionError):
        cluster.start()
    assert cluster.wait() == 1
    assert "node 2 did not start (exit code 1). The end of" in cluster.words()
    assert "Traceback" not in cluster.words()


@pytest.mark.parametrize("binary", ["missing", "/bin/true"])
def test_without_an_etcd_the_message_says_what_to_do(tmp_path: Path, binary: str) -> None:
    command = [str(GOQUEUE), "cluster", "dev", "--etcd-binary", binary]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60)
    assert done.returncode == 2
    assert "is no etcd" in done.stderr
    assert "make etcd" in done.stderr
    assert list(tmp_path.iterdir()) == []
