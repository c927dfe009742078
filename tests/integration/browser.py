"""Chromium without a window, and pages for it that are served from another origin than the node's."""

import json
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.integration.process import DEADLINE_S, own_host

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
)
PAGE_MS = 10_000
"""Of the page's own time, which runs ahead while nothing happens."""
SCRIPT = """<!doctype html><body><script>
async function outcome(work) {{ try {{ return await work(); }} catch (error) {{ return "refused"; }} }}
(async () => {{
  const results = await (async () => {{ {script} }})();
  await fetch("/results", {{ method: "POST", body: JSON.stringify(results) }});
}})();
</script></body>"""


def command(profile: Path, *arguments: str) -> list[str]:
    return [CHROMIUM or "", *FLAGS, f"--user-data-dir={profile}", *arguments]


def dump(profile: Path, url: str, *arguments: str) -> tuple[str, str]:
    """What a page has become after its scripts ran, and what the browser said meanwhile."""
    line = command(profile, f"--virtual-time-budget={PAGE_MS}", "--dump-dom", *arguments, url)
    done = subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return done.stdout, done.stderr


class Site:
    """A web site of its own, at an address of its own. It has one page, with a script that tells how it went."""

    def __init__(self, port: int) -> None:
        self._results: queue.Queue[Any] = queue.Queue()
        self._page = b""
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(site._page if self.path == "/" else b"")

            def do_POST(self) -> None:
                site._results.put(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self._answer(b"")

            def _answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer((own_host(), port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def origin(self) -> str:
        return f"http://{self._server.server_address[0]}:{self._server.server_port}"  # type: ignore[str-bytes-safe]

    def visit(self, profile: Path, script: str) -> Any:
        """Open the page in a browser; returns what its script returned."""
        self._page = SCRIPT.format(script=script).encode()
        with subprocess.Popen(command(profile, self.origin), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as run:
            try:
                return self._results.get(timeout=DEADLINE_S)
            finally:
                run.kill()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def site(port: int = 0) -> Iterator[Site]:
    running = Site(port)
    try:
        yield running
    finally:
        running.close()
