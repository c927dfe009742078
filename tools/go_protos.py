"""Writes the Go of api/proto into sdk/go/pb, with the protoc of grpcio-tools and the plugins that sdk/go/go.mod pins.

The result is committed, so that users of the Go SDK need no compiler; a test of `make test-ops` holds it against what
protoc gives.
"""

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from grpc_tools import protoc

from tools.golang import find_go
from tools.protos import PROTOS, ROOT, ProtocFailed

MODULE = ROOT / "sdk" / "go"
TARGET = MODULE / "pb"
IMPORT = "github.com/goqueue/goqueue/sdk/go/pb"
PLUGINS = ("google.golang.org/protobuf/cmd/protoc-gen-go", "google.golang.org/grpc/cmd/protoc-gen-go-grpc")


def generate() -> dict[str, str]:
    """Name and text of each file."""
    names = [path.relative_to(PROTOS).as_posix() for path in sorted(PROTOS.rglob("*.proto"))]
    mapped = ",".join(["paths=source_relative", *(f"M{name}={IMPORT}" for name in names)])
    with TemporaryDirectory() as directory:
        command = [find_go(), "build", "-o", f"{directory}/", *PLUGINS]
        subprocess.run(command, cwd=MODULE, env=os.environ | {"CGO_ENABLED": "0"}, check=True)
        made = Path(directory, "made")
        made.mkdir()
        arguments = ["protoc", f"-I{PROTOS}", f"-I{files('grpc_tools') / '_proto'}"]
        for plugin in ("go", "go-grpc"):
            arguments += [f"--plugin=protoc-gen-{plugin}={directory}/protoc-gen-{plugin}"]
            arguments += [f"--{plugin}_out={mapped}:{made}"]
        if protoc.main([*arguments, *names]):
            raise ProtocFailed
        return {path.name: path.read_text("utf-8") for path in sorted(made.rglob("*.pb.go"))}


def main() -> int:
    TARGET.mkdir(parents=True, exist_ok=True)
    made = generate()
    for old in TARGET.glob("*.pb.go"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (TARGET / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
