from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goqueue.model.errors import InvalidMoment
from goqueue.model.moments import (
    MOMENT_MS_MAX,
    format_duration,
    format_moment,
    parse_absolute_ms,
    parse_duration_ms,
    parse_moment_ms,
)

NOW_MS = 1_700_000_000_000
SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1000, 60_000, 3_600_000, 86_400_000
NOV_16_MS = 1_794_823_200_000


@pytest.mark.parametrize(
    ("written", "duration_ms"),
    [
        (0, 0),
        (1500, 1500),
        ("0", 0),
        ("1500", 1500),
        (" 1500 ", 1500),
        ("500ms", 500),
        ("500 ms", 500),
        ("1 millisecond", 1),
        ("2 milliseconds", 2),
        ("3 msecs", 3),
        ("0s", 0),
        ("5s", 5 * SECOND_MS),
        ("1 sec", SECOND_MS),
        ("30 seconds", 30 * SECOND_MS),
        ("10m", 10 * MINUTE_MS),
        ("1 min", MINUTE_MS),
        ("2 minutes", 2 * MINUTE_MS),
        ("168h", 168 * HOUR_MS),
        ("1 hr", HOUR_MS),
        ("1 hour", HOUR_MS),
        ("3 days", 3 * DAY_MS),
        ("1 day", DAY_MS),
        ("7d", 7 * DAY_MS),
        ("2w", 14 * DAY_MS),
        ("1 week", 7 * DAY_MS),
        ("52 weeks", 364 * DAY_MS),
        ("1h30m", 90 * MINUTE_MS),
        ("1h 30m", 90 * MINUTE_MS),
        ("1 hour 30 minutes", 90 * MINUTE_MS),
        ("1w2d3h4m5s6ms", 9 * DAY_MS + 3 * HOUR_MS + 4 * MINUTE_MS + 5 * SECOND_MS + 6),
        ("1.5h", 90 * MINUTE_MS),
        ("0.001s", 1),
        ("0.1s", 100),
        ("1H30M", 90 * MINUTE_MS),
        ("3 Days", 3 * DAY_MS),
        ("90m", 90 * MINUTE_MS),
        (MOMENT_MS_MAX, MOMENT_MS_MAX),
        (str(MOMENT_MS_MAX), MOMENT_MS_MAX),
    ],
)
def test_a_duration_is_read(written: str | int, duration_ms: int) -> None:
    assert parse_duration_ms(written) == duration_ms


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "ms",
        "h",
        "-1",
        "-5s",
        "+5s",
        -1,
        MOMENT_MS_MAX + 1,
        str(MOMENT_MS_MAX + 1),
        "999999999999999w",
        pytest.param("9" * 5000, id="long number"),
        pytest.param("9" * 5000 + "h", id="long number of hours"),
        pytest.param("1h" * 5000, id="many hours"),
        "5 parsecs",
        "5 months",
        "1y",
        "1.5",
        "1.5ms",
        "0.0001s",
        "1.h",
        ".5h",
        "1..5h",
        "1e3",
        "1_000",
        "1,5h",
        "1h, 30m",
        "1h30",
        "30m1h",
        "1h1h",
        "1m1min",
        "h1",
        "٣ days",
        "3 day\u017f",  # an s to some
        "P3D",
        True,
        None,
        1.5,
        b"5s",
    ],
)
def test_what_is_no_duration_is_refused(written: Any) -> None:
    with pytest.raises(InvalidMoment, match=r"is no duration: possible are .*1h30m") as refusal:
        parse_duration_ms(written)
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize(
    ("written", "moment_ms"),
    [
        ("now", NOW_MS),
        ("NOW", NOW_MS),
        (" now ", NOW_MS),
        ("-10m", NOW_MS - 10 * MINUTE_MS),
        ("+2h", NOW_MS + 2 * HOUR_MS),
        ("- 3 days", NOW_MS - 3 * DAY_MS),
        ("+1h30m", NOW_MS + 90 * MINUTE_MS),
        ("-500ms", NOW_MS - 500),
        ("+0s", NOW_MS),
        ("now-10m", NOW_MS - 10 * MINUTE_MS),
        ("now + 2h", NOW_MS + 2 * HOUR_MS),
        (0, 0),
        (5, 5),
        ("0", 0),
        ("1700000000123", 1_700_000_000_123),
        (str(MOMENT_MS_MAX), MOMENT_MS_MAX),
        ("2026-11-16T10:00:00Z", NOV_16_MS),
        ("2026-11-16t10:00:00z", NOV_16_MS),
        ("2026-11-16 10:00:00Z", NOV_16_MS),
        ("2026-11-16T10:00:00+00:00", NOV_16_MS),
        ("2026-11-16T10:00:00-00:00", NOV_16_MS),
        ("2026-11-16T12:00:00+02:00", NOV_16_MS),
        ("2026-11-16T04:30:00-05:30", NOV_16_MS),
        ("2026-11-17T00:00:00+14:00", NOV_16_MS),
        ("2026-11-16T10:00:00.5Z", NOV_16_MS + 500),
        ("2026-11-16T10:00:00.123Z", NOV_16_MS + 123),
        ("2026-11-16T10:00:00.123999999Z", NOV_16_MS + 123),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000),
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:00:00-01:00", 0),
        ("9999-12-31T23:59:59.999Z", MOMENT_MS_MAX),
    ],
)
def test_a_moment_is_read(written: str | int, moment_ms: int) -> None:
    assert parse_moment_ms(written, NOW_MS) == moment_ms


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "today",
        "yesterday",
        "10m",
        "3 days",
        "-",
        "+",
        "-10",
        "+10",
        "--10m",
        "-+10m",
        "-10m ago",
        "now10m",
        "nownow",
        "1.5",
        "1_000",
        "٣",
        "2026-11-16",
        "2026-11-16T10:00Z",
        "2026-11-16T10:00:00",
        "2026-11-16T10:00:00.Z",
        "2026-11-16T10:00:00,5Z",
        "2026-11-16T10:00:00.1234567891Z",
        "2026-11-16T10:00:00+0200",
        "2026-11-16T10:00:00+02",
        "2026-11-16T10:00:00+24:00",
        "2026-11-16T10:00:00 UTC",
        "2026-11-16T24:00:00Z",
        "2026-11-16T10:60:00Z",
        "2026-11-16T23:59:60Z",  # a leap second has no number of its own
        "2026-02-29T10:00:00Z",
        "2026-13-01T10:00:00Z",
        "2026-00-01T10:00:00Z",
        "0000-01-01T10:00:00Z",
        "26-11-16T10:00:00Z",
        "20261116T100000Z",
        "2026-W47-1T10:00:00Z",
        "٢٠٢٦-11-16T10:00:00Z",
        "2026-11-16T10:00:00Z2026-11-16T10:00:00Z",
        pytest.param("x" * 100_000, id="long text"),
        True,
        None,
        1.5,
        b"now",
    ],
)
def test_what_is_no_moment_is_refused(written: Any) -> None:
    with pytest.raises(InvalidMoment, match=r"is no time: possible are RFC 3339.*since 1970.*now.*-10m") as refusal:
        parse_moment_ms(written, NOW_MS)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    "written",
    [
        -1,
        MOMENT_MS_MAX + 1,
        str(MOMENT_MS_MAX + 1),
        pytest.param("9" * 5000, id="long number"),
        "-3000w",
        "+999999999w",
        "1969-12-31T23:59:59.999Z",
        "1970-01-01T00:59:59+01:00",
        "9999-12-31T23:59:59-01:00",
        "0001-01-01T00:00:00+01:00",
    ],
)
def test_a_moment_out_of_range_is_refused(written: str | int) -> None:
    with pytest.raises(InvalidMoment, match="lies outside of the years 1970 to 9999"):
        parse_moment_ms(written, NOW_MS)


