"""Limits of what can be said to `goqueue bench`. Light, because every start of the command reads it."""

MESSAGES_MAX = 10**9
PARTITIONS_MAX = 1000
BATCH_BYTES_MAX = 1_000_000
"""Of one batch: what librdkafka and a broker take unless told otherwise."""
RECORD_BYTES_EXTRA = 20
"""Around the value of a record, at most, and room for the header of its batch."""
VALUE_BYTES_MAX = BATCH_BYTES_MAX - 1000

DEFAULT_MESSAGES = {"produce": 1_000_000, "consume": 1_000_000, "queue": 100_000, "latency": 5_000}
SUMMARIES = {
    "produce": "how fast messages are taken, and what each costs the broker",
    "consume": "how fast messages are handed out, and what each costs the broker",
    "queue": "how fast messages are leased and acknowledged one by one by our own worker",
    "latency": "how long one message takes to its acknowledgement, and to a consumer that waits for it",
}
