"""The messages of etcd that a node needs, as descriptors made here: etcd's own .proto files bring a dozen others with
them. Only numbers and types are on the wire, and fields that are not named here are passed over.
"""

from typing import Any, NamedTuple

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

PACKAGE = "goqueue.etcd"
SCALARS = {
    "bytes": FieldDescriptorProto.TYPE_BYTES,
    "string": FieldDescriptorProto.TYPE_STRING,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "uint64": FieldDescriptorProto.TYPE_UINT64,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "enum": FieldDescriptorProto.TYPE_INT32,  # the same on the wire
}
MESSAGES = {
    "Header": "uint64 cluster_id 1, int64 revision 3",
    "KeyValue": "bytes key 1, int64 create_revision 2, int64 mod_revision 3, bytes value 5, int64 lease 6",
    "RangeRequest": "bytes key 1, bytes range_end 2",
    "RangeResponse": "Header header 1, KeyValue* kvs 2, bool more 3",
    "PutRequest": "bytes key 1, bytes value 2, int64 lease 3",
    "DeleteRangeRequest": "bytes key 1",
    "RequestOp": "PutRequest? request_put 2, DeleteRangeRequest? request_delete_range 3",
    "Compare": "enum result 1, enum target 2, bytes key 3, int64? mod_revision 6",
    "TxnRequest": "Compare* compare 1, RequestOp* success 2",
    "TxnResponse": "Header header 1, bool succeeded 2",
    "WatchCreateRequest": "bytes key 1, bytes range_end 2, int64 start_revision 3",
    "WatchProgressRequest": "",
    "WatchRequest": "WatchCreateRequest? create_request 1, WatchProgressRequest? progress_request 3",
    "Event": "enum type 1, KeyValue kv 2",
    "WatchResponse": (
        "Header header 1, int64 watch_id 2, bool created 3, bool canceled 4, int64 compact_revision 5,"
        " string cancel_reason 6, Event* events 11"
    ),
    "LeaseGrantRequest": "int64 TTL 1, int64 ID 2",
    "LeaseGrantResponse": "Header header 1, int64 ID 2, int64 TTL 3, string error 4",
    "LeaseRevokeRequest": "int64 ID 1",
    "LeaseRevokeResponse": "Header header 1",
    "LeaseKeepAliveRequest": "int64 ID 1",
    "LeaseKeepAliveResponse": "Header header 1, int64 ID 2, int64 TTL 3",
    "Member": "uint64 ID 1, string name 2, string* clientURLs 4",
    "MemberListRequest": "",
    "MemberListResponse": "Header header 1, Member* members 2",
    "StatusRequest": "",
    "StatusResponse": "Header header 1, string version 2, uint64 leader 4",
    "AuthenticateRequest": "string name 1, string password 2",
    "AuthenticateResponse": "Header header 1, string token 2",
}
"""`*`: any number of them; `?`: one of several, so that one that is there and has nothing in it is told from none."""


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="goqueue/etcd.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in filter(None, fields.split(", ")):
            kind, field_name, number = field.split(" ")
            bare = kind.rstrip("*?")
            added = message.field.add(name=field_name, number=int(number), label=FieldDescriptorProto.LABEL_OPTIONAL)
            if bare in SCALARS:
                added.type = SCALARS[bare]
            else:
                added.type, added.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{PACKAGE}.{bare}"
            if kind.endswith("*"):
                added.label = FieldDescriptorProto.LABEL_REPEATED
            if kind.endswith("?"):
                if not message.oneof_decl:
                    message.oneof_decl.add(name="one_of")
                added.oneof_index = 0
    return file


_POOL = DescriptorPool()
_POOL.Add(_file())


def message(name: str) -> Any:
    """The class of a message."""
    return GetMessageClass(_POOL.FindMessageTypeByName(f"{PACKAGE}.{name}"))


class Method(NamedTuple):
    path: str
    request: Any
    response: Any


def _method(service: str, name: str, request: str) -> Method:
    return Method(f"/etcdserverpb.{service}/{name}", message(f"{request}Request"), message(f"{request}Response"))


RANGE = _method("KV", "Range", "Range")
TXN = _method("KV", "Txn", "Txn")
WATCH = _method("Watch", "Watch", "Watch")
GRANT = _method("Lease", "LeaseGrant", "LeaseGrant")
REVOKE = _method("Lease", "LeaseRevoke", "LeaseRevoke")
RENEW = _method("Lease", "LeaseKeepAlive", "LeaseKeepAlive")
"""A stream with one message each way is a call like others on the wire."""
MEMBERS = _method("Cluster", "MemberList", "MemberList")
STATUS = _method("Maintenance", "Status", "Status")
AUTHENTICATE = _method("Auth", "Authenticate", "Authenticate")

EQUAL, NOT_EQUAL = 0, 3
MOD = 2
PUT, DELETE = 0, 1

WatchCreate = message("WatchCreateRequest")
WatchProgress = message("WatchProgressRequest")
RequestOp = message("RequestOp")
Compare = message("Compare")


def range_end(prefix: bytes) -> bytes:
    """The first key behind all that begin with `prefix`."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes([trimmed[-1] + 1]) if trimmed else b"\0"
