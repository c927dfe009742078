"""Sessions as a browser carries them: cookies, and what a page has to show beside them.

A cookie comes along with every request of a browser, whoever made it ask. So what changes anything needs the header
X-GoQueue-CSRF too, which only a page of this node can know, and an Origin that is this node's.
"""

from goqueue.broker.accounts.sessions import Sessions
from goqueue.doors.http.asgi import Header, header
from goqueue.doors.http.browsers import SAFE_METHODS, is_loopback
from goqueue.doors.http.errors import FORBIDDEN, HttpError
from goqueue.model.secret import Secret
from goqueue.model.sessions import Session
from goqueue.wire.asgi import Message, Scope, Send

SHOWN = "goqueue.session"
"""In a scope: the session that it came with, as it was sealed."""
CSRF = b"x-goqueue-csrf"
NO_STORE: Header = (b"cache-control", b"no-store")
SESSION, LOG_IN = "", "-login"
"""What a cookie is for: the end of its name."""
LOG_IN_S = 600


def is_secure(scope: Scope) -> bool:
    return bool(scope.get("scheme") == "https")


def cookie_name(scope: Scope, use: str = SESSION) -> str:
    """With the prefix no other host can set it, nor anybody on the way. Without TLS browsers refuse that one."""
    return f"{'__Host-gq' if is_secure(scope) else 'gq-dev'}{use}"


def own_origin(scope: Scope) -> str:
    """Of the pages of this listener, as whoever asks calls it."""
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    scheme = "https" if is_secure(scope) else "http"
    return f"{scheme}://{hosts[0].decode('latin-1').lower()}" if len(hosts) == 1 else ""


def given(scope: Scope, use: str = SESSION) -> Secret[str]:
    wanted = cookie_name(scope, use)
    for name, value in scope["headers"]:
        if name == b"cookie":
            for each in value.decode("latin-1").split(";"):
                key, _, text = each.strip().partition("=")
                if key == wanted:
                    return Secret(text.strip('"'))
    return Secret("")


def check_begun_safely(scope: Scope) -> None:
    """A password and a cookie must not be read on the way."""
    server = scope.get("server")
    if not is_secure(scope) and server is not None and not is_loopback(server[0]):
        raise HttpError(FORBIDDEN, "TLS_NEEDED", "sessions begin on listeners with TLS, or on this machine, only")


def check_page(sessions: Sessions, session: Session, scope: Scope) -> None:
    """A request that came with a session was meant by a page of this node."""
    if scope["method"] in SAFE_METHODS:
        return
    origin = (header(scope, b"origin") or b"").decode("latin-1").lower()
    if not origin or origin != own_origin(scope):
        raise HttpError(FORBIDDEN, "FOREIGN_ORIGIN", "a session is for pages of this node: Origin is not that of one")
    _check_csrf(sessions, session, scope)


def _check_csrf(sessions: Sessions, session: Session, scope: Scope) -> None:
    shown = Secret((header(scope, CSRF) or b"").decode("latin-1"))
    if shown != sessions.csrf(session):
        words = "this request needs the header X-GoQueue-CSRF of its session: GET /session tells it"
        raise HttpError(FORBIDDEN, "CSRF_TOKEN_NEEDED", words)


def check_taking(sessions: Sessions, scope: Scope) -> None:
    """Something is taken by a GET: it has to be meant by a page of this node, too. A link in a mail looks as if the
    person had typed it, and comes with the cookie."""
    session: Session | None = scope.get(SHOWN)
    if session is not None and header(scope, b"sec-fetch-site") != b"same-origin":
        _check_csrf(sessions, session, scope)


def cookie(scope: Scope, text: Secret[str], age_s: int, use: str = SESSION) -> Header:
    """The one of a log-in comes back with a link from the issuer, so it cannot be strict."""
    parts = [f"{cookie_name(scope, use)}={text.reveal()}", "Path=/", "HttpOnly", f"Max-Age={age_s}"]
    parts.append("SameSite=Lax" if use == LOG_IN else "SameSite=Strict")
    if is_secure(scope):
        parts.append("Secure")
    return b"set-cookie", "; ".join(parts).encode("latin-1")


def session_cookie(sessions: Sessions, session: Session, now_ms: int, scope: Scope) -> Header:
    return cookie(scope, sessions.text(session), max(1, (session.idle_ms - now_ms) // 1000))


def no_cookie(scope: Scope, use: str = SESSION) -> Header:
    return cookie(scope, Secret(""), 0, use)


def in_session(send: Send, renewed: Header | None) -> Send:
    """What somebody who has logged in is told is kept by no browser. `renewed`: the cookie, if it is to be set."""

    async def send_private(message: Message) -> None:
        if message["type"] == "http.response.start":
            said = {name for name, _ in message["headers"]}
            if b"cache-control" not in said:
                message["headers"].append(NO_STORE)
            if renewed is not None and b"set-cookie" not in said:
                message["headers"].append(renewed)
        await send(message)

    return send_private
