"""The house rules that no linter knows. Each rule is a function that lists what breaks it, tried on a bad sample."""

import ast
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import grimp
import pytest

from goqueue.cli.commands.every import COMMANDS

ROOT = Path(__file__).parents[2]
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60

NAMED_BY_COMMANDS = sorted({f"goqueue.cli.run.{command.run.partition('.')[0]}" for command in COMMANDS})
"""Modules that the table of commands names, and that are imported when their command runs."""
OF_SPARK = ("goqueue.spark.progress", "goqueue.spark.worker_start")
"""What users import, and what Spark runs."""
OF_INTEGRATIONS = tuple(
    f"goqueue.integrations.{name}"
    for name in ("celery.transport", "django.management.commands.goqueue_worker", "dramatiq", "fastapi", "taskiq")
)
"""What other frameworks are told by name, or import."""
ENTRY_POINTS = (
    "goqueue.cli.main",
    *NAMED_BY_COMMANDS,
    "goqueue.client",
    "goqueue.testing",
    *OF_INTEGRATIONS,
    *OF_SPARK,
)
AWAITING_A_DOOR: list[str] = []
"""Finished parts that only a door or the broker can call. A module leaves this list with its first caller."""
READS_ENVIRONMENT = ("src/goqueue/node/settings.py", "src/goqueue/node/environment.py")
SPARK_READS_ENVIRONMENT = tuple(f"src/goqueue/spark/{name}.py" for name in ("errors", "sessions", "worker_start"))
"""Spark's own processes are told some things by variables only."""

FACADES = (
    "src/goqueue/client/",  # what users import
    "src/goqueue/integrations/",  # the same
    "src/goqueue/spark/",  # the same, and names that differ between versions of Spark
    "src/goqueue/testing/",  # what users' tests import
    "src/goqueue/cli/commands/__init__.py",  # read at every start of the CLI, so that a command imports only its own
    "src/goqueue/wire/rest/operations/__init__.py",  # imports the module of an operation when it is first asked for
)
"""Where a name may be imported from a module that does not define it, or a package holds more than its docstring."""

# One letter in brackets, so that this file does not break its own rule.
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:wo[r]k|fa[r]m|ro[o]t|ho[m]e/\w+|Us[e]rs/\w+)/")
REGISTRY = re.compile(r"pyp[i]\.org|pythonhoste[d]\.org|npmj[s]\.org|--(?:extra-)?inde[x]-url|--find-link[s]")
STUB = re.compile(r"NotImplementedErro[r]|#\s*(?:TOD[O]|FIXM[E]|XX[X])\b")
MADE_HERE = re.compile(r"\.(?!ci$).*|__pycache__|build|data|dist|.*\.egg-info")
PASSED_ON = re.compile(r"__all__|\b(\w+)\s+as\s+\1\b")
"""Where it is found, the syntax tells whether it is one."""
SECRETS = re.compile("password|secret|digest|signature|proof|mac|stored_key|token")
SECRET = re.compile(rf"(?:^|_)(?:{SECRETS.pattern}|secrets)$")
COMPARES_OWN = ("src/goqueue/node/bootstrap.py",)
"""The key that a node has made with the one that is stored: nobody guesses."""
LISTED = re.compile(r"def test_[a-z]\d+_")
ADR_NAME = re.compile(r"\d{4}-[a-z0-9-]+\.md")


