"""A new master key: what others have sealed is sealed anew, one account after the other. Each is one stored change, and
is left alone if it was changed meanwhile; so whoever is interrupted begins again, and goes on where it was.
"""

from collections.abc import Iterator

import msgspec

from goqueue.broker.accounts.sealing import Sealing
from goqueue.machines.accounts import Reseal
from goqueue.model.accounts import AccessImage, ApiKey, User


def user_place(name: str, mechanism: str) -> str:
    """What a verifier is sealed as."""
    return f"user/{name}/{mechanism}"


def key_place(key_id: str) -> str:
    return f"key/{key_id}"


def resealed(image: AccessImage, sealing: Sealing) -> Iterator[Reseal]:
    """CannotUnseal: this node lacks a master key that something is sealed under."""
    for user in image.users.values():
        if not all(map(sealing.is_newest, user.scram.values())):
            yield Reseal(user, _user(user, sealing))
    for key in image.keys.values():
        if not all(sealing.is_newest(each.sealed) for each in key.secrets if each.sealed):
            yield Reseal(key, _key(key, sealing))


def _user(user: User, sealing: Sealing) -> User:
    scram = {
        mechanism: sealing.anew(user_place(user.name, mechanism), sealed) for mechanism, sealed in user.scram.items()
    }
    return msgspec.structs.replace(user, scram=scram)


def _key(key: ApiKey, sealing: Sealing) -> ApiKey:
    place = key_place(key.key_id)
    secrets = tuple(
        msgspec.structs.replace(each, sealed=sealing.anew(place, each.sealed)) if each.sealed else each
        for each in key.secrets
    )
    return msgspec.structs.replace(key, secrets=secrets)
