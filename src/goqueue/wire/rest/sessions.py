"""Sessions of people with browsers."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from goqueue.model.secret import hides
from goqueue.wire.rest.accounts import Principal, RuleFacts
from goqueue.wire.rest.common import Body, Query, Reply


@hides("password")
class LogIn(Body):
    user: Annotated[str, Meta(min_length=1, max_length=1000, examples=["alice"], description="Name of the user")]
    password: Annotated[str, Meta(min_length=1, max_length=1024, description="Of that user; keys begin no session")]


@hides("csrf_token")
class WhoAmI(Reply):
    principal: Principal
    tenant: Annotated[str, Meta(description="That what is asked is about: the one it belongs to, or acts for")]
    roles: Annotated[list[str], Meta(description="Of its account, and of the token that it was shown with")]
    may: Annotated[
        dict[str, list[str]],
        Meta(description="What it may do with every name, by kind: topic, group, cluster, transactional_id, subject"),
    ]
    rules: Annotated[list[RuleFacts], Meta(description="That are about it, or about everybody")]
    expires_at: Annotated[
        int | None,
        Meta(
            description="When what was shown ends, in milliseconds since 1970; null: it lasts. A session is also over"
            " 30 minutes after it was last used"
        ),
    ]
    csrf_token: Annotated[
        str | UnsetType,
        Meta(description="Of a session: to be sent as X-GoQueue-CSRF with whatever is not GET or HEAD"),
    ] = UNSET


class LogOutQuery(Query):
    all: Annotated[bool, Meta(description="End all sessions of this principal, on all its browsers")] = False


class LoggedOut(Reply):
    success: bool


class LogInElsewhere(Query):
    to: Annotated[
        str,
        Meta(
            pattern=r"^/([A-Za-z0-9._~!$&'()*+,;=:@%?#-][A-Za-z0-9._~!$&'()*+,;=:@%/?#-]*)?\Z",
            max_length=500,
            description="The page of this node to go to afterwards",
        ),
    ] = "/docs"


@hides("code", "state")
class LoggedInElsewhere(Query):
    code: Annotated[str, Meta(max_length=4096)] = ""
    state: Annotated[str, Meta(max_length=200)] = ""
    iss: Annotated[str | None, Meta(description="The issuer (RFC 9207)")] = None
    error: Annotated[str, Meta(max_length=200, description="Why the issuer gives no code")] = ""
