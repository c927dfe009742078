"""How far a query is behind, counted from its progress."""

from typing import Any

from goqueue.spark import behind_latest


def progress(end: dict[str, Any], latest: dict[str, Any] | None) -> dict[str, Any]:
    return {"sources": [{"endOffset": end, "latestOffset": latest}]}


def test_offsets_behind_latest_have_the_names_of_sparks_own() -> None:
    end, latest = {"a": {"0": 5, "1": 10}}, {"a": {"0": 9, "1": 10, "2": 3}}  # partition 2 is new to the query
    assert behind_latest(progress(end, latest)) == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "4",
        "avgOffsetsBehindLatest": "2.3",
    }


def test_a_topic_that_was_made_again_is_behind_from_its_beginning() -> None:
    end, latest = {"a": {"0": 5}, "<ids>": {"a": "01"}}, {"a": {"0": 9}, "<ids>": {"a": "02"}}
    assert behind_latest(progress(end, latest))["maxOffsetsBehindLatest"] == "9"


def test_a_source_that_has_not_told_its_newest_offsets_is_not_known_to_be_behind() -> None:
    assert behind_latest(progress({"a": {"0": 5}}, None)) == {}
