"""Sessions that requests of one connection go on with."""

from goqueue.doors.kafka.connection import Connection
from goqueue.doors.kafka.fetch_sessions import FetchSessions
from goqueue.doors.kafka.share_sessions import ShareSessions


class Sessions:
    def __init__(self, share: ShareSessions, fetch: FetchSessions) -> None:
        self.share = share
        self.fetch = fetch

    def lost(self, connection: Connection) -> None:
        self.share.lost(connection)
        self.fetch.lost(connection)
