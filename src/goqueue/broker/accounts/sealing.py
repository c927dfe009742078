"""What a stolen data directory, or a backup of etcd, must not give away is sealed under a key that lies elsewhere."""

import hashlib
import hmac

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from goqueue.model.errors import GoQueueError
from goqueue.model.secret import Secret
from goqueue.ports.dice import Dice

MASTER_BYTES = 32
NONCE_BYTES = 12
_CLEAR, _SEALED = b"\0", b"\1"
_ID_BYTES = 8


class CannotUnseal(GoQueueError):
    """It was sealed under another master key, or is damaged."""


class Sealing:
    """AES-256-GCM. What it is of is part of what is sealed: nothing can be put in the place of another."""

    def __init__(self, dice: Dice, *masters: Secret[bytes], takes_clear: bool = True) -> None:
        """What is new is sealed under the first; what the others have sealed is still read. Without any, what is new is
        stored as it is. `takes_clear`: what was stored so before there was a master key is read, too. Never for what
        clients bring: they could write it themselves."""
        self._masters = masters
        self._takes_clear = takes_clear
        keys = [each.reveal() for each in masters]
        assert all(len(each) == MASTER_BYTES for each in keys)
        self._dice = dice
        self._ciphers = {_id_of(each): AESGCM(each) for each in keys}
        self._id = next(iter(self._ciphers), b"")
        self._cipher = self._ciphers.get(self._id)

    @property
    def has_master(self) -> bool:
        return self._cipher is not None

    def derived(self, use: bytes, secret: bytes) -> "Sealing":
        """For what clients bring back, by a key of those who have this secret too. Where there is no master key the
        secret has to do."""
        masters = [each.reveal() for each in self._masters] or [b""]
        keys = (hmac.digest(b"derived " + each, use + b" " + secret, "sha256") for each in masters)
        return Sealing(self._dice, *map(Secret, keys), takes_clear=False)

    def seal(self, of: str, data: bytes) -> bytes:
        if self._cipher is None:
            return _CLEAR + data
        nonce = self._dice.randbytes(NONCE_BYTES)
        return _SEALED + self._id + nonce + self._cipher.encrypt(nonce, data, of.encode())

    def is_newest(self, sealed: bytes) -> bool:
        """Whether it is sealed under the key that is in use."""
        return sealed[: 1 + _ID_BYTES] == _SEALED + self._id

    def anew(self, of: str, sealed: bytes) -> bytes:
        """The same under the key that is in use."""
        return sealed if self.is_newest(sealed) else self.seal(of, self.open(of, sealed))

    def open(self, of: str, sealed: bytes) -> bytes:
        if sealed[:1] == _CLEAR and self._takes_clear:
            return sealed[1:]
        at = 1 + _ID_BYTES
        cipher = self._ciphers.get(sealed[1:at]) if sealed[:1] == _SEALED else None
        if cipher is None:
            raise CannotUnseal(f"{of} is sealed under another master key than this node has")
        try:
            return cipher.decrypt(sealed[at : at + NONCE_BYTES], sealed[at + NONCE_BYTES :], of.encode())
        except InvalidTag:
            raise CannotUnseal(f"{of} is damaged, or was that of another") from None


def _id_of(master: bytes) -> bytes:
    return hashlib.sha256(b"goqueue master" + master).digest()[:_ID_BYTES]
