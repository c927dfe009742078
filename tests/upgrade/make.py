"""Write what this version stores into tests/upgrade/data: python -m tests.upgrade.make NAME"""

import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.integration.process import Node
from tests.upgrade.contents import Filler, Reader
from tests.upgrade.work import Work, open_transactions, tear

DATA = Path(__file__).with_name("data")
WORK = DATA / "work"


def main(name: str) -> None:
    DATA.mkdir(exist_ok=True)
    WORK.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        _keep_contents(name, Path(directory))
    with tempfile.TemporaryDirectory() as directory:
        _keep_work(name, Path(directory))


def _keep_contents(name: str, directory: Path) -> None:
    """All that a node holds, in a directory that was killed and one that was stopped."""
    node = Node(directory).start()
    try:
        Filler(node).fill()
        node.kill()
        killed = directory / "killed"
        shutil.copytree(node.data_dir, killed)
        node.start()
        contents = Reader(node).read()
        node.stop()
    finally:
        node.clean_up()
    _pack(DATA / name, killed=killed, stopped=node.data_dir)
    _write(DATA / name, contents)


def _keep_work(name: str, directory: Path) -> None:
    """Work under way, in a directory that was torn in the middle of a write and one that was stopped."""
    node = Node(directory).start()
    try:
        begun = Work(node).begin()
        node.kill()
        torn = directory / "torn"
        shutil.copytree(node.data_dir, torn)
        tear(torn)
        node.start()
        assert open_transactions(node) == ["left-open"], "this machine is too slow: try again"
        node.stop()
    finally:
        node.clean_up()
    _pack(WORK / name, torn=torn, stopped=node.data_dir)
    _write(WORK / name, begun)


def _pack(path: Path, **directories: Path) -> None:
    for kind, source in directories.items():
        with tarfile.open(path.with_name(f"{path.name}-{kind}.tar.xz"), "w:xz") as archive:
            archive.add(source, "data")


def _write(path: Path, contents: object) -> None:
    path.with_name(f"{path.name}.json").write_text(json.dumps(contents, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
