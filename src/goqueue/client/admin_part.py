"""What the parts of `Admin` share: a way to ask."""

from goqueue.client.http import Http


class AdminPart:
    def __init__(self, http: Http) -> None:
        self._http = http
