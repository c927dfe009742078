"""What each state of a classic group answers to whom: the table that clients act on."""

from collections.abc import Callable

import pytest

from goqueue.machines.groups.commands import GroupOptions, Heartbeat, JoinGroup, LeaveGroup, LeavingMember, SyncGroup
from goqueue.model.codes import Code
from tests.unit.machines.group_driver import Driver, at, join

OK = Code.NONE
STALE = Code.ILLEGAL_GENERATION
UNKNOWN = Code.UNKNOWN_MEMBER_ID
REBALANCE = Code.REBALANCE_IN_PROGRESS

State = Callable[[Driver], int]
Three = tuple[Code | None, Code | None, Code | None]


def no_group(driver: Driver) -> int:
    return 1


def empty(driver: Driver) -> int:
    driver.stable("a")
    driver.leave(LeavingMember("a"))
    return driver.describe().generation


def preparing(driver: Driver) -> int:
    generation = driver.stable("a", "b")
    driver.join_new("c")
    return generation


def completing(driver: Driver) -> int:
    generation = driver.stable("a", "b")
    driver.send(join("a"))
    driver.send(join("b"))
    return generation + 1


def stable(driver: Driver) -> int:
    return driver.stable("a", "b")


STATES: dict[State, str] = {
    no_group: "Dead",
    empty: "Empty",
    preparing: "PreparingRebalance",
    completing: "CompletingRebalance",
    stable: "Stable",
}

# state: the answers to (member of this generation, of an older one, stranger); None: it has to wait
HEARTBEAT: dict[State, Three] = {
    no_group: (UNKNOWN, UNKNOWN, UNKNOWN),
    empty: (UNKNOWN, UNKNOWN, UNKNOWN),
    preparing: (REBALANCE, STALE, UNKNOWN),
    completing: (OK, STALE, UNKNOWN),
    stable: (OK, STALE, UNKNOWN),
}
SYNC: dict[State, Three] = {
    no_group: (UNKNOWN, UNKNOWN, UNKNOWN),
    empty: (UNKNOWN, UNKNOWN, UNKNOWN),
    preparing: (REBALANCE, STALE, UNKNOWN),
    completing: (None, STALE, UNKNOWN),
    stable: (OK, STALE, UNKNOWN),
}
COMMIT: dict[State, Three] = {
    no_group: (STALE, STALE, STALE),
    empty: (UNKNOWN, UNKNOWN, UNKNOWN),
    preparing: (OK, STALE, UNKNOWN),
    completing: (REBALANCE, STALE, UNKNOWN),
    stable: (OK, STALE, UNKNOWN),
}
# (a member again, a new one, a stranger that claims to be known); the first member waits for nobody
JOIN: dict[State, Three] = {
    no_group: (UNKNOWN, OK, UNKNOWN),
    empty: (UNKNOWN, OK, UNKNOWN),
    preparing: (None, None, UNKNOWN),
    completing: (OK, None, UNKNOWN),
    stable: (OK, None, UNKNOWN),
}
SIMPLE_COMMIT: dict[State, Code] = {no_group: OK, empty: OK, preparing: UNKNOWN, completing: UNKNOWN, stable: UNKNOWN}
LEAVE: dict[State, Code] = {no_group: UNKNOWN, empty: UNKNOWN, preparing: OK, completing: OK, stable: OK}


@pytest.fixture(params=STATES)
def state(request: pytest.FixtureRequest) -> State:
    chosen: State = request.param
    return chosen


def test_the_states_are_what_they_are_called(state: State) -> None:
    driver = Driver()
    state(driver)
    assert driver.describe().state == STATES[state]


def test_codes_of_heartbeat(state: State) -> None:
    driver = Driver()
    generation = state(driver)
    asked = [("b", generation), ("b", generation - 1), ("x", generation)]
    assert tuple(driver.heartbeat(*who) for who in asked) == HEARTBEAT[state]


def test_codes_of_sync(state: State) -> None:
    driver = Driver()
    generation = state(driver)
    tickets = [driver.sync("b", generation), driver.sync("b", generation - 1), driver.sync("x", generation)]
    answers = (driver.replies.get(ticket) for ticket in tickets)
    assert tuple(answer and answer.code for answer in answers) == SYNC[state]


def test_codes_of_commit(state: State) -> None:
    """A commit from an old generation never moves an offset."""
    driver = Driver()
    generation = state(driver)
    asked = [("b", generation), ("b", generation - 1), ("x", generation)]
    codes = [
        driver.commit(at("t", index, 7), member_id=who, generation=then) for index, (who, then) in enumerate(asked)
    ]
    assert tuple(code for (code,) in codes) == COMMIT[state]
    assert driver.offsets() == {("t", index): 7 for index, (code,) in enumerate(codes) if code is OK}


def test_codes_of_commit_without_membership(state: State) -> None:
    driver = Driver()
    state(driver)
    assert driver.commit(at("t", 0, 7)) == [SIMPLE_COMMIT[state]]


def test_codes_of_join(state: State) -> None:
    driver = Driver()
    state(driver)
    known, stranger = driver.send(join("b")), driver.send(join("x"))
    new = driver.send(join(new_id="n", knows_member_id_required=False))
    answers = [driver.replies.get(ticket) for ticket in (known, new, stranger)]
    assert tuple(answer and answer.code for answer in answers) == JOIN[state]


def test_codes_of_leave(state: State) -> None:
    driver = Driver()
    state(driver)
    assert driver.leave(LeavingMember("b"), LeavingMember("x")) == (LEAVE[state], UNKNOWN)


def test_an_unknown_group_is_named_to_clients_that_know_the_word() -> None:
    driver = Driver()
    told = driver.commit(at("t", 0, 1), member_id="a", generation=3, knows_group_not_found=True)
    assert told == [Code.GROUP_ID_NOT_FOUND]


def test_an_empty_group_id_is_refused() -> None:
    driver = Driver()
    commands = [
        join(new_id="a", group_id=""),
        SyncGroup("", 1, "a"),
        Heartbeat("", 1, "a"),
        LeaveGroup("", (LeavingMember("a"),)),
    ]
    assert [driver.ask(command).code for command in commands] == [Code.INVALID_GROUP_ID] * 4
    assert driver.machine.next_deadline_ms() is None, "nothing was left behind"


@pytest.mark.parametrize(
    ("session_timeout_ms", "code"),
    [
        (5_999, Code.INVALID_SESSION_TIMEOUT),
        (6_000, Code.MEMBER_ID_REQUIRED),
        (30 * 60_000, Code.MEMBER_ID_REQUIRED),
        (30 * 60_000 + 1, Code.INVALID_SESSION_TIMEOUT),
    ],
)
def test_session_timeouts_have_bounds(session_timeout_ms: int, code: Code) -> None:
    assert Driver().ask(join(new_id="a", session_timeout_ms=session_timeout_ms)).code is code


def test_the_bounds_of_sessions_can_be_set() -> None:
    options = GroupOptions(session_ms_min=10, session_ms_max=20)
    asked: list[JoinGroup] = [join(new_id="a", session_timeout_ms=ms) for ms in (9, 10, 20, 21)]
    codes = [Driver(options).ask(command).code for command in asked]
    required = Code.MEMBER_ID_REQUIRED
    assert codes == [Code.INVALID_SESSION_TIMEOUT, required, required, Code.INVALID_SESSION_TIMEOUT]
