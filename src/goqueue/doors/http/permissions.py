"""What operations of this API need, by what they do. Reading what messages hold is READ, whoever asks for it."""

from goqueue.model.access import Kind, Operation, Permission

TOPIC, GROUP, CLUSTER = Kind.TOPIC, Kind.GROUP, Kind.CLUSTER
SUBJECT, TRANSACTIONAL_ID = Kind.SUBJECT, Kind.TRANSACTIONAL_ID
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE

CREATES_TOPIC = Permission({TOPIC: (Operation.CREATE, WRITE), SUBJECT: READ})
"""Options may name another topic, which is written to, and a subject, which is read."""
DESCRIBES_TOPIC = Permission({TOPIC: DESCRIBE})
READS_TOPIC = Permission({TOPIC: READ})
WRITES_TOPIC = Permission({TOPIC: WRITE})
PUBLISHES = Permission({TOPIC: (WRITE, Operation.CREATE)})
"""To a topic that may have to be made first."""
ALTERS_TOPIC = Permission({TOPIC: Operation.ALTER})
ALTERS_TOPIC_CONFIGS = Permission({TOPIC: (Operation.ALTER_CONFIGS, WRITE), SUBJECT: READ})
DELETES_TOPIC = Permission({TOPIC: Operation.DELETE})

READS = Permission({GROUP: READ, TOPIC: READ})
"""Messages, on behalf of a group."""
SETTLES = Permission({GROUP: READ, TOPIC: READ})
SENDS_BACK = Permission({TOPIC: (READ, WRITE), GROUP: READ}, is_change=True)
RESETS = Permission({GROUP: READ, TOPIC: READ}, is_change=True)
"""Changes what a whole group will get, or makes another of it."""
SCHEDULES = Permission({TOPIC: WRITE}, is_change=True)
DESCRIBES_GROUP = Permission({GROUP: DESCRIBE, TOPIC: DESCRIBE})
DESCRIBES_ALL_GROUPS = Permission({GROUP: DESCRIBE})
DESCRIBES_GROUP_CONFIGS = Permission({GROUP: Operation.DESCRIBE_CONFIGS})
ALTERS_GROUP_CONFIGS = Permission({GROUP: Operation.ALTER_CONFIGS})
DELETES_GROUP = Permission({GROUP: Operation.DELETE})

WRITES_TRANSACTION = Permission({TRANSACTIONAL_ID: WRITE})
PUBLISHES_IN_TRANSACTION = Permission({TRANSACTIONAL_ID: WRITE, TOPIC: (WRITE, Operation.CREATE)})
JOINS_TRANSACTION = Permission({TRANSACTIONAL_ID: WRITE, TOPIC: WRITE})
DESCRIBES_TRANSACTIONS = Permission({TRANSACTIONAL_ID: DESCRIBE})

DESCRIBES_SUBJECT = Permission({SUBJECT: DESCRIBE})
READS_SUBJECT = Permission({SUBJECT: READ})
WRITES_SUBJECT = Permission({SUBJECT: (WRITE, READ)}, is_change=True)
"""What a schema refers to is read."""
DELETES_SUBJECT = Permission({SUBJECT: Operation.DELETE})
DESCRIBES_SUBJECT_CONFIGS = Permission({SUBJECT: Operation.DESCRIBE_CONFIGS})
ALTERS_SUBJECT_CONFIGS = Permission({SUBJECT: Operation.ALTER_CONFIGS})
DESCRIBES_SCHEMAS = Permission({SUBJECT: DESCRIBE, TOPIC: DESCRIBE})

DESCRIBES_CLUSTER = Permission({CLUSTER: DESCRIBE})
ALTERS_CLUSTER = Permission({CLUSTER: Operation.ALTER, TOPIC: Operation.ALTER})
DESCRIBES_COORDINATORS = Permission({CLUSTER: DESCRIBE, GROUP: DESCRIBE})
ALTERS_QUOTAS = Permission({CLUSTER: Operation.ALTER_CONFIGS})
DESCRIBES_QUOTAS = Permission({CLUSTER: Operation.DESCRIBE_CONFIGS})
MANAGES_ACCESS = Permission({CLUSTER: Operation.ALTER})
"""Users, keys and rules: whoever has this may give everything."""
