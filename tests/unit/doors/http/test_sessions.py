"""Sessions of browsers: how they begin and end, and what a request with one has to show."""

import asyncio
import base64
import re
from typing import Any

import msgspec
import pytest

from goqueue.broker.accounts.sealing import Sealing
from goqueue.broker.accounts.sessions import RENEW_MS
from goqueue.model.credentials import NotAuthenticated, Principal
from goqueue.model.listener import IN_PROCESS
from goqueue.model.sessions import IDLE_MS, LASTS_MS, Session
from goqueue.testing.virtual_clock import VirtualClock
from tests.unit.doors.http.session_door import Door, in_door, session_door

ORIGIN = "https://mq.example.org"
NEW = {"name": "orders"}


@in_door
async def test_a_session_is_begun_with_a_password_and_kept_in_a_cookie_that_pages_cannot_read(door: Door) -> None:
    reply = await door.log_in()
    assert reply.status_code == 200, reply.text
    (cookie,) = reply.headers.get_list("set-cookie")
    name, _, rest = cookie.partition("=")
    assert name == "__Host-gq"
    assert set(rest.split("; ")[1:]) == {"Path=/", "HttpOnly", "Max-Age=1800", "SameSite=Strict", "Secure"}
    assert reply.headers["cache-control"] == "no-store"
    told = reply.json()
    assert (told["principal"], told["tenant"], told["roles"]) == ("User:alice", "default", ["operator"])
    assert "create" in told["may"]["topic"]
    assert "read" not in told["may"]["topic"]
    assert told["expires_at"] == door.now_ms + LASTS_MS
    assert re.fullmatch("[0-9a-f]{64}", told["csrf_token"])
    assert (await door.get("/topics")).status_code == 200
    again = await door.get("/session")
    assert again.json() == told
    assert again.headers["cache-control"] == "no-store"


@in_door
async def test_without_tls_the_cookie_has_another_name_and_is_not_marked_secure(door: Door) -> None:
    door.is_secure = False
    reply = await door.log_in()
    (cookie,) = reply.headers.get_list("set-cookie")
    assert cookie.startswith("gq-dev=")
    assert "Secure" not in cookie
    assert (await door.get("/topics")).status_code == 200


@in_door
async def test_without_tls_no_session_begins_off_this_machine(door: Door) -> None:
    door.is_secure, door.server = False, ("192.0.2.1", 8080)
    reply = await door.log_in()
    assert (reply.status_code, reply.json()["code"]) == (403, "TLS_NEEDED")


@in_door
async def test_a_wrong_password_an_unknown_user_and_a_key_begin_none(door: Door) -> None:
    _, key_id, secret = door.key.split("_")
    for user, password in (("alice", "wrong"), ("nobody", "secret"), (key_id, secret)):
        reply = await door.log_in(user, password)
        assert (reply.status_code, reply.json()["code"]) == (401, "NOT_AUTHENTICATED")
        assert "set-cookie" not in reply.headers


@in_door
async def test_who_guesses_is_slowed_down_as_everywhere(door: Door) -> None:
    wrong = [asyncio.ensure_future(door.log_in("alice", "wrong")) for _ in range(10)]
    await door.settle()
    reply = await door.log_in()
    assert (reply.status_code, "too many" in reply.text) == (401, True)
    assert [each.status_code for each in await asyncio.gather(*wrong)] == [401] * 10


@in_door
async def test_what_is_not_get_needs_the_token_of_the_session_and_an_origin_of_this_node(door: Door) -> None:
    csrf = (await door.log_in()).json()["csrf_token"]
    refused: list[tuple[dict[str, str], str]] = [
        ({"origin": ORIGIN}, "CSRF_TOKEN_NEEDED"),
        ({"origin": ORIGIN, "x-goqueue-csrf": "0" * 64}, "CSRF_TOKEN_NEEDED"),
        ({"x-goqueue-csrf": csrf}, "FOREIGN_ORIGIN"),
        ({"origin": "null", "x-goqueue-csrf": csrf}, "FOREIGN_ORIGIN"),
        ({"origin": "http://mq.example.org", "x-goqueue-csrf": csrf}, "FOREIGN_ORIGIN"),
        ({"origin": "https://mq.example.org:8443", "x-goqueue-csrf": csrf}, "FOREIGN_ORIGIN"),
        ({"origin": "https://evil.example", "x-goqueue-csrf": csrf}, "FOREIGN_ORIGIN"),
        ({"origin": "https://evil.example", "sec-fetch-site": "same-origin", "x-goqueue-csrf": csrf}, "FOREIGN_ORIGIN"),
    ]
    for headers, code in refused:
        for method, path in (("POST", "/topics"), ("DELETE", "/session"), ("PUT", "/config"), ("PATCH", "/topics/x")):
            reply = await door.ask(method, path, headers, NEW)
            assert (reply.status_code, reply.json()["code"]) == (403, code), (headers, method, path)
    assert (await door.get("/topics")).json() == {"topics": []}
    reply = await door.ask("POST", "/topics", {"origin": ORIGIN, "x-goqueue-csrf": csrf}, NEW)
    assert reply.status_code == 201, reply.text


