"""Settings about who comes in."""

from dataclasses import dataclass
from pathlib import Path

from goqueue.model.audit import AuditLevel
from goqueue.node.setting import setting
from goqueue.node.values import Authentication, Choice, FilePath, HttpsAddress, KeysPlace, Text, duration
from goqueue.storage.options import SECOND_MS


@dataclass(frozen=True, kw_only=True)
class IdentitySettings:
    authentication: Authentication = setting(
        Authentication.AUTO,
        Choice(Authentication),
        "Whether clients have to show who they are: with on, nothing but health is open to those who do not. auto is "
        "on, except with dev or insecure.",
    )
    bootstrap_key_file: Path | None = setting(
        None,
        FilePath(),
        "File with the API key of the first admin, for a node with authentication that has no account yet. The key "
        "itself may be in GOQUEUE_BOOTSTRAP_KEY instead. Without either such a node makes a key, and shows it on a "
        "terminal or writes bootstrap.key beside its ready file.",
    )
    master_key_file: Path | None = setting(
        None,
        FilePath(),
        "File with the key that passwords' verifiers are sealed under: 32 bytes in hex, in one line, readable by its "
        "owner only and not inside data_dir. Lines below it are keys that were used before it. All nodes of a cluster "
        "have the same.",
    )
    oidc_issuer: str | None = setting(
        None, Text(), "Issuer of the tokens (JWT) that are taken: their claim iss. With oidc_audience and oidc_jwks."
    )
    oidc_audience: str | None = setting(
        None, Text(), "For whom tokens have to be made: one of their claim aud is this."
    )
    oidc_jwks: str | None = setting(
        None, KeysPlace(), "Where the public keys of the issuer are (JWKS). They are read again every five minutes."
    )
    oidc_ca_file: Path | None = setting(
        None,
        FilePath(),
        "Authority that has signed the certificates of oidc_jwks and oidc_token_url (PEM), if no public one has.",
    )
    oidc_client_id: str | None = setting(
        None,
        Text(),
        "As what the issuer knows this cluster when people log in there with a browser. With oidc_authorization_url "
        "and oidc_token_url. None: they log in with a password.",
    )
    oidc_client_secret_file: Path | None = setting(
        None,
        FilePath(),
        "File with what the client proves itself by at oidc_token_url, readable by its owner only. None: it is a "
        "public client, for which PKCE has to do.",
    )
    oidc_authorization_url: str | None = setting(
        None, HttpsAddress(), "Where a browser is sent to log in: authorization_endpoint of the issuer."
    )
    oidc_token_url: str | None = setting(
        None, HttpsAddress(), "Where the code that it comes back with is exchanged: token_endpoint of the issuer."
    )
    oidc_principal_claim: str = setting(
        "sub", Text(), "The claim that names the user: with sub = alice a token is User:alice."
    )
    oidc_roles_claim: str | None = setting(
        None, Text(), "The claim that has roles, such as groups or realm_access.roles. None: tokens give no roles."
    )
    oidc_tenant_claim: str | None = setting(
        None,
        Text(),
        "The claim that has the id of the user's tenant; a token without it is refused then. None: all are of default.",
    )

    sasl_session_ms_max: int = setting(
        60 * 60 * SECOND_MS,
        duration(at_least=0),
        "How long a login of a Kafka connection is good for; then it has to log in again (KIP-368). Less if what was "
        "shown ends before. 0: no limit.",
    )
    connection_age_ms_max: int = setting(
        0,
        duration(at_least=0),
        "Connections of clients that are older are closed, after what they have asked for is answered. 0: none is.",
    )

    access_age_ms_max: int = setting(
        0,
        duration(at_least=0),
        "A node of a cluster that has not reached etcd for longer than this lets nobody in, since it does not know who "
        "was taken out meanwhile; connections that are open stay. 0: it goes on with the users, keys and rules that it "
        "knows.",
    )

    audit: AuditLevel = setting(
        AuditLevel.ADMIN,
        Choice(AuditLevel),
        "What is written to the audit trail of a node that asks clients who they are: admin has changes, failed logins "
        "and refusals; access also logins and reads of messages by users; all every request.",
    )

    def oidc_problems(self) -> list[str]:
        needed = (self.oidc_issuer, self.oidc_audience, self.oidc_jwks)
        if any(needed) and not all(needed):
            return ["oidc_issuer, oidc_audience and oidc_jwks: all of them, or none"]
        people = (self.oidc_client_id, self.oidc_authorization_url, self.oidc_token_url)
        if any((*people, self.oidc_client_secret_file)) and not all((*people, self.oidc_issuer)):
            return ["oidc_client_id, oidc_authorization_url and oidc_token_url: all of them with oidc_issuer, or none"]
        return []
