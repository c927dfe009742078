"""The first admin: a key that a closed node without any account is given, or makes and tells once. It ends with the
first lasting admin, or after a day.
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from goqueue.broker.accounts.accounts import Accounts, digest_of
from goqueue.model.accounts import AccessImage, KeySecret, KeyText, parse_key
from goqueue.model.errors import GoQueueError, InvalidSettings
from goqueue.node.environment import BOOTSTRAP_KEY_VARIABLE
from goqueue.node.settings import Settings
from goqueue.telemetry.logs import get_logger

LIFE_MS = 24 * 60 * 60 * 1000
FILE_NAME = "bootstrap.key"
RESET_NAME = "bootstrap.reset"
"""In a data directory: whoever may write there wants a new first key at the next start, whatever accounts there are."""
KEY_WORDS = "it has to be one key: gqk_k, 16 hex digits, _ and 64 hex digits"

events = get_logger("node")


class FirstKey(NamedTuple):
    key_id: str
    where: str
    """For a person; never the key itself."""


@dataclass(frozen=True)
class Bootstrap:
    settings: Settings
    accounts: Accounts
    now_ms: int
    given: str | None = None
    """A key, from the environment."""

    async def run(self) -> FirstKey | None:
        """None: there are accounts. InvalidSettings: the key that was given cannot be used."""
        reset = self.settings.data_dir / RESET_NAME
        if not is_wanted(self.accounts.image, self.now_ms) and not reset.exists():
            return None
        given = self._given()
        made = self.accounts.new_key("bootstrap", ("admin",), self.now_ms + LIFE_MS)
        key, text = msgspec.structs.replace(made.key, is_bootstrap=True), made.text
        if given is not None:
            text = given
            secrets = (KeySecret(digest_of(given.secret)),)
            key = msgspec.structs.replace(key, key_id=given.key_id, secrets=secrets)
        # Told before it is stored: a key that was stored and not told is lost. Nobody can use it before.
        where = "the one that it was given" if given is not None else self._tell(text)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.accounts.store_key(key, done.set_result)
        reply = await done
        stored = self.accounts.image.keys.get(text.key_id)
        if isinstance(reply, GoQueueError) and (stored is None or stored.is_over(self.now_ms)):
            raise reply  # else another node of the cluster was given the same and was faster
        reset.unlink(missing_ok=True)
        return FirstKey(text.key_id, where)

    def _given(self) -> KeyText | None:
        if self.given is not None:
            found = parse_key(self.given.strip())
            if found is None:
                raise InvalidSettings(f"{BOOTSTRAP_KEY_VARIABLE}: {KEY_WORDS}")
            return found
        path = self.settings.bootstrap_key_file
        if path is None:
            return None
        try:
            found = parse_key(path.read_text("ascii").strip())
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no API key"
            raise InvalidSettings(f"bootstrap_key_file = {path}: {why}") from None
        if found is None:
            raise InvalidSettings(f"bootstrap_key_file = {path}: {KEY_WORDS}")
        return found

    def _tell(self, text: KeyText) -> str:
        """A secret goes to a person or into a file, and never into a log."""
        if sys.stderr.isatty():
            sys.stderr.write(f"The first key, an admin's, for a day or until there is another admin:\n  {text}\n")
            return "shown above, once"
        ready = self.settings.ready_file
        path = (self.settings.data_dir if ready is None else ready.parent) / FILE_NAME
        try:
            _write(path, f"{text}\n")
        except OSError as error:
            raise InvalidSettings(f"cannot write the first key to {path}: {error.strerror}") from error
        events.warning("bootstrap key written; it is an admin's until there is another", file=str(path))
        return str(path)


def is_wanted(image: AccessImage, now_ms: int) -> bool:
    """Nobody can log in, and nobody ever could but with a first key."""
    return not image.users and all(key.is_bootstrap and key.is_over(now_ms) for key in image.keys.values())


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w", encoding="ascii") as file:
        file.write(text)
