"""When recurring schedules run: strictly after, once each, also on the days when clocks change."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goqueue.machines.delays.cron import NEVER, InvalidCron, Moments

BERLIN = ZoneInfo("Europe/Berlin")
# In 2030 clocks go forward on 31 March from 2:00 to 3:00, and back on 27 October from 3:00 to 2:00.


def ms(text: str, *, fold: int = 0, zone: str = "Europe/Berlin") -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return int(moment.timestamp() * 1000)


def runs(cron: str, start: str, end: str, *, zone: str = "Europe/Berlin") -> list[str]:
    """All after `start` up to `end`, on the wall, with the offset to UTC."""
    moments, at = Moments(cron, zone), ms(start, zone=zone)
    found = []
    while (at := moments.after(at)) <= ms(end, zone=zone):
        local = datetime.fromtimestamp(at / 1000, ZoneInfo(zone))
        found.append(f"{local:%d %H:%M%z}")
    return found


def test_the_next_moment_is_strictly_after() -> None:
    moments = Moments("30 12 * * *", "UTC")
    noon = ms("2030-01-01 12:30", zone="UTC")
    assert moments.after(noon - 1) == noon
    assert moments.after(noon) == moments.after(noon + 999) == noon + 24 * 3600 * 1000


def test_a_run_in_the_hour_that_is_missing_runs_once_when_it_ends() -> None:
    expected = ["30 02:30+0100", "31 03:00+0200", "01 02:30+0200"]
    assert runs("30 2 * * *", "2030-03-30 00:00", "2030-04-01 12:00") == expected
    assert runs("*/20 2 * * *", "2030-03-31 00:00", "2030-03-31 12:00") == ["31 03:00+0200"]


def test_a_run_in_the_hour_that_comes_twice_runs_the_first_time_only() -> None:
    expected = ["26 02:30+0200", "27 02:30+0200", "28 02:30+0100"]
    assert runs("30 2 * * *", "2030-10-26 00:00", "2030-10-28 12:00") == expected
    expected = ["27 02:00+0200", "27 02:20+0200", "27 02:40+0200"]
    assert runs("*/20 2 * * *", "2030-10-27 00:00", "2030-10-27 12:00") == expected


def test_every_second_hour_is_lost_on_no_day_and_doubled_on_none() -> None:
    assert runs("0 */2 * * *", "2030-03-30 23:30", "2030-03-31 05:00") == [
        "31 00:00+0100",
        "31 03:00+0200",
        "31 04:00+0200",
    ]
    assert runs("0 */2 * * *", "2030-10-26 23:30", "2030-10-27 05:00") == [
        "27 00:00+0200",
        "27 02:00+0200",
        "27 04:00+0100",
    ]


@pytest.mark.parametrize("cron", ["15 * * * *", "15 */1 * * *", "15 0-23 * * *"])
@pytest.mark.parametrize(("day", "hours"), [("2030-03-31", 23), ("2030-10-27", 25)])
def test_every_hour_means_every_real_hour(cron: str, day: str, hours: int) -> None:
    assert len(runs(cron, f"{day} 00:00", f"{day} 23:59")) == hours


def test_a_restart_within_the_hour_that_comes_twice_repeats_nothing() -> None:
    """The library gives the first time of a moment that is over; asked again from there, it must not run twice."""
    moments = Moments("30 2 * * *", "Europe/Berlin")
    assert moments.after(ms("2030-10-27 02:15", fold=1)) == ms("2030-10-28 02:30")
    assert moments.after(ms("2030-10-27 02:45", fold=0)) == ms("2030-10-28 02:30")
    assert moments.after(ms("2030-10-27 02:15", fold=0)) == ms("2030-10-27 02:30")


def test_the_last_moment_before_now_is_found_also_near_a_change_of_clocks() -> None:
    moments = Moments("30 2 * * *", "Europe/Berlin")
    known = ms("2030-03-01 02:30")
    assert moments.last(known, ms("2030-03-31 03:00")) == ms("2030-03-31 03:00")
    assert moments.last(known, ms("2030-03-31 01:59")) == ms("2030-03-30 02:30")
    assert moments.last(known, ms("2030-10-27 02:15", fold=1)) == ms("2030-10-27 02:30")
    assert moments.last(known, known) == known


CRONS = st.sampled_from(
    [
        "* * * * *",
        "*/7 * * * *",
        "0 */3 * * *",
        "30 2 * * *",
        "0,59 1-3 * * *",
        "15 2 * * 0",
        "0 3 27,31 3,10 *",
        "59 23 L * *",
    ]
)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Asia/Kathmandu"])


INSTANTS = st.integers(ms("2029-01-01 00:00", zone="UTC"), ms("2031-01-01 00:00", zone="UTC"))


@given(CRONS, ZONES, INSTANTS, st.integers(0, 3 * 86400))
@settings(max_examples=60)
def test_moments_rise_and_the_last_one_is_the_last_of_them(cron: str, zone: str, start: int, seconds: int) -> None:
    moments = Moments(cron, zone)
    found = [moments.after(start)]
    while found[-1] <= start + seconds * 1000 and len(found) < 8:
        found.append(moments.after(found[-1]))
    assert all(before < after for before, after in pairwise([start, *found]))
    for before, after in pairwise(found):
        assert moments.last(found[0], after - 1) == before
        assert moments.last(found[0], after) == after
        assert moments.after(before + (after - before) // 2) == after, "from anywhere in between it is the same"


@pytest.mark.parametrize(
    ("cron", "zone", "word"),
    [
        ("* * * *", "UTC", "five fields"),
        ("0 * * * * *", "UTC", "five fields"),
        ("", "UTC", "five fields"),
        ("61 * * * *", "UTC", "minute"),
        ("* 24 * * *", "UTC", "hour"),
        ("* * 30 2 *", "UTC", "day-of-month"),
        ("* * * 13 *", "UTC", "month"),
        ("* * * * 9", "UTC", "day-of-week"),
        ("*/0 * * * *", "UTC", "minute"),
        ("1," * 300 + "1 * * * *", "UTC", "characters"),
        ("* * * * *", "Europe/Atlantis", "Europe/Atlantis"),
        ("* * * * *", "../../etc/passwd", "time zone"),
        ("* * * * *", "Europe", "time zone"),
        ("* * * * *", "", "time zone"),
    ],
)
def test_what_is_wrong_is_named(cron: str, zone: str, word: str) -> None:
    with pytest.raises(InvalidCron, match=word):
        Moments(cron, zone)


@given(st.text(max_size=20), st.text(max_size=12))
def test_any_other_text_is_refused_and_nothing_worse(cron: str, zone: str) -> None:
    for pair in ((cron, "UTC"), ("* * * * *", zone), (f"{cron} * * * *", "UTC"), (f"* * * * {cron}", "UTC")):
        try:
            Moments(*pair).after(0)
        except InvalidCron as problem:
            assert str(problem)


def test_a_moment_that_never_comes_is_never() -> None:
    assert Moments("0 0 29 2 *", "UTC").after(ms("9996-03-01 00:00", zone="UTC")) == NEVER
    far = int(
        (datetime(9999, 12, 31, 23, 59, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1)
    )
    assert Moments("* * * * *", "UTC").after(far) == NEVER
