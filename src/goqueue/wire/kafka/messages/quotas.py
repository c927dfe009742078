"""Quotas of clients, and passwords of users: what kafka-configs asks and sets for users, clients and addresses."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from goqueue.model.secret import hides
from goqueue.wire.kafka.notation import Bool, Bytes, Float64, Int8, Int16, Int32, Message, String


class QuotaFilterComponent(Message):
    entity_type: String = ""
    match_type: Int8 = 0
    match: String | None = ""


class DescribeClientQuotasRequest(Message):
    components: list[QuotaFilterComponent] = []
    strict: Bool = False


class QuotaEntity(Message):
    entity_type: String = ""
    entity_name: String | None = ""


class QuotaValue(Message):
    key: String = ""
    value: Float64 = 0.0


class QuotaEntry(Message):
    entity: list[QuotaEntity] = []
    values: list[QuotaValue] = []


class DescribeClientQuotasResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    entries: list[QuotaEntry] | None = []


class AlterQuotaOp(Message):
    key: String = ""
    value: Float64 = 0.0
    remove: Bool = False


class AlterQuotaEntry(Message):
    entity: list[QuotaEntity] = []
    ops: list[AlterQuotaOp] = []


class AlterClientQuotasRequest(Message):
    entries: list[AlterQuotaEntry] = []
    validate_only: Bool = False


class AlteredQuota(Message):
    error_code: Int16 = 0
    error_message: String | None = ""
    entity: list[QuotaEntity] = []


class AlterClientQuotasResponse(Message):
    throttle_time_ms: Int32 = 0
    entries: list[AlteredQuota] = []


class ScramUserName(Message):
    name: String = ""


class DescribeUserScramCredentialsRequest(Message):
    users: list[ScramUserName] | None = []


class ScramCredentialInfo(Message):
    mechanism: Int8 = 0
    iterations: Int32 = 0


class DescribedUserScramCredentials(Message):
    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""
    credential_infos: list[ScramCredentialInfo] = []


class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: list[DescribedUserScramCredentials] = []


class ScramCredentialDeletion(Message):
    name: String = ""
    mechanism: Int8 = 0


@hides("salted_password")
class ScramCredentialUpsertion(Message):
    name: String = ""
    mechanism: Int8 = 0
    iterations: Int32 = 0
    salt: Bytes = b""
    salted_password: Bytes = b""


class AlterUserScramCredentialsRequest(Message):
    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlteredUserScramCredentials(Message):
    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: list[AlteredUserScramCredentials] = []
