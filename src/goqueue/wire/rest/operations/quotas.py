"""Operations on quotas."""

from goqueue.wire.home import HERE
from goqueue.wire.rest import quotas
from goqueue.wire.rest.operation import Resource

QUOTAS = Resource("Quotas")

SET_QUOTA = QUOTAS.add(
    "set_quota",
    "PUT /admin/quotas",
    quotas.QuotaFacts,
    """Limit what a user, a client id, or a client id of a user may publish, read and ask for in a second.

    What is not named stays as it is; null takes a limit away. Each node counts for itself.
    """,
    body=quotas.QuotaChange,
    home=HERE,
)

LIST_QUOTAS = QUOTAS.add("list_quotas", "GET /admin/quotas", quotas.Quotas, "All quotas.", home=HERE)

DESCRIBE_QUOTA = QUOTAS.add(
    "describe_quota",
    "GET /admin/quotas/effective",
    quotas.QuotaFacts,
    """What holds for a client of a user: of all quotas that it is part of, for each limit the most specific.

    First those of the user and the client id, then of the user, then of the client id; a name before `<default>`.
    """,
    query=quotas.QuotaQuery,
    home=HERE,
)

DELETE_QUOTA = QUOTAS.add(
    "delete_quota",
    "DELETE /admin/quotas",
    quotas.QuotaDeleted,
    "Take all limits of a quota away.",
    query=quotas.QuotaQuery,
    errors=(404,),
    home=HERE,
)