@cache
def tracked_texts() -> tuple[tuple[str, str], ...]:
    """Name and text of all that is or will be committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    names = listed.stdout.splitlines() if listed.returncode == 0 else _unpacked_files()
    found = []
    for name in names:
        with suppress(FileNotFoundError, UnicodeDecodeError):  # deleted but still listed; not a text
            found.append((name, (ROOT / name).read_text("utf-8")))
    return tuple(found)


def _unpacked_files() -> Iterator[str]:
    """In an archive without git: all that is not plainly made here."""
    for directory, directories, files in os.walk(ROOT):
        directories[:] = [each for each in directories if not MADE_HERE.fullmatch(each)]
        yield from (Path(directory, file).relative_to(ROOT).as_posix() for file in files)


def texts(*suffixes: str, under: str = "") -> Iterator[tuple[str, str]]:
    for name, text in tracked_texts():
        if name.startswith(under) and (not suffixes or name.endswith(suffixes)):
            yield name, text


def long_files(files: Iterable[tuple[str, str]]) -> list[str]:
    sizes = ((name, len(text.splitlines())) for name, text in files)
    return [f"{name}: {lines} lines" for name, lines in sizes if lines > FILE_LINES_MAX]


def statements(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """These and those inside them. What they are made of is ten times as much, which `ast.walk` goes through."""
    for node in nodes:
        yield node
        for part in ("body", "orelse", "handlers", "finalbody", "cases"):
            yield from statements(getattr(node, part, ()))


def long_functions(files: Iterable[tuple[str, str]]) -> list[str]:
    found = []
    for name, text in files:
        for node in statements([ast.parse(text)]):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    found.append(f"{name}:{node.lineno} {node.name}: {lines} lines")
    return found


def matching_lines(pattern: re.Pattern[str], files: Iterable[tuple[str, str]]) -> list[str]:
    return [
        f"{name}:{number} {line.strip()}"
        for name, text in files
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def sleeps(files: Iterable[tuple[str, str]]) -> list[str]:
    """Calls of `time.sleep` or `asyncio.sleep`, however imported."""
    found = []
    for name, text in files:
        for node in ast.walk(ast.parse(text)) if "sleep" in text else ():
            if isinstance(node, ast.ImportFrom) and node.module in {"time", "asyncio"}:
                is_sleep = any(alias.name == "sleep" for alias in node.names)
            else:
                is_sleep = (
                    isinstance(node, ast.Attribute)
                    and node.attr == "sleep"
                    and ast.unparse(node.value) in {"time", "asyncio"}
                )
            if is_sleep:
                found.append(f"{name}:{node.lineno}")  # type: ignore[attr-defined]
    return found


def environment_readers(files: Iterable[tuple[str, str]]) -> list[str]:
    pattern = re.compile(r"\benviron\b|\bgetenvb?\b")
    allowed = (*READS_ENVIRONMENT, *SPARK_READS_ENVIRONMENT)
    return [line for line in matching_lines(pattern, files) if line.partition(":")[0] not in allowed]


def unreached_modules(graph: grimp.ImportGraph, entry_points: Iterable[str]) -> list[str]:
    reached: set[str] = set()
    for entry in entry_points:
        for module in {entry, *graph.find_descendants(entry)}:
            reached |= {module} | graph.find_upstream_modules(module)
    # Importing a module runs the packages around it.
    packages = {module[: dot.start()] for module in reached for dot in re.finditer(r"\.", module)}
    return sorted(graph.modules - reached - packages)


def unlisted_records(names: Iterable[str], index: str) -> list[str]:
    return [name for name in sorted(names) if f"]({name})" not in index]


def passed_on(files: Iterable[tuple[str, str]]) -> list[str]:
    """Names that a module offers and does not define. Where there is no `__all__` and no `import x as x`, mypy
    refuses to import them."""
    found = []
    for name, text in files:
        if not name.endswith("__init__.py") and not PASSED_ON.search(text):
            continue
        tree = ast.parse(text)
        if name.endswith("__init__.py") and len(tree.body) > 1:
            found.append(f"{name}: more than a docstring")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id == "__all__":
                found.append(f"{name}:{node.lineno} __all__")
            elif isinstance(node, ast.alias) and node.asname == node.name:
                found.append(f"{name}:{node.lineno} {node.name} as {node.name}")
    return found


def undocumented(files: Iterable[tuple[str, str]]) -> list[str]:
    plain = re.compile(r'"""\w')
    return [name for name, text in files if not plain.match(text) and not ast.get_docstring(ast.parse(text))]


def comparisons(path: str, text: str) -> list[str]:
    """Of secrets, by == or !=."""
    if not any(("==" in line or "!=" in line) and SECRETS.search(line) for line in text.splitlines()):
        return []

    def name(node: ast.expr) -> str:
        found = node.func if isinstance(node, ast.Call) else node
        return found.attr if isinstance(found, ast.Attribute) else found.id if isinstance(found, ast.Name) else ""

    return [
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Compare) and any(isinstance(one, ast.Eq | ast.NotEq) for one in node.ops)
        if any(SECRET.search(name(each)) for each in (node.left, *node.comparators))
    ]


def test_files_are_small_rooms() -> None:
    assert long_files(texts(".py")) == []
    assert long_files([("a.py", "x\n" * 401), ("b.py", "x\n" * 400)]) == ["a.py: 401 lines"]


def test_functions_fit_on_a_page() -> None:
    assert long_functions(texts(".py")) == []
    function = "async def long():\n" + "    x\n" * 60
    assert long_functions([("a.py", function)]) == ["a.py:1 long: 61 lines"]
    assert long_functions([("a.py", function.removesuffix("    x\n"))]) == []


def test_every_module_is_reached_from_an_entry_point() -> None:
    graph = grimp.build_graph("goqueue", cache_dir=None)
    assert unreached_modules(graph, ENTRY_POINTS) == AWAITING_A_DOOR


