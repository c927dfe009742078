"""The first admin: a key that a closed node without any account is given, or makes and tells once. It ends with the
first lasting admin, or after a day.
"""

import asyncio
import hmac
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from goqueue.broker.accounts.accounts import KEY_ID_BYTES, Accounts, digest_of
from goqueue.model.accounts import AccessImage, KeySecret, KeyText, parse_key
from goqueue.model.errors import GoQueueError, InvalidSettings
from goqueue.model.secret import Secret
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


class FirstAdmin(NamedTuple):
    """Of a node that has no account."""

    key: Secret[str] | None = None
    """None: it is made."""
    home: Path | None = None
    """Where a person looks for it, and asks for another; None: in the data directory."""
    is_made_here: bool = True
    """False: another node does it."""


@dataclass(frozen=True)
class Bootstrap:
    settings: Settings
    accounts: Accounts
    now_ms: int
    given: Secret[str] | None = None
    """A key, from the environment."""
    secret: Secret[bytes] = Secret(b"")  # noqa: RUF009  it does not change
    """Of the cluster."""
    home: Path | None = None
    """Where a person looks for the key, and asks for another; None: the data directory."""

    async def run(self) -> FirstKey | None:
        """None: there are accounts, or another node was faster. InvalidSettings: the key that was given cannot be
        used."""
        reset = self._home / RESET_NAME
        is_reset = reset.exists()
        if not is_wanted(self.accounts.image, self.now_ms) and not is_reset:
            return None
        given = self._given()
        made = self.accounts.new_key("bootstrap", ("admin",), self.now_ms + LIFE_MS)
        text = given or (made.text if is_reset else made.text._replace(key_id=self._first_id()))
        secrets = (KeySecret(digest_of(text.secret)),)
        key = msgspec.structs.replace(made.key, key_id=text.key_id, secrets=secrets, is_bootstrap=True)
        # Told before it is stored: a key that was stored and not told is lost. Nobody can use it before.
        where = "the one that it was given" if given is not None else self._tell(text)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.accounts.store_key(key, done.set_result)
        reply = await done
        stored = self.accounts.image.keys.get(text.key_id)
        if isinstance(reply, GoQueueError):  # another node of the cluster may have been faster
            if stored is None or stored.is_over(self.now_ms):
                raise reply
            if stored.secrets != secrets:
                self._take_back()
                return None
        reset.unlink(missing_ok=True)
        return FirstKey(text.key_id, where)

    def _first_id(self) -> str:
        """The same on all nodes that start together, so that one of them has its key stored: the id is what they
        compete for. Another one after the key before has ended."""
        before = "".join(sorted(key.key_id for key in self.accounts.image.keys.values() if key.is_bootstrap))
        return f"k{hmac.digest(self.secret.reveal(), b'first key ' + before.encode(), 'sha256')[:KEY_ID_BYTES].hex()}"

    def _given(self) -> KeyText | None:
        if self.given is not None:
            found = parse_key(self.given.reveal().strip())
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
            words = "The first key, an admin's, for a day or until there is another admin"
            sys.stderr.write(f"{words}:\n  {text.reveal()}\n")
            return "shown above, once"
        path = self._path
        try:
            _write(path, f"{text.reveal()}\n")
        except OSError as error:
            raise InvalidSettings(f"cannot write the first key to {path}: {error.strerror}") from error
        events.warning("bootstrap key written; it is an admin's until there is another", file=str(path))
        return str(path)

    @property
    def _path(self) -> Path:
        ready = self.settings.ready_file
        return (self._home if ready is None else ready.parent) / FILE_NAME

    @property
    def _home(self) -> Path:
        return self.home or self.settings.data_dir

    def _take_back(self) -> None:
        """What was told is no key."""
        if sys.stderr.isatty():
            sys.stderr.write("That key is void: another node, which started at the same time, has shown one.\n")
        else:
            self._path.unlink(missing_ok=True)
        events.warning("another node of the cluster has made the bootstrap key; that of this node is void")


def is_wanted(image: AccessImage, now_ms: int) -> bool:
    """Nobody can log in, and nobody ever could but with a first key."""
    return not image.users and all(key.is_bootstrap and key.is_over(now_ms) for key in image.keys.values())


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w", encoding="ascii") as file:
        file.write(text)
