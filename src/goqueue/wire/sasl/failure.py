"""Why somebody is not believed."""

from goqueue.model.codes import Code
from goqueue.model.refusal import Refused


class SaslFailed(Refused):
    def __init__(self, message: str) -> None:
        super().__init__(Code.SASL_AUTHENTICATION_FAILED, message)