@in_door
async def test_what_takes_by_a_get_was_meant_by_a_page_of_this_node(door: Door) -> None:
    """A link in a mail comes with the cookie, as if the person had typed it; old browsers say nothing of pages."""
    await door.as_admin("POST", "/topics", name="orders")
    await door.as_admin("POST", "/topics/orders/messages", messages=[{"value": "first"}])
    await door.as_admin("PATCH", "/admin/users/alice", roles=["admin"])
    csrf = {"x-goqueue-csrf": (await door.log_in()).json()["csrf_token"]}
    joined = await door.ask(
        "POST", "/groups/g/join", {"origin": ORIGIN, **csrf}, {"client_id": "app", "topics": ["orders"]}
    )
    poll = f"/groups/g/poll?member_id={joined.json()['member_id']}"
    site = "sec-fetch-site"
    for said in ({}, {site: "none"}, {"x-goqueue-csrf": "other"}):
        reply = await door.ask("GET", poll, said)
        assert (reply.status_code, reply.json()["code"]) == (403, "CSRF_TOKEN_NEEDED"), said
    for said in ({site: "same-site"}, {site: "cross-site"}, {"origin": "https://evil.example", **csrf}):
        reply = await door.ask("GET", poll, said)
        assert (reply.status_code, reply.json()["code"]) == (403, "FOREIGN_ORIGIN"), said
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    reply = await door.ask("GET", poll, {**link, **csrf})
    assert (reply.status_code, reply.json()["code"]) == (403, "FOREIGN_ORIGIN")
    (message,) = (await door.ask("GET", poll, {site: "same-origin"})).json()["messages"]
    assert message["value"] == "first", "nobody has taken it before"
    assert (await door.ask("GET", poll, csrf)).status_code == 200
    assert (await door.ask("GET", poll, {"x-api-key": door.key})).status_code == 200, "a key needs no token"


@in_door
async def test_the_token_of_another_session_is_of_no_use(door: Door) -> None:
    csrf = (await door.log_in()).json()["csrf_token"]
    assert (await door.log_in()).json()["csrf_token"] != csrf
    reply = await door.ask("POST", "/topics", {"origin": ORIGIN, "x-goqueue-csrf": csrf}, NEW)
    assert (reply.status_code, reply.json()["code"]) == (403, "CSRF_TOKEN_NEEDED")


@in_door
async def test_a_key_goes_before_a_cookie_and_needs_no_token(door: Door) -> None:
    await door.log_in()
    assert (await door.ask("POST", "/topics", {"x-api-key": door.key}, NEW)).status_code == 201
    told = (await door.ask("GET", "/session", {"x-api-key": door.key})).json()
    assert told["principal"].startswith("Key:")
    assert "csrf_token" not in told
    assert told["expires_at"] is None
    reply = await door.ask("DELETE", "/session", {"x-api-key": door.key})
    assert (reply.status_code, reply.json()["code"]) == (400, "NO_SESSION")


@in_door
async def test_what_was_changed_or_is_not_ours_says_nothing(door: Door) -> None:
    await door.log_in()
    text = door.cookies["__Host-gq"]
    changed = [text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :] for at in range(0, len(text) - 1, 7)]
    for wrong in (*changed, "", "x", "AAAA", "ä", text[:-4], text + "AAAA", "A" * 5000):
        door.cookies = {"__Host-gq": wrong}
        reply = await door.get("/topics")
        assert (reply.status_code, "set-cookie" in reply.headers) == (401, False), wrong
    door.cookies = {"gq-dev": text}
    assert (await door.get("/topics")).status_code == 401


def forged(door: Door, **said: Any) -> Session:
    wanted = {"principal": "User:root", "roles": ("admin",), "begun_ms": door.now_ms, "stamp": b"", **said}
    return Session(session_id=bytes(32), ends_ms=door.now_ms + LASTS_MS, seen_ms=door.now_ms, **wanted)


