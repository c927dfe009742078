"""What each method needs. A method that is not here cannot be served."""

from collections.abc import Mapping

from goqueue.model.access import OPEN, Kind, Operation, Permission

TOPIC, GROUP, TRANSACTIONAL_ID, SUBJECT = Kind.TOPIC, Kind.GROUP, Kind.TRANSACTIONAL_ID, Kind.SUBJECT
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE

READS = Permission({GROUP: READ, TOPIC: READ})
RESETS = Permission({GROUP: READ, TOPIC: READ}, is_change=True)
PUBLISHES = Permission({TOPIC: (WRITE, Operation.CREATE), TRANSACTIONAL_ID: WRITE})
DESCRIBES_GROUP = Permission({GROUP: DESCRIBE, TOPIC: DESCRIBE})
DESCRIBES_TOPIC = Permission({TOPIC: DESCRIBE})
WRITES_TRANSACTION = Permission({TRANSACTIONAL_ID: WRITE})
DESCRIBES_TRANSACTION = Permission({TRANSACTIONAL_ID: DESCRIBE})

_OURS: Mapping[str, Mapping[str, Permission]] = {
    "AckService": dict.fromkeys(("Ack", "Nack", "Reject", "ExtendVisibility", "BatchAck"), READS),
    "ConsumeService": {"Consume": Permission({TOPIC: READ}), "Subscribe": READS},
    "GroupService": {
        "ListGroups": DESCRIBES_GROUP,
        "DescribeGroup": DESCRIBES_GROUP,
        "ConfigureGroup": Permission({GROUP: Operation.ALTER_CONFIGS}),
        "DeleteGroup": Permission({GROUP: Operation.DELETE}),
    },
    "HealthService": dict.fromkeys(("Check", "Watch"), OPEN),
    "OffsetService": {
        "CommitOffsets": READS,
        "FetchOffsets": DESCRIBES_GROUP,
        "ResetOffsets": Permission({GROUP: READ, TOPIC: READ}, is_change=True),
    },
    "PublishService": dict.fromkeys(("Publish", "PublishStream"), PUBLISHES),
    "TopicService": {
        "CreateTopic": Permission({TOPIC: (Operation.CREATE, WRITE), SUBJECT: READ}),
        "ListTopics": DESCRIBES_TOPIC,
        "DescribeTopic": DESCRIBES_TOPIC,
        "ConfigureTopic": Permission({TOPIC: (Operation.ALTER_CONFIGS, WRITE), SUBJECT: READ}),
        "DeleteTopic": Permission({TOPIC: Operation.DELETE}),
    },
    "TransactionService": {
        "InitProducer": WRITES_TRANSACTION,
        "BeginTransaction": WRITES_TRANSACTION,
        "AddPartition": Permission({TRANSACTIONAL_ID: WRITE, TOPIC: WRITE}),
        "CommitTransaction": WRITES_TRANSACTION,
        "AbortTransaction": WRITES_TRANSACTION,
        "ListTransactions": DESCRIBES_TRANSACTION,
        "DescribeTransaction": DESCRIBES_TRANSACTION,
    },
}
PERMISSIONS: Mapping[str, Permission] = {
    **{f"goqueue.v1.{service}.{name}": each for service, methods in _OURS.items() for name, each in methods.items()},
    **dict.fromkeys((f"grpc.health.v1.Health.{name}" for name in ("Check", "List", "Watch")), OPEN),
}
"""By the full name of the method."""
