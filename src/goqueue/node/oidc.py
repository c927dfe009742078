"""The tokens of an identity provider that this node takes, and where the keys are that they are checked by."""

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

from goqueue.broker.accounts.logins import Logins
from goqueue.model.errors import GoQueueError, InvalidSettings
from goqueue.model.secret import Secret
from goqueue.node.identity_settings import IdentitySettings
from goqueue.node.master_key import OTHERS
from goqueue.node.ports import AsideWorker
from goqueue.ports.dice import Dice
from goqueue.runtime.clock import Clock

if TYPE_CHECKING:
    from goqueue.broker.accounts.token_keys import TokenKeys
    from goqueue.broker.accounts.tokens import Tokens

FETCH_S_MAX = 5.0
KEYS_BYTES_MAX = 1024 * 1024


class CannotFetch(GoQueueError):
    """What was asked of the issuer cannot be had now."""


class Oidc:
    """Keys are fetched by a thread of its own: an issuer that is slow holds up nothing else."""

    def __init__(self, settings: IdentitySettings, aside: Callable[[str], AsideWorker], clock: Clock) -> None:
        self._settings = settings
        self._new_aside = aside
        self._clock = clock
        self._aside: AsideWorker | None = None
        self._keys: TokenKeys | None = None

    def open(self) -> "Tokens | None":
        """None: no tokens are taken here. InvalidSettings: the file is none that they can be checked by."""
        settings = self._settings
        if settings.oidc_jwks is None:
            return None
        # PyJWT, which a node without tokens need not load.
        from goqueue.broker.accounts.token_keys import TokenKeys, read_keys
        from goqueue.broker.accounts.tokens import TokenRules, Tokens

        assert settings.oidc_issuer is not None
        assert settings.oidc_audience is not None
        if "://" in settings.oidc_jwks:
            fetch = partial(fetched, settings.oidc_jwks, settings.oidc_ca_file)
        else:
            fetch = partial(_read, Path(settings.oidc_jwks))
            try:
                read_keys(fetch())
            except GoQueueError as error:
                raise InvalidSettings(f"oidc_jwks = {settings.oidc_jwks}: {error}") from None
        self._aside = self._new_aside("goqueue-jwks")
        self._keys = TokenKeys(fetch, self._aside, self._clock)
        claims = settings.oidc_principal_claim, settings.oidc_roles_claim, settings.oidc_tenant_claim
        tokens = Tokens(TokenRules(settings.oidc_issuer, settings.oidc_audience, *claims), self._keys, self._clock)
        self._keys.start()
        return tokens

    def open_code_flow(self, tokens: "Tokens | None", logins: Logins, dice: Dice) -> None:
        """For people with browsers, where the issuer knows this cluster as a client."""
        settings = self._settings
        if tokens is None or settings.oidc_client_id is None:
            return
        from goqueue.broker.accounts.code_flow import Client, CodeFlow

        assert settings.oidc_issuer is not None
        assert settings.oidc_authorization_url is not None
        assert settings.oidc_token_url is not None
        assert self._aside is not None
        secret = None if settings.oidc_client_secret_file is None else read_secret(settings.oidc_client_secret_file)
        proof = settings.oidc_client_id, secret
        exchange = partial(exchanged, settings.oidc_token_url, settings.oidc_ca_file, proof)
        client = Client(settings.oidc_client_id, settings.oidc_issuer, settings.oidc_authorization_url, exchange)
        logins.code_flow = CodeFlow(client, tokens, logins, self._aside, self._clock, dice)

    async def close(self) -> None:
        if self._keys is not None:
            self._keys.stop()
        if self._aside is not None:
            await asyncio.to_thread(self._aside.stop)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _bounded(file.read(KEYS_BYTES_MAX + 1))
    except OSError as error:
        raise CannotFetch(f"{path}: {error.strerror}") from None


def fetched(url: str, ca_file: Path | None) -> bytes:
    return _asked("GET", url, ca_file)


def exchanged(url: str, ca_file: Path | None, client: tuple[str, Secret[str] | None], form: Mapping[str, str]) -> bytes:
    """What the issuer gives for a code. A client with a secret shows it as Basic (RFC 6749, 2.3.1)."""
    client_id, secret = client
    if secret is None:
        return _asked("POST", url, ca_file, {**form, "client_id": client_id})
    return _asked("POST", url, ca_file, form, (quote_plus(client_id), quote_plus(secret.reveal())))


def _asked(
    method: str,
    url: str,
    ca_file: Path | None,
    form: Mapping[str, str] | None = None,
    auth: tuple[str, str] | None = None,
) -> bytes:
    """No redirect is followed: who may send one would say whose tokens are taken."""
    import ssl

    import httpx

    ends_s = time.monotonic() + FETCH_S_MAX
    found = b""
    try:
        context = ssl.create_default_context(cafile=ca_file)
        with (
            httpx.Client(verify=context, timeout=FETCH_S_MAX, follow_redirects=False) as client,
            client.stream(method, url, headers={"accept": "application/json"}, data=form, auth=auth) as reply,
        ):
            if reply.status_code != httpx.codes.OK:
                raise CannotFetch(f"{url} answers {reply.status_code}")
            for piece in reply.iter_bytes(64 * 1024):
                found = _bounded(found + piece)
                if time.monotonic() > ends_s:
                    raise CannotFetch(f"{url} took longer than {FETCH_S_MAX:g} s")
    except (httpx.HTTPError, OSError) as error:
        raise CannotFetch(f"{url}: {type(error).__name__} {error}") from None
    return found


def read_secret(path: Path) -> Secret[str]:
    """InvalidSettings: it cannot be used, and why."""
    try:
        text, mode = path.read_text("utf-8").strip(), path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise InvalidSettings(f"oidc_client_secret_file = {path}: {why}") from None
    if mode & OTHERS:
        raise InvalidSettings(f"oidc_client_secret_file = {path}: others may read it; mend it with: chmod 600 {path}")
    if not text:
        raise InvalidSettings(f"oidc_client_secret_file = {path}: it is empty")
    return Secret(text)


def _bounded(data: bytes) -> bytes:
    if len(data) > KEYS_BYTES_MAX:
        raise CannotFetch(f"an answer of the issuer has at most {KEYS_BYTES_MAX} bytes")
    return data
