"""Requests signed as AWS has it: botocore signs, and what is not exactly what was signed is refused in SQS's words."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from goqueue.broker.accounts.accounts import NewKey
from goqueue.broker.accounts.logins import Logins
from goqueue.broker.accounts.sealing import Sealing
from goqueue.broker.gate import Gate
from goqueue.doors.http.app import HttpApp
from goqueue.doors.sqs.app import TARGET, SqsApp
from goqueue.model.refusal import Refused
from goqueue.model.secret import Secret
from goqueue.testing import MemoryBroker, broker
from goqueue.wire.sqs.sigv4 import Signed, read_signature
from tests.unit.doors.http.test_credentials import done_of
from tests.unit.testing.loops import in_loop

URL = "http://goqueue/"
Headers = dict[str, str]


class House:
    def __init__(self, b: MemoryBroker, http: httpx.AsyncClient, key: NewKey) -> None:
        self.b = b
        self.http = http
        self.key = key

    def signed(self, action: str, body: bytes, key_id: str = "", secret: str = "", **more: str) -> Headers:
        """As boto3 sends it: botocore's own code, by the clock of this machine."""
        headers = {"X-Amz-Target": f"AmazonSQS.{action}", "Content-Type": "application/x-amz-json-1.0", **more}
        request = AWSRequest("POST", URL, headers, body)
        credentials = Credentials(key_id or self.key.text.key_id, secret or self.key.text.secret.reveal())
        SigV4Auth(credentials, "sqs", "eu-west-1").add_auth(request)
        return dict(request.headers.items())

    async def send(self, headers: Headers, body: bytes) -> tuple[int, str]:
        reply = await self.http.post("/", headers=headers, content=body)
        return reply.status_code, reply.headers.get("x-amzn-query-error", "").partition(";")[0]

    async def ask(self, action: str, body: bytes = b"{}", **signing: str) -> tuple[int, str]:
        return await self.send(self.signed(action, body, **signing), body)


@asynccontextmanager
async def closed_house(*, is_closed: bool = True, for_sqs: bool = True) -> AsyncIterator[House]:
    async with broker(clock="real") as b:
        node = b.broker
        node.accounts.sealing = Sealing(node.dice, Secret(bytes(32)))
        gate = Gate(node, logins=Logins(node.accounts, node.clock, node.dice, b"secret"), is_closed=is_closed)
        made = await done_of(lambda done: node.accounts.create_key("app", ("admin",), 0, {}, done, is_for_sqs=for_sqs))
        app = HttpApp(gate, by_header={TARGET: SqsApp(gate)})
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://goqueue") as http:
            yield House(b, http, made)


def closed(test: Callable[[House], Awaitable[None]]) -> Callable[[], None]:
    async def inside() -> None:
        async with closed_house() as house:
            await test(house)

    def run() -> None:
        asyncio.run(inside())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


BODY = json.dumps({"QueueName": "orders"}).encode()


@closed
async def test_what_botocore_has_signed_is_taken(house: House) -> None:
    assert await house.ask("CreateQueue", BODY) == (200, "")
    assert await house.ask("GetQueueUrl", BODY) == (200, "")


@closed
async def test_whatever_was_changed_on_the_way_is_refused(house: House) -> None:
    headers = house.signed("CreateQueue", BODY)
    assert await house.send(headers, BODY.replace(b"orders", b"others")) == (403, "SignatureDoesNotMatch")
    for name, value in (("X-Amz-Target", "AmazonSQS.DeleteQueue"), ("Content-Type", "text/plain"), ("Host", "other")):
        assert await house.send({**headers, name: value}, BODY) == (403, "SignatureDoesNotMatch")
    assert await house.send(headers, BODY) == (200, "")


@closed
async def test_a_wrong_secret_and_an_unknown_key_are_told_apart_as_at_aws(house: House) -> None:
    assert await house.ask("CreateQueue", BODY, secret="0" * 64) == (403, "SignatureDoesNotMatch")
    assert await house.ask("CreateQueue", BODY, key_id="k0123456789abcdef") == (403, "InvalidClientTokenId")
    assert await house.ask("CreateQueue", BODY, key_id="AKIAIOSFODNN7EXAMPLE") == (403, "InvalidClientTokenId")
    unsigned = {"X-Amz-Target": "AmazonSQS.CreateQueue"}
    assert await house.send(unsigned, BODY) == (403, "MissingAuthenticationToken")


