"""Write what this version stores into tests/upgrade/data: python -m tests.upgrade.make NAME"""

import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.integration.process import Node
from tests.upgrade.contents import Filler, Reader

DATA = Path(__file__).with_name("data")


def main(name: str) -> None:
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        node = Node(Path(directory)).start()
        try:
            Filler(node).fill()
        except BaseException:
            node.clean_up()
            raise
        node.kill()
        killed = Path(directory) / "killed"
        shutil.copytree(node.data_dir, killed)
        node.start()
        contents = Reader(node).read()
        node.stop()
        for kind, source in (("killed", killed), ("stopped", node.data_dir)):
            with tarfile.open(DATA / f"{name}-{kind}.tar.xz", "w:xz") as archive:
                archive.add(source, "data")
    (DATA / f"{name}.json").write_text(json.dumps(contents, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