@in_door
async def test_what_nobody_has_sealed_says_nothing(door: Door) -> None:
    clear = Sealing(door.b.broker.dice)
    stored = door.gate.logins.sessions.sealing if door.gate.logins is not None else clear
    for session in (forged(door), forged(door, principal="User:alice"), forged(door, principal="User:alice", roles=())):
        data = msgspec.msgpack.encode(session)
        for sealed in (clear.seal("session", data), data, b"\1" + data, stored.seal("log-in", data), b"\0", b"\1"):
            door.cookies = {"__Host-gq": base64.urlsafe_b64encode(sealed).decode().rstrip("=")}
            reply = await door.get("/topics")
            assert (reply.status_code, "set-cookie" in reply.headers) == (401, False), sealed[:1]


@in_door
async def test_a_log_out_ends_the_session_also_for_who_has_a_copy(door: Door) -> None:
    csrf = (await door.log_in()).json()["csrf_token"]
    kept = dict(door.cookies)
    reply = await door.ask("DELETE", "/session", {"origin": ORIGIN, "x-goqueue-csrf": csrf})
    assert (reply.status_code, reply.json()) == (200, {"success": True})
    (cookie,) = reply.headers.get_list("set-cookie")
    assert cookie.startswith("__Host-gq=; ")
    assert "Max-Age=0" in cookie
    door.cookies = kept
    reply = await door.get("/topics")
    assert (reply.status_code, "session is over" in reply.text) == (401, True)
    assert "Max-Age=0" in reply.headers["set-cookie"]
    assert (await door.log_in()).status_code == 200


@in_door
async def test_all_sessions_of_one_are_ended_and_those_of_others_are_not(door: Door) -> None:
    await door.as_admin("POST", "/admin/users", name="bob", password="secret")
    await door.log_in("bob")
    bobs = dict(door.cookies)
    await door.log_in()
    first = dict(door.cookies)
    csrf = (await door.log_in()).json()["csrf_token"]
    reply = await door.ask("DELETE", "/session?all=true", {"origin": ORIGIN, "x-goqueue-csrf": csrf})
    assert reply.status_code == 200
    for cookies, status in ((first, 401), (bobs, 200)):
        door.cookies = cookies
        assert (await door.get("/topics")).status_code == status
    await door.log_in()
    assert (await door.get("/topics")).status_code == 200


@in_door
async def test_another_password_ends_sessions_and_so_does_the_end_of_the_user(door: Door) -> None:
    await door.log_in()
    await door.as_admin("PATCH", "/admin/users/alice", roles=["viewer"])
    assert (await door.get("/session")).json()["roles"] == ["viewer"]
    await door.as_admin("PATCH", "/admin/users/alice", password="other")
    assert (await door.get("/topics")).status_code == 401
    assert (await door.log_in(password="other")).status_code == 200
    await door.as_admin("DELETE", "/admin/users/alice")
    assert (await door.get("/topics")).status_code == 401
    await door.as_admin("POST", "/admin/users", name="alice", password="other")
    assert (await door.get("/topics")).status_code == 401


@in_door
async def test_none_begins_for_a_user_who_was_deleted_while_the_password_was_checked(door: Door) -> None:
    assert door.gate.logins is not None
    with pytest.raises(NotAuthenticated):
        door.gate.logins.sessions.begin(Principal("User:gone"), by_password=True)


@in_door
async def test_a_session_that_is_not_used_ends_and_one_that_is_used_is_renewed(door: Door) -> None:
    await door.log_in()
    first = dict(door.cookies)
    await door.advance(RENEW_MS - 1)
    assert "set-cookie" not in (await door.get("/topics")).headers
    await door.advance(1)
    assert "set-cookie" in (await door.get("/topics")).headers
    assert door.cookies != first
    await door.advance(IDLE_MS - RENEW_MS)
    renewed = dict(door.cookies)
    door.cookies = first
    assert (await door.get("/topics")).status_code == 401
    door.cookies = renewed
    assert (await door.get("/topics")).status_code == 200
    await door.advance(IDLE_MS)
    assert (await door.get("/topics")).status_code == 401


@in_door
async def test_a_probe_is_answered_whatever_became_of_the_session(door: Door) -> None:
    await door.log_in()
    await door.advance(IDLE_MS)
    for path in ("/healthz", "/readyz", "/health", "/livez"):
        reply = await door.get(path)
        assert (reply.status_code, reply.json()["status"]) == (200, "ok" if path == "/health" else "pass"), path
    assert (await door.get("/topics")).status_code == 401
    assert (await door.ask("GET", "/healthz", {"x-api-key": "gqk_wrong"})).status_code == 401


