"""The pages at /console/: files as they are written, served from memory. There is no build and nothing from elsewhere.

Their policy lets them run modules of this node and ask it, and nothing else. A browser that knows Trusted Types refuses
to make markup of any text, so what a message says can only be shown as text.
"""

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from goqueue.doors.http.asgi import Header, answer, answer_error, header
from goqueue.wire.asgi import App, Receive, Scope, Send

OK, NOT_MODIFIED, MOVED, METHOD_NOT_ALLOWED = 200, 304, 308, 405
PAGE = "index.html"
TYPES = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
STANDING: tuple[Header, ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
    (b"vary", b"accept-encoding"),
)


class File:
    def __init__(self, name: str, content: bytes) -> None:
        self._content = content
        self._packed = gzip.compress(content, mtime=0)
        self._tag = b'"%b"' % hashlib.sha256(content).hexdigest()[:32].encode()
        self._type = TYPES[name.rpartition(".")[2]]

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            words = f"{scope['path']} takes GET, HEAD, not {scope['method']}"
            await answer_error(send, METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", words, ((b"allow", b"GET, HEAD"),))
            return
        headers: tuple[Header, ...] = (*STANDING, (b"etag", self._tag))
        if header(scope, b"if-none-match") == self._tag:
            await answer(send, NOT_MODIFIED, b"", self._type, headers)
        elif b"gzip" in (header(scope, b"accept-encoding") or b""):
            await answer(send, OK, self._packed, self._type, (*headers, (b"content-encoding", b"gzip")))
        else:
            await answer(send, OK, self._content, self._type, headers)


async def _to_page(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Relative, so that it holds under /v1, too."""
    await answer(send, MOVED, b"", headers=((b"location", b"console/"),))


def sources() -> dict[str, bytes]:
    """By name."""
    found = files("goqueue.doors.http").joinpath("console").iterdir()
    return {each.name: each.read_bytes() for each in found if each.name.rpartition(".")[2] in TYPES}


@cache
def console_files() -> Mapping[str, App]:
    """By path."""
    apps: dict[str, App] = {f"/console/{name}": File(name, content) for name, content in sources().items()}
    return {"/console": _to_page, "/console/": apps[f"/console/{PAGE}"], **apps}