@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [
        ("2026-11-16T10:00:00Z", NOV_16_MS),
        ("0", 0),
        ("1700000000000", NOW_MS),
        (str(MOMENT_MS_MAX), MOMENT_MS_MAX),
        *((text, None) for text in ("", "now", "-10m", "+2h", " 5", str(MOMENT_MS_MAX + 1), "9" * 50, "٣")),
        ("1969-12-31T23:59:59Z", None),
        ("2026-11-16T10:00:00", None),
    ],
)
def test_an_absolute_moment_needs_no_clock(text: str, moment_ms: int | None) -> None:
    assert parse_absolute_ms(text) == moment_ms


@pytest.mark.parametrize(
    ("moment_ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (NOV_16_MS, "2026-11-16T10:00:00Z"),
        (NOV_16_MS + 120, "2026-11-16T10:00:00.120Z"),
        (MOMENT_MS_MAX, "9999-12-31T23:59:59.999Z"),
        (MOMENT_MS_MAX + 1, "253402300800000"),
        (-1, "-1"),
        (2**63 - 1, "9223372036854775807"),
    ],
)
def test_a_moment_is_written(moment_ms: int, text: str) -> None:
    assert format_moment(moment_ms) == text


@given(st.integers(0, MOMENT_MS_MAX))
def test_what_is_written_is_read(moment_ms: int) -> None:
    assert parse_moment_ms(format_moment(moment_ms), NOW_MS) == moment_ms
    assert parse_absolute_ms(format_moment(moment_ms)) == moment_ms
    assert parse_moment_ms(str(moment_ms), NOW_MS) == moment_ms


@given(st.integers(0, MOMENT_MS_MAX), st.integers(-23 * 60, 23 * 60))
def test_every_offset_is_understood(moment_ms: int, offset_minutes: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=moment_ms)
    sign, minutes = "-" if offset_minutes < 0 else "+", abs(offset_minutes)
    try:
        local = moment.replace(tzinfo=None) + timedelta(minutes=offset_minutes)
    except OverflowError:
        return
    text = f"{local.isoformat(timespec='milliseconds')}{sign}{minutes // 60:02}:{minutes % 60:02}"
    assert parse_moment_ms(text, NOW_MS) == moment_ms


@given(st.text(max_size=30))
def test_whatever_is_written_only_one_error_comes(text: str) -> None:
    for parse in (parse_duration_ms, lambda written: parse_moment_ms(written, NOW_MS)):
        with suppress(InvalidMoment):
            assert 0 <= parse(text) <= MOMENT_MS_MAX


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "0s"),
        (-5, "0s"),
        (1, "0.001s"),
        (1500, "1.5s"),
        (60_000, "1m"),
        (90_000, "1m30s"),
        (3_600_000, "1h"),
        (3_605_250, "1h5.25s"),
        (360_000_000, "100h"),
    ],
)
def test_a_duration_is_written(duration_ms: int, text: str) -> None:
    assert format_duration(duration_ms) == text
    assert parse_duration_ms(text) == max(0, duration_ms)