@in_door
async def test_a_session_ends_after_twelve_hours_however_much_it_is_used(door: Door) -> None:
    await door.log_in()
    for _ in range(LASTS_MS // (IDLE_MS // 2) - 1):
        await door.advance(IDLE_MS // 2)
        assert (await door.get("/topics")).status_code == 200
    await door.advance(IDLE_MS // 2)
    assert (await door.get("/topics")).status_code == 401


@pytest.mark.parametrize("end", ["log out", "password", "deleted", "idle"])
def test_a_stream_ends_with_its_session(end: str) -> None:
    async def test(door: Door) -> None:
        await door.as_admin("PATCH", "/admin/users/alice", roles=["admin"])
        await door.as_admin("POST", "/topics", **NEW)
        csrf = (await door.log_in()).json()["csrf_token"]
        stream = door.follow("/topics/orders/follow")
        await door.settle()
        assert not stream.done()
        if end == "log out":
            await door.ask("DELETE", "/session", {"origin": ORIGIN, "x-goqueue-csrf": csrf})
        elif end == "password":
            await door.as_admin("PATCH", "/admin/users/alice", password="other")
        elif end == "deleted":
            await door.as_admin("DELETE", "/admin/users/alice")
        else:
            await door.advance(IDLE_MS)
        await door.settle()
        assert stream.done()
        assert (await stream).startswith(b"retry:")

    in_door(test)()


@in_door
async def test_a_stream_goes_on_while_its_session_is_used(door: Door) -> None:
    await door.as_admin("PATCH", "/admin/users/alice", roles=["admin"])
    await door.as_admin("POST", "/topics", **NEW)
    await door.log_in()
    stream = door.follow("/topics/orders/follow")
    for _ in range(3):
        await door.advance(IDLE_MS - 1)
        assert (await door.get("/topics")).status_code == 200
    assert not stream.done()
    await door.advance(IDLE_MS)
    await door.settle()
    assert stream.done()


def test_a_node_that_does_not_know_who_was_shut_out_honours_and_begins_no_session() -> None:
    async def inside() -> None:
        async with session_door(access_age_ms_max=60_000) as door:
            cluster = door.b.broker.health.cluster
            cluster.access_age_s = lambda: 60.0
            await door.log_in()
            assert (await door.get("/topics")).status_code == 200
            cluster.access_age_s = lambda: 61.0
            for reply in (await door.get("/topics"), await door.log_in()):
                assert (reply.status_code, "set-cookie" in reply.headers) == (503, False), reply.text
            cluster.access_age_s = lambda: 0.0
            assert (await door.get("/topics")).status_code == 200

    asyncio.run(inside())


def test_over_sqs_it_says_so_in_its_own_words() -> None:
    async def inside() -> None:
        async with session_door(access_age_ms_max=60_000) as door:
            shown = {"x-api-key": door.key, "x-amz-target": "AmazonSQS.ListQueues"}
            assert (await door.ask("POST", "/", shown, {})).status_code == 200
            door.b.broker.health.cluster.access_age_s = lambda: 61.0
            reply = await door.ask("POST", "/", shown, {})
            assert (reply.status_code, "ServiceUnavailable" in reply.text) == (503, True), reply.text

    asyncio.run(inside())


@in_door
async def test_nothing_is_kept_for_a_session_that_nobody_uses(door: Door) -> None:
    door.gate.clock = clock = VirtualClock(door.now_ms)
    held = [door.gate.start_session(Principal("User:zoe"), IN_PROCESS) for _ in range(20)]
    await door.as_admin("DELETE", "/admin/users/alice")  # the gate lets go of what it keeps to use again
    assert clock.timers == 20
    del held[1:]
    assert clock.timers == 1
    clock.advance(IDLE_MS)
    assert (held[0].is_over, clock.timers) == (True, 0)


@in_door
async def test_a_stranger_learns_nothing_of_sessions(door: Door) -> None:
    for method in ("GET", "DELETE"):
        assert (await door.ask(method, "/session", {"origin": ORIGIN})).status_code == 401
    for path in ("/session/oidc", "/session/callback?code=x&state=y"):
        reply = await door.get(path)
        assert (reply.status_code, reply.json()["code"]) == (404, "NO_ISSUER")


@in_door
async def test_sqs_takes_no_cookie(door: Door) -> None:
    csrf = (await door.log_in()).json()["csrf_token"]
    shown = {"origin": ORIGIN, "x-goqueue-csrf": csrf, "x-amz-target": "AmazonSQS.ListQueues"}
    reply = await door.ask("POST", "/", shown, {})
    assert (reply.status_code, "MissingAuthenticationToken" in reply.text) == (403, True)


def test_the_text_of_a_session_hides_what_is_secret() -> None:
    text = repr(Session(b"MARKED", "User:alice", (), 1, 2, 3, b"MARKED"))
    assert ("User:alice" in text, "MARKED" in text) == (True, False)
