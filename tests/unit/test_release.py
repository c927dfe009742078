"""A release says what changed, and the version has one place."""

from pathlib import Path

import pytest

from tools.release import NotReleased, close_changelog, set_version

ROOT = Path(__file__).parents[2]
TEXT = "# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n\n## 0.1.0 (2026-01-01)\n\n- All.\n"


def test_what_is_unreleased_becomes_the_section_of_the_version() -> None:
    closed = close_changelog(TEXT, "0.2.0", "2026-02-02")
    assert closed == TEXT.replace("## Unreleased\n", "## Unreleased\n\n## 0.2.0 (2026-02-02)\n")


@pytest.mark.parametrize(
    ("text", "version"),
    [(TEXT, "0.1.0"), (TEXT.replace("### Added\n\n- A thing.\n\n", ""), "0.2.0"), ("# Log\n", "0.2.0")],
)
def test_a_release_of_nothing_or_of_the_same_version_is_refused(text: str, version: str) -> None:
    with pytest.raises(NotReleased):
        close_changelog(text, version, "2026-02-02")


def test_the_version_has_one_place() -> None:
    before = (ROOT / "pyproject.toml").read_text("utf-8")
    after = set_version(before, "9.8.7")
    changed = [pair for pair in zip(before.splitlines(), after.splitlines(), strict=True) if pair[0] != pair[1]]
    assert [new for _, new in changed] == ['version = "9.8.7"']
