"""Sessions that were ended: what is kept of them, for how long, and how much of it."""

from goqueue.machines.ended_sessions import PRINCIPALS_MAX, Ended, EndedForgotten, EndSession, SessionsEnded
from goqueue.machines.machine import Fact
from goqueue.model.codes import Code
from goqueue.model.sessions import IDS_MAX, LASTS_MS, EndedSessions
from goqueue.model.tenancy import SHARE

HOUR_MS = 60 * 60 * 1000
ALICE, BOB = "User:alice", "User:bob"


def end(ended: Ended, session: str, now_ms: int = 0, principal: str = ALICE, ends_ms: int = HOUR_MS) -> list[Fact]:
    facts, result = ended.decide(EndSession(principal, session, ends_ms, now_ms))
    assert not result.code, result
    for fact in facts:
        assert isinstance(fact, SessionsEnded | EndedForgotten)
        ended.apply(fact)
    return facts


def test_one_session_is_ended_and_no_other() -> None:
    ended = Ended()
    end(ended, "a", now_ms=10)
    found = ended.by_principal[ALICE]
    assert (found.has("a", 5), found.has("b", 5)) == (True, False)
    assert BOB not in ended.by_principal


def test_all_sessions_that_were_begun_are_ended_and_later_ones_are_not() -> None:
    ended = Ended()
    end(ended, "", now_ms=10)
    found = ended.by_principal[ALICE]
    assert [found.has("x", begun_ms) for begun_ms in (5, 10, 11)] == [True, True, False]
    end(ended, "y", now_ms=12)
    found = ended.by_principal[ALICE]
    assert (found.has("x", 10), found.has("y", 11), found.has("z", 11)) == (True, True, False)


def test_who_ends_too_many_one_by_one_ends_all() -> None:
    ended = Ended()
    for number in range(IDS_MAX):
        end(ended, str(number), now_ms=10)
    assert not ended.by_principal[ALICE].has("other", 5)
    end(ended, "last", now_ms=10)
    found = ended.by_principal[ALICE]
    assert (dict(found.ids), found.has("other", 5), found.has("0", 5)) == ({}, True, True)


def test_what_is_over_does_not_come_back_with_a_clock_that_is_behind() -> None:
    ended = Ended()
    end(ended, "", now_ms=1000)
    end(ended, "", now_ms=10)
    found = ended.by_principal[ALICE]
    assert [found.has("x", begun_ms) for begun_ms in (1000, 1001, 1002)] == [True, True, False]
    for number in range(IDS_MAX + 1):  # begun at 5000 by the clock of another node
        end(ended, str(number), now_ms=2000, ends_ms=5000 + LASTS_MS)
    found = ended.by_principal[ALICE]
    assert (dict(found.ids), found.has("0", 5000), found.has("new", 5001)) == ({}, True, False)


def test_what_is_over_by_itself_is_forgotten_with_the_next() -> None:
    ended = Ended()
    end(ended, "a", ends_ms=100)
    end(ended, "b", now_ms=50, ends_ms=150)
    assert dict(ended.by_principal[ALICE].ids) == {"a": 100, "b": 150}
    end(ended, "c", now_ms=120, ends_ms=200)
    assert dict(ended.by_principal[ALICE].ids) == {"b": 150, "c": 200}
    assert end(ended, "d", now_ms=200, principal=BOB, ends_ms=300)[1:] == [EndedForgotten(ALICE)]
    assert list(ended.by_principal) == [BOB]


def test_there_is_a_limit_and_what_is_over_makes_room() -> None:
    ended = Ended()
    for number in range(PRINCIPALS_MAX):
        ended.apply(SessionsEnded(EndedSessions(f"User:{number}", {"a": 100}, 0, 100)))
    _, result = ended.decide(EndSession(ALICE, "a", 100, 50))
    assert result.code == Code.POLICY_VIOLATION
    end(ended, "b", now_ms=50, principal="User:7")
    end(ended, "a", now_ms=100)
    assert ALICE in ended.by_principal
    assert len(ended.by_principal) < PRINCIPALS_MAX


def test_they_are_replayed_as_they_were() -> None:
    ended, again = Ended(), Ended()
    end(ended, "a")
    end(ended, "b", principal=BOB)
    for fact in ended.facts():
        assert isinstance(fact, SessionsEnded)
        again.apply(fact)
    assert again.by_principal == ended.by_principal
    assert again.forget(EndedForgotten(BOB).key())
    assert not again.forget(b"\0user/bob")
    assert list(again.by_principal) == [ALICE]


def test_a_tenant_that_ends_many_sessions_leaves_room_for_those_of_others() -> None:
    ended = Ended()
    share = PRINCIPALS_MAX // SHARE
    for number in range(share):
        ended.apply(SessionsEnded(EndedSessions(f"User:acme~{number}", {"a": 100}, 0, 100)))
    _, result = ended.decide(EndSession("User:acme~more", "a", 100, 50))
    assert result.code is Code.POLICY_VIOLATION
    assert f"sessions of {share} others of this tenant" in result.message
    for other in (ALICE, "User:globex~bob", "User:acme~7", "User:acme-2~bob"):
        _, result = ended.decide(EndSession(other, "b", 100, 50))
        assert result.code is Code.NONE, other
    _, result = ended.decide(EndSession("User:acme~more", "a", 300, 200))
    assert result.code is Code.NONE, "the others are over by themselves"
