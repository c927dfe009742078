"""Quotas: there are none. kafka-configs asks for them all the same, and should not fail."""

from goqueue.doors.kafka.request import Request
from goqueue.wire.kafka.messages import quotas as wire


def handle_describe_client_quotas(request: Request) -> None:
    request.answer(wire.DescribeClientQuotasResponse(error_message=None))
