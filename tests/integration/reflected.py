"""What grpcurl does, in Python: it knows nothing of a server but what its reflection tells."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tests.integration.process import DEADLINE_S


class Reflected:
    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._told = ProtoReflectionDescriptorDatabase(self._channel)
        self._pool = DescriptorPool(self._told)

    def __enter__(self) -> "Reflected":
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def services(self) -> list[str]:
        return list(self._told.get_services())

    def call(self, name: str, data: str) -> Iterator[dict[str, Any]]:
        """All answers to `package.Service/Method`, as JSON; `data` is one JSON object after another."""
        service, _, word = name.partition("/")
        method: MethodDescriptor = self._pool.FindServiceByName(service).methods_by_name[word]
        requests = [
            ParseDict(each, GetMessageClass(method.input_type)(), descriptor_pool=self._pool) for each in _objects(data)
        ]
        asked = self._asked(method)
        given = iter(requests) if method.client_streaming else requests[0]
        answers = asked(given, timeout=DEADLINE_S)
        try:
            for answer in answers if method.server_streaming else [answers]:
                yield MessageToDict(answer, preserving_proto_field_name=True, descriptor_pool=self._pool)
        finally:
            if method.server_streaming:
                answers.cancel()

    def _asked(self, method: MethodDescriptor) -> Callable[..., Any]:
        kind = ("stream" if method.client_streaming else "unary", "stream" if method.server_streaming else "unary")
        make: Any = getattr(self._channel, "_".join(kind))
        asked: Callable[..., Any] = make(
            f"/{method.containing_service.full_name}/{method.name}",
            request_serializer=GetMessageClass(method.input_type).SerializeToString,
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        return asked


def _objects(data: str) -> Iterator[Any]:
    decoder, text = json.JSONDecoder(), data.strip() or "{}"
    while text:
        found, end = decoder.raw_decode(text)
        yield found
        text = text[end:].strip()
