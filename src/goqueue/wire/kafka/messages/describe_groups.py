"""DescribeGroups, ListGroups, DeleteGroups."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from goqueue.wire.kafka.notation import INT32_MIN, Bool, Bytes, Int16, Int32, Message, String


class DescribeGroupsRequest(Message):
    groups: list[String] = []
    include_authorized_operations: Annotated[Bool, "3+"] = False


class DescribedGroupMember(Message):
    member_id: String = ""
    group_instance_id: Annotated[String | None, "4+ ignorable"] = None
    client_id: String = ""
    client_host: String = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


class DescribedGroup(Message):
    error_code: Int16 = 0
    error_message: Annotated[String | None, "6+"] = None
    group_id: String = ""
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[Int32, "3+"] = INT32_MIN


class DescribeGroupsResponse(Message):
    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    groups: list[DescribedGroup] = []


class ListGroupsRequest(Message):
    states_filter: Annotated[list[String], "4+"] = []
    types_filter: Annotated[list[String], "5+"] = []


class ListedGroup(Message):
    group_id: String = ""
    protocol_type: String = ""
    group_state: Annotated[String, "4+ ignorable"] = ""
    group_type: Annotated[String, "5+ ignorable"] = ""


class ListGroupsResponse(Message):
    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    error_code: Int16 = 0
    groups: list[ListedGroup] = []


class DeleteGroupsRequest(Message):
    groups_names: list[String] = []


class DeletableGroupResult(Message):
    group_id: String = ""
    error_code: Int16 = 0
    error_message: Annotated[String | None, "3+ ignorable"] = None


class DeleteGroupsResponse(Message):
    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = []
