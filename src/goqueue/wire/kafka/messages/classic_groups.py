"""The classic group protocol: FindCoordinator, JoinGroup, Heartbeat, LeaveGroup, SyncGroup.

FindCoordinator v4 and LeaveGroup v3 handle many at once, in fields of their own."""

# ruff: noqa: RUF012  msgspec makes a new list for each message

from typing import Annotated

from goqueue.wire.kafka.notation import Bool, Bytes, Int8, Int16, Int32, Message, String


class FindCoordinatorRequest(Message):
    key: Annotated[String, "0-3"] = ""
    key_type: Annotated[Int8, "1+"] = 0
    coordinator_keys: Annotated[list[String], "4+"] = []


class Coordinator(Message):
    key: String = ""
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


class FindCoordinatorResponse(Message):
    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    error_code: Annotated[Int16, "0-3"] = 0
    error_message: Annotated[String | None, "1-3 ignorable"] = ""
    node_id: Annotated[Int32, "0-3"] = 0
    host: Annotated[String, "0-3"] = ""
    port: Annotated[Int32, "0-3"] = 0
    coordinators: Annotated[list[Coordinator], "4+"] = []


class JoinGroupRequestProtocol(Message):
    name: String = ""
    metadata: Bytes = b""


class JoinGroupRequest(Message):
    group_id: String = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Annotated[Int32, "1+ ignorable"] = -1
    member_id: String = ""
    group_instance_id: Annotated[String | None, "5+"] = None
    protocol_type: String = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[String | None, "8+ ignorable"] = None


class JoinGroupResponseMember(Message):
    member_id: String = ""
    group_instance_id: Annotated[String | None, "5+ ignorable"] = None
    metadata: Bytes = b""


class JoinGroupResponse(Message):
    throttle_time_ms: Annotated[Int32, "2+ ignorable"] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[String | None, "7+ ignorable"] = None
    protocol_name: Annotated[String | None, "null 7+"] = ""
    leader: String = ""
    skip_assignment: Annotated[Bool, "9+"] = False
    member_id: String = ""
    members: list[JoinGroupResponseMember] = []


class HeartbeatRequest(Message):
    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[String | None, "3+"] = None


class HeartbeatResponse(Message):
    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    error_code: Int16 = 0


class LeavingMember(Message):
    member_id: String = ""
    group_instance_id: String | None = None
    reason: Annotated[String | None, "5+ ignorable"] = None


class LeaveGroupRequest(Message):
    group_id: String = ""
    member_id: Annotated[String, "0-2"] = ""
    members: Annotated[list[LeavingMember], "3+"] = []


class LeftMember(Message):
    member_id: String = ""
    group_instance_id: String | None = ""
    error_code: Int16 = 0


class LeaveGroupResponse(Message):
    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    error_code: Int16 = 0
    members: Annotated[list[LeftMember], "3+"] = []


class SyncGroupRequestAssignment(Message):
    member_id: String = ""
    assignment: Bytes = b""


class SyncGroupRequest(Message):
    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[String | None, "3+"] = None
    protocol_type: Annotated[String | None, "5+ ignorable"] = None
    protocol_name: Annotated[String | None, "5+ ignorable"] = None
    assignments: list[SyncGroupRequestAssignment] = []


class SyncGroupResponse(Message):
    throttle_time_ms: Annotated[Int32, "1+ ignorable"] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[String | None, "5+ ignorable"] = None
    protocol_name: Annotated[String | None, "5+ ignorable"] = None
    assignment: Bytes = b""
