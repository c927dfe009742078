"""What a listener for metrics serves: metrics and health, and nothing else of the HTTP API."""

from goqueue.doors.http.asgi import answer_error
from goqueue.doors.http.errors import NOT_FOUND
from goqueue.wire.asgi import App, Receive, Scope, Send

SERVED = frozenset({"health", "healthz", "readyz", "livez", "metrics"})


class MetricsOnly:
    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].removeprefix("/v1").strip("/") not in SERVED:
            await answer_error(send, NOT_FOUND, "NO_SUCH_ROUTE", "this listener has metrics and health only")
            return
        await self._app(scope, receive, send)
