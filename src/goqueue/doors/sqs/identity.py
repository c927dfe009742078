"""Who a message is: one id from its sending to its end, over delays, dead letters and being sent back.

The id is made of where its record was published first. A delayed record says in a header where that was, a dead letter
and one that was sent back say it too; all others are where they were published.
"""

from collections.abc import Mapping
from hashlib import blake2b

from goqueue.model.topics import Image
from goqueue.records import dead_letters
from goqueue.records.delayed import SCHEDULED_AS
from goqueue.records.redrives import ORIGIN

Headers = Mapping[str, bytes | None]
PURPOSE = b"sqs message id"
DIGITS_MAX = 18


def message_id(topic_id: bytes, partition: int, offset: int) -> str:
    """As a UUID."""
    place = b"%b/%d/%d" % (topic_id, partition, offset)
    digest = blake2b(place, digest_size=16, person=PURPOSE).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-a{digest[17:20]}-{digest[20:]}"


def first_place(headers: Headers, topic: str, partition: int, offset: int) -> tuple[str, int, int]:
    """Where a record that is there now was published first."""
    if not headers:
        return topic, partition, offset
    origin = _split(headers.get(ORIGIN), 3)
    if origin is None and dead_letters.TOPIC in headers:
        parts = [headers.get(name) or b"" for name in (dead_letters.TOPIC, dead_letters.PARTITION, dead_letters.OFFSET)]
        origin = _split(b"/".join(parts), 3)
    if origin is not None:
        topic, partition, offset = origin[0].decode(errors="replace"), int(origin[1]), int(origin[2])
    scheduled = _split(headers.get(SCHEDULED_AS), 2)
    if scheduled is not None:
        partition, offset = int(scheduled[0]), int(scheduled[1])
    return topic, partition, offset


def id_of(image: Image, place: tuple[str, int, int]) -> str:
    """Of a topic that is gone the name must do."""
    topic = image.topics.get(place[0])
    return message_id(place[0].encode() if topic is None else topic.id, *place[1:])


def _split(text: bytes | None, count: int) -> list[bytes] | None:
    parts = (text or b"").split(b"/")
    numbers = parts[-2:]
    return (
        parts if len(parts) == count and all(part.isdigit() and len(part) <= DIGITS_MAX for part in numbers) else None
    )


def sequence_number(offset: int) -> str:
    """It rises within a partition, and so within every message group."""
    return f"{offset:020d}"
