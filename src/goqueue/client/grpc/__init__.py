"""GoQueue over gRPC: the same broker, for who wants protobuf and streams. Imported only by who asks for it, so that the
client does without grpc otherwise.
"""

from goqueue.client.grpc.calls import GrpcRefused
from goqueue.client.grpc.client import GrpcClient
from goqueue.client.grpc.subscription import GrpcSubscription

__all__ = ["GrpcClient", "GrpcRefused", "GrpcSubscription"]