def test_an_island_of_modules_is_found() -> None:
    graph = grimp.ImportGraph()
    for module in ("p", "p.main", "p.room", "p.room.used", "p.island", "p.bridge"):
        graph.add_module(module)
    graph.add_import(importer="p.main", imported="p.room.used")
    graph.add_import(importer="p.bridge", imported="p.island")
    assert unreached_modules(graph, ["p.main"]) == ["p.bridge", "p.island"]


def test_no_file_names_a_machine_or_a_registry() -> None:
    assert matching_lines(MACHINE_PATH, texts()) == []
    assert matching_lines(REGISTRY, texts()) == []


@pytest.mark.parametrize("first", ["work", "root", "farm", "home/ann", "Users/ann"])
def test_a_machine_path_is_found(first: str) -> None:
    line = f'cd "/{first}/main"'
    assert matching_lines(MACHINE_PATH, [("a.sh", f"\n{line}\n")]) == [f"a.sh:2 {line}"]
    assert matching_lines(MACHINE_PATH, [("a.sh", f"src/{first}/main and https://x.org/{first}/y")]) == []


@pytest.mark.parametrize("host", ["pypi", "registry.npmjs"])
def test_a_registry_is_found(host: str) -> None:
    assert matching_lines(REGISTRY, [("a.txt", f"https://{host}.org/simple")])


def test_tests_never_sleep() -> None:
    assert sleeps(texts(".py", under="tests/")) == []
    bad = [f"\n{module}.{'sleep'}(1)" for module in ("time", "asyncio")] + ["\nfrom asyncio import sleep"]
    assert sleeps((f"{number}.py", text) for number, text in enumerate(bad)) == ["0.py:2", "1.py:2", "2.py:2"]
    assert sleeps([("a.py", "clock.sleep(1)")]) == []


def test_the_source_holds_no_stubs() -> None:
    assert matching_lines(STUB, texts(under="src/")) == []
    bad = ["raise NotImplemented" + "Error", "x = 1  # TO" + "DO later", "#FIX" + "ME"]
    assert len(matching_lines(STUB, [("a.py", "\n".join(bad))])) == 3


def test_secrets_are_compared_in_constant_time() -> None:
    """`==` takes longer, the more of a guess is right."""
    found = [
        line
        for path, text in texts(".py", under="src/")
        if path not in COMPARES_OWN
        for line in comparisons(path, text)
    ]
    assert found == []
    assert comparisons("a.py", "x.digest == y") == ["a.py:1 x.digest == y"]
    assert comparisons("a.py", "b != self._mac(c)") == ["a.py:1 b != self._mac(c)"]
    assert comparisons("a.py", "compare_digest(x.digest, y) and key == z") == []


def test_only_the_settings_read_the_environment() -> None:
    assert environment_readers(texts(".py", under="src/")) == []
    bad = "os.environ['X']"
    assert environment_readers([("src/a.py", bad), (READS_ENVIRONMENT[0], bad)]) == [f"src/a.py:1 {bad}"]


def test_every_decision_record_is_listed() -> None:
    directory = ROOT / "docs" / "adr"
    names = [path.name for path in directory.glob("*.md") if path.name != "README.md"]
    assert [name for name in names if not ADR_NAME.fullmatch(name)] == []
    assert unlisted_records(names, (directory / "README.md").read_text("utf-8")) == []
    assert unlisted_records(["0001-a.md", "0002-b.md"], "- [a](0001-a.md)") == ["0002-b.md"]


def test_every_room_says_what_it_is_for() -> None:
    assert undocumented(texts(".py", under="src/")) == []
    assert undocumented([("a.py", "x = 1"), ("b.py", '"""Why."""')]) == ["a.py"]


def test_a_name_is_imported_from_where_it_is_defined() -> None:
    ours = (each for each in texts(".py", under="src/goqueue/") if not each[0].startswith(FACADES))
    assert passed_on(ours) == []
    bad = [
        ("a/__init__.py", '"""Why."""\nfrom x import y'),
        ("b.py", '__all__ = ["y"]'),
        ("c.py", "from x import y as y"),
    ]
    assert passed_on(bad) == ["a/__init__.py: more than a docstring", "b.py:1 __all__", "c.py:1 y as y"]
    assert passed_on([("a/__init__.py", '"""Why."""'), ("b.py", "from x import y as z")]) == []


def test_tests_are_named_by_what_they_promise() -> None:
    """A number of a list that is not in the repository tells a reader nothing."""
    assert matching_lines(LISTED, texts(".py", under="tests/")) == []
    bad, good = "def test_" + "b14_an_older_epoch_is_fenced() -> None:", "def test_lz4_blocks_stand_alone() -> None:"
    assert matching_lines(LISTED, [("a.py", f"{good}\nasync {bad}")]) == [f"a.py:2 async {bad}"]
