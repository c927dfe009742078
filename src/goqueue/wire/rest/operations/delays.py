"""Operations on what waits for its time."""

from goqueue.wire.home import EVERYWHERE, FIRST, NEW_SCHEDULE, PARTITION, Way, at
from goqueue.wire.rest import delays, topics
from goqueue.wire.rest.operation import Resource

DELAYS = Resource("Delays")

LIST_DELAYED = DELAYS.add(
    "list_delayed",
    "GET /topics/{topic}/delayed",
    delays.DelayedMessages,
    """Messages of a topic that wait for their time, the next to come first.

    They are in no partition yet, and no reader sees them. `offset` is a message's name until it is due. Whoever wants
    all of very many lists them by place, with a cursor.
    """,
    path=topics.TopicPath,
    query=delays.DelayedPageQuery,
    errors=(404,),
    home=EVERYWHERE,
)

FIND_DELAYED = DELAYS.add(
    "find_delayed",
    "GET /topics/{topic}/delayed/{offset}",
    delays.DelayedMessage,
    "One message that waits, with its content; say in which partition if the topic has several.",
    path=delays.DelayedOffsetPath,
    query=delays.DelayedQuery,
    errors=(404,),
    home=at(PARTITION, "path.topic", "query.partition", otherwise=Way.FIRST),
)

LOOK_AT_DELAYED = DELAYS.add(
    "look_at_delayed",
    "GET /topics/{topic}/delayed/{partition}/{offset}",
    delays.DelayedMessage,
    "One message that waits, with its content.",
    path=delays.DelayedPath,
    errors=(404,),
    home=at(PARTITION, "path.topic", "path.partition"),
)

CANCEL_DELAYED = DELAYS.add(
    "cancel_delayed",
    "DELETE /topics/{topic}/delayed/{partition}/{offset}",
    delays.Cancelled,
    "Cancel a message that waits: it will never be published. 404: it was published, cancelled, or never there.",
    path=delays.DelayedPath,
    errors=(404,),
    home=at(PARTITION, "path.topic", "path.partition"),
)

RESCHEDULE_DELAYED = DELAYS.add(
    "reschedule_delayed",
    "PATCH /topics/{topic}/delayed/{partition}/{offset}",
    delays.DelayedMessage,
    """Let a message that waits come at another time: after `delay` from now, or at `deliver_at`.

    A time that has passed means now.
    """,
    path=delays.DelayedPath,
    body=delays.NewTime,
    errors=(404,),
    home=at(PARTITION, "path.topic", "path.partition"),
)

DELAY_STATS = DELAYS.add(
    "delay_stats",
    "GET /delay/stats",
    delays.DelayStats,
    "How much waits for its time, and what became of the rest since the start of the node.",
    home=EVERYWHERE,
)

SCHEDULES = Resource("Recurring schedules")

STORE_SCHEDULE = SCHEDULES.add(
    "store_schedule",
    "PUT /schedules/{name}",
    delays.Schedule,
    """Publish a message whenever a cron expression says so, in a time zone of your choice.

    Replaces the schedule of that name, if there is one. Every run comes once, whatever restarts lie between; of the
    runs that a node missed while it was down, the last one is made up for.
    """,
    path=delays.SchedulePath,
    body=delays.NewSchedule,
    errors=(404,),
    home=at(NEW_SCHEDULE, "body.topic"),
)

LIST_SCHEDULES = SCHEDULES.add(
    "list_schedules",
    "GET /schedules",
    delays.Schedules,
    "All recurring schedules by name, and when each runs next.",
    query=delays.PageQuery,
    home=EVERYWHERE,
)

DESCRIBE_SCHEDULE = SCHEDULES.add(
    "describe_schedule",
    "GET /schedules/{name}",
    delays.Schedule,
    "One recurring schedule: its message, when it ran last and when it runs next.",
    path=delays.SchedulePath,
    errors=(404,),
    home=FIRST,
)

DELETE_SCHEDULE = SCHEDULES.add(
    "delete_schedule",
    "DELETE /schedules/{name}",
    delays.ScheduleDeleted,
    "Publish it no more.",
    path=delays.SchedulePath,
    errors=(404,),
    home=FIRST,
)

PAUSE_SCHEDULE = SCHEDULES.add(
    "pause_schedule",
    "POST /schedules/{name}/pause",
    delays.Schedule,
    """Let it run no more until it is resumed.

    It stays paused when it is stored anew with the same topic and key. `run` publishes its message all the same.
    """,
    path=delays.SchedulePath,
    errors=(404,),
    home=FIRST,
)

RESUME_SCHEDULE = SCHEDULES.add(
    "resume_schedule",
    "POST /schedules/{name}/resume",
    delays.Schedule,
    "Let it run again, from its next time on. What it would have published meanwhile is not made up for.",
    path=delays.SchedulePath,
    errors=(404,),
    home=FIRST,
)

RUN_SCHEDULE = SCHEDULES.add(
    "run_schedule",
    "POST /schedules/{name}/run",
    delays.ScheduleRun,
    "Publish its message once, now. Its times stay as they are.",
    path=delays.SchedulePath,
    errors=(404,),
    home=FIRST,
)
