"""DescribeAcls, CreateAcls and DeleteAcls: rules about who may do what."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from goqueue.wire.kafka.notation import Int8, Int16, Int32, Message, String

LITERAL = 3


class DescribeAclsRequest(Message):
    resource_type_filter: Int8 = 0
    resource_name_filter: String | None = ""
    pattern_type_filter: Int8 = LITERAL
    principal_filter: String | None = ""
    host_filter: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class AclDescription(Message):
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DescribeAclsResource(Message):
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = LITERAL
    acls: list[AclDescription] = []


class DescribeAclsResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    resources: list[DescribeAclsResource] = []


class AclCreation(Message):
    resource_type: Int8 = 0
    resource_name: String = ""
    resource_pattern_type: Int8 = LITERAL
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class CreateAclsRequest(Message):
    creations: list[AclCreation] = []


class AclCreationResult(Message):
    error_code: Int16 = 0
    error_message: String | None = ""


class CreateAclsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult] = []


class DeleteAclsFilter(Message):
    resource_type_filter: Int8 = 0
    resource_name_filter: String | None = ""
    pattern_type_filter: Int8 = LITERAL
    principal_filter: String | None = ""
    host_filter: String | None = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DeleteAclsRequest(Message):
    filters: list[DeleteAclsFilter] = []


class DeleteAclsMatchingAcl(Message):
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = LITERAL
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DeleteAclsFilterResult(Message):
    error_code: Int16 = 0
    error_message: String | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []


class DeleteAclsResponse(Message):
    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
