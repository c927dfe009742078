"""Sessions of people with browsers."""

from functools import partial
from html import escape

from msgspec import UNSET

from goqueue.broker.access import Access
from goqueue.doors.http.asgi import Header
from goqueue.doors.http.call import Call
from goqueue.doors.http.cookies import (
    LOG_IN,
    LOG_IN_S,
    NO_STORE,
    check_begun_safely,
    cookie,
    given,
    no_cookie,
    own_origin,
    session_cookie,
)
from goqueue.doors.http.errors import BAD_REQUEST, NOT_FOUND, UNAUTHORIZED, HttpError
from goqueue.doors.http.operation import Elsewhere, Handlers, Text, WithHeaders
from goqueue.doors.http.routes.acls import rule_facts
from goqueue.doors.http.visit import Visit
from goqueue.model.access import KNOWN, OPEN, Kind
from goqueue.wire.rest.operations import sessions as operations
from goqueue.wire.rest.sessions import LoggedInElsewhere, LoggedOut, LogIn, LogInElsewhere, LogOutQuery, WhoAmI

sessions = Handlers()

CALLBACK = "/session/callback"
PAGE = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>GoQueue</title>'
    '<meta http-equiv="refresh" content="0; url={to}"><p><a href="{to}">Logged in</a></p></html>'
)
"""A link of the issuer's led here, and such a page is not given the strict cookie, nor is one that it is redirected to.
From this page on, which is this node's own, it is."""
PAGE_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    NO_STORE,
)


@sessions.handles(operations.LOG_IN, OPEN)
async def log_in(call: Call, visit: Visit, body: LogIn) -> WhoAmI | WithHeaders:  # noqa: ARG001  every handler takes it
    check_begun_safely(visit.scope)
    access = await visit.begin(body.user, body.password)
    return WithHeaders(_who(visit, access), (NO_STORE, _cookie(visit, access)))


@sessions.handles(operations.WHO_AM_I, KNOWN)
async def who_am_i(call: Call, visit: Visit) -> WhoAmI:  # noqa: ARG001  likewise
    return _who(visit, visit.access)


@sessions.handles(operations.LOG_OUT, KNOWN)
async def log_out(call: Call, visit: Visit, query: LogOutQuery) -> LoggedOut | WithHeaders:
    session = visit.access.session
    if session is None:
        raise HttpError(BAD_REQUEST, "NO_SESSION", "this request came without a session")
    _: object = await call.ask(partial(visit.gate.end_session, session, visit.connected, is_all=query.all))
    return WithHeaders(LoggedOut(success=True), (no_cookie(visit.scope),))


@sessions.handles(operations.LOG_IN_ELSEWHERE, OPEN)
async def log_in_elsewhere(call: Call, visit: Visit, query: LogInElsewhere) -> Elsewhere:  # noqa: ARG001  likewise
    check_begun_safely(visit.scope)
    flow = visit.logins.code_flow
    if flow is None:
        raise HttpError(NOT_FOUND, "NO_ISSUER", "no identity provider is set up for people: see oidc_client_id")
    url, kept = flow.begin(f"{own_origin(visit.scope)}{CALLBACK}", query.to)
    return Elsewhere(url, (NO_STORE, cookie(visit.scope, kept, LOG_IN_S, LOG_IN)))


@sessions.handles(operations.LOGGED_IN_ELSEWHERE, OPEN)
async def logged_in_elsewhere(call: Call, visit: Visit, query: LoggedInElsewhere) -> Text:  # noqa: ARG001  likewise
    flow = visit.logins.code_flow
    if flow is None:
        raise HttpError(NOT_FOUND, "NO_ISSUER", "no identity provider is set up for people: see oidc_client_id")
    begun = flow.begun(given(visit.scope, LOG_IN), query.state, query.iss)
    if query.error or not query.code:
        words = f"the identity provider let nobody in: {query.error[:100] or 'it gave no code'}"
        raise HttpError(UNAUTHORIZED, "NOT_AUTHENTICATED", words)
    access = await visit.finish(begun, query.code)
    headers = (*PAGE_HEADERS, no_cookie(visit.scope, LOG_IN), _cookie(visit, access))
    return Text(PAGE.format(to=escape(begun.back_to)), "text/html; charset=utf-8", headers)


def _cookie(visit: Visit, access: Access) -> Header:
    assert access.session is not None
    return session_cookie(visit.logins.sessions, access.session, visit.gate.clock.now_ms(), visit.scope)


def _who(visit: Visit, access: Access) -> WhoAmI:
    session = access.session
    ends_ms = access.ends_ms if session is None else session.ends_ms
    return WhoAmI(
        principal=access.known_as,
        tenant=access.tenancy.tenant,
        roles=list(access.roles_held),
        may={
            kind.replace(" ", "_"): [each.name.lower() for each in access.may(kind)]
            for kind in Kind
            if kind is not Kind.TENANT
        },
        rules=[rule_facts(each) for each in access.rules],
        expires_at=ends_ms or None,
        csrf_token=UNSET if session is None else visit.logins.sessions.csrf(session).reveal(),
    )
