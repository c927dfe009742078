"""Writes the Python of api/proto into src/goqueue/wire/grpc, with the protoc that grpcio-tools brings.

The result is committed, so that a checkout, an editable install and a wheel need no compiler; a test holds it against
what protoc gives. protoc imports by the path of the .proto file, and `goqueue.v1` is no room of ours: so that one
line is put right.
"""

import sys
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from grpc_tools import protoc

ROOT = Path(__file__).parents[1]
PROTOS = ROOT / "api" / "proto"
TARGET = ROOT / "src" / "goqueue" / "wire" / "grpc"
BEFORE, AFTER = "from goqueue.v1 import ", "from goqueue.wire.grpc import "


class ProtocFailed(Exception):
    """It has said why."""


def generate() -> dict[str, str]:
    """Name and text of each file."""
    names = [path.relative_to(PROTOS).as_posix() for path in sorted(PROTOS.rglob("*.proto"))]
    with TemporaryDirectory() as directory:
        arguments = ["protoc", f"-I{PROTOS}", f"-I{files('grpc_tools') / '_proto'}"]
        if protoc.main([*arguments, f"--python_out={directory}", f"--pyi_out={directory}", *names]):
            raise ProtocFailed
        made = sorted(path for path in Path(directory).rglob("*_pb2.py*") if path.is_file())
        return {path.name: path.read_text("utf-8").replace(BEFORE, AFTER) for path in made}


def main() -> int:
    TARGET.mkdir(parents=True, exist_ok=True)
    made = generate()
    for old in [*TARGET.glob("*_pb2.py"), *TARGET.glob("*_pb2.pyi")]:
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (TARGET / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
