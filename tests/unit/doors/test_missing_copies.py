"""A topic that asks for more copies than there are: every interface says that it may pass, none that it broke."""

from grpc import StatusCode

from goqueue.doors.grpc.errors import look_up
from goqueue.doors.http.errors import status_and_code
from goqueue.doors.sqs.call import told
from goqueue.model.codes import Code
from goqueue.model.refusal import Refused

REFUSED = Refused(Code.NOT_ENOUGH_REPLICAS)


def test_missing_copies_are_told_as_a_service_that_is_not_available() -> None:
    assert status_and_code(REFUSED) == (503, "NOT_ENOUGH_REPLICAS")
    assert look_up(REFUSED)[0][0] is StatusCode.UNAVAILABLE
    assert told(REFUSED).kind.code == "ServiceUnavailable"


def test_a_timestamp_out_of_bounds_is_told_as_a_mistake_of_who_sent_it() -> None:
    refused = Refused(Code.INVALID_TIMESTAMP)
    assert status_and_code(refused) == (400, "INVALID_TIMESTAMP")
    assert look_up(refused)[0][0] is StatusCode.INVALID_ARGUMENT
    assert told(refused).is_of_sender
