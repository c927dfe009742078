"""Authorisation ids: whom a user says that it acts for."""

from goqueue.model.tenancy import ACTS
from goqueue.wire.sasl.failure import SaslFailed


def tenant_asked_for(authorization: str, name: str) -> str:
    """`tenant/acme`; empty: its own."""
    if authorization in ("", name):  # aiokafka says its own name again
        return ""
    if not authorization.startswith(ACTS):
        raise SaslFailed("nobody may act for another user")
    return authorization.removeprefix(ACTS)


def authorization_of(tenant: str) -> str:
    """What a client says that acts for this tenant; of none, nothing."""
    return f"{ACTS}{tenant}" if tenant else ""
