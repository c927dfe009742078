"""The Go SDK, built and run by the real Go."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.integration.process import Node
from tests.ops.behaviours import LIST, ROOT, expected, run
from tools.go_protos import TARGET, generate

MODULE = ROOT / "sdk" / "go"
PAGE = ROOT / "docs" / "go.md"
BUILD_S_MAX = 240
TLS_PORTS = {"grpc": 9001, "http": 8081}
WITH_A_KEY = ("messages are read as they were published", "a worker acknowledges what its handler has done")


def go(*arguments: str) -> str:
    command = ["go", *arguments]
    done = subprocess.run(command, cwd=MODULE, capture_output=True, text=True, timeout=BUILD_S_MAX, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def behaviours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("go") / "behaviours"
    go("build", "-o", str(made), "./internal/behaviours")
    return made


def test_it_behaves_as_the_list_says(own_node: Node, behaviours: Path) -> None:
    command = [str(behaviours), "-list", str(LIST), "-grpc", own_node.grpc, "-http", own_node.url]
    assert run(command, own_node) == expected()


@pytest.fixture
def closed_node(tmp_path: Path) -> Iterator[Node]:
    """It asks who comes, and has TLS for gRPC and HTTP beside the listeners without."""
    node, authority = Node(tmp_path, is_closed=True), Authority(tmp_path)
    host = node.endpoint[0]
    pair = authority.sign("server", addresses=[host])
    tls = f"name=safe&protocol=SSL&cert_file={pair.cert}&key_file={pair.key}"
    listeners = [f"kafka://{node.address}", f"http://{host}:8080", f"grpc://{node.grpc}"]
    listeners += [f"{api}://{host}:{port}?{tls}" for api, port in TLS_PORTS.items()]
    node.arguments = ("--listeners", ",".join(listeners))
    yield node.start()
    node.clean_up()


def test_it_shows_its_key_over_tls(closed_node: Node, behaviours: Path, tmp_path: Path) -> None:
    chosen = tmp_path / "list.json"
    every = json.loads(LIST.read_text("utf-8"))
    chosen.write_text(json.dumps([each for each in every if each["name"] in WITH_A_KEY]))
    host = closed_node.endpoint[0]
    command = [str(behaviours), "-list", str(chosen), "-ca", str(tmp_path / "authority.pem")]
    command += ["-grpc", f"{host}:{TLS_PORTS['grpc']}", "-http", f"https://{host}:{TLS_PORTS['http']}"]
    refused = run([*command, "-key", f"gqk_k0123456789abcdef_{'ab' * 32}"], closed_node)
    assert ["Unauthenticated" in said for said in refused.values()] == [True] * len(WITH_A_KEY)
    got = run([*command, "-key", closed_node.first_key], closed_node)
    assert got == {name: expected()[name] for name in WITH_A_KEY}


def test_the_examples_of_the_page_run(own_node: Node, tmp_path: Path) -> None:
    said = []
    for number, example in enumerate(re.findall(r"```go\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)):
        file = tmp_path / f"example{number}" / "main.go"
        file.parent.mkdir()
        placed = example.replace("127.0.0.1:9000", own_node.grpc).replace("http://127.0.0.1:8080", own_node.url)
        file.write_text(placed, "utf-8")
        said.append(go("run", str(file)))
    packed, clicks = said
    assert "packed three apples in attempt 1" in packed
    assert clicks == "1000 clicks\n"


def test_it_stands_nodes_in_trouble() -> None:
    go("test", "./...")


def test_the_code_is_formatted_and_vetted() -> None:
    files = [str(path) for path in MODULE.rglob("*.go")]
    done = subprocess.run(["gofmt", "-l", *files], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    go("vet", "./...")


def test_the_stubs_are_those_of_the_protos() -> None:
    assert {path.name: path.read_text("utf-8") for path in TARGET.glob("*.pb.go")} == generate()
