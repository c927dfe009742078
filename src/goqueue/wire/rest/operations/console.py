"""What the pages at /console/ ask for beside the operations of everybody."""

from goqueue.wire.home import EVERYWHERE
from goqueue.wire.rest import console
from goqueue.wire.rest.operation import Resource

CONSOLE = Resource("Console")

CONSOLE_READING = CONSOLE.add(
    "console_reading",
    "GET /console/reading",
    console.ConsoleReading,
    """Topics and groups in numbers, as every page of the console shows them.

    A node reads them once a second at most, for all who ask, and not at all while nobody does. With `since` the answer
    has what has changed since then.
    """,
    query=console.ReadingQuery,
    home=EVERYWHERE,
)
