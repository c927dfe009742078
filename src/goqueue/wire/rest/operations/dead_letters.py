"""Operations on dead letters."""

from goqueue.wire.home import DEAD_LETTER, EVERYWHERE, at
from goqueue.wire.rest import dead_letters, topics
from goqueue.wire.rest.operation import Resource

DEAD_LETTERS = Resource("Dead letters")

LIST_DEAD_LETTERS = DEAD_LETTERS.add(
    "list_dead_letters",
    "GET /topics/{topic}/dlq",
    dead_letters.DeadLetters,
    """Dead letters of a topic that nobody has dealt with yet, by partition, in the order in which they died.

    Those that were redriven or discarded are not among them. Reading changes nothing.
    """,
    path=topics.TopicPath,
    query=dead_letters.DeadLetterQuery,
    errors=(404,),
    home=EVERYWHERE,
)

LOOK_AT_DEAD_LETTER = DEAD_LETTERS.add(
    "look_at_dead_letter",
    "GET /topics/{topic}/dlq/{partition}/{offset}",
    dead_letters.DeadLetter,
    "One dead letter: the message as it was, why it died, and when.",
    path=dead_letters.DeadLetterPath,
    errors=(404,),
    home=at(DEAD_LETTER, "path.topic", "path.partition"),
)

DISCARD_DEAD_LETTER = DEAD_LETTERS.add(
    "discard_dead_letter",
    "DELETE /topics/{topic}/dlq/{partition}/{offset}",
    dead_letters.Discarded,
    "Deal with one dead letter by doing nothing: it is not listed and not redriven any more.",
    path=dead_letters.DeadLetterPath,
    errors=(404,),
    home=at(DEAD_LETTER, "path.topic", "path.partition"),
)

REDRIVE = DEAD_LETTERS.add(
    "redrive",
    "POST /topics/{topic}/dlq/redrive",
    dead_letters.RedriveReply,
    """Send dead letters back to work: to where they came from, or to another topic.

    In the order in which they died. What was sent back is not sent again, also after a restart. The answer comes at
    the end, or with status 202 after `wait`: then the redrive goes on, GET tells how far it is and DELETE stops it.
    It does not depend on this connection. A restart of the node ends it; start it again then.
    """,
    path=topics.TopicPath,
    body=dead_letters.Redrive,
    errors=(404, 409),
    other_replies=((202, "Under way; look at the same path with GET"),),
    waits=True,
    home=EVERYWHERE,
)

LOOK_AT_REDRIVE = DEAD_LETTERS.add(
    "look_at_redrive",
    "GET /topics/{topic}/dlq/redrive",
    dead_letters.RedriveReply,
    "How far the redrive of a topic's dead letters is, or what the last one did.",
    path=topics.TopicPath,
    errors=(404,),
    home=EVERYWHERE,
)

STOP_REDRIVE = DEAD_LETTERS.add(
    "stop_redrive",
    "DELETE /topics/{topic}/dlq/redrive",
    dead_letters.RedriveReply,
    "Stop a redrive: what is on its way goes out, the rest stays where it is.",
    path=topics.TopicPath,
    errors=(404,),
    home=EVERYWHERE,
)

PURGE_DEAD_LETTERS = DEAD_LETTERS.add(
    "purge_dead_letters",
    "DELETE /topics/{topic}/dlq",
    dead_letters.Purged,
    "Delete all dead letters of a topic, for good and for everybody: their space is given back.",
    path=topics.TopicPath,
    errors=(404,),
    home=EVERYWHERE,
)
