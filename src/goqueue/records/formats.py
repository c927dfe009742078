"""Which formats this version stores its data in, and which it finds in a data directory: one that a later version has
written is not opened, because what is not understood there would be lost.

`format.json` at the top of a data directory says who wrote there last, and the highest format of each kind.
"""

import json
from collections.abc import Collection, Mapping

from goqueue.model.errors import DamagedFile

FORMAT_NAME = "format.json"

FORMATS: Mapping[str, int] = {
    # Raised with every change after which the version before could not read what is written: a new fact, a new field.
    # `tests/golden` has what each format looks like; CONTRIBUTING.md says how to change one.
    "log": 2,
    "snapshot": 2,
    "producers": 2,
    "metadata": 12,
    "groups": 3,
    "deliveries": 2,
    "delays": 4,
    "transactions": 3,
    "schemas": 1,
    "journeys": 1,
    "audit": 3,
    "store": 1,
}
"""`log`: segments with their indexes and `state`. `snapshot`: the files of snapshots. `producers`: what a partition
knows of its producers. The others are ledgers. 1 is what was stored before directories had this file."""


def encode_formats(version: str, formats: Mapping[str, int] = FORMATS) -> bytes:
    return (json.dumps({"written_by": version, "formats": dict(formats)}, indent=2) + "\n").encode()


def decode_formats(data: bytes) -> tuple[str, dict[str, int]]:
    """Who wrote it, and the formats."""
    try:
        said = json.loads(data)
        return str(said["written_by"]), {str(kind): int(number) for kind, number in said["formats"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedFile(f"{FORMAT_NAME} cannot be read: {error}") from error


def newer_formats(
    data: bytes, version: str, formats: Mapping[str, int] = FORMATS, *, only: Collection[str] = ()
) -> str:
    """Why a directory with this file cannot be opened by `version`, and what to do; empty: it can. `only`: for somebody
    who looks at nothing but these kinds."""
    written_by, found = decode_formats(data)
    newer = [
        f"{kind} in format {number} (known here: {formats.get(kind, 'none')})"
        for kind, number in sorted(found.items())
        if number > formats.get(kind, 0) and (not only or kind in only)
    ]
    if not newer:
        return ""
    return (
        f"it was written by GoQueue {written_by}, which stores {', '.join(newer)}; this is GoQueue {version}. Nothing"
        f" was changed. Use GoQueue {written_by} or a later one, or restore a backup that is older than the upgrade"
    )
