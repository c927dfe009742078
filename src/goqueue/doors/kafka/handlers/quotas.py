"""Quotas and credentials: there are none. kafka-configs asks for them all the same, and should not fail."""

from goqueue.doors.kafka.request import Request
from goqueue.model.codes import Code
from goqueue.wire.kafka.messages import quotas as wire


def handle_describe_client_quotas(request: Request) -> None:
    request.answer(wire.DescribeClientQuotasResponse(error_message=None))


def handle_describe_scram_credentials(request: Request) -> None:
    message: wire.DescribeUserScramCredentialsRequest = request.message
    response = wire.DescribeUserScramCredentialsResponse(error_message=None)
    for user in message.users or ():
        words = f"there is no user {user.name[:40]!r}"
        response.results.append(wire.DescribedUserScramCredentials(user.name, Code.RESOURCE_NOT_FOUND, words))
    request.answer(response)
