"""Headers that the broker adds to a delayed record: its place and time are not those that its producer knows."""

PUBLISHED_AT = "gq-published-at"
"""When its producer sent it. Its timestamp is the time when it became due."""
SCHEDULED_AS = "gq-scheduled-as"
"""The place that its producer was told, `partition/offset`."""
LOST = "gq-lost"
"""Of a record without a value that stands for one which the disk could not give back: its name."""
