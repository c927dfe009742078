"""What a stolen data directory, or a backup of etcd, must not give away is sealed under a key that lies elsewhere."""

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from goqueue.model.errors import GoQueueError
from goqueue.ports.dice import Dice

MASTER_BYTES = 32
NONCE_BYTES = 12
_CLEAR, _SEALED = b"\0", b"\1"
_ID_BYTES = 8


class CannotUnseal(GoQueueError):
    """It was sealed under another master key, or is damaged."""


class Sealing:
    """AES-256-GCM. What it is of is part of what is sealed: nothing can be put in the place of another."""

    def __init__(self, dice: Dice, master: bytes | None = None) -> None:
        """Without a master key, what is new is stored as it is."""
        assert master is None or len(master) == MASTER_BYTES
        self._dice = dice
        self._cipher = None if master is None else AESGCM(master)
        self._id = b"" if master is None else hashlib.sha256(b"goqueue master" + master).digest()[:_ID_BYTES]

    @property
    def has_master(self) -> bool:
        return self._cipher is not None

    def seal(self, of: str, data: bytes) -> bytes:
        if self._cipher is None:
            return _CLEAR + data
        nonce = self._dice.randbytes(NONCE_BYTES)
        return _SEALED + self._id + nonce + self._cipher.encrypt(nonce, data, of.encode())

    def open(self, of: str, sealed: bytes) -> bytes:
        if sealed[:1] == _CLEAR:
            return sealed[1:]
        at = 1 + _ID_BYTES
        if sealed[:1] != _SEALED or self._cipher is None or sealed[1:at] != self._id:
            raise CannotUnseal(f"{of} is sealed under another master key than this node has")
        try:
            return self._cipher.decrypt(sealed[at : at + NONCE_BYTES], sealed[at + NONCE_BYTES :], of.encode())
        except InvalidTag:
            raise CannotUnseal(f"{of} is damaged, or was that of another") from None
