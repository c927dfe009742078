"""A file of SQL, taken apart: statements, and which of them write somewhere."""

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<skip> --[^\n]* | /\*.*?\*/ )
    | (?P<text> '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.)*" | `[^`]*` )
    | (?P<end> ; )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_INSERT = re.compile(
    r"INSERT\s+(?:INTO|OVERWRITE)(?:\s+TABLE)?\s+(?P<target>(?:`[^`]+`|[\w.-]+)(?:\s*\.\s*`[^`]+`)?)\s+"
    r"(?P<query>(?:SELECT|WITH|FROM|TABLE|VALUES)\b.*)",
    re.IGNORECASE | re.DOTALL,
)
_OVERWRITE = re.compile(r"INSERT\s+OVERWRITE\b", re.IGNORECASE)
_FILES = re.compile(r"(?P<format>parquet|json|csv|orc)\s*\.\s*`(?P<path>[^`]+)`", re.IGNORECASE)


class Insert(NamedTuple):
    """INSERT INTO a topic, or a directory of files: ``INSERT INTO parquet.`lake/big` SELECT ...``."""

    topic: str
    """Empty: into files."""
    format: str
    path: str
    query: str


def statements(text: str) -> list[str]:
    """Without comments, which may hold semicolons, and without what is empty."""
    found, now = [], ""
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "end":
            found.append(now)
            now = ""
        else:
            now += " " if token.lastgroup == "skip" else token[0]
    return [each.strip() for each in (*found, now) if each.strip()]


def insert_of(statement: str) -> Insert | None:
    """None: it writes nowhere. ValueError: what cannot be done to a topic."""
    found = _INSERT.fullmatch(statement)
    if _OVERWRITE.match(statement):
        raise ValueError("a stream cannot overwrite what is there: use INSERT INTO")
    if found is None:
        return None
    target = found["target"]
    files = _FILES.fullmatch(target)
    if files is not None:
        return Insert("", files["format"].lower(), files["path"], found["query"])
    return Insert(target.strip("`"), "", "", found["query"])


def unquoted(relation: str) -> str:
    """The name of a table as Spark tells it: `orders`, with backticks, is orders."""
    return relation.strip("`")
