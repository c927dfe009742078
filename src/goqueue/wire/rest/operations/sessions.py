"""Operations on the session that a browser has."""

from goqueue.wire.home import HERE
from goqueue.wire.rest import sessions
from goqueue.wire.rest.operation import HTML, Resource

SESSIONS = Resource("Sessions")

LOG_IN = SESSIONS.add(
    "log_in",
    "POST /session",
    sessions.WhoAmI,
    """Begin a session, with the password of a user.

    It is in the cookie `__Host-gq` (`gq-dev` without TLS), which pages cannot read. It ends after 12 hours, after 30
    minutes without a request, with a log-out, and when the user is deleted or gets another password. What is sent
    with it by any method but GET and HEAD needs the header `X-GoQueue-CSRF` and an `Origin` that is this node's.
    """,
    body=sessions.LogIn,
    errors=(401,),
    home=HERE,
)

WHO_AM_I = SESSIONS.add(
    "who_am_i",
    "GET /session",
    sessions.WhoAmI,
    "Who asks, and what they may do. Also for keys and tokens.",
    errors=(401,),
    home=HERE,
)

LOG_OUT = SESSIONS.add(
    "log_out",
    "DELETE /session",
    sessions.LoggedOut,
    "End this session, on every node. Streams that were opened with it end, too.",
    query=sessions.LogOutQuery,
    errors=(401,),
    home=HERE,
)

LOG_IN_ELSEWHERE = SESSIONS.add(
    "log_in_elsewhere",
    "GET /session/oidc",
    str,
    "For browsers: log in at the identity provider, if there is one (`oidc_client_id`).",
    query=sessions.LogInElsewhere,
    other_replies=((303, "To the identity provider"),),
    errors=(404,),
    media_type=HTML,
    home=HERE,
)

_ANSWERS = Resource("Sessions", takes_any_query=True)

LOGGED_IN_ELSEWHERE = _ANSWERS.add(
    "logged_in_elsewhere",
    "GET /session/callback",
    str,
    "Where the identity provider sends a browser back to, with a code: the session begins.",
    query=sessions.LoggedInElsewhere,
    errors=(401, 404),
    media_type=HTML,
    home=HERE,
)
SESSIONS.all += _ANSWERS.all
