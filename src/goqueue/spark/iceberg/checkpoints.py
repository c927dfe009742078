"""A checkpoint notes how far its table was. A table that has less than that was put back to an older state.

That is so when a catalog is restored from a backup, and the checkpoints are not. The query would go on behind rows that
the table has lost. So it begins with a new checkpoint, at the offsets that the table has.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

NOTE = "goqueue-table.json"
"""In the checkpoint. Spark's own offsets would not do: they also count markers of transactions, which are no rows."""


def note(checkpoint: str, positions: Mapping[int, int]) -> None:
    """After each micro-batch, and before Spark writes down that it is done."""
    place = Path(checkpoint) / NOTE
    place.parent.mkdir(parents=True, exist_ok=True)
    new = place.with_suffix(".new")
    new.write_bytes(msgspec.json.encode({str(number): offset for number, offset in positions.items()}))
    new.replace(place)


def is_behind(positions: Mapping[int, int], reached: Mapping[int, int]) -> bool:
    """Whether a table at these positions lacks what it had once."""
    return any(positions.get(number, 0) < offset for number, offset in reached.items())


def discard_if_ahead(checkpoint: str, positions: Mapping[int, int]) -> None:
    """Removes the checkpoint of a table that has less than it had. A note that cannot be read may say anything."""
    place = Path(checkpoint)
    try:
        noted = msgspec.json.decode((place / NOTE).read_bytes(), type=dict[int, int])
    except FileNotFoundError:
        return  # it is new, or of a version before
    except msgspec.DecodeError:
        pass
    else:
        if not is_behind(positions, noted):
            return
    old = place.with_name(f"{place.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    place.rename(old)  # at once: of half a checkpoint, nobody knows where it goes on
    shutil.rmtree(old, ignore_errors=True)