@closed
async def test_a_signature_is_good_for_five_minutes(house: House) -> None:
    headers = house.signed("CreateQueue", BODY)
    later = int(house.b.broker.clock.now_ms())
    signature = read_signature(headers["Authorization"])
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    request = Signed("POST", b"/", b"", raw, BODY)
    for seconds in (-299, 0, 299):
        request.check_date(signature, later + seconds * 1000)
    old = {**headers, "X-Amz-Date": "20200101T000000Z"}
    old["Authorization"] = headers["Authorization"].replace(signature.date, "20200101")
    assert await house.send(old, BODY) == (400, "RequestExpired")
    assert await house.send({**headers, "X-Amz-Date": "20200101T000000Z"}, BODY) == (403, "SignatureDoesNotMatch")
    assert await house.send({**headers, "X-Amz-Date": "yesterday"}, BODY) == (400, "IncompleteSignature")


@closed
async def test_what_has_to_be_signed_and_is_not_is_refused(house: House) -> None:
    headers = house.signed("CreateQueue", BODY)
    authorization = headers["Authorization"]
    for wrong in (
        authorization.replace(";x-amz-target", ""),
        authorization.replace("SignedHeaders", "Signed"),
        authorization.partition("Signature=")[0],
        "AWS4-HMAC-SHA256",
        "AWS4-HMAC-SHA256 Credential=a/b/c",
    ):
        assert await house.send({**headers, "Authorization": wrong}, BODY) == (400, "IncompleteSignature")
    other = authorization.replace("/sqs/", "/s3/")
    assert await house.send({**headers, "Authorization": other}, BODY) == (403, "SignatureDoesNotMatch")


@closed
async def test_a_signature_that_is_no_text_of_ascii_is_a_wrong_one(house: House) -> None:
    headers = {name.encode(): value.encode() for name, value in house.signed("CreateQueue", BODY).items()}
    headers[b"Authorization"] = headers[b"Authorization"][:-1] + b"\xe9"
    reply = await house.http.post("/", headers=headers, content=BODY)
    assert (reply.status_code, "SignatureDoesNotMatch" in reply.text) == (403, True), reply.text


@closed
async def test_both_secrets_of_a_rotated_key_sign_until_the_older_one_ends(house: House) -> None:
    accounts, key_id = house.b.broker.accounts, house.key.text.key_id
    new = await done_of(lambda done: accounts.rotate_key(key_id, 60_000, done))
    assert await house.ask("CreateQueue", BODY) == (200, "")
    assert await house.ask("CreateQueue", BODY, secret=new.text.secret.reveal()) == (200, "")
    newest = await done_of(lambda done: accounts.rotate_key(key_id, 0, done))
    assert await house.ask("CreateQueue", BODY, secret=new.text.secret.reveal()) == (403, "SignatureDoesNotMatch")
    assert await house.ask("CreateQueue", BODY, secret=newest.text.secret.reveal()) == (200, "")


@in_loop
async def test_a_key_that_was_not_made_for_it_signs_nothing() -> None:
    async with closed_house(for_sqs=False) as house:
        assert await house.ask("CreateQueue", BODY) == (403, "SignatureDoesNotMatch")


@in_loop
async def test_an_open_node_takes_any_name_and_checks_those_of_keys() -> None:
    async with closed_house(is_closed=False) as house:
        assert await house.ask("CreateQueue", BODY, key_id="any", secret="any") == (200, "")
        assert await house.ask("GetQueueUrl", BODY, secret="wrong") == (403, "SignatureDoesNotMatch")
        odd = {"X-Amz-Target": "AmazonSQS.GetQueueUrl", "Authorization": "AWS4-HMAC-SHA256 Credential=any"}
        assert await house.send(odd, BODY) == (200, "")


@in_loop
async def test_without_a_master_key_no_key_for_sqs_is_made_and_the_secret_is_nowhere_in_the_data() -> None:
    async with broker() as b:
        accounts = b.broker.accounts
        with pytest.raises(Refused, match="master_key_file"):
            await done_of(lambda done: accounts.create_key("app", ("admin",), 0, {}, done, is_for_sqs=True))
        accounts.sealing = Sealing(b.broker.dice, Secret(bytes(32)))
        made: Any = await done_of(lambda done: accounts.create_key("app", ("admin",), 0, {}, done, is_for_sqs=True))
        stored = accounts.image.keys[made.text.key_id].secrets[0].sealed
        assert made.text.secret.reveal().encode() not in stored
        assert bytes.fromhex(made.text.secret.reveal()) not in stored
        assert accounts.signing_secret(made.key, made.key.secrets[0]) == made.text.secret
