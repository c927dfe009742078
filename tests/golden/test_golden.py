"""What earlier versions stored is read by this one, and what this one stores is written down for later ones."""

from typing import Any

import pytest

import goqueue.node.node  # noqa: F401  so that every fact there is has been defined
from goqueue.machines.machine import Fact
from goqueue.machines.retired import RETIRED
from tests.golden import lines as golden
from tests.golden.files import READERS
from tests.golden.lines import FORMATS, Line, broken_rules, line_of, new_lines, newest, read_lines, samples, words
from tests.golden.samples import LEDGERS, Sample, audit_decoder, decoder_of, journeys_decoder

LINES = read_lines()
STORED = [line for line in LINES if line.hex]
SAMPLES = samples()
ADD = "Run: python -m tools.golden (CONTRIBUTING.md, Stored facts)"


def decoded(line: Line) -> Any:
    data = bytes.fromhex(line.hex)
    if line.kind in LEDGERS:
        return decoder_of(line.kind)(data)
    if line.kind == "audit":
        return audit_decoder(data)
    return journeys_decoder(data) if line.kind == "journeys" else READERS[line.kind, line.tag](data)


def assert_says(expected: Any, found: Any, where: str) -> None:
    """All that was stored; what was added to the format since has its default."""
    if isinstance(expected, dict):
        for name, value in expected.items():
            assert_says(value, found[name], f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for place, value in enumerate(expected):
            assert_says(value, found[place], f"{where}[{place}]")
    else:
        assert found == expected, where


@pytest.mark.parametrize("line", STORED, ids=lambda line: line.name)
def test_what_any_version_stored_is_read_with_the_value_that_it_had(line: Line) -> None:
    assert_says(line.value, words(decoded(line)), line.tag)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.kind}-{sample.tag}")
def test_this_version_writes_the_bytes_of_the_newest_golden_line(sample: Sample) -> None:
    line = newest(LINES).get((sample.kind, sample.tag))
    assert line is not None, f"{sample.kind} {sample.tag} has no golden line. {ADD}"
    assert sample.encode().hex() == line.hex, f"{sample.kind} {sample.tag} is written in another format. {ADD}"
    assert [repr(key) for key in sample.keys] == line.keys


@pytest.mark.parametrize("line", newest(LINES).values(), ids=lambda line: line.name)
def test_fields_are_only_added_and_at_the_end(line: Line) -> None:
    readers = {(each.kind, each.tag): each.reader for each in RETIRED}
    made = {(each.kind, each.tag): type(each.value) for each in SAMPLES} | readers
    assert (line.kind, line.tag) in made, f"{line.tag} is gone: what was stored as it goes to goqueue.machines.retired"
    assert broken_rules(line.types, golden.types_of(made[line.kind, line.tag])) == []


def every_fact(base: type[Fact] = Fact) -> list[type[Fact]]:
    return [each for made in base.__subclasses__() for each in (made, *every_fact(made))]


def test_every_stored_fact_belongs_to_a_ledger_and_has_a_golden_line() -> None:
    known = {fact for facts in LEDGERS.values() for fact in facts} | {each.reader for each in RETIRED}
    ours = [fact for fact in every_fact() if fact.__module__.startswith("goqueue.")]
    assert [fact.__qualname__ for fact in ours if fact.is_stored() and fact not in known] == []
    lines = newest(LINES)
    for kind, facts in LEDGERS.items():
        missing = [tag for fact in facts if (kind, tag := str(fact.__struct_config__.tag)) not in lines]
        assert missing == [], ADD


def test_every_tombstone_has_a_golden_key() -> None:
    ours = {fact for fact in every_fact() if fact.__module__.startswith("goqueue.") and fact.is_tombstone}
    sampled = {type(sample.value) for sample in SAMPLES}
    assert {fact.__name__ for fact in ours - sampled} == set()


def test_a_tag_names_one_fact_of_a_ledger_for_good() -> None:
    for kind, facts in LEDGERS.items():
        now = [str(fact.__struct_config__.tag) for fact in facts]
        retired = [each.tag for each in RETIRED if each.kind == kind]
        assert len({*now, *retired}) == len(now) + len(retired), kind


def test_no_line_is_of_a_format_that_is_not_declared_yet() -> None:
    assert [line.name for line in LINES if line.version > FORMATS[line.kind]] == []
    assert len({line.name for line in LINES}) == len(LINES)


def test_the_golden_file_has_all_that_this_version_stores() -> None:
    assert [line.name for line in new_lines()] == [], ADD


def test_a_changed_format_that_older_data_cannot_meet_is_refused() -> None:
    fields = {"": ["name: str", "count: int", "state: enum"], "/state": ["Empty", "Stable"]}
    assert broken_rules(fields, fields | {"": [*fields[""], "added: int"]}) == []
    assert broken_rules(fields, fields | {"/state": ["Dead", "Empty", "Stable"]}) == []
    assert broken_rules(fields, fields | {"": ["count: int", "name: str", "state: enum"]}) != []
    assert broken_rules(fields, fields | {"": ["name: str", "state: enum"]}) != []
    assert broken_rules(fields, fields | {"": ["name: str", "count: str", "state: enum"]}) != []
    assert broken_rules(fields, fields | {"/state": ["Stable"]}) != []


def test_a_new_line_needs_a_higher_format_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = SAMPLES[0]._replace(encode=lambda: b"another format")
    monkeypatch.setattr(golden, "samples", lambda: [changed])
    with pytest.raises(golden.NotGolden, match=f"raise '{changed.kind}' in goqueue/records/formats.py"):
        new_lines()
    raised = {**FORMATS, changed.kind: FORMATS[changed.kind] + 1}
    monkeypatch.setattr(golden, "FORMATS", raised)
    assert new_lines() == [line_of(changed)]
    assert new_lines()[0].version == raised[changed.kind]
