"""The first admin: a key that a closed node without any account takes from a file, or makes and tells once. It ends
with the first lasting admin, or after a day.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from goqueue.broker.accounts.accounts import Accounts, digest_of
from goqueue.model.accounts import KeySecret, KeyText, parse_key
from goqueue.model.errors import GoQueueError, InvalidSettings
from goqueue.node.settings import Settings
from goqueue.telemetry.logs import get_logger

LIFE_MS = 24 * 60 * 60 * 1000
FILE_NAME = "bootstrap.key"

events = get_logger("node")


@dataclass(frozen=True)
class Bootstrap:
    settings: Settings
    accounts: Accounts
    now_ms: int

    async def run(self) -> None:
        """InvalidSettings: the file with the key cannot be used."""
        if not self.accounts.image.is_empty:
            return
        given = self._given()
        made = self.accounts.new_key("bootstrap", ("admin",), self.now_ms + LIFE_MS)
        key, text = msgspec.structs.replace(made.key, is_bootstrap=True), made.text
        if given is not None:
            text = given
            secrets = (KeySecret(digest_of(given.secret)),)
            key = msgspec.structs.replace(key, key_id=given.key_id, secrets=secrets)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.accounts.store_key(key, done.set_result)
        reply = await done
        if isinstance(reply, GoQueueError):
            raise reply
        if given is None:
            self._tell(text)

    def _given(self) -> KeyText | None:
        path = self.settings.bootstrap_key_file
        if path is None:
            return None
        try:
            found = parse_key(path.read_text("ascii").strip())
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no API key"
            raise InvalidSettings(f"bootstrap_key_file = {path}: {why}") from None
        if found is None:
            words = "it has to hold one key: gqk_k, 16 hex digits, _ and 64 hex digits"
            raise InvalidSettings(f"bootstrap_key_file = {path}: {words}")
        return found

    def _tell(self, text: KeyText) -> None:
        """A secret goes to a person or into a file, and never into a log."""
        if sys.stderr.isatty():
            sys.stderr.write(f"The first key, an admin's, for a day or until there is another admin:\n  {text}\n")
            return
        ready = self.settings.ready_file
        path = (self.settings.data_dir if ready is None else ready.parent) / FILE_NAME
        _write(path, f"{text}\n")
        events.warning("bootstrap key written; it is an admin's until there is another", file=str(path))


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w", encoding="ascii") as file:
        file.write(text)
