"""Tasks of Django 6, which needs Python 3.12: in an environment of its own, done by `manage.py goqueue_worker`; and the
app of examples/tickets, run as its first lines say.
"""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from goqueue.client.sync import Admin
from tests.integration.process import DEADLINE_S, Node, wait_until
from tests.ops.behaviours import ROOT
from tools.newer_python import find
from tools.release import build_wheel

pytestmark = pytest.mark.newer_python

DJANGO = "django==6.1.3"
INSTALL_S_MAX = 600
NO_TASK = {"task": "json.dumps", "queue": "default", "priority": 0}
MANAGE = "import django_project; django_project.manage()"
SEND = """
import asyncio, datetime, json, os, signal, django_project as project
from django.utils import timezone
now = timezone.now()
results = [project.add.enqueue(1, 2), project.fail.enqueue("bad"), asyncio.run(project.add.aenqueue(5, 6))]
results.append(project.add.using(run_after=now + datetime.timedelta(seconds=1)).enqueue(3, 4))
results.append(project.leave.enqueue())
child = os.fork()
if child == 0:
    signal.alarm(30)  # it ends if it hangs
    project.add.enqueue(7, 8)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(json.dumps([[now.timestamp()], *([each.id] for each in results)]))
"""
ASK = """
import json, sys, django_project as project
results = [project.add.get_backend().get_result(each) for each in sys.argv[1:]]
print(json.dumps([[each.status, each._return_value, [error.exception_class_path for error in each.errors],
                   each.started_at and each.started_at.timestamp()] for each in results]))
"""
TICKETS = ROOT / "examples" / "tickets"
SERVE_PAGES = """
from wsgiref.simple_server import make_server
from django.core.wsgi import get_wsgi_application
server = make_server("127.0.0.1", 0, get_wsgi_application())
print(server.server_port, flush=True)
server.serve_forever()
"""
"""What `runserver` does, on a free port."""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With Django, and with GoQueue from this checkout."""
    newer = find("3.12")
    assert newer is not None
    home = tmp_path_factory.mktemp("django")
    subprocess.run([newer, "-m", "venv", "--without-pip", home], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", f"{home}/bin/python3"]
    pins = ["--constraint", str(ROOT / "requirements" / "run.txt")]
    wheel = build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))
    subprocess.run([*pip, "install", "--no-compile", *pins, DJANGO, str(wheel)], check=True, timeout=INSTALL_S_MAX)
    return home / "bin" / "python3"


def test_tasks_of_django(python: Path, own_node: Node, tmp_path: Path) -> None:
    """A value, an error, an async call, one that runs later, one that exits, one of a process that was forked, and a
    message that is no task; the worker ends when it is told to."""
    variables = {**os.environ, "TASKS_PLACE": str(tmp_path), "TASKS_SERVERS": own_node.address}
    variables["PYTHONPATH"] = str(ROOT / "tests" / "ops")

    def run(code: str, *words: str) -> list[list[object]]:
        command = [str(python), "-c", code, *words]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert done.returncode == 0, done.stderr
        found: list[list[object]] = json.loads(done.stdout)
        return found

    with Admin(own_node.url) as admin:
        admin.create_topic("django.default")
        admin.publish("django.default", [{"value": json.dumps(NO_TASK)}])
    worker = subprocess.Popen([python, "-c", MANAGE, "goqueue_worker"], env=variables)
    try:
        (sent_s,), *ids = run(SEND)
        told: list[list[object]] = []

        def are_done() -> bool:
            told[:] = run(ASK, *(str(each) for (each,) in ids))
            return all(each[0] in ("SUCCESSFUL", "FAILED") for each in told)

        wait_until(are_done, "the end of all tasks")
        with Admin(own_node.url) as admin:
            wait_until(lambda: len(list(admin.dead_letters("django.default"))) == 1, "the dead letter")
            (dead,) = admin.dead_letters("django.default")
        assert "not a task of this project" in dead.error
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(DEADLINE_S) == 0
    finally:
        worker.kill()
    assert [each[:3] for each in told] == [
        ["SUCCESSFUL", 3, []],
        ["FAILED", None, ["builtins.ValueError"]],
        ["SUCCESSFUL", 11, []],
        ["SUCCESSFUL", 7, []],
        ["FAILED", None, ["builtins.SystemExit"]],
    ]
    assert isinstance(sent_s, float)
    assert isinstance(told[3][3], float)
    assert told[3][3] >= sent_s + 1


def test_the_ticket_office_confirms_and_reminds(python: Path, own_node: Node, tmp_path: Path) -> None:
    """An order is confirmed soon and its customer reminded later; what is no order is refused."""
    variables = {
        **os.environ,
        "TICKETS_DATABASE": str(tmp_path / "tickets.sqlite3"),
        "TICKETS_SERVERS": own_node.address,
        "TICKETS_REMIND_AFTER_S": "1",
        "DJANGO_SETTINGS_MODULE": "office.settings",
        "PYTHONPATH": str(TICKETS),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    manage = [str(python), str(TICKETS / "manage.py")]
    subprocess.run([*manage, "migrate", "--run-syncdb"], env=variables, check=True, timeout=DEADLINE_S)
    with (
        subprocess.Popen([python, "-c", SERVE_PAGES], env=variables, stdout=subprocess.PIPE, text=True) as pages,
        subprocess.Popen([*manage, "goqueue_worker"], env=variables) as worker,
    ):
        try:
            assert pages.stdout is not None
            with httpx.Client(base_url=f"http://127.0.0.1:{int(pages.stdout.readline())}", timeout=DEADLINE_S) as http:
                for wrong in ("no JSON", "[]", '{"customer": "ada"}', '{"customer": "ada", "seats": 11}'):
                    assert http.post("/orders", content=wrong).status_code == 400
                place(http, 1)
                wait_until(lambda: order(http, 1)["reminded_at"] is not None, "the reminder")
                # The worker knows both topics now: nothing but the delay keeps it from the next reminder.
                before = datetime.now(UTC)
                place(http, 2)
                wait_until(lambda: order(http, 2)["reminded_at"] is not None, "the reminder")
                reminded_at = datetime.fromisoformat(order(http, 2)["reminded_at"])
                assert reminded_at >= before + timedelta(seconds=1)
                wait_until(lambda: order(http, 2)["confirmed_at"] is not None, "the confirmation")
                assert http.get("/orders/3").status_code == 404
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(DEADLINE_S) == 0
        finally:
            pages.kill()
            worker.kill()


def place(http: httpx.Client, number: int) -> None:
    taken = http.post("/orders", json={"customer": "ada", "seats": 2})
    assert (taken.status_code, taken.json()) == (202, {"order": number})


def order(http: httpx.Client, number: int) -> dict[str, Any]:
    told: dict[str, Any] = http.get(f"/orders/{number}").json()
    assert (told["customer"], told["seats"]) == ("ada", 2)
    return told
